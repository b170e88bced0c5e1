//! Importance sampling over whole trajectories, Jiang & Li (2016), eq. (4):
//!
//!     IS = ρ_{1:H} Σ_t γ^{t−1} r_t
//!
//! The ratios of a trajectory that ends before H are 1 after its end, so ρ_{1:H} is the weight at the end.

use crate::estimators::about::Range;
use crate::estimators::formula::Ended;
use crate::estimators::{About, Formula};
use crate::number::scaled::Scaled;
use crate::pass::accumulators::PolicySums;

/// The estimator.
pub struct Is;

impl Formula for Is {
    const ABOUT: About = About {
        id: "is",
        name: "importance sampling of whole trajectories",
        equation: "ρ_{1:H} Σ_t γ^{t−1} r_t",
        reference: "Jiang & Li (2016), eq. (4)",
        weights_returns: true,
        range: Range::WeightedReturn,
        ..About::MEAN
    };

    #[inline(always)]
    fn value(ended: &Ended, _into: &mut PolicySums) -> Option<Scaled> {
        Some(ended.weight * ended.returns)
    }
}
