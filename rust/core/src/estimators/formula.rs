//! What an estimator computes, from the terms of one step to the estimate of a whole log. A file of an estimator writes
//! down what is its own, and takes the rest from here: of a mean of values of trajectories that is the fold alone.

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
    /// What it is, what it needs, and what may be expected of it.
    const ABOUT: About;

    /// The number of running sums that it keeps of a trajectory, eight lanes each.
    const SUMS: usize = 0;

    /// Adds the terms of some rows of a trajectory to its running sums. This is the hot path: it is compiled into the
    /// fold of the engine.
    #[inline(always)]
    fn fold(_rows: &Fold, _sums: &mut [Lanes]) {}

    /// The value of a trajectory that has ended, or in a pass for standard errors its influence value. None where the
    /// trajectory goes into sums of the estimator's own, `into`.
    #[inline(always)]
    fn value(ended: &Ended, _into: &mut PolicySums) -> Option<Scaled> {
        Some(ended.total)
    }

    /// What a trajectory of weight 1 that ended after T = 0, …, H steps owes to the steps after its end: a weighted
    /// estimator counts its weight there too. Empty where nothing is owed.
    fn owed(_means: &WeightedMeans, _over: &Over) -> Vec<Scaled> {
        vec![]
    }

    /// The estimate from the sums of a whole log, None where the passes so far do not tell it.
    fn estimate(found: &WholeLog) -> Option<Estimated> {
        found.mean()
    }
}

/// A trajectory that has ended.
pub struct Ended<'a> {
    /// Which pass this is.
    pub pass: Pass,
    /// ρ_{1:H}
    pub weight: Scaled,
    /// Σ γ^{t−1} r_t, where an estimator of the pass reads it.
    pub returns: Scaled,
    /// V̂(s_1)
    pub first_v_hat: f64,
    /// T
    pub steps: u64,
    /// n, which is known in all passes but the first.
    pub episodes: u64,
    /// The running sums of the estimator.
    pub sums: &'a [Lanes],
    /// Their total, of all but blends.
    pub total: Scaled,
    /// What earlier passes found of the policy.
    pub tables: &'a PolicyTables,
    /// The instruction set of the machine.
    pub arch: pulp::Arch,
}

impl Ended<'_> {
    /// The total of the running sums, less what the trajectory owes to the steps after its end: see [`Formula::owed`].
    #[inline(always)]
    pub fn total_less_owed(&self, estimator: Estimator) -> Scaled {
        let owed = self.tables.owed(estimator).get(self.steps as usize);
        self.total - self.weight * owed.copied().unwrap_or_default()
    }
}

/// What a whole log tells of an estimator of one policy.
pub struct WholeLog<'a> {
    /// n
    pub episodes: u64,
    /// γ
    pub discount: f64,
    /// Of its values of trajectories, or of its influence values.
    pub moments: Option<&'a Moments>,
    /// The sums of the first pass.
    pub first: &'a PolicySums,
    /// The sums of the second pass, where there was one.
    pub second: Option<&'a PolicySums>,
    /// Means by step of the first pass, where an estimator of the policy needs them.
    pub means: Option<&'a WeightedMeans>,
}

/// An estimate.
pub struct Estimated {
    /// Its value.
    pub value: Scaled,
    /// Its standard error, None where it is not known.
    pub std_error: Option<Scaled>,
    /// Of a blend: numbers of steps after which the model goes on, and their shares.
    pub blend: Option<Vec<(usize, f64)>>,
}

impl Estimated {
    /// Without a blend.
    pub fn new(value: Scaled, std_error: Option<Scaled>) -> Self {
        Self { value, std_error, blend: None }
    }
}

impl WholeLog<'_> {
    /// The mean of the values of trajectories, SE² = Σ (x − x̄)² / (n (n−1)).
    pub fn mean(&self) -> Option<Estimated> {
        let (n, moments) = (self.episodes, self.moments?);
        Some(Estimated::new(moments.mean(n), (n > 1).then(|| moments.std_error(n))))
    }

    /// SE² = Σ ψ² / (n (n−1)) of influence values ψ, where the second pass has found them.
    pub fn influence_error(&self) -> Option<Scaled> {
        let (n, moments) = (self.episodes, self.moments?);
        (n > 1 && self.second.is_some()).then(|| moments.influence_error(n))
    }
}
