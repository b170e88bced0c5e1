//! The results of the first pass that the second needs: the horizon, the number of trajectories, and the means per step
//! from which the tables of influence functions are made.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::estimators::about::StepSum;
use crate::estimators::magic::Segments;
use crate::estimators::{Estimator, dr_bsl};
use crate::number::block::LANES;
use crate::number::scaled::Scaled;
use crate::number::sum::{Exact, Sum};
use crate::pass::accumulators::{Accumulators, PolicySums};
use crate::pass::plan::{Plan, Policy};
use crate::pass::table::StepTable;

/// The largest number of steps for which tables are made.
const LONGEST: u64 = 1 << 32;

/// A mean as the sum of two numbers, with twice the digits of one. The difference of a reward and its mean may be far
/// smaller than either.
pub type Mean = [Scaled; 2];

/// Means over trajectories at each step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct WeightedMeans {
    /// D_t for t = 0, …, H, with D_0 = 1.
    weight: Vec<Scaled>,
    /// R_t, the mean of r_t under the weights of step t.
    reward: Vec<Mean>,
    /// A_t, the mean of r_t − Q̂_t under the weights of step t.
    residual: Vec<Mean>,
    /// B_t, the mean of V̂_t under the weights of step t−1.
    value: Vec<Mean>,
}

/// The results of the first pass that the second reads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Normalisers {
    /// H
    pub horizon: u64,
    /// n
    pub episodes: u64,
    /// True if every value of the log is of ordinary magnitude.
    pub tame: bool,
    /// The means per step of each policy that has estimators with normalised steps.
    pub policies: Vec<Option<WeightedMeans>>,
    /// n / Σ ρ_{1:H} and θ of each policy that has `wis`.
    pub wis: Vec<Option<(Scaled, Scaled)>>,
}

/// The error that every weight of a policy is zero at a step, so that a weighted estimator has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoWeight {
    /// The index of the policy.
    pub policy: usize,
    /// The step t, counted from 1.
    pub step: u64,
}

impl Normalisers {
    /// The name that precedes normalisers where they are sent to another process.
    pub const KIND: &str = "normalisers";

    /// Makes normalisers from the sums of a whole log, and frees the sums per step.
    pub fn new(plan: &Plan, sums: &mut Accumulators, tame: bool) -> Result<Self, NoWeight> {
        Self::need_weights(plan, sums)?;
        let longest = sums.longest();
        let (horizon, n) = (plan.horizon.unwrap_or(longest), sums.episodes());
        let mut normalisers = Self { horizon, episodes: n, tame, ..Self::default() };
        for (policy, sums) in plan.policies.iter().zip(&mut sums.policies) {
            let means = policy.normalises_steps().then(|| WeightedMeans::new(policy, sums, longest as usize, n));
            sums.forget_steps();
            let wis = || (sums.wis.normaliser(n), sums.wis.value().unwrap_or_default());
            let wis = policy.normalises_returns().then(wis);
            normalisers.policies.push(means);
            normalisers.wis.push(wis);
        }
        Ok(normalisers)
    }

    /// Returns the length of the longest trajectory for which the tables suffice.
    pub fn longest(&self) -> u64 {
        let steps = self.policies.iter().flatten().map(|means| means.weight.len() as u64 - 1);
        steps.chain([self.horizon]).min().unwrap_or(self.horizon)
    }

    /// Returns an error if these normalisers cannot be those of a plan, or of the same plan with more estimators.
    pub fn check(&self, plan: &Plan) -> Result<(), &'static str> {
        let policies = plan.policies.len();
        if self.policies.len() != policies || self.wis.len() != policies {
            return Err("the normalisers are of another number of policies");
        }
        if self.horizon > LONGEST || plan.horizon.is_some_and(|horizon| horizon != self.horizon) {
            return Err("the normalisers are of another horizon");
        }
        for ((means, wis), policy) in self.policies.iter().zip(&self.wis).zip(&plan.policies) {
            let steps = means.as_ref().and_then(|means| means.weight.len().checked_sub(1));
            let known = |means: &[Mean], sum: StepSum| {
                steps == Some(means.len()) || !policy.sums_by_step(sum) && means.is_empty()
            };
            let fits = means.as_ref().is_none_or(|means| {
                known(&means.reward, StepSum::Reward)
                    && known(&means.residual, StepSum::Residual)
                    && known(&means.value, StepSum::Value)
                    && steps.is_some_and(|steps| steps as u64 <= self.horizon)
            });
            let missing = means.is_none() && policy.normalises_steps();
            if !fits || missing || wis.is_none() && policy.normalises_returns() {
                return Err("the normalisers are of other estimators");
            }
        }
        Ok(())
    }

    /// Returns an error if a policy with a weighted estimator has only zero weights at some step.
    pub fn need_weights(plan: &Plan, sums: &Accumulators) -> Result<(), NoWeight> {
        for (index, (policy, sums)) in plan.policies.iter().zip(&sums.policies).enumerate() {
            let weighted = policy.normalises_steps() || policy.normalises_returns();
            if let Some(step) = sums.dead_from().filter(|_| weighted) {
                return Err(NoWeight { policy: index, step });
            }
        }
        Ok(())
    }
}

