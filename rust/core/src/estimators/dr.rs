//! Doubly robust estimator, Jiang & Li (2016), eq. (10):
//!
//!     DR_t = V̂(s_t) + ρ_t (r_t + γ DR_{t+1} − Q̂(s_t, a_t)),    DR_{H+1} = 0
//!
//! unrolled, so that a trajectory is read forwards:
//!
//!     DR = Σ_t γ^{t−1} [ ρ_{1:t−1} V̂(s_t) + ρ_{1:t} (r_t − Q̂(s_t, a_t)) ]
//!
//! Unbiased for any Q̂ fitted on other trajectories (Theorem 1). Q̂ = 0 gives step-wise IS.

use std::ops::Range;

use crate::number::block::{Block, Eight, Real};
use crate::pass::fold::Term;

/// The columns of DR.
pub struct Dr<'a> {
    /// r_t
    pub reward: &'a [Eight],
    /// Q̂(s_t, a_t)
    pub q_hat: &'a [Eight],
    /// V̂(s_t)
    pub v_hat: &'a [Eight],
}

impl Term for Dr<'_> {
    #[inline(always)]
    fn part(&self, blocks: Range<usize>) -> Self {
        Self { reward: &self.reward[blocks.clone()], q_hat: &self.q_hat[blocks.clone()], v_hat: &self.v_hat[blocks] }
    }

    #[inline(always)]
    fn term<T: Real>(&self, before: Block<T>, after: Block<T>, b: usize) -> Block<T> {
        before * Block::load(&self.v_hat[b]) + after * (Block::load(&self.reward[b]) - Block::load(&self.q_hat[b]))
    }
}
