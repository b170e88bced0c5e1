//! The estimator DR-v2, Jiang & Li (2016), eq. (12), for models with good transitions:
//!
//!     X_t = V̂(s_t) + ρ_t (r_t + γ X_{t+1} − R̂(s_t, a_t) − γ V̂(s_{t+1}) p_t),    p_t = P̂/P of the transition t → t+1
//!
//! Unrolled, with p_0 = 0 and V̂ = 0 after the end, it is
//!
//!     X = Σ_t γ^{t−1} [ ρ_{1:t−1} V̂(s_t) (1 − p_{t−1}) + ρ_{1:t} (r_t − R̂(s_t, a_t)) ]
//!
//! If every p_t with t ≥ 1 is 1, only V̂(s_1) remains of the first part.

use std::ops::Range;

use crate::estimators::about::{Column, ModelUse, Unbiased};
use crate::estimators::{About, Formula};
use crate::number::block::{Block, Eight, Real};
use crate::number::running_sum::Lanes;
use crate::pass::engine::{Fold, Table};
use crate::pass::fold::Term;

/// The estimator.
pub struct DrV2;

impl Formula for DrV2 {
    const ABOUT: About = About {
        id: "dr-v2",
        name: "doubly robust with the model's transitions",
        equation: "X_t = V̂(s_t) + ρ_t (r_t + γ X_{t+1} − R̂(s_t, a_t) − γ V̂(s_{t+1}) P̂/P)",
        reference: "Jiang & Li (2016), eq. (12)",
        needs: &[Column::Ratio, Column::RHat, Column::VHat],
        reads: &[Column::TransitionRatio],
        unbiased: Unbiased::WithTransitionRatio,
        corrects_first_value: true,
        model: ModelUse::Transitions,
        ..About::MEAN
    };
    const SUMS: usize = 1;

    #[inline(always)]
    fn fold(rows: &Fold, sums: &mut [Lanes]) {
        let (reward, r_hat, v_hat) = (rows.reward(), rows.r_hat(), rows.v_hat());
        let terms = TransitionTerms { reward, r_hat, v_hat, previous_ratio: rows.previous_ratio() };
        rows.add(&terms, Table::Discount, &mut sums[0]);
    }
}

/// The terms of DR-v2, with the columns that they read.
struct TransitionTerms<'a> {
    /// r_t
    reward: &'a [Eight],
    /// R̂(s_t, a_t)
    r_hat: &'a [Eight],
    /// V̂(s_t)
    v_hat: &'a [Eight],
    /// p_{t−1}, which is 0 at the first step
    previous_ratio: &'a [Eight],
}

impl Term for TransitionTerms<'_> {
    #[inline(always)]
    fn part(&self, blocks: Range<usize>) -> Self {
        Self {
            reward: &self.reward[blocks.clone()],
            r_hat: &self.r_hat[blocks.clone()],
            v_hat: &self.v_hat[blocks.clone()],
            previous_ratio: &self.previous_ratio[blocks],
        }
    }

    #[inline(always)]
    fn term<T: Real>(&self, before: Block<T>, after: Block<T>, b: usize) -> Block<T> {
        let unexplained = Block::splat(1.0) - Block::load(&self.previous_ratio[b]);
        before * Block::load(&self.v_hat[b]) * unexplained
            + after * (Block::load(&self.reward[b]) - Block::load(&self.r_hat[b]))
    }
}
