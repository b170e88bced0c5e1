//! From the sums of a whole log to estimates and standard errors.

use serde::{Deserialize, Serialize};

use crate::diagnostics::numbers::Diagnosis;
use crate::estimators::formula::{Estimated, WholeLog};
use crate::estimators::{About, Estimator};
use crate::number::moments::Moments;
use crate::number::scaled::Scaled;
use crate::pass::accumulators::{Accumulators, PolicySums};
use crate::pass::normalisers::Normalisers;
use crate::pass::plan::{Pass, Plan, Work};

/// A number that f64 may not hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Number {
    /// The nearest f64, where there is one.
    pub value: Option<f64>,
    /// log10 of its magnitude, where there is none.
    pub log10: Option<f64>,
}

impl From<Scaled> for Number {
    fn from(x: Scaled) -> Self {
        let value = x.to_f64();
        Self { value, log10: value.is_none().then(|| x.log10()) }
    }
}

impl Number {
    /// True for what is no number at all, such as the root of a negative one: sums of a log never lead to it.
    pub fn is_nan(&self) -> bool {
        self.value.is_none() && self.log10.is_none_or(f64::is_nan)
    }
}

/// One estimate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// Index of the policy.
    pub policy: usize,
    /// Which estimator.
    pub estimator: Estimator,
    /// Its value.
    pub value: Number,
    /// Its standard error; None for a single trajectory.
    pub std_error: Option<Number>,
    /// The least and the largest value of a trajectory, of a mean of such values; infinite where f64 does not reach.
    pub extremes: Option<(f64, f64)>,
    /// The largest share of one trajectory in its variance, where that is known.
    pub concentration: Option<f64>,
    /// The skewness of what the trajectories add to it, where that is known.
    pub skewness: Option<f64>,
    /// Its difference from the value of the behaviour policy, on request.
    pub difference: Option<Difference>,
    /// Of `magic`: the numbers of steps after which the model goes on, and their shares.
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
    /// None for a single trajectory.
    pub std_error: Option<Number>,
    /// The least and the largest d_i, of a mean of values of trajectories; infinite where f64 does not reach.
    pub extremes: Option<(f64, f64)>,
    /// The largest share of one trajectory in its variance.
    pub concentration: Option<f64>,
}

impl Difference {
    /// Of the moments of paired values; that of a ratio of sums is counted from its own value and the mean return.
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

/// What is known of a policy's weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Weights {
    /// (Σ ρ_{1:H})² / Σ ρ_{1:H}²
    pub ess: f64,
    /// Largest share of one trajectory in Σ ρ_{1:H}.
    pub largest_share: f64,
    /// Mean of ρ_{1:H}, 1 in expectation.
    pub mean: f64,
    /// First step at which every weight is zero.
    pub dead_from: Option<u64>,
    /// Whether they can be trusted, on request.
    pub diagnosis: Option<Diagnosis>,
}

/// All that an evaluation found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// n
    pub episodes: u64,
    /// Rows.
    pub steps: u64,
    /// H
    pub horizon: u64,
    /// Number of trajectories by length.
    pub lengths: Vec<(u64, u64)>,
    /// In the plan's order.
    pub estimates: Vec<Estimate>,
    /// Of each policy.
    pub weights: Vec<Weights>,
}

/// What a pass has done for a policy.
struct Done<'a> {
    work: Vec<Work>,
    sums: &'a PolicySums,
}

impl<'a> Done<'a> {
    /// The moments of an estimator's values, and of their differences from the returns where these were asked for.
    fn of(&self, estimator: Estimator) -> Option<(&'a Moments, Option<&'a Moments>)> {
        let index = self.work.iter().position(|work| work.estimator == estimator)?;
        Some((&self.sums.moments[index], self.sums.paired.get(index)))
    }
}

impl Outcome {
    /// From the sums of the first pass, what they tell of the weights of each policy, the normalisers, and the sums of
    /// the second pass where there was one.
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
    /// True where something is no number: then the sums cannot be those of a log.
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
