//! Step-wise weighted importance sampling, Jiang & Li (2016), eq. (7). With c_t = ρ_{1:t}, kept after the end T,
//! and D_t = Σ_i c_t / n over *all* trajectories:
//!
//!     step-WIS = Σ_t γ^{t−1} R_t,    R_t = Σ_i c_t r_t / Σ_i c_t
//!
//! Its influence function, for the standard error √(Σψ² / (n (n−1))):
//!
//!     ψ_i = Σ_{t ≤ T} γ^{t−1} (c_t / D_t) (r_t − R_t) − c_T Σ_{t > T} γ^{t−1} R_t / D_t

use std::ops::Range;

use crate::number::block::{Block, Eight, Real};
use crate::pass::fold::Term;

/// c_t itself.
pub struct Weight;

impl Term for Weight {
    #[inline(always)]
    fn part(&self, _blocks: Range<usize>) -> Self {
        Self
    }

    #[inline(always)]
    fn term<T: Real>(&self, _before: Block<T>, after: Block<T>, _b: usize) -> Block<T> {
        after
    }
}

/// What a trajectory adds to ψ while it runs, with γ^{t−1}/D_t as the table.
pub struct StepWisInfluence<'a> {
    /// r_t
    pub reward: &'a [Eight],
    /// R_t, a table over steps in two parts
    pub mean_reward: [&'a [Eight]; 2],
}

impl Term for StepWisInfluence<'_> {
    #[inline(always)]
    fn part(&self, blocks: Range<usize>) -> Self {
        Self { reward: &self.reward[blocks.clone()], mean_reward: self.mean_reward.map(|part| &part[blocks.clone()]) }
    }

    #[inline(always)]
    fn term<T: Real>(&self, _before: Block<T>, after: Block<T>, b: usize) -> Block<T> {
        after
            * (Block::load(&self.reward[b])
                - Block::load(&self.mean_reward[0][b])
                - Block::load(&self.mean_reward[1][b]))
    }
}
