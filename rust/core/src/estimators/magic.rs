//! MAGIC, Thomas & Brunskill (2016): model and guided importance sampling combining. The estimate g_j follows the
//! weights of WDR for j steps and takes the rest from the model. MAGIC blends all g_j, with A_t and B_t of
//! [`super::wdr`]:
//!
//!     g_j = Σ_{t ≤ j} γ^{t−1} A_t + Σ_{t ≤ j+1} γ^{t−1} B_t,    g_0 = the model alone, g_H = WDR
//!     MAGIC = Σ_{j ∈ J} x_j g_j,    x = argmin xᵀ (Ω̂ + b̂ b̂ᵀ) x    over x_j ≥ 0, Σ_j x_j = 1
//!
//! The minimised number estimates the mean squared error, a variance plus a squared bias. The influence function of g_j
//! has the terms of WDR up to step j, with r = Q̂ = V̂ = 0 after the end of a trajectory:
//!
//!     ψ_j = Σ_{t ≤ j} γ^{t−1} (c_t / D_t) (r_t − Q̂_t − A_t) + Σ_{t ≤ j+1} γ^{t−1} (c_{t−1} / D_{t−1}) (V̂_t − B_t)
//!     Ω̂_jk = Σ_i ψ_j ψ_k / (n (n−1)),    b̂_j = the distance of g_j from g_H ∓ 1.645 √Ω̂_HH,    SE = √(xᵀ Ω̂ x)
//!
//! The paper takes the covariance of the trajectories' shares in g_j for Ω̂. That treats the normalisers D_t as known
//! and is too large where they are not. For b̂ it takes a 90% bootstrap interval of WDR. Both are replaced here by
//! influence functions, which the second pass computes anyway, while a bootstrap would need a third pass. SE takes x as
//! known.
//!
//! J is 0, …, H if H ≤ 31. Otherwise it has 0, H and 30 lengths between them, which are closer together at the start.

use crate::estimators::about::{Column, ModelUse, StepSum};
use crate::estimators::formula::{Ended, Estimated, WholeLog};
use crate::estimators::wdr::{self, ResidualInfluence, ValueInfluence};
use crate::estimators::{About, Formula};
use crate::number::block::{Eight, LANES};
use crate::number::gram::Gram;
use crate::number::running_sum::Lanes;
use crate::number::scaled::Scaled;
use crate::number::simplex;
use crate::number::sum::{Exact, Sum};
use crate::pass::accumulators::PolicySums;
use crate::pass::engine::{Fold, Table};
use crate::pass::fold::{Run, Terms};
use crate::pass::normalisers::{Over, WeightedMeans, partial_sums};

/// The largest number of lengths in J.
const LENGTHS: usize = 32;
/// The number of groups of eight sums that hold one sum per length.
const GROUPS: usize = LENGTHS / LANES;
/// The 95% quantile of the normal law.
const QUANTILE: f64 = 1.644_853_626_951_472_2;

/// The estimator.
pub struct Magic;

impl Formula for Magic {
    const ABOUT: About = About {
        id: "magic",
        name: "weighted doubly robust for some steps, then the model, blended over the number of steps",
        equation: "Σ_j x_j g_j, x = argmin xᵀ (Ω̂ + b̂ b̂ᵀ) x over shares x",
        reference: "Thomas & Brunskill (2016), section 6",
        needs: &[Column::Ratio, Column::QHat, Column::VHat],
        value_pass: 2,
        model: ModelUse::Blend,
        step_sums: &[StepSum::Weight, StepSum::Residual, StepSum::Value],
        ..About::RATIO
    };
    /// Sums by segment of the first part of ψ, followed by those of the second part.
    const SUMS: usize = 2 * GROUPS;

