//! What the second pass needs of the first: the horizon, and for each weighted policy the tables of its influence functions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::estimators::magic::{self, Segments};
use crate::estimators::{Estimator, dr_bsl};
use crate::number::block::LANES;
use crate::number::scaled::Scaled;
use crate::number::sum::{Exact, Sum};
use crate::pass::accumulators::{Accumulators, PolicySums};
use crate::pass::plan::{Plan, Policy};
use crate::pass::table::StepTable;

/// Tables over more steps than this are not made.
const LONGEST: u64 = 1 << 32;

/// A mean with twice the digits of a float: what is left of a reward after its mean may be far smaller than either.
type Mean = [Scaled; 2];

/// Means over trajectories at each step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WeightedMeans {
    /// D_t for t = 0, …, H, with D_0 = 1.
    weight: Vec<Scaled>,
    /// R_t, mean of r_t under the weights of step t.
    reward: Vec<Mean>,
    /// A_t, mean of r_t − Q̂_t under the weights of step t.
    residual: Vec<Mean>,
    /// B_t, mean of V̂_t under the weights of step t−1.
    value: Vec<Mean>,
}

/// The result of the first pass that the second reads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Normalisers {
    /// H
    pub horizon: u64,
    /// n
    pub episodes: u64,
    /// Every value is of ordinary magnitude.
    pub tame: bool,
    /// For each policy, where it has weighted estimators.
    pub policies: Vec<Option<WeightedMeans>>,
    /// n / Σ ρ_{1:H} and θ of each policy, where `wis` is asked for.
    pub wis: Vec<Option<(Scaled, Scaled)>>,
}

/// Every weight of a policy is zero at a step, so a weighted estimator has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoWeight {
    /// Index of the policy.
    pub policy: usize,
    /// t, from 1.
    pub step: u64,
}

impl Normalisers {
    /// What stands before them where they travel.
    pub const KIND: &str = "normalisers";

    /// From the sums of a whole log, of which those over steps are let go.
    pub fn new(plan: &Plan, sums: &mut Accumulators, tame: bool) -> Result<Self, NoWeight> {
        Self::need_weights(plan, sums)?;
        let longest = sums.longest();
        let (horizon, n) = (plan.horizon.unwrap_or(longest), sums.episodes());
        let mut normalisers = Self { horizon, episodes: n, tame, ..Self::default() };
        for (policy, sums) in plan.policies.iter().zip(&mut sums.policies) {
            let means = by_step(policy).then(|| WeightedMeans::new(policy, sums, longest as usize, n));
            sums.forget_steps();
            let wis = policy.estimators.contains(&Estimator::Wis);
            let wis = wis.then(|| (sums.wis.normaliser(n), sums.wis.value().unwrap_or_default()));
            normalisers.policies.push(means);
            normalisers.wis.push(wis);
        }
        Ok(normalisers)
    }

    /// The longest trajectory that the tables made of these reach to.
    pub fn longest(&self) -> u64 {
        let steps = self.policies.iter().flatten().map(|means| means.weight.len() as u64 - 1);
        steps.chain([self.horizon]).min().unwrap_or(self.horizon)
    }

