//! Step-wise importance sampling, Jiang & Li (2016), eq. (5):
//!
//!     step-IS = Σ_t γ^{t−1} ρ_{1:t} r_t,
//!
//! or recursively, eq. (9), step-IS_t = ρ_t (r_t + γ step-IS_{t+1}).

use std::ops::Range;

use crate::number::block::{Block, Eight, Real};
use crate::pass::fold::Term;

/// The columns of step-IS.
pub struct StepIs<'a> {
    /// r_t
    pub reward: &'a [Eight],
}

impl Term for StepIs<'_> {
    #[inline(always)]
    fn part(&self, blocks: Range<usize>) -> Self {
        Self { reward: &self.reward[blocks] }
    }

    #[inline(always)]
    fn term<T: Real>(&self, _before: Block<T>, after: Block<T>, b: usize) -> Block<T> {
        after * Block::load(&self.reward[b])
    }
}