    #[inline(always)]
    fn fold(rows: &Fold, sums: &mut [Lanes]) {
        let (residual, value) = sums.split_at_mut(GROUPS);
        let segments = rows.segments();
        rows.each(&ResidualInfluence::of(rows), Table::OverWeight, |run| {
            segments.add_run(residual, Part::Residual, run);
        });
        rows.each(&ValueInfluence::of(rows), Table::OverPreviousWeight, |run| {
            segments.add_run(value, Part::Value, run);
        });
    }

    /// Adds the products ψ_j ψ_k of the trajectory, which has no value of its own.
    fn value(ended: &Ended, into: &mut PolicySums) -> Option<Scaled> {
        let (steps, gram) = (ended.steps as usize, &mut into.gram);
        ended.tables.segments.close(ended.sums, ended.weight, steps, gram, ended.arch);
        None
    }

    fn estimate(found: &WholeLog) -> Option<Estimated> {
        let (lengths, returns) = returns(found.means?, found.discount);
        let Blend { shares, value, std_error } = Blend::new(&returns, &found.second?.gram, found.episodes);
        Some(Estimated { value, std_error, blend: Some(lengths.into_iter().zip(shares).collect()) })
    }
}

/// Returns J and all g_j.
fn returns(means: &WeightedMeans, discount: f64) -> (Vec<usize>, Vec<Scaled>) {
    let (lengths, powers) = (lengths(means.steps()), means.powers(discount));
    let residual = partial_sums(means.residuals(), &powers, lengths.iter().copied());
    let value = partial_sums(means.values(), &powers, lengths.iter().map(|length| length + 1));
    let returns = residual.into_iter().zip(value).map(|(residual, value)| residual + value).collect();
    (lengths, returns)
}

/// Returns J for a horizon H. Beyond 31 steps, its element k = 0, …, 31 is the larger of k and H k² / 31².
fn lengths(horizon: usize) -> Vec<usize> {
    let last = LENGTHS - 1;
    match horizon {
        0..LENGTHS => (0..=horizon).collect(),
        _ => (0..LENGTHS).map(|k| k.max(horizon * k * k / (last * last))).collect(),
    }
}

/// One of the two parts of ψ. Its terms of step t belong to ψ_j from j = t on, or from j = t−1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The terms with r_t − Q̂_t − A_t, which begin at j = t.
    Residual,
    /// The terms with V̂_t − B_t, which begin at j = t−1.
    Value,
}

/// The tables that turn a trajectory's sums over segments into ψ_j. A segment has the steps between two neighbouring
/// lengths of J.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// J, the ends of the segments. The first segment is empty except for V̂(s_1).
    lengths: Vec<usize>,
    /// What a trajectory of weight 1 that ended after T = 0, …, H steps owes to the rest of its segment.
    rest: Vec<Scaled>,
    /// What an ended trajectory of weight 1 owes to each later segment.
    whole: Vec<Scaled>,
}

impl Segments {
    /// Makes the tables of a policy.
    pub fn of(means: &WeightedMeans, over: &Over) -> Self {
        let residual = |index| wdr::owed_residual(means, over, index);
        Self::new(over.steps(), residual, |index| wdr::owed_value(means, over, index))
    }

    /// Makes the tables from γ^{t−1} A_t / D_t and γ^{t−1} B_t / D_{t−1} as functions of t−1.
    fn new(horizon: usize, residual: impl Fn(usize) -> Scaled, value: impl Fn(usize) -> Scaled) -> Self {
        let (lengths, mut rest) = (lengths(horizon), vec![Scaled::ZERO; horizon + 1]);
        for steps in (0..horizon).rev() {
            let ends = lengths.binary_search(&steps).is_ok();
            let later = if ends { Scaled::ZERO } else { residual(steps) + rest[steps + 1] };
            rest[steps] = value(steps) + later;
        }
        let segment = |ends: &[usize]| residual(ends[0]) + rest[ends[0] + 1];
        let whole = [Scaled::ZERO].into_iter().chain(lengths.windows(2).map(segment)).collect();
        Self { lengths, rest, whole }
    }