/// Returns Σ_{t ≤ end} γ^{t−1} mean_t for each of some ends, which are in ascending order.
pub fn partial_sums(means: &[Mean], powers: &StepTable, ends: impl Iterator<Item = usize>) -> Vec<Scaled> {
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

/// Returns Σ_t γ^{t−1} mean_t.
pub fn discounted(means: &[Mean], powers: &StepTable) -> Scaled {
    partial_sums(means, powers, std::iter::once(means.len()))[0]
}

/// Returns total / weight, and the remainder of its rounding.
fn mean(total: &Exact, weight: &Exact) -> Mean {
    let high = total.divide(weight);
    [high, total.minus(&weight.times(&high.into())).divide(weight)]
}

impl WeightedMeans {
    fn new(policy: &Policy, sums: &PolicySums, longest: usize, n: u64) -> Self {
        let (mut means, mut ended) = (Self::default(), Sum::new());
        let mut previous = Exact::integer(n);
        means.weight.push(Scaled::ONE);
        for index in 0..longest {
            // Σ_i c_t is over the trajectories that have a step t and over those that ended before.
            if let Some(weights) = sums.ended.get(&(index as u64)) {
                ended.merge(weights.total());
            }
            let mut weight = sums.weight.sum(index);
            weight.merge(&ended);
            let total = weight.exact();
            means.weight.push(total.divide(&Exact::integer(n)));
            if policy.sums_by_step(StepSum::Reward) {
                means.reward.push(mean(&sums.reward.sum(index).exact(), &total));
            }
            if policy.sums_by_step(StepSum::Residual) {
                means.residual.push(mean(&sums.residual.sum(index).exact(), &total));
            }
            if policy.sums_by_step(StepSum::Value) {
                means.value.push(mean(&sums.value.sum(index).exact(), &previous));
            }
            previous = total;
        }
        means
    }

    /// Returns the number of steps for which there are means, the length of the longest trajectory.
    pub fn steps(&self) -> usize {
        self.weight.len() - 1
    }

    /// Returns γ^{t−1} for these steps.
    pub fn powers(&self, discount: f64) -> StepTable {
        StepTable::discounts(discount, self.steps())
    }

    /// Returns R_t of all steps.
    pub fn rewards(&self) -> &[Mean] {
        &self.reward
    }

    /// Returns A_t of all steps.
    pub fn residuals(&self) -> &[Mean] {
        &self.residual
    }

    /// Returns B_t of all steps.
    pub fn values(&self) -> &[Mean] {
        &self.value
    }

    /// Returns R_t rounded to one number, where `index` is t−1.
    pub fn reward(&self, index: usize) -> Scaled {
        rounded(&self.reward, index)
    }

    /// Returns A_t rounded to one number, where `index` is t−1.
    pub fn residual(&self, index: usize) -> Scaled {
        rounded(&self.residual, index)
    }

    /// Returns B_t rounded to one number, where `index` is t−1.
    pub fn value(&self, index: usize) -> Scaled {
        rounded(&self.value, index)
    }
}

fn rounded(means: &[Mean], index: usize) -> Scaled {
    means.get(index).map_or(Scaled::ZERO, |mean| mean[0])
}

/// The tables over steps that the fold reads. Clones share all of them but `discount`.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// γ^{t−1}
    pub discount: StepTable,
    /// The length of the longest trajectory for which the tables suffice, in all passes but the first.
    pub reach: Option<u64>,
    /// n, in all passes but the first.
    pub episodes: u64,
    /// b_t of `dr-bsl`.
    pub baseline: Arc<[f64]>,
    /// The tables of each policy.
    pub policies: Arc<[PolicyTables]>,
}

/// The powers of γ divided by the mean weights of a policy.
#[derive(Clone, Debug, Default)]
pub struct Over {
    /// γ^{t−1} / D_t
    pub weight: StepTable,
    /// γ^{t−1} / D_{t−1}
    pub previous_weight: StepTable,
}

impl Over {
    /// Returns the number of steps in the tables.
    pub fn steps(&self) -> usize {
        self.weight.len()
    }
}

