//! The sources of ρ_t, which is computed for eight rows at a time: probabilities, a logged column, or a mixture.
//!
//!     ρ_t = π1(a_t|s_t) / π0(a_t|s_t),    or as logged,    or (1−α) ρ_t + α

use crate::number::block::{Block, Eight, Real};

/// The ratios of consecutive blocks.
pub trait Ratios {
    /// Returns the number of blocks.
    fn blocks(&self) -> usize;

    /// Returns ρ_t of block b.
    fn block(&self, b: usize) -> Block<f64>;
}

/// The quotients π1 / π0.
pub struct Quotients<'a> {
    /// π0(a_t|s_t)
    pub behavior: &'a [Eight],
    /// π1(a_t|s_t)
    pub target: &'a [Eight],
}

impl Ratios for Quotients<'_> {
    #[inline(always)]
    fn blocks(&self) -> usize {
        self.behavior.len().min(self.target.len())
    }

    #[inline(always)]
    fn block(&self, b: usize) -> Block<f64> {
        let (pi_0, pi_1) = (&self.behavior[b], &self.target[b]);
        Block(std::array::from_fn(|j| pi_1[j] / pi_0[j]))
    }
}

/// Ratios that were logged or computed before.
impl Ratios for &[Eight] {
    #[inline(always)]
    fn blocks(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn block(&self, b: usize) -> Block<f64> {
        Block(self[b])
    }
}

/// The ratios of a mixture.
pub struct Mixed<'a> {
    /// ρ_t of the policy that is mixed with the behaviour policy.
    pub base: &'a [Eight],
    /// The share of the behaviour policy.
    pub alpha: f64,
}

impl Ratios for Mixed<'_> {
    #[inline(always)]
    fn blocks(&self) -> usize {
        self.base.len()
    }

    #[inline(always)]
    fn block(&self, b: usize) -> Block<f64> {
        mixed(Block(self.base[b]), self.alpha)
    }
}

/// Returns (1−α) ρ_t + α, the ratio of the mixture (1−α) π1 + α π0, whose second part has the ratio 1.
#[inline(always)]
pub fn mixed<T: Real>(rho: Block<T>, alpha: f64) -> Block<T> {
    Block::splat(1.0 - alpha) * rho + Block::splat(alpha)
}