    /// Adds the terms of consecutive steps to the sums of their segments.
    fn add_run(&self, sums: &mut [Lanes], part: Part, run: Run) {
        match run.terms {
            Terms::Plain(terms, e) => self.add(sums, part, run.first, terms, e),
            Terms::Scaled(terms) => {
                (run.first..).zip(terms).for_each(|(t, &term)| self.add_scaled(sums, part, t, term));
            }
        }
    }

    /// Adds terms · 2^e of consecutive steps to the sums of their segments. The first step has the index t−1 = `first`.
    #[inline(always)]
    fn add(&self, sums: &mut [Lanes], part: Part, first: usize, terms: &[f64], e: i64) {
        let (mut segment, mut from) = (self.segment_of(part, first), 0);
        while from < terms.len() {
            let to = (self.lengths[segment] + part.delay() - first).min(terms.len());
            sums[segment / LANES].add(segment % LANES, &terms[from..to], e);
            (segment, from) = (segment + 1, to);
        }
    }

    /// Adds one term of any magnitude to the sum of its segment.
    fn add_scaled(&self, sums: &mut [Lanes], part: Part, index: usize, term: Scaled) {
        let segment = self.segment_of(part, index);
        sums[segment / LANES].add_scaled(segment % LANES, term);
    }

    fn segment_of(&self, part: Part, index: usize) -> usize {
        self.lengths.partition_point(|&length| length + part.delay() <= index)
    }

    /// Adds the products ψ_j ψ_k of a trajectory that ended after `steps` steps.
    fn close(&self, sums: &[Lanes], weight: Scaled, steps: usize, gram: &mut Gram, arch: pulp::Arch) {
        let owed = self.owed(weight, steps);
        match self.ordinary_influence(sums, &owed) {
            Some(influence) => gram.add(arch, &influence, self.lengths.len()),
            None => gram.add_scaled(&self.influence(sums, &owed)),
        }
    }

    /// Returns what a trajectory that ended after `steps` steps owes to each segment.
    fn owed(&self, weight: Scaled, steps: usize) -> [Scaled; LENGTHS] {
        let mut owed = [Scaled::ZERO; LENGTHS];
        let end = self.lengths.partition_point(|&length| length < steps);
        owed[end] = weight * self.rest[steps];
        for (owed, &whole) in owed.iter_mut().zip(&self.whole).skip(end + 1) {
            *owed = weight * whole;
        }
        owed
    }

    /// Returns ψ_j for j ∈ J.
    fn influence(&self, sums: &[Lanes], owed: &[Scaled; LENGTHS]) -> Vec<Scaled> {
        let sum = |part: usize, segment: usize| sums[part + segment / LANES].get_scaled().0[segment % LANES];
        let influence = (0..self.lengths.len()).scan(Scaled::ZERO, |total, segment| {
            *total = *total + (sum(0, segment) + sum(GROUPS, segment) - owed[segment]);
            Some(*total)
        });
        influence.collect()
    }

    /// Returns the same in f64, with the same rounding, or None if some magnitude is not ordinary.
    fn ordinary_influence(&self, sums: &[Lanes], owed: &[Scaled; LENGTHS]) -> Option<[Eight; GROUPS]> {
        let (mut influence, mut total) = ([[0.0; LANES]; GROUPS], 0.0);
        for (group, influence) in influence.iter_mut().enumerate().take(self.lengths.len().div_ceil(LANES)) {
            let (residual, value) = (sums[group].ordinary()?, sums[GROUPS + group].ordinary()?);
            for j in 0..LANES {
                total += residual[j] + value[j] - owed[group * LANES + j].ordinary()?;
                influence[j] = total;
            }
        }
        Some(influence)
    }
}

impl Part {
    /// Returns by how many steps a term follows the first j to whose ψ_j it belongs.
    fn delay(self) -> usize {
        usize::from(self == Self::Value)
    }
}