/// The tables of one weighted policy.
#[derive(Clone, Debug, Default)]
pub struct PolicyTables {
    /// γ^{t−1} divided by the mean weights.
    pub over: Over,
    /// R_t as the sum of two numbers.
    pub mean_reward: [Vec<f64>; 2],
    /// A_t as the sum of two numbers.
    pub mean_residual: [Vec<f64>; 2],
    /// B_t as the sum of two numbers.
    pub mean_value: [Vec<f64>; 2],
    /// What a trajectory of weight 1 owes to the steps after its end, by estimator and length.
    owed: Vec<(Estimator, Vec<Scaled>)>,
    /// The tables from which ψ_j of `magic` is made.
    pub segments: Segments,
    /// n / Σ ρ_{1:H} and θ of `wis`.
    pub wis: (Scaled, Scaled),
}

impl Tables {
    /// Makes the tables of a pass. Without normalisers they are those of the first pass.
    pub fn new(plan: &Plan, normalisers: Option<Normalisers>) -> Self {
        let horizon = normalisers.as_ref().map(|n| n.horizon).or(plan.horizon);
        let (baseline, reach) = (plan.baseline.zip(horizon), normalisers.as_ref().map(Normalisers::longest));
        let episodes = normalisers.as_ref().map_or(0, |n| n.episodes);
        let (means, wis) = normalisers.map_or_else(Default::default, |n| (n.policies, n.wis));
        let (mut means, mut wis) = (means.into_iter(), wis.into_iter());
        let own = |policy| PolicyTables::new(plan, policy, means.next().flatten(), wis.next().flatten());
        Self {
            discount: StepTable::default(),
            reach,
            episodes,
            baseline: baseline.map_or(vec![], |(c, h)| dr_bsl::baseline(c, plan.discount, h as usize)).into(),
            policies: plan.policies.iter().map(own).collect(),
        }
    }

    /// Extends γ^{t−1} to at least `blocks` blocks of steps.
    pub fn grow(&mut self, discount: f64, blocks: usize) {
        if self.discount.len() < blocks * LANES {
            self.discount = StepTable::discounts(discount, (2 * blocks * LANES).max(128));
        }
    }
}

impl PolicyTables {
    /// Makes the tables, and frees each mean as soon as it has been read, so that memory does not grow.
    fn new(plan: &Plan, policy: &Policy, means: Option<WeightedMeans>, wis: Option<(Scaled, Scaled)>) -> Self {
        let mut tables = Self { wis: wis.unwrap_or_default(), ..Self::default() };
        let Some(mut means) = means else { return tables };
        let (steps, powers) = (means.steps(), means.powers(plan.discount));
        let over = |weight: &[Scaled]| StepTable::new(weight.iter().enumerate().map(|(t, &d)| powers.get(t) / d));
        tables.over = Over { weight: over(&means.weight[1..]), previous_weight: over(&means.weight[..steps]) };
        drop((powers, std::mem::take(&mut means.weight)));
        let of_rewards = |estimator: &Estimator| estimator.about().step_sums.contains(&StepSum::Reward);
        policy.estimators.iter().filter(|e| of_rewards(e)).for_each(|&estimator| tables.add(estimator, &means));
        tables.mean_reward = padded(std::mem::take(&mut means.reward), steps);
        policy.estimators.iter().filter(|e| !of_rewards(e)).for_each(|&estimator| tables.add(estimator, &means));
        tables.mean_residual = padded(std::mem::take(&mut means.residual), steps);
        tables.mean_value = padded(means.value, steps);
        tables
    }

    /// Adds the tables that only one estimator reads.
    fn add(&mut self, estimator: Estimator, means: &WeightedMeans) {
        let owed = estimator.owed(means, &self.over);
        if !owed.is_empty() {
            self.owed.push((estimator, owed));
        }
        if estimator.about().is_blend() {
            self.segments = Segments::of(means, &self.over);
        }
    }

    /// Returns what a trajectory of weight 1 owes to the steps after its end, by its length. Empty if it owes nothing.
    #[inline]
    pub fn owed(&self, estimator: Estimator) -> &[Scaled] {
        let own = self.owed.iter().find(|(other, _)| *other == estimator);
        own.map_or(&[], |(_, owed)| owed)
    }
}

/// Returns Σ_{t > T} of the terms for T = 0, …, steps, where `term` takes t−1.
pub fn suffix_sums(steps: usize, term: impl Fn(usize) -> Scaled) -> Vec<Scaled> {
    let mut sums = vec![Scaled::ZERO; steps + 1];
    for t in (0..steps).rev() {
        sums[t] = sums[t + 1] + term(t);
    }
    sums
}

/// Returns both parts of some means, with zeros up to a whole block of steps. Empty if there are no means.
fn padded(means: Vec<Mean>, steps: usize) -> [Vec<f64>; 2] {
    let len = if means.is_empty() { 0 } else { steps.next_multiple_of(LANES) };
    [0, 1].map(|part| {
        let mut table = vec![0.0; len];
        table.iter_mut().zip(&means).for_each(|(x, mean)| *x = mean[part].lossy_f64());
        table
    })
}
