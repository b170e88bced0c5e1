//! Step-wise importance sampling, Jiang & Li (2016), eq. (5):
//!
//!     step-IS = Σ_t γ^{t−1} ρ_{1:t} r_t
//!
//! The recursive form is eq. (9), step-IS_t = ρ_t (r_t + γ step-IS_{t+1}).

use std::ops;

use crate::estimators::about::Range;
use crate::estimators::{About, Estimator, Formula};
use crate::number::block::{Block, Eight, Real};
use crate::number::running_sum::Lanes;
use crate::pass::engine::{Fold, Table};
use crate::pass::fold::Term;

/// The estimator.
pub struct StepIs;

impl Formula for StepIs {
    const ABOUT: About = About {
        id: "step-is",
        name: "step-wise importance sampling",
        equation: "Σ_t γ^{t−1} ρ_{1:t} r_t",
        reference: "Jiang & Li (2016), eq. (5)",
        with_baseline: Some(Estimator::DrBsl),
        range: Range::WeightedRewards,
        ..About::MEAN
    };
    const SUMS: usize = 1;

    #[inline(always)]
    fn fold(rows: &Fold, sums: &mut [Lanes]) {
        rows.add(&WeightedReward { reward: rows.reward() }, Table::Discount, &mut sums[0]);
    }
}

/// The term ρ_{1:t} r_t.
pub struct WeightedReward<'a> {
    /// r_t
    pub reward: &'a [Eight],
}

impl Term for WeightedReward<'_> {
    #[inline(always)]
    fn part(&self, blocks: ops::Range<usize>) -> Self {
        Self { reward: &self.reward[blocks] }
    }

    #[inline(always)]
    fn term<T: Real>(&self, _before: Block<T>, after: Block<T>, b: usize) -> Block<T> {
        after * Block::load(&self.reward[b])
    }
}