/// The blend of all g_j, with its standard error.
#[derive(Clone, Debug)]
struct Blend {
    /// x_j
    shares: Vec<f64>,
    /// Σ_j x_j g_j
    value: Scaled,
    /// √(xᵀ Ω̂ x), or None for a single trajectory
    std_error: Option<Scaled>,
}

impl Blend {
    /// Blends the returns g_j by the sums of ψ_j ψ_k over n trajectories. With a single trajectory, the blend is WDR.
    fn new(returns: &[Scaled], gram: &Gram, n: u64) -> Self {
        let last = returns.len() - 1;
        if n < 2 {
            let mut shares = vec![0.0; returns.len()];
            shares[last] = 1.0;
            return Self { shares, value: returns[last], std_error: None };
        }
        let divisor = Exact::integer(n).times(&Exact::integer(n - 1));
        let covariance = |j: usize, k: usize| gram.get(j, k).exact().divide(&divisor);
        let covariance: Vec<Vec<Scaled>> = (0..=last).map(|j| (0..=last).map(|k| covariance(j, k)).collect()).collect();
        let half = covariance[last][last].sqrt() * QUANTILE.into();
        let bias: Vec<Scaled> = returns.iter().map(|&g| ((g - returns[last]).abs() - half).positive()).collect();
        let shares = simplex::nearest(&errors(&covariance, &bias));
        let (mut value, mut total, mut variance) = (Sum::new(), Sum::new(), Sum::new());
        for (j, &share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            value.add_product(share.into(), returns[j]);
            total.add(share.into());
            for (&other, &covariance) in shares.iter().zip(&covariance[j]) {
                variance.add_product(Scaled::from(share) * other.into(), covariance);
            }
        }
        let value = value.exact().divide(&total.exact());
        Self { shares, value, std_error: Some(variance.value().positive().sqrt()) }
    }
}