    /// Says why these cannot be those of a plan, or of the first pass of a plan with more estimators.
    pub fn check(&self, plan: &Plan) -> Result<(), &'static str> {
        let policies = plan.policies.len();
        if self.policies.len() != policies || self.wis.len() != policies {
            return Err("the normalisers are of another number of policies");
        }
        if self.horizon > LONGEST || plan.horizon.is_some_and(|horizon| horizon != self.horizon) {
            return Err("the normalisers are of another horizon");
        }
        for ((means, wis), policy) in self.policies.iter().zip(&self.wis).zip(&plan.policies) {
            let asks = |estimator: Estimator| policy.estimators.contains(&estimator);
            let blended = asks(Estimator::Wdr) || asks(Estimator::Magic);
            let steps = means.as_ref().and_then(|means| means.weight.len().checked_sub(1));
            let known = |means: &[Mean], needed: bool| steps == Some(means.len()) || !needed && means.is_empty();
            let fits = means.as_ref().is_none_or(|means| {
                known(&means.reward, asks(Estimator::StepWis))
                    && known(&means.residual, blended)
                    && known(&means.value, blended)
                    && steps.is_some_and(|steps| steps as u64 <= self.horizon)
            });
            let missing = means.is_none() && (blended || asks(Estimator::StepWis));
            if !fits || missing || wis.is_none() && asks(Estimator::Wis) {
                return Err("the normalisers are of other estimators");
            }
        }
        Ok(())
    }

    /// Refuses a weighted estimator of a policy without any weight at some step.
    pub fn need_weights(plan: &Plan, sums: &Accumulators) -> Result<(), NoWeight> {
        for (index, (policy, sums)) in plan.policies.iter().zip(&sums.policies).enumerate() {
            let weighted = by_step(policy) || policy.estimators.contains(&Estimator::Wis);
            if let Some(step) = sums.dead_from().filter(|_| weighted) {
                return Err(NoWeight { policy: index, step });
            }
        }
        Ok(())
    }

    /// `step-wis` of a policy.
    pub fn step_wis(&self, policy: usize, discount: f64) -> Option<Scaled> {
        let means = self.policies[policy].as_ref()?;
        Some(discounted(&means.reward, &StepTable::discounts(discount, means.reward.len())))
    }

    /// `wdr` of a policy.
    pub fn wdr(&self, policy: usize, discount: f64) -> Option<Scaled> {
        let means = self.policies[policy].as_ref()?;
        let powers = StepTable::discounts(discount, means.residual.len());
        Some(discounted(&means.residual, &powers) + discounted(&means.value, &powers))
    }

    /// J and g_j of `magic`.
    pub fn returns(&self, policy: usize, discount: f64) -> Option<(Vec<usize>, Vec<Scaled>)> {
        let means = self.policies[policy].as_ref()?;
        let powers = StepTable::discounts(discount, means.residual.len());
        let lengths = magic::lengths(means.residual.len());
        let residual = partial_sums(&means.residual, &powers, lengths.iter().copied());
        let value = partial_sums(&means.value, &powers, lengths.iter().map(|length| length + 1));
        let returns = residual.into_iter().zip(value).map(|(residual, value)| residual + value).collect();
        Some((lengths, returns))
    }
}

/// Σ_{t ≤ end} γ^{t−1} mean_t for each of some ends, which go up.
fn partial_sums(means: &[Mean], powers: &StepTable, ends: impl Iterator<Item = usize>) -> Vec<Scaled> {
    let (mut sum, mut done) = (Sum::new(), 0);
    let partial = ends.map(|end| {
        for (t, mean) in means.iter().enumerate().take(end).skip(done) {
            mean.iter().for_each(|&part| sum.add_product(part, powers.get(t)));
        }
        done = end;
        sum.value()
    });
    partial.collect()
}

fn discounted(means: &[Mean], powers: &StepTable) -> Scaled {
    partial_sums(means, powers, std::iter::once(means.len()))[0]
}

/// total / weight, and what its rounding left.
fn mean(total: &Exact, weight: &Exact) -> Mean {
    let high = total.divide(weight);
    [high, total.minus(&weight.times(&high.into())).divide(weight)]
}

/// True where the weights of each step are normalised.
fn by_step(policy: &Policy) -> bool {
    policy.estimators.iter().any(|e| matches!(e, Estimator::StepWis | Estimator::Wdr | Estimator::Magic))
}

impl WeightedMeans {
    fn new(policy: &Policy, sums: &PolicySums, longest: usize, n: u64) -> Self {
        let (mut means, mut ended) = (Self::default(), Sum::new());
        let mut previous = Exact::integer(n);
        means.weight.push(Scaled::ONE);
        for index in 0..longest {
            // Σ_i c_t over the trajectories that still run, and over those that ended before t.
            if let Some(weights) = sums.ended.get(&(index as u64)) {
                ended.merge(weights.total());
            }
            let mut weight = sums.weight.sum(index);
            weight.merge(&ended);
            let total = weight.exact();
            means.weight.push(total.divide(&Exact::integer(n)));
            if policy.estimators.contains(&Estimator::StepWis) {
                means.reward.push(mean(&sums.reward.sum(index).exact(), &total));
            }
            if policy.estimators.iter().any(|e| matches!(e, Estimator::Wdr | Estimator::Magic)) {
                means.residual.push(mean(&sums.residual.sum(index).exact(), &total));
                means.value.push(mean(&sums.value.sum(index).exact(), &previous));
            }
            previous = total;
        }
        means
    }
}

/// The tables over steps that the terms read, ready for the fold. Clones share all but the first.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// γ^{t−1}
    pub discount: StepTable,
    /// The longest trajectory that the tables of a later pass reach to.
    pub reach: Option<u64>,
    /// b_t of `dr-bsl`
    pub baseline: Arc<[f64]>,
    /// Of each policy.
    pub policies: Arc<[PolicyTables]>,
}

