//! Weighted doubly robust, Thomas & Brunskill (2016), with c_t = ρ_{1:t}, which a trajectory keeps after its end:
//!
//!     WDR = Σ_t γ^{t−1} [ A_t + B_t ],    A_t = Σ_i c_t (r_t − Q̂_t) / Σ_i c_t,    B_t = Σ_i c_{t−1} V̂_t / Σ_i c_{t−1}
//!
//! With D_t = Σ_i c_t / n, D_0 = 1, and r = Q̂ = V̂ = 0 after the end, the influence function is
//!
//!     ψ_i = Σ_t γ^{t−1} [ (c_t / D_t) (r_t − Q̂_t − A_t) + (c_{t−1} / D_{t−1}) (V̂_t − B_t) ]

use std::ops::Range;

use crate::estimators::about::{Column, ModelUse, StepSum};
use crate::estimators::formula::{Ended, Estimated, WholeLog};
use crate::estimators::{About, Estimator, Formula};
use crate::number::block::{Block, Eight, Real};
use crate::number::running_sum::Lanes;
use crate::number::scaled::Scaled;
use crate::pass::accumulators::PolicySums;
use crate::pass::engine::{Fold, Table};
use crate::pass::fold::Term;
use crate::pass::normalisers::{Over, WeightedMeans, discounted, suffix_sums};

/// The estimator.
pub struct Wdr;

impl Formula for Wdr {
    const ABOUT: About = About {
        id: "wdr",
        name: "weighted doubly robust",
        equation: "Σ_t γ^{t−1} [ Σ_i ρ_{1:t} (r_t − Q̂_t) / Σ_i ρ_{1:t} + Σ_i ρ_{1:t−1} V̂_t / Σ_i ρ_{1:t−1} ]",
        reference: "Thomas & Brunskill (2016), section 4",
        needs: &[Column::Ratio, Column::QHat, Column::VHat],
        model: ModelUse::ControlVariate,
        without_control: Some(Estimator::StepWis),
        step_sums: &[StepSum::Weight, StepSum::Residual, StepSum::Value],
        ..About::RATIO
    };
    const SUMS: usize = 2;

    #[inline(always)]
    fn fold(rows: &Fold, sums: &mut [Lanes]) {
        let [first, second] = sums else { return };
        if rows.pass().is_influence() {
            rows.add(&ResidualInfluence::of(rows), Table::OverWeight, first);
            rows.add(&ValueInfluence::of(rows), Table::OverPreviousWeight, second);
        } else {
            let residual = Residual { reward: rows.reward(), q_hat: rows.q_hat() };
            rows.add(&residual, Table::OverWeight, first);
            rows.add(&Value { v_hat: rows.v_hat() }, Table::OverPreviousWeight, second);
        }
    }

    #[inline(always)]
    fn value(ended: &Ended, _into: &mut PolicySums) -> Option<Scaled> {
        Some(if ended.pass.is_influence() { ended.total_less_owed(Estimator::Wdr) } else { ended.total })
    }

    /// Returns Σ_{t > T} γ^{t−1} (A_t / D_t + B_t / D_{t−1}).
    fn owed(means: &WeightedMeans, over: &Over) -> Vec<Scaled> {
        suffix_sums(over.steps(), |t| owed_residual(means, over, t) + owed_value(means, over, t))
    }

    /// Returns Σ_t γ^{t−1} A_t + Σ_t γ^{t−1} B_t with its standard error.
    fn estimate(found: &WholeLog) -> Option<Estimated> {
        let means = found.means?;
        let powers = means.powers(found.discount);
        let value = discounted(means.residuals(), &powers) + discounted(means.values(), &powers);
        Some(Estimated::new(value, found.influence_error()))
    }
}

/// Returns γ^{t−1} A_t / D_t, where `index` is t−1.
pub fn owed_residual(means: &WeightedMeans, over: &Over, index: usize) -> Scaled {
    over.weight.get(index) * means.residual(index)
}