/// Returns Ω̂ + b̂ b̂ᵀ in a unit in which f64 can hold all entries.
fn errors(covariance: &[Vec<Scaled>], bias: &[Scaled]) -> Vec<Vec<f64>> {
    let sizes = (0..bias.len()).flat_map(|j| [covariance[j][j].positive().sqrt(), bias[j]]);
    let unit = sizes.max_by(|a, b| a.compare(*b)).unwrap_or_default().exponent();
    let entry = |j: usize, k: usize| (covariance[j][k] + bias[j] * bias[k]).relative_to(2 * unit);
    (0..bias.len()).map(|j| (0..bias.len()).map(|k| entry(j, k)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lengths_up_to_31_then_32_of_them_from_0_to_the_horizon() {
        for horizon in 1..32 {
            assert_eq!(lengths(horizon), (0..=horizon).collect::<Vec<_>>());
        }
        for horizon in (32..400).chain([1000, 12_345, 10_000_000]) {
            let found = lengths(horizon);
            assert_eq!((found[0], found[1] >= 1, found[31], found.len()), (0, true, horizon, 32));
            assert!(found.is_sorted_by(|a, b| a < b));
            assert!(found.windows(3).all(|ends| ends[1] - ends[0] <= ends[2] - ends[1] + 1));
        }
    }

    fn gram(vectors: &[[f64; 2]]) -> Gram {
        let mut gram = Gram::default();
        vectors.iter().for_each(|v| gram.add_scaled(&v.map(Scaled::from)));
        gram
    }

    #[test]
    fn by_hand() {
        // Ω̂ = (1 0; 0 1), g_0 outside the interval 3 ∓ 1.645 by b = 7 − 1.645: x_0 = 1 / (2 + b²).
        let blend = Blend::new(&[(-4.0).into(), 3.0.into()], &gram(&[[1.0, 1.0], [1.0, -1.0]]), 2);
        let share = 1.0 / (2.0 + (7.0 - QUANTILE).powi(2));
        assert!((blend.shares[0] / share - 1.0).abs() < 1e-15);
        assert!((blend.value.lossy_f64() - (3.0 - 7.0 * share)).abs() < 1e-15);
        let error = (share * share + (1.0 - share) * (1.0 - share)).sqrt();
        assert!((blend.std_error.unwrap().lossy_f64() / error - 1.0).abs() < 1e-15);
    }

    #[test]
    fn a_model_without_variance_inside_the_interval_is_the_blend() {
        let blend = Blend::new(&[2.5.into(), 3.0.into()], &gram(&[[0.0, 1.0], [0.0, -1.0]]), 2);
        assert_eq!((blend.value, blend.std_error), (2.5.into(), Some(Scaled::ZERO)));
    }

    #[test]
    fn without_any_variance_it_is_wdr() {
        let blend = Blend::new(&[2.5.into(), 3.0.into()], &gram(&[[0.0, 0.0], [0.0, 0.0]]), 2);
        assert_eq!((blend.value, blend.std_error), (3.0.into(), Some(Scaled::ZERO)));
        assert_eq!(Blend::new(&[2.5.into(), 3.0.into()], &gram(&[[5.0, 6.0]]), 1).value, 3.0.into());
    }

    #[test]
    fn magnitudes_beyond_f64_change_no_share() {
        let far = |x: f64| Scaled::new(x, 5000);
        let near = Blend::new(&[0.0.into(), 1.0.into()], &gram(&[[1.0, 2.0], [0.5, -1.0]]), 2);
        let mut wide = Gram::default();
        [[1.0, 2.0], [0.5, -1.0]].iter().for_each(|v| wide.add_scaled(&v.map(far)));
        let blend = Blend::new(&[far(0.0), far(1.0)], &wide, 2);
        assert_eq!(blend.shares, near.shares);
        assert_eq!(blend.value.relative_to(5000), near.value.lossy_f64());
        assert_eq!(blend.std_error.unwrap().relative_to(5000), near.std_error.unwrap().lossy_f64());
    }

    /// Compares ψ_j by its definition with what the segments make of the same terms.
    #[test]
    fn a_trajectory_owes_to_every_length_after_its_end() {
        let horizon = 50;
        let residual = |index: usize| Scaled::from(1.0 + index as f64);
        let value = |index: usize| Scaled::from(100.0 * (1.0 + index as f64));
        let segments = Segments::new(horizon, residual, value);
        for steps in 1..=horizon {
            let terms: Vec<f64> = (0..steps).map(|t| (t * t) as f64).collect();
            for wild in [false, true] {
                let mut sums = [Lanes::default(); Magic::SUMS];
                let (first, second) = sums.split_at_mut(GROUPS);
                for (part, sums) in [(Part::Residual, first), (Part::Value, second)] {
                    for (t, term) in terms.iter().enumerate() {
                        if wild {
                            segments.add_scaled(sums, part, t, Scaled::from(*term));
                        } else {
                            segments.add(sums, part, t, &[*term], 0);
                        }
                    }
                }
                let owed = segments.owed(2.0.into(), steps);
                let found: Vec<f64> = segments.influence(&sums, &owed).iter().map(|x| x.lossy_f64()).collect();
                assert_eq!(segments.ordinary_influence(&sums, &owed).unwrap().as_flattened(), found);
                for (k, length) in lengths(horizon).into_iter().enumerate() {
                    let upto = |end: usize| 0..end.min(horizon);
                    let of = |t: usize, mean: f64| if t < steps { terms[t] } else { -2.0 * mean };
                    let residuals: f64 = upto(length).map(|t| of(t, residual(t).lossy_f64())).sum();
                    let values: f64 = upto(length + 1).map(|t| of(t, value(t).lossy_f64())).sum();
                    assert_eq!(found[k], residuals + values, "T = {steps}, j = {length}");
                }
            }
        }
    }
}
