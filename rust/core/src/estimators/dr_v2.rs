//! DR-v2, Jiang & Li (2016), eq. (12), for models with good transitions:
//!
//!     X_t = V̂(s_t) + ρ_t (r_t + γ X_{t+1} − R̂(s_t, a_t) − γ V̂(s_{t+1}) p_t),    p_t = P̂/P of the transition t → t+1
//!
//! unrolled, with p_0 = 0 and V̂ = 0 after the end:
//!
//!     X = Σ_t γ^{t−1} [ ρ_{1:t−1} V̂(s_t) (1 − p_{t−1}) + ρ_{1:t} (r_t − R̂(s_t, a_t)) ]
//!
//! With p = 1 only V̂(s_1) is left of the first part.

use std::ops::Range;

use crate::number::block::{Block, Eight, Real};
use crate::pass::fold::Term;

/// The columns of DR-v2.
pub struct DrV2<'a> {
    /// r_t
    pub reward: &'a [Eight],
    /// R̂(s_t, a_t)
    pub r_hat: &'a [Eight],
    /// V̂(s_t)
    pub v_hat: &'a [Eight],
    /// p_{t−1}, 0 at the first step
    pub previous_ratio: &'a [Eight],
}

impl Term for DrV2<'_> {
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
