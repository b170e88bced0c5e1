//! The outcome of an evaluation: estimates, standard errors and diagnostics, made from the sums of a whole log.

use serde::{Deserialize, Serialize};

use crate::diagnostics::numbers::Diagnosis;
use crate::estimators::formula::{Estimated, WholeLog};
use crate::estimators::{About, Estimator};
use crate::number::moments::Moments;
use crate::number::scaled::Scaled;
use crate::pass::accumulators::{Accumulators, PolicySums};
use crate::pass::normalisers::Normalisers;
use crate::pass::plan::{Pass, Plan, Work};

/// A number that may be out of the range of f64.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Number {
    /// The nearest f64, or None if the number is out of range.
    pub value: Option<f64>,
    /// The log10 of its magnitude, if it is out of range.
    pub log10: Option<f64>,
}

impl From<Scaled> for Number {
    fn from(x: Scaled) -> Self {
        let value = x.to_f64();
        Self { value, log10: value.is_none().then(|| x.log10()) }
    }
}

impl Number {
    /// Returns true for NaN, such as the root of a negative number. The sums of a real log never lead to it.
    pub fn is_nan(&self) -> bool {
        self.value.is_none() && self.log10.is_none_or(f64::is_nan)
    }
}

/// One estimate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// The index of the policy.
    pub policy: usize,
    /// The estimator.
    pub estimator: Estimator,
    /// The value.
    pub value: Number,
    /// The standard error, or None if it is not known, as for a single trajectory.
    pub std_error: Option<Number>,
    /// The least and the largest value of a trajectory, if the estimate is the mean of such values. A value out of the
    /// range of f64 is infinite.
    pub extremes: Option<(f64, f64)>,
    /// The largest share of one trajectory in the variance, if that is known.
    pub concentration: Option<f64>,
    /// The skewness of what the trajectories add to the estimate, if that is known.
    pub skewness: Option<f64>,
    /// The difference from the value of the behaviour policy, if the plan asks for it.
    pub difference: Option<Difference>,
    /// For `magic`, the numbers of steps after which the model takes over, with their shares.
    pub blend: Option<Vec<(usize, f64)>>,
}

/// An estimate less the mean return, with the standard error of the paired values of trajectories:
///
///     Δ = θ − Ḡ,    SE² = Σ (d_i − d̄)² / (n (n−1)),    d_i = ψ_i − G_i
///
/// where ψ_i is the value of trajectory i, or its influence value for a weighted estimator.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Difference {
    /// Δ
    pub value: Number,
    /// SE, or None for a single trajectory.
    pub std_error: Option<Number>,
    /// The least and the largest d_i, if the estimate is a mean of values of trajectories. A value out of the range of
    /// f64 is infinite.
    pub extremes: Option<(f64, f64)>,
    /// The largest share of one trajectory in the variance.
    pub concentration: Option<f64>,
}

impl Difference {
    /// Makes the difference from the moments of paired values. For a weighted estimator Δ is its value less the mean
    /// return.
    fn new(about: &About, value: Scaled, paired: &Moments, n: u64, mean_return: Option<Scaled>) -> Option<Self> {
        let mean = if about.weighted { value - mean_return? } else { paired.mean(n) };
        Some(Self {
            value: mean.into(),
            std_error: (n > 1).then(|| paired.std_error(n).into()),
            extremes: paired.extremes().filter(|_| !about.weighted),
            concentration: (n > 1).then(|| paired.concentration(n)),
        })
    }
}

/// The effective sample size and other numbers that describe a policy's weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Weights {
    /// (Σ ρ_{1:H})² / Σ ρ_{1:H}²
    pub ess: f64,
    /// The largest share of one trajectory in Σ ρ_{1:H}.
    pub largest_share: f64,
    /// The mean of ρ_{1:H}, which is 1 in expectation.
    pub mean: f64,
    /// The first step at which every weight is zero, if there is one.
    pub dead_from: Option<u64>,
    /// The diagnostics that tell whether the weights can be trusted, if the plan asks for them.
    pub diagnosis: Option<Diagnosis>,
}

/// The numbers that an evaluation found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// n
    pub episodes: u64,
    /// The number of rows.
    pub steps: u64,
    /// H
    pub horizon: u64,
    /// The lengths of trajectories, each with the number of trajectories that have it.
    pub lengths: Vec<(u64, u64)>,
    /// The estimates, in the plan's order.
    pub estimates: Vec<Estimate>,
    /// The weights of each policy.
    pub weights: Vec<Weights>,
}

