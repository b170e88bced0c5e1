//! The sums that a pass leaves behind, over trajectories and over trajectories per step. They are small, and sums of
//! parts of a log merge.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::diagnostics::sums::Watch;
use crate::estimators::wis::WisSums;
use crate::log::ids::Id;
use crate::log::problem::Place;
use crate::number::gram::Gram;
use crate::number::moments::Moments;
use crate::number::scaled::Scaled;
use crate::number::step_sums::StepSums;
use crate::pass::plan::{Pass, Plan};

/// The value that an estimator gives to one trajectory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrajectoryValue {
    /// The place where the trajectory starts.
    pub place: Place,
    /// The id of the trajectory.
    pub episode: Id,
    /// The value of the trajectory.
    pub value: Scaled,
}

/// The sums of one policy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PolicySums {
    /// The moments of the values of each item of work, in the plan's order.
    pub moments: Vec<Moments>,
    /// The moments of the values less the returns of the trajectories, if the plan asks for differences.
    pub paired: Vec<Moments>,
    /// The sums of `wis`.
    pub wis: WisSums,
    /// The last step at which the weight of a trajectory became zero.
    last_zero: u64,
    /// True once a trajectory has ended with a weight above zero.
    alive: bool,
    /// Σ c_t
    pub weight: StepSums,
    /// Σ c_t r_t
    pub reward: StepSums,
    /// Σ c_t (r_t − Q̂_t)
    pub residual: StepSums,
    /// Σ c_{t−1} V̂_t
    pub value: StepSums,
    /// Σ ψ_j ψ_k of `magic`.
    pub gram: Gram,
    /// The moments of the final weights, by the length of the trajectory.
    pub ended: BTreeMap<u64, Moments>,
    /// The sums for the diagnostics of the weights, if the plan asks for them.
    pub watch: Watch,
    /// The values of single trajectories, if the pass keeps them.
    pub values: Vec<TrajectoryValue>,
}

/// The sums of all policies, and the lengths of the trajectories.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Accumulators {
    /// The sums of the behaviour policy, followed by those of the target policies.
    pub policies: Vec<PolicySums>,
    /// The number of trajectories of each length.
    pub lengths: BTreeMap<u64, u64>,
}

impl Accumulators {
    /// Makes empty sums for a pass.
    pub fn new(plan: &Plan, pass: Pass) -> Self {
        let sums = |(index, policy)| {
            let moments = vec![Moments::default(); plan.work(policy, pass).len()];
            let paired = if plan.paired && index > 0 { moments.clone() } else { vec![] };
            PolicySums { moments, paired, ..PolicySums::default() }
        };
        Self { policies: plan.policies.iter().enumerate().map(sums).collect(), lengths: BTreeMap::new() }
    }

    /// Returns n, the number of trajectories.
    pub fn episodes(&self) -> u64 {
        self.lengths.values().sum()
    }

    /// Returns the mean return of the trajectories, if the pass found it.
    pub fn mean_return(&self, plan: &Plan) -> Option<Scaled> {
        let index =
            plan.work(&plan.policies[0], Pass::First).iter().position(|work| work.estimator.about().of_behavior)?;
        Some(self.policies[0].moments[index].mean(self.episodes()))
    }

    /// Returns the number of rows.
    pub fn steps(&self) -> u64 {
        self.lengths.iter().map(|(length, count)| length * count).sum()
    }

    /// Returns the length of the longest trajectory.
    pub fn longest(&self) -> u64 {
        self.lengths.keys().next_back().copied().unwrap_or(0)
    }

    /// Adds all of another set.
    pub fn merge(&mut self, other: Self) {
        for (ours, theirs) in self.policies.iter_mut().zip(other.policies) {
            ours.merge(theirs);
        }
        for (length, count) in other.lengths {
            *self.lengths.entry(length).or_default() += count;
        }
    }
}

impl PolicySums {
    /// Adds the final weight of a trajectory with this number of steps. `zero_at` is the step at which the weight
    /// became zero, if it did.
    pub fn end(&mut self, steps: u64, weight: Scaled, zero_at: Option<u64>) {
        self.ended.entry(steps).or_default().add(weight);
        self.alive |= zero_at.is_none();
        self.last_zero = self.last_zero.max(zero_at.unwrap_or(0));
    }

    /// Adds `count` trajectories of `steps` steps whose final weight is 1.
    pub fn end_with_one(&mut self, steps: u64, count: u32) {
        self.ended.entry(steps).or_default().add_times(Scaled::ONE, count);
        self.alive = true;
    }

    /// Returns the moments of the final weights ρ_{1:H}.
    pub fn weights(&self) -> Moments {
        let mut all = Moments::default();
        self.ended.values().for_each(|weights| all.merge(weights));
        all
    }

    /// Frees the sums per step.
    pub fn forget_steps(&mut self) {
        (self.weight, self.reward, self.residual, self.value) = Default::default();
    }

    /// Returns the first step t at which every weight is zero, if there is one.
    pub fn dead_from(&self) -> Option<u64> {
        (!self.alive && self.last_zero > 0).then_some(self.last_zero)
    }

    fn merge(&mut self, mut other: Self) {
        for (ours, theirs) in self.moments.iter_mut().zip(&other.moments) {
            ours.merge(theirs);
        }
        for (ours, theirs) in self.paired.iter_mut().zip(&other.paired) {
            ours.merge(theirs);
        }
        self.wis.merge(&other.wis);
        self.last_zero = self.last_zero.max(other.last_zero);
        self.alive |= other.alive;
        self.weight.merge(other.weight);
        self.reward.merge(other.reward);
        self.residual.merge(other.residual);
        self.value.merge(other.value);
        self.gram.merge(other.gram);
        for (length, weight) in &other.ended {
            self.ended.entry(*length).or_default().merge(weight);
        }
        self.watch.merge(other.watch);
        self.values.append(&mut other.values);
    }
}
