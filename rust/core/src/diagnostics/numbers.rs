//! The diagnostics of a policy's weights as numbers, from the sums over a whole log: how the weights develop from step
//! to step, and which trajectories have the largest ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::estimators::Estimator;
use crate::log::ids::Id;
use crate::number::moments::Moments;
use crate::number::scaled::Scaled;
use crate::number::sum::{Exact, Sum};
use crate::pass::accumulators::{Accumulators, PolicySums};
use crate::pass::outcome::Number;
use crate::pass::plan::{Pass, Plan, Policy, Work};

/// The diagnostics of one policy's weights.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The numbers of each step, which are handed over separately.
    #[serde(skip)]
    pub steps: BySteps,
    /// Σ (ρ_t − 1) over all steps of all trajectories.
    pub excess: f64,
    /// Σ (ρ_t − 1)²
    pub squared_excess: f64,
    /// The largest final weights in falling order, in units of the first: one more than the tail has.
    pub largest: Vec<f64>,
    /// The trajectories with the very largest final weights.
    pub leaders: Vec<Leading>,
    /// The mean of the control variate and its standard error.
    pub control: Option<(Number, Option<Number>)>,
    /// The variance of step-IS divided by that of DR.
    pub variance_ratio: Option<f64>,
    /// The most by which the rewards that were cut off can move an estimate.
    pub cut_off_bias: f64,
}

/// Numbers for the steps t = 1, 2, …
#[derive(Clone, Debug, Default)]
pub struct BySteps {
    /// ESS_t = (Σ c_t)² / Σ c_t², ended trajectories included.
    pub ess: Vec<f64>,
    /// Σ c_t / n
    pub mean_weight: Vec<f64>,
    /// The mean of ρ_t over the trajectories that have not ended.
    pub mean_ratio: Vec<f64>,
    /// The mean of ρ_t² over the same trajectories.
    pub mean_squared_ratio: Vec<f64>,
}

/// A trajectory with a large weight, for the report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leading {
    /// Its id.
    pub episode: Id,
    /// ρ_{1:H}
    pub weight: Number,
    /// Its share of Σ ρ_{1:H}.
    pub share: f64,
    /// Its return.
    pub returns: Number,
    /// V̂(s_1)
    pub first_v_hat: Number,
    /// Its value by each estimator that is a mean over trajectories.
    pub values: Vec<(Estimator, Number)>,
}

/// Returns ⌈min(n/5, 3√n)⌉, the length of the tail whose shape is estimated (Vehtari et al. 2024).
fn tail(n: u64) -> usize {
    (n as f64 / 5.0).min(3.0 * (n as f64).sqrt()).ceil() as usize
}

impl BySteps {
    fn with_capacity(steps: usize) -> Self {
        let [ess, mean_weight, mean_ratio, mean_squared_ratio] = std::array::from_fn(|_| Vec::with_capacity(steps));
        Self { ess, mean_weight, mean_ratio, mean_squared_ratio }
    }
}

/// Computes the diagnostics of all policies, and frees the sums over steps from which they were made.
pub fn diagnose(plan: &Plan, sums: &mut Accumulators) -> Vec<Option<Diagnosis>> {
    let Accumulators { policies, lengths } = sums;
    let each = |(policy, sums): (&Policy, &mut PolicySums)| {
        let found = plan.watches(policy, Pass::First).then(|| Diagnosis::new(plan, policy, sums, lengths));
        sums.watch.forget_steps();
        found
    };
    plan.policies.iter().zip(policies).map(each).collect()
}

impl Diagnosis {
    /// Computes the diagnostics of one policy.
    pub fn new(plan: &Plan, policy: &Policy, sums: &PolicySums, lengths: &BTreeMap<u64, u64>) -> Self {
        let n: u64 = lengths.values().sum();
        let mut found = Self::default();
        found.by_step(sums, lengths, n);
        let watch = &sums.watch;
        found.cut_off_bias = watch.cut_off.bias(plan, sums, lengths.keys().next_back().copied().unwrap_or(0));
        let largest = watch.largest.top(tail(n) + 1);
        let first = largest.first().copied().filter(|first| !first.is_zero());
        found.largest = first.map_or(vec![], |first| largest.iter().map(|&c| (c / first).lossy_f64()).collect());
        found.name_leaders(plan, policy, sums);
        if let Some((with, without)) = Work::control(&plan.work(policy, Pass::First)) {
            let (with, without) = (&sums.moments[with], &sums.moments[without]);
            let error = |moments: &Moments| (n > 1).then(|| moments.std_error(n));
            found.control = Some((watch.control.mean(n).into(), error(&watch.control).map(Number::from)));
            let errors = error(without).zip(error(with)).filter(|(_, with)| !with.is_zero());
            let ratio = errors.map(|(without, with)| without / with);
            found.variance_ratio = ratio.map(|ratio| (ratio * ratio).lossy_f64());
        }
        found
    }