/// The tables of one weighted policy.
#[derive(Clone, Debug, Default)]
pub struct PolicyTables {
    /// γ^{t−1} / D_t
    pub over_weight: StepTable,
    /// γ^{t−1} / D_{t−1}
    pub over_previous_weight: StepTable,
    /// R_t
    pub mean_reward: [Vec<f64>; 2],
    /// A_t
    pub mean_residual: [Vec<f64>; 2],
    /// B_t
    pub mean_value: [Vec<f64>; 2],
    /// Σ_{t > T} γ^{t−1} R_t / D_t for T = 0, …, H
    pub step_wis_tail: Vec<Scaled>,
    /// Σ_{t > T} γ^{t−1} (A_t / D_t + B_t / D_{t−1})
    pub wdr_tail: Vec<Scaled>,
    /// How ψ_j of `magic` is put together.
    pub segments: Segments,
    /// n / Σ ρ_{1:H} and θ of `wis`
    pub wis: (Scaled, Scaled),
}

impl Tables {
    /// The tables of a pass; without normalisers those of the first.
    pub fn new(plan: &Plan, normalisers: Option<Normalisers>) -> Self {
        let horizon = normalisers.as_ref().map(|n| n.horizon).or(plan.horizon);
        let (baseline, reach) = (plan.baseline.zip(horizon), normalisers.as_ref().map(Normalisers::longest));
        let (means, wis) = normalisers.map_or_else(Default::default, |n| (n.policies, n.wis));
        let (mut means, mut wis) = (means.into_iter(), wis.into_iter());
        let own = |policy| PolicyTables::new(plan, policy, means.next().flatten(), wis.next().flatten());
        Self {
            discount: StepTable::default(),
            reach,
            baseline: baseline.map_or(vec![], |(c, h)| dr_bsl::baseline(c, plan.discount, h as usize)).into(),
            policies: plan.policies.iter().map(own).collect(),
        }
    }

    /// Makes sure that γ^{t−1} is there for `blocks` blocks of steps.
    pub fn grow(&mut self, discount: f64, blocks: usize) {
        if self.discount.len() < blocks * LANES {
            self.discount = StepTable::discounts(discount, (2 * blocks * LANES).max(128));
        }
    }
}

impl PolicyTables {
    /// Means are let go as soon as they have been read, so that the tables take their place.
    fn new(plan: &Plan, policy: &Policy, means: Option<WeightedMeans>, wis: Option<(Scaled, Scaled)>) -> Self {
        let mut tables = Self { wis: wis.unwrap_or_default(), ..Self::default() };
        let Some(WeightedMeans { weight, reward, residual, value }) = means else { return tables };
        let steps = weight.len() - 1;
        let powers = StepTable::discounts(plan.discount, steps);
        let over = |weight: &[Scaled]| StepTable::new(weight.iter().enumerate().map(|(t, &d)| powers.get(t) / d));
        (tables.over_weight, tables.over_previous_weight) = (over(&weight[1..]), over(&weight[..steps]));
        drop((weight, powers));
        let asks = |estimator: Estimator| policy.estimators.contains(&estimator);
        let at = |means: &[Mean], t: usize| means.get(t).map_or(Scaled::ZERO, |mean| mean[0]);
        let (now, before) = (&tables.over_weight, &tables.over_previous_weight);
        if asks(Estimator::StepWis) {
            tables.step_wis_tail = suffix_sums(steps, |t| now.get(t) * at(&reward, t));
            tables.mean_reward = padded(&reward, steps);
        }
        drop(reward);
        let owed = |t: usize| now.get(t) * at(&residual, t);
        let model = |t: usize| before.get(t) * at(&value, t);
        if asks(Estimator::Wdr) {
            tables.wdr_tail = suffix_sums(steps, |t| owed(t) + model(t));
        }
        tables.segments = Segments::new(if asks(Estimator::Magic) { steps } else { 0 }, owed, model);
        if asks(Estimator::Wdr) || asks(Estimator::Magic) {
            tables.mean_residual = padded(&residual, steps);
            drop(residual);
            tables.mean_value = padded(&value, steps);
        }
        tables
    }
}

/// Σ_{t > T} term(t) for T = 0, …, steps, with `term` taking t−1.
fn suffix_sums(steps: usize, term: impl Fn(usize) -> Scaled) -> Vec<Scaled> {
    let mut sums = vec![Scaled::ZERO; steps + 1];
    for t in (0..steps).rev() {
        sums[t] = sums[t + 1] + term(t);
    }
    sums
}

fn padded(means: &[Mean], steps: usize) -> [Vec<f64>; 2] {
    [0, 1].map(|part| {
        let mut table = vec![0.0; steps.next_multiple_of(LANES)];
        table.iter_mut().zip(means).for_each(|(x, mean)| *x = mean[part].lossy_f64());
        table
    })
}
