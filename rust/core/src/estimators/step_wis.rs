//! Step-wise weighted importance sampling, Jiang & Li (2016), eq. (7):
//!
//!     step-WIS = Σ_t γ^{t−1} R_t,    R_t = Σ_i c_t r_t / Σ_i c_t,    c_t = ρ_{1:t}
//!
//! A trajectory that ends after T steps keeps its weight c_T, so the sums are over *all* trajectories. With
//! D_t = Σ_i c_t / n, the standard error is √(Σψ² / (n (n−1))) with the influence function
//!
//!     ψ_i = Σ_{t ≤ T} γ^{t−1} (c_t / D_t) (r_t − R_t) − c_T Σ_{t > T} γ^{t−1} R_t / D_t

use std::ops::Range;

use crate::estimators::about::StepSum;
use crate::estimators::formula::{Ended, Estimated, WholeLog};
use crate::estimators::{About, Estimator, Formula, step_is};
use crate::number::block::{Block, Eight, Real};
use crate::number::running_sum::Lanes;
use crate::number::scaled::Scaled;
use crate::pass::accumulators::PolicySums;
use crate::pass::engine::{Fold, Table};
use crate::pass::fold::Term;
use crate::pass::normalisers::{Over, WeightedMeans, discounted, suffix_sums};

/// The estimator.
pub struct StepWis;

impl Formula for StepWis {
    const ABOUT: About = About {
        id: "step-wis",
        name: "step-wise weighted importance sampling",
        equation: "Σ_t γ^{t−1} Σ_i ρ_{1:t} r_t / Σ_i ρ_{1:t}",
        reference: "Jiang & Li (2016), eq. (7)",
        step_sums: &[StepSum::Weight, StepSum::Reward],
        ..About::RATIO
    };
    const SUMS: usize = 1;

    #[inline(always)]
    fn fold(rows: &Fold, sums: &mut [Lanes]) {
        let reward = rows.reward();
        if rows.pass().is_influence() {
            let terms = Influence { reward, mean_reward: rows.mean_reward() };
            rows.add(&terms, Table::OverWeight, &mut sums[0]);
        } else {
            rows.add(&step_is::WeightedReward { reward }, Table::OverWeight, &mut sums[0]);
        }
    }

    #[inline(always)]
    fn value(ended: &Ended, _into: &mut PolicySums) -> Option<Scaled> {
        Some(if ended.pass.is_influence() { ended.total_less_owed(Estimator::StepWis) } else { ended.total })
    }

    /// Returns Σ_{t > T} γ^{t−1} R_t / D_t.
    fn owed(means: &WeightedMeans, over: &Over) -> Vec<Scaled> {
        suffix_sums(over.steps(), |t| over.weight.get(t) * means.reward(t))
    }

    /// Returns Σ_t γ^{t−1} R_t with its standard error.
    fn estimate(found: &WholeLog) -> Option<Estimated> {
        let means = found.means?;
        let value = discounted(means.rewards(), &means.powers(found.discount));
        Some(Estimated::new(value, found.influence_error()))
    }
}

/// The term c_t.
pub struct Weight;

impl Term for Weight {
    #[inline(always)]
    fn part(&self, _blocks: Range<usize>) -> Self {
        Self
    }

    #[inline(always)]
    fn term<T: Real>(&self, _before: Block<T>, after: Block<T>, _b: usize) -> Block<T> {
        after
    }
}

/// The term c_t (r_t − R_t) of ψ for t ≤ T, which the table multiplies by γ^{t−1}/D_t.
struct Influence<'a> {
    /// r_t
    reward: &'a [Eight],
    /// R_t as the sum of two tables over steps
    mean_reward: [&'a [Eight]; 2],
}

impl Term for Influence<'_> {
    #[inline(always)]
    fn part(&self, blocks: Range<usize>) -> Self {
        Self { reward: &self.reward[blocks.clone()], mean_reward: self.mean_reward.map(|part| &part[blocks.clone()]) }
    }

    #[inline(always)]
    fn term<T: Real>(&self, _before: Block<T>, after: Block<T>, b: usize) -> Block<T> {
        after
            * (Block::load(&self.reward[b])
                - Block::load(&self.mean_reward[0][b])
                - Block::load(&self.mean_reward[1][b]))
    }
}
