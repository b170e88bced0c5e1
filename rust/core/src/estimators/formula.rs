//! The trait of an estimator, from the terms of one step to the estimate of a whole log. The file of an estimator
//! writes only what differs from the defaults here; for a mean of values of trajectories that is often the fold alone.

use crate::estimators::{About, Estimator};
use crate::number::moments::Moments;
use crate::number::running_sum::Lanes;
use crate::number::scaled::Scaled;
use crate::pass::accumulators::PolicySums;
use crate::pass::engine::Fold;
use crate::pass::normalisers::{Over, PolicyTables, WeightedMeans};
use crate::pass::plan::Pass;

/// An estimator.
pub trait Formula {
    /// The description of the estimator: what it is, what it needs, and what may be expected of it.
    const ABOUT: About;

    /// The number of running sums that the estimator keeps of a trajectory. Each has eight lanes.
    const SUMS: usize = 0;

    /// Adds the terms of some rows of a trajectory to its running sums. This is the hot path: it is compiled into the
    /// fold of the engine.
    #[inline(always)]
    fn fold(_rows: &Fold, _sums: &mut [Lanes]) {}

    /// Returns the value of a trajectory that has ended, or its influence value in a pass for standard errors. Returns
    /// None if the estimator adds the trajectory to sums of its own in `into` instead.
    #[inline(always)]
    fn value(ended: &Ended, _into: &mut PolicySums) -> Option<Scaled> {
        Some(ended.total)
    }

    /// Returns what a trajectory of weight 1 that ended after T = 0, …, H steps owes to the steps after its end, where
    /// the normalisers of a weighted estimator still count its weight. Empty if nothing is owed.
    fn owed(_means: &WeightedMeans, _over: &Over) -> Vec<Scaled> {
        vec![]
    }

    /// Returns the estimate from the sums of a whole log, or None if it needs another pass.
    fn estimate(found: &WholeLog) -> Option<Estimated> {
        found.mean()
    }
}

/// A trajectory that has ended.
pub struct Ended<'a> {
    /// The pass over the log.
    pub pass: Pass,
    /// ρ_{1:H}
    pub weight: Scaled,
    /// Σ γ^{t−1} r_t, if an estimator of the pass reads it.
    pub returns: Scaled,
    /// V̂(s_1)
    pub first_v_hat: f64,
    /// T, the number of steps of the trajectory.
    pub steps: u64,
    /// n, which is known in all passes but the first.
    pub episodes: u64,
    /// The running sums of the estimator.
    pub sums: &'a [Lanes],
    /// The total of the running sums; zero for blends.
    pub total: Scaled,
    /// The tables that were made from earlier passes over the policy.
    pub tables: &'a PolicyTables,
    /// The instruction set of the machine.
    pub arch: pulp::Arch,
}

impl Ended<'_> {
    /// Returns the total of the running sums, less what the trajectory owes by [`Formula::owed`].
    #[inline(always)]
    pub fn total_less_owed(&self, estimator: Estimator) -> Scaled {
        let owed = self.tables.owed(estimator).get(self.steps as usize);
        self.total - self.weight * owed.copied().unwrap_or_default()
    }
}

/// The sums of a whole log from which an estimator of one policy makes its estimate.
pub struct WholeLog<'a> {
    /// n
    pub episodes: u64,
    /// γ
    pub discount: f64,
    /// The moments of the estimator's values of trajectories, or of its influence values.
    pub moments: Option<&'a Moments>,
    /// The sums of the first pass.
    pub first: &'a PolicySums,
    /// The sums of the second pass, if there was one.
    pub second: Option<&'a PolicySums>,
    /// The means per step of the first pass, if an estimator of the policy needs them.
    pub means: Option<&'a WeightedMeans>,
}

/// An estimate.
pub struct Estimated {
    /// The value.
    pub value: Scaled,
    /// The standard error, or None if it is not known.
    pub std_error: Option<Scaled>,
    /// For a blend, the numbers of steps after which the model takes over, with their shares.
    pub blend: Option<Vec<(usize, f64)>>,
}

impl Estimated {
    /// Makes an estimate without a blend.
    pub fn new(value: Scaled, std_error: Option<Scaled>) -> Self {
        Self { value, std_error, blend: None }
    }
}

impl WholeLog<'_> {
    /// Returns the mean of the values of trajectories, with SE² = Σ (x − x̄)² / (n (n−1)).
    pub fn mean(&self) -> Option<Estimated> {
        let (n, moments) = (self.episodes, self.moments?);
        Some(Estimated::new(moments.mean(n), (n > 1).then(|| moments.std_error(n))))
    }

    /// Returns SE = √(Σ ψ² / (n (n−1))) of the influence values ψ, if the second pass has found them.
    pub fn influence_error(&self) -> Option<Scaled> {
        let (n, moments) = (self.episodes, self.moments?);
        (n > 1 && self.second.is_some()).then(|| moments.influence_error(n))
    }
}
