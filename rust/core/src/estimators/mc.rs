//! Monte Carlo, Jiang & Li (2016), section 2.1: the discounted return, whose mean is the value of the behaviour policy.
//!
//!     MC = Σ_t γ^{t−1} r_t
//!
//! This is step-wise IS with every ratio 1, so the behaviour policy is folded like a target policy.

use crate::estimators::about::Range;
use crate::estimators::step_is::StepIs;
use crate::estimators::{About, Formula};
use crate::number::running_sum::Lanes;
use crate::pass::engine::Fold;

/// The estimator.
pub struct Mc;

impl Formula for Mc {
    const ABOUT: About = About {
        id: "mc",
        name: "Monte Carlo, the behaviour policy's own value",
        equation: "Σ_t γ^{t−1} r_t",
        reference: "Jiang & Li (2016), section 2.1",
        needs: &[],
        of_behavior: true,
        range: Range::Return,
        ..About::MEAN
    };
    const SUMS: usize = 1;

    #[inline(always)]
    fn fold(rows: &Fold, sums: &mut [Lanes]) {
        StepIs::fold(rows, sums);
    }
}
