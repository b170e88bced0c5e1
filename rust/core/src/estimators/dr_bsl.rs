//! Doubly robust with a constant guess in the place of a model, Jiang & Li (2016), section 6.1. At the steps of a
//! trajectory it is DR with
//!
//!     Q̂(s_t, a_t) = V̂(s_t) = b_t = c (1 − γ^{H−t+1}) / (1 − γ)
//!
//! After the end of a trajectory Q̂ = V̂ = 0.

use std::ops;

use crate::estimators::about::Range;
use crate::estimators::{About, Formula};
use crate::number::block::{Block, Eight, LANES, Real};
use crate::number::running_sum::Lanes;
use crate::pass::engine::{Fold, Table};
use crate::pass::fold::Term;

/// The estimator.
pub struct DrBsl;

impl Formula for DrBsl {
    const ABOUT: About = About {
        id: "dr-bsl",
        name: "doubly robust with a constant guess in the place of a model",
        equation: "DR with Q̂ = V̂ = c (1 − γ^{H−t+1}) / (1 − γ)",
        reference: "Jiang & Li (2016), section 6.1",
        needs_baseline: true,
        range: Range::LessBaseline,
        ..About::MEAN
    };
    const SUMS: usize = 1;

    #[inline(always)]
    fn fold(rows: &Fold, sums: &mut [Lanes]) {
        rows.add(&BaselineTerms { reward: rows.reward(), baseline: rows.baseline() }, Table::Discount, &mut sums[0]);
    }
}

/// The terms of DR with a baseline, and the columns that they read.
struct BaselineTerms<'a> {
    /// r_t
    reward: &'a [Eight],
    /// b_t, a table over steps
    baseline: &'a [Eight],
}

impl Term for BaselineTerms<'_> {
    #[inline(always)]
    fn part(&self, blocks: ops::Range<usize>) -> Self {
        Self { reward: &self.reward[blocks.clone()], baseline: &self.baseline[blocks] }
    }

    #[inline(always)]
    fn term<T: Real>(&self, before: Block<T>, after: Block<T>, b: usize) -> Block<T> {
        let b_t = Block::load(&self.baseline[b]);
        before * b_t + after * (Block::load(&self.reward[b]) - b_t)
    }
}

/// Returns b_t for t = 1, …, H, followed by zeros up to the end of the last block. The sum 1 + γ + … + γ^{H−t} is built
/// from t = H backwards.
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
