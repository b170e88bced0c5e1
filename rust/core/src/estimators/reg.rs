//! Regression estimator, Jiang & Li (2016), section 2.2.1:
//!
//!     REG = V̂(s_1)

use crate::number::scaled::Scaled;

/// REG of one trajectory.
pub fn value(first_v_hat: f64) -> Scaled {
    first_v_hat.into()
}
