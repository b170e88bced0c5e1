//! Weighted doubly robust, Thomas & Brunskill (2016), with c_t = ρ_{1:t}, kept after the end T, and D_t = Σ_i c_t / n, D_0 = 1:
//!
//!     WDR = Σ_t γ^{t−1} [ A_t + B_t ],    A_t = Σ_i c_t (r_t − Q̂_t) / Σ_i c_t,    B_t = Σ_i c_{t−1} V̂_t / Σ_i c_{t−1}
//!
//! Its influence function, with r = Q̂ = V̂ = 0 after the end:
//!
//!     ψ_i = Σ_t γ^{t−1} [ (c_t / D_t) (r_t − Q̂_t − A_t) + (c_{t−1} / D_{t−1}) (V̂_t − B_t) ]

use std::ops::Range;

use crate::number::block::{Block, Eight, Real};
use crate::pass::fold::Term;

/// c_t (r_t − Q̂_t).
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

/// c_{t−1} V̂_t.
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

/// What a trajectory adds to the first part of ψ while it runs, with γ^{t−1}/D_t as the table.
pub struct ResidualInfluence<'a> {
    /// r_t
    pub reward: &'a [Eight],
    /// Q̂(s_t, a_t)
    pub q_hat: &'a [Eight],
    /// A_t, a table over steps in two parts
    pub mean_residual: [&'a [Eight]; 2],
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

/// The second part, with γ^{t−1}/D_{t−1} as the table.
pub struct ValueInfluence<'a> {
    /// V̂(s_t)
    pub v_hat: &'a [Eight],
    /// B_t, a table over steps in two parts
    pub mean_value: [&'a [Eight]; 2],
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
