//! Regression estimator, Jiang & Li (2016), section 2.2.1:
//!
//!     REG = V̂(s_1)

use crate::estimators::about::{Column, ModelUse, Range, Unbiased};
use crate::estimators::formula::Ended;
use crate::estimators::{About, Formula};
use crate::number::scaled::Scaled;
use crate::pass::accumulators::PolicySums;

/// The estimator.
pub struct Reg;

impl Formula for Reg {
    const ABOUT: About = About {
        id: "reg",
        name: "regression, the model's value of the first state",
        equation: "V̂(s_1)",
        reference: "Jiang & Li (2016), section 2.2.1",
        needs: &[Column::VHat],
        unbiased: Unbiased::WithRightModel,
        model: ModelUse::Value,
        range: Range::FirstValue,
        ..About::MEAN
    };

    #[inline(always)]
    fn value(ended: &Ended, _into: &mut PolicySums) -> Option<Scaled> {
        Some(ended.first_v_hat.into())
    }
}
