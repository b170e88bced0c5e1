//! Doubly robust estimator, Jiang & Li (2016), eq. (10):
//!
//!     DR_t = V̂(s_t) + ρ_t (r_t + γ DR_{t+1} − Q̂(s_t, a_t)),    DR_{H+1} = 0
//!
//! Unrolled, so that a trajectory can be read forwards, it is
//!
//!     DR = Σ_t γ^{t−1} [ ρ_{1:t−1} V̂(s_t) + ρ_{1:t} (r_t − Q̂(s_t, a_t)) ]
//!
//! It is unbiased for any Q̂ that was fitted to other trajectories (Theorem 1). Q̂ = 0 gives step-wise IS.

use std::ops;

use crate::estimators::about::{Column, ModelUse, Range};
use crate::estimators::{About, Estimator, Formula};
use crate::number::block::{Block, Eight, Real};
use crate::number::running_sum::Lanes;
use crate::pass::engine::{Fold, Table};
use crate::pass::fold::Term;

/// The estimator.
pub struct Dr;

impl Formula for Dr {
    const ABOUT: About = About {
        id: "dr",
        name: "doubly robust",
        equation: "DR_t = V̂(s_t) + ρ_t (r_t + γ DR_{t+1} − Q̂(s_t, a_t))",
        reference: "Jiang & Li (2016), eq. (10)",
        needs: &[Column::Ratio, Column::QHat, Column::VHat],
        corrects_first_value: true,
        model: ModelUse::ControlVariate,
        without_control: Some(Estimator::StepIs),
        range: Range::LessControlVariate,
        ..About::MEAN
    };
    const SUMS: usize = 1;

    #[inline(always)]
    fn fold(rows: &Fold, sums: &mut [Lanes]) {
        let terms = DrTerms { reward: rows.reward(), q_hat: rows.q_hat(), v_hat: rows.v_hat() };
        rows.add(&terms, Table::Discount, &mut sums[0]);
    }
}

/// The terms of DR, with the columns that they read.
struct DrTerms<'a> {
    /// r_t
    reward: &'a [Eight],
    /// Q̂(s_t, a_t)
    q_hat: &'a [Eight],
    /// V̂(s_t)
    v_hat: &'a [Eight],
}

impl Term for DrTerms<'_> {
    #[inline(always)]
    fn part(&self, blocks: ops::Range<usize>) -> Self {
        Self { reward: &self.reward[blocks.clone()], q_hat: &self.q_hat[blocks.clone()], v_hat: &self.v_hat[blocks] }
    }

    #[inline(always)]
    fn term<T: Real>(&self, before: Block<T>, after: Block<T>, b: usize) -> Block<T> {
        before * Block::load(&self.v_hat[b]) + after * (Block::load(&self.reward[b]) - Block::load(&self.q_hat[b]))
    }
}