/// Returns γ^{t−1} B_t / D_{t−1}, where `index` is t−1.
pub fn owed_value(means: &WeightedMeans, over: &Over, index: usize) -> Scaled {
    over.previous_weight.get(index) * means.value(index)
}

/// The term c_t (r_t − Q̂_t).
pub struct Residual<'a> {
    /// r_t
    pub reward: &'a [Eight],
    /// Q̂(s_t, a_t)
    pub q_hat: &'a [Eight],
}

impl Term for Residual<'_> {
    #[inline(always)]
    fn part(&self, blocks: Range<usize>) -> Self {
        Self { reward: &self.reward[blocks.clone()], q_hat: &self.q_hat[blocks] }
    }

    #[inline(always)]
    fn term<T: Real>(&self, _before: Block<T>, after: Block<T>, b: usize) -> Block<T> {
        after * (Block::load(&self.reward[b]) - Block::load(&self.q_hat[b]))
    }
}

/// The term c_{t−1} V̂_t.
pub struct Value<'a> {
    /// V̂(s_t)
    pub v_hat: &'a [Eight],
}

impl Term for Value<'_> {
    #[inline(always)]
    fn part(&self, blocks: Range<usize>) -> Self {
        Self { v_hat: &self.v_hat[blocks] }
    }

    #[inline(always)]
    fn term<T: Real>(&self, before: Block<T>, _after: Block<T>, b: usize) -> Block<T> {
        before * Block::load(&self.v_hat[b])
    }
}

/// The term c_t (r_t − Q̂_t − A_t) of ψ for the steps of a trajectory, which the table multiplies by γ^{t−1}/D_t.
pub struct ResidualInfluence<'a> {
    /// r_t
    pub reward: &'a [Eight],
    /// Q̂(s_t, a_t)
    pub q_hat: &'a [Eight],
    /// A_t as the sum of two tables over steps
    pub mean_residual: [&'a [Eight]; 2],
}

impl<'a> ResidualInfluence<'a> {
    /// Takes the columns and tables of some rows.
    #[inline(always)]
    pub fn of(rows: &Fold<'a>) -> Self {
        Self { reward: rows.reward(), q_hat: rows.q_hat(), mean_residual: rows.mean_residual() }
    }
}

impl Term for ResidualInfluence<'_> {
    #[inline(always)]
    fn part(&self, blocks: Range<usize>) -> Self {
        Self {
            reward: &self.reward[blocks.clone()],
            q_hat: &self.q_hat[blocks.clone()],
            mean_residual: self.mean_residual.map(|part| &part[blocks.clone()]),
        }
    }

    #[inline(always)]
    fn term<T: Real>(&self, _before: Block<T>, after: Block<T>, b: usize) -> Block<T> {
        after
            * (Block::load(&self.reward[b])
                - Block::load(&self.q_hat[b])
                - Block::load(&self.mean_residual[0][b])
                - Block::load(&self.mean_residual[1][b]))
    }
}

/// The term c_{t−1} (V̂_t − B_t) of ψ for the steps of a trajectory, which the table multiplies by γ^{t−1}/D_{t−1}.
pub struct ValueInfluence<'a> {
    /// V̂(s_t)
    pub v_hat: &'a [Eight],
    /// B_t as the sum of two tables over steps
    pub mean_value: [&'a [Eight]; 2],
}

impl<'a> ValueInfluence<'a> {
    /// Takes the columns and tables of some rows.
    #[inline(always)]
    pub fn of(rows: &Fold<'a>) -> Self {
        Self { v_hat: rows.v_hat(), mean_value: rows.mean_value() }
    }
}

impl Term for ValueInfluence<'_> {
    #[inline(always)]
    fn part(&self, blocks: Range<usize>) -> Self {
        Self { v_hat: &self.v_hat[blocks.clone()], mean_value: self.mean_value.map(|part| &part[blocks.clone()]) }
    }

    #[inline(always)]
    fn term<T: Real>(&self, before: Block<T>, _after: Block<T>, b: usize) -> Block<T> {
        before
            * (Block::load(&self.v_hat[b]) - Block::load(&self.mean_value[0][b]) - Block::load(&self.mean_value[1][b]))
    }
}