/// The work of a pass for one policy, and the sums that it found.
struct Done<'a> {
    work: Vec<Work>,
    sums: &'a PolicySums,
}

impl<'a> Done<'a> {
    /// Returns the moments of an estimator's values, and those of their differences from the returns if there are any.
    fn of(&self, estimator: Estimator) -> Option<(&'a Moments, Option<&'a Moments>)> {
        let index = self.work.iter().position(|work| work.estimator == estimator)?;
        Some((&self.sums.moments[index], self.sums.paired.get(index)))
    }
}

impl Outcome {
    /// Makes the outcome from the sums of the first pass, the diagnostics of each policy's weights, the normalisers,
    /// and the sums of the second pass if there was one.
    pub fn new(
        plan: &Plan,
        first: &Accumulators,
        diagnoses: Vec<Option<Diagnosis>>,
        normalisers: &Normalisers,
        second: Option<&Accumulators>,
    ) -> Self {
        let n = first.episodes();
        let mut estimates = vec![];
        for (p, policy) in plan.policies.iter().enumerate() {
            let means = normalisers.policies[p].as_ref();
            let later = second.map(|second| &second.policies[p]);
            let early = Done { work: plan.work(policy, Pass::First), sums: &first.policies[p] };
            let late = later.map(|sums| Done { work: plan.work(policy, Pass::Second), sums });
            for &estimator in &policy.estimators {
                let about = estimator.about();
                let values = if about.weighted { None } else { early.of(estimator) };
                let (moments, paired) = values.or_else(|| late.as_ref()?.of(estimator)).unzip();
                let discount = plan.discount;
                let found = WholeLog { episodes: n, discount, moments, first: early.sums, second: later, means };
                let Some(Estimated { value, std_error, blend }) = estimator.estimate(&found) else { continue };
                let moments = moments.filter(|_| n > 1 && !about.is_blend());
                let concentration = moments.map(|moments| {
                    if about.weighted { moments.influence_concentration() } else { moments.concentration(n) }
                });
                let mean_return = if about.weighted { first.mean_return(plan) } else { None };
                let paired = paired.flatten().filter(|_| !about.is_blend());
                estimates.push(Estimate {
                    policy: p,
                    estimator,
                    value: value.into(),
                    std_error: std_error.map(Number::from),
                    extremes: found.moments.and_then(Moments::extremes).filter(|_| !about.weighted),
                    concentration,
                    skewness: moments.and_then(|moments| moments.skewness(n)),
                    difference: paired.and_then(|paired| Difference::new(about, value, paired, n, mean_return)),
                    blend,
                });
            }
        }
        let weights = first.policies.iter().zip(diagnoses).map(|(sums, diagnosis)| {
            let weights = sums.weights();
            let total = weights.total().value();
            let share = if total.is_zero() { Scaled::ZERO } else { weights.largest() / total };
            Weights {
                ess: weights.effective_size(),
                largest_share: share.lossy_f64(),
                mean: weights.mean(n).lossy_f64(),
                dead_from: sums.dead_from(),
                diagnosis,
            }
        });
        Self {
            episodes: n,
            steps: first.steps(),
            horizon: normalisers.horizon,
            lengths: first.lengths.iter().map(|(&length, &count)| (length, count)).collect(),
            estimates,
            weights: weights.collect(),
        }
    }
}

impl Outcome {
    /// Returns true if some number is NaN, which means that the sums cannot be those of a log.
    pub fn has_nan(&self) -> bool {
        let of_estimate = |estimate: &Estimate| {
            let difference = estimate.difference.as_ref();
            let numbers = [Some(&estimate.value), estimate.std_error.as_ref()].into_iter().flatten();
            let differences = difference.into_iter().flat_map(|d| [Some(&d.value), d.std_error.as_ref()]).flatten();
            let shares = [estimate.concentration, estimate.skewness, difference.and_then(|d| d.concentration)];
            let blend = estimate.blend.iter().flatten().map(|&(_, share)| share);
            numbers.chain(differences).any(Number::is_nan) || shares.into_iter().flatten().chain(blend).any(f64::is_nan)
        };
        let of_weights = |weights: &Weights| {
            let numbers = [weights.ess, weights.largest_share, weights.mean];
            numbers.into_iter().any(f64::is_nan) || weights.diagnosis.as_ref().is_some_and(Diagnosis::has_nan)
        };
        self.estimates.iter().any(of_estimate) || self.weights.iter().any(of_weights)
    }
}
