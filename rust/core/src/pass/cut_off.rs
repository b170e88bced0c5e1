//! The bias that the missing rewards of truncated trajectories can cause. Suppose that trajectories that were cut off
//! after L < H steps with the weight c_L had gone on to the horizon, and had earned at each step as much as the log's
//! best step earns on average. They would have added
//!
//!     m · Σ_i c_L Σ_{t=L+1}^{H} γ^{t−1} / Σ_i c_H,    m = max_t Σ_i c_t |r_t| / Σ_i c_t
//!
//! where the sums of m are over the trajectories that have a step t.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::number::block::{Block, Eight, Real};
use crate::number::scaled::Scaled;
use crate::number::step_sums::StepSums;
use crate::number::sum::Sum;
use crate::pass::accumulators::PolicySums;
use crate::pass::fold::Term;
use crate::pass::plan::Plan;

/// The sums of one policy from which the bias is computed, kept if truncated trajectories are accepted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CutOff {
    /// Σ c_L of the trajectories that were cut off, by L.
    weights: BTreeMap<u64, Sum>,
    /// Σ c_t |r_t|
    pub reward: StepSums,
}

impl CutOff {
    /// Adds the weight of a trajectory that was cut off after this number of steps.
    pub fn note(&mut self, steps: u64, weight: Scaled) {
        self.weights.entry(steps).or_default().add(weight);
    }

    /// Adds all of another set.
    pub fn merge(&mut self, other: Self) {
        for (steps, weight) in &other.weights {
            self.weights.entry(*steps).or_default().merge(weight);
        }
        self.reward.merge(other.reward);
    }

    /// Returns the bias, which is 0 if no trajectory was cut off before H.
    pub fn bias(&self, plan: &Plan, sums: &PolicySums, longest: u64) -> f64 {
        let horizon = plan.horizon.unwrap_or(longest);
        let total = sums.weights().total().value();
        let missing = self.weights.range(..horizon).fold(Scaled::ZERO, |sum, (&steps, weight)| {
            sum + weight.value() * Scaled::from(remaining(plan.discount, steps, horizon))
        });
        if missing.is_zero() {
            return 0.0;
        }
        let best = (0..longest as usize)
            .map(|index| (self.reward.sum(index), sums.weight.sum(index)))
            .filter(|(_, weight)| !weight.value().is_zero())
            .map(|(reward, weight)| reward.exact().divide(&weight.exact()))
            .fold(Scaled::ZERO, |best, mean| if mean.compare(best).is_gt() { mean } else { best });
        (best * missing / total).lossy_f64()
    }
}

/// Returns Σ_{t=L+1}^{H} γ^{t−1}.
fn remaining(discount: f64, steps: u64, horizon: u64) -> f64 {
    let left = (horizon - steps) as f64;
    if discount == 1.0 || left == 0.0 {
        return left;
    }
    discount.powf(steps as f64) * -(left * discount.ln()).exp_m1() / (1.0 - discount)
}

/// The term c_t |r_t|.
pub struct AbsoluteReward<'a> {
    /// r_t
    pub reward: &'a [Eight],
}

impl Term for AbsoluteReward<'_> {
    #[inline(always)]
    fn part(&self, blocks: Range<usize>) -> Self {
        Self { reward: &self.reward[blocks] }
    }

    #[inline(always)]
    fn term<T: Real>(&self, _before: Block<T>, after: Block<T>, b: usize) -> Block<T> {
        after * Block::load(&self.reward[b].map(f64::abs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_discounts_of_the_steps_that_are_missing_add_up() {
        for discount in [0.0, 0.5, 0.9, 1.0] {
            for (steps, horizon) in [(1, 2), (3, 10), (1, 1)] {
                let slow: f64 = (steps..horizon).map(|t| f64::powi(discount, t as i32)).sum();
                assert!((remaining(discount, steps, horizon) - slow).abs() < 1e-12, "{discount} {steps} {horizon}");
            }
        }
    }
}
