//! Doubly robust with a constant guess in the place of a model, Jiang & Li (2016), section 6.1: DR with
//!
//!     Q̂(s_t, a_t) = V̂(s_t) = b_t = c (1 − γ^{H−t+1}) / (1 − γ)
//!
//! for the steps that exist; an ended trajectory is absorbed with Q̂ = V̂ = 0.

use std::ops::Range;

use crate::number::block::{Block, Eight, LANES, Real};
use crate::pass::fold::Term;

/// The columns of DR with a baseline.
pub struct DrBsl<'a> {
    /// r_t
    pub reward: &'a [Eight],
    /// b_t, a table over steps
    pub baseline: &'a [Eight],
}

impl Term for DrBsl<'_> {
    #[inline(always)]
    fn part(&self, blocks: Range<usize>) -> Self {
        Self { reward: &self.reward[blocks.clone()], baseline: &self.baseline[blocks] }
    }

    #[inline(always)]
    fn term<T: Real>(&self, before: Block<T>, after: Block<T>, b: usize) -> Block<T> {
        let b_t = Block::load(&self.baseline[b]);
        before * b_t + after * (Block::load(&self.reward[b]) - b_t)
    }
}

/// b_t for t = 1, …, H, zero up to the end of the last block. The sum 1 + γ + … + γ^{H−t} is built from its end.
pub fn baseline(c: f64, discount: f64, horizon: usize) -> Vec<f64> {
    let mut table = vec![0.0; horizon.next_multiple_of(LANES)];
    let mut sum = 0.0;
    for b_t in table[..horizon].iter_mut().rev() {
        sum = 1.0 + discount * sum;
        *b_t = c * sum;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baseline_is_the_geometric_sum() {
        let table = baseline(-2.0, 0.5, 3);
        assert_eq!(table, [-3.5, -3.0, -2.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(baseline(1.0, 1.0, 4)[..4], [4.0, 3.0, 2.0, 1.0]);
        assert_eq!(baseline(1.0, 0.0, 2)[..2], [1.0, 1.0]);
    }
}