    /// Returns true where some number is NaN, so that the sums cannot be those of a log.
    pub fn has_nan(&self) -> bool {
        let Self { steps, excess, squared_excess, largest, leaders, control, variance_ratio, cut_off_bias } = self;
        let BySteps { ess, mean_weight, mean_ratio, mean_squared_ratio } = steps;
        let by_step = [ess, mean_weight, mean_ratio, mean_squared_ratio, largest];
        let alone = [*excess, *squared_excess, *cut_off_bias, variance_ratio.unwrap_or(0.0)];
        let control = control.iter().flat_map(|(mean, error)| std::iter::once(mean).chain(error));
        let leaders = leaders.iter().flat_map(|leader| [&leader.weight, &leader.returns, &leader.first_v_hat]);
        by_step.into_iter().flatten().copied().chain(alone).any(f64::is_nan)
            || control.chain(leaders).any(Number::is_nan)
    }

    fn by_step(&mut self, sums: &PolicySums, lengths: &BTreeMap<u64, u64>, n: u64) {
        let (weight, squared_weight) = (&sums.weight, &sums.watch.squared_weight);
        let (ratio, squared_excess) = (&sums.watch.ratio, &sums.watch.squared_excess);
        let (mut ended, mut running) = (Moments::default(), n);
        let (mut all_excess, mut all_squared) = (Sum::new(), Sum::new());
        let longest = lengths.keys().next_back().copied().unwrap_or(0);
        let mut steps = BySteps::with_capacity(longest as usize);
        for index in 0..longest {
            if let Some(weights) = sums.ended.get(&index) {
                ended.merge(weights);
                running -= lengths[&index];
            }
            let index = index as usize;
            let with = |mut sum: Sum, more: &Sum| {
                sum.merge(more);
                sum.exact()
            };
            let total = with(weight.sum(index), ended.total());
            let squares = with(squared_weight.sum(index), ended.squares());
            let dead = squares.round().is_zero();
            steps.ess.push(if dead { 0.0 } else { total.times(&total).divide(&squares).lossy_f64() });
            steps.mean_weight.push(total.divide(&Exact::integer(n)).lossy_f64());
            let (ratios, squares, count) = (ratio.sum(index), squared_excess.sum(index), Exact::integer(running));
            steps.mean_ratio.push(ratios.exact().divide(&count).lossy_f64());
            // Σ ρ² = Σ (ρ − 1)² + 2 Σ ρ − n
            let mut twice = squares.clone();
            twice.merge(&ratios);
            twice.merge(&ratios);
            steps.mean_squared_ratio.push(twice.exact().minus(&count).divide(&count).lossy_f64());
            all_excess.merge(&ratios);
            all_squared.merge(&squares);
        }
        self.steps = steps;
        let rows = lengths.iter().map(|(length, count)| length * count).sum::<u64>();
        self.excess = all_excess.exact().minus(&Exact::integer(rows)).round().lossy_f64();
        self.squared_excess = all_squared.value().lossy_f64();
    }

    fn name_leaders(&mut self, plan: &Plan, policy: &Policy, sums: &PolicySums) {
        let total = sums.weights().total().value();
        let work = plan.work(policy, Pass::First);
        for leader in &sums.watch.leaders {
            let values = work.iter().map(|work| work.estimator).zip(leader.values.iter().map(|&value| value.into()));
            let share = if total.is_zero() { Scaled::ZERO } else { leader.weight / total };
            self.leaders.push(Leading {
                episode: leader.episode.clone(),
                weight: leader.weight.into(),
                share: share.lossy_f64(),
                returns: leader.returns.into(),
                first_v_hat: leader.first_v_hat.into(),
                values: values.filter(|(estimator, _)| !estimator.about().weighted).collect(),
            });
        }
    }
}
