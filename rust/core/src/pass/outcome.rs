//! From the sums of a whole log to estimates and standard errors.

use serde::{Deserialize, Serialize};

use crate::diagnostics::numbers::Diagnosis;
use crate::estimators::Estimator;
use crate::estimators::magic::Blend;
use crate::number::moments::Moments;
use crate::number::scaled::Scaled;
use crate::pass::accumulators::Accumulators;
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
            for &estimator in &policy.estimators {
                if estimator == Estimator::Magic {
                    estimates.extend(second.and_then(|second| magic(plan, normalisers, second, p)));
                    continue;
                }
                let sums = &first.policies[p];
                let index_in =
                    |pass| plan.work(policy, pass).iter().position(|work: &Work| work.estimator == estimator);
                let moments =
                    |sums: &Accumulators, pass| index_in(pass).map(|index| sums.policies[p].moments[index].clone());
                let later = second.and_then(|second| moments(second, Pass::Second));
                let own = moments(first, Pass::First).or(later.clone()).unwrap_or_default();
                let value = match estimator {
                    Estimator::Wis => sums.wis.value(),
                    Estimator::StepWis => normalisers.step_wis(p, plan.discount),
                    Estimator::Wdr => normalisers.wdr(p, plan.discount),
                    _ => Some(own.mean(n)),
                };
                let weighted_by_step = matches!(estimator, Estimator::StepWis | Estimator::Wdr);
                let known = n > 1 && (second.is_some() || !weighted_by_step);
                let std_error = known.then(|| match estimator {
                    Estimator::Wis => sums.wis.std_error(n),
                    Estimator::StepWis | Estimator::Wdr => own.influence_error(n),
                    _ => own.std_error(n),
                });
                let concentration = known.then(|| match estimator {
                    Estimator::Wis => later.as_ref().map(Moments::influence_concentration),
                    Estimator::StepWis | Estimator::Wdr => Some(own.influence_concentration()),
                    _ => Some(own.concentration(n)),
                });
                let added = if estimator == Estimator::Wis { later.as_ref() } else { Some(&own) };
                let skewness = added.filter(|_| known).and_then(|added| added.skewness(n));
                let weighted = weighted_by_step || estimator == Estimator::Wis;
                let value = value.unwrap_or_default();
                let difference = || {
                    let late = |second: &Accumulators| {
                        index_in(Pass::Second).and_then(|index| second.policies[p].paired.get(index).cloned())
                    };
                    let early = || index_in(Pass::First).and_then(|index| sums.paired.get(index).cloned());
                    let paired = second.and_then(late).or_else(|| early().filter(|_| !weighted))?;
                    let mean = if weighted { value - first.mean_return(plan)? } else { paired.mean(n) };
                    Some(Difference {
                        value: mean.into(),
                        std_error: (n > 1).then(|| paired.std_error(n).into()),
                        extremes: paired.extremes().filter(|_| !weighted),
                        concentration: (n > 1).then(|| paired.concentration(n)),
                    })
                };
                let difference = difference();
                let std_error = std_error.map(Number::from);
                let (concentration, blend) = (concentration.flatten(), None);
                let extremes = own.extremes().filter(|_| !weighted);
                let value = value.into();
                let estimate = Estimate {
                    policy: p,
                    estimator,
                    value,
                    std_error,
                    extremes,
                    concentration,
                    skewness,
                    difference,
                    blend,
                };
                estimates.push(estimate);
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

/// `magic`, whose value too needs the sums of the second pass.
fn magic(plan: &Plan, normalisers: &Normalisers, second: &Accumulators, policy: usize) -> Option<Estimate> {
    let (lengths, returns) = normalisers.returns(policy, plan.discount)?;
    let Blend { shares, value, std_error } = Blend::new(&returns, &second.policies[policy].gram, normalisers.episodes);
    let (value, std_error) = (value.into(), std_error.map(Number::from));
    let (estimator, blend) = (Estimator::Magic, Some(lengths.into_iter().zip(shares).collect()));
    let (extremes, concentration, skewness, difference) = (None, None, None, None);
    Some(Estimate { policy, estimator, value, std_error, extremes, concentration, skewness, difference, blend })
}
