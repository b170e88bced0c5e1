//! Truncated importance sampling, Ionides (2008), over whole trajectories: no weight counts more than √n.
//!
//!     truncated IS = min(ρ_{1:H}, √n) G,    G = Σ_t γ^{t−1} r_t
//!
//! The variance is finite even where that of IS is not. The expectation lacks what was cut, E[(ρ_{1:H} − √n)⁺ G]. This
//! bias is at most E[(ρ_{1:H} − √n)⁺] max |G| and vanishes as n grows; where G ≥ 0 the expectation is never too large.
//! The number n of trajectories is known after the first pass, so the second pass computes the values.

use crate::estimators::about::Unbiased;
use crate::estimators::formula::Ended;
use crate::estimators::{About, Formula};
use crate::number::scaled::Scaled;
use crate::pass::accumulators::PolicySums;

/// The estimator.
pub struct IsTruncated;

impl Formula for IsTruncated {
    const ABOUT: About = About {
        id: "is-truncated",
        name: "importance sampling of whole trajectories, with weights of at most √n",
        equation: "min(ρ_{1:H}, √n) Σ_t γ^{t−1} r_t",
        reference: "Ionides (2008), Truncated Importance Sampling",
        passes: 2,
        value_pass: 2,
        unbiased: Unbiased::InTheLimit,
        shrinks: true,
        weights_returns: true,
        only_when_asked: true,
        ..About::MEAN
    };

    #[inline(always)]
    fn value(ended: &Ended, _into: &mut PolicySums) -> Option<Scaled> {
        let most = Scaled::from((ended.episodes as f64).sqrt());
        let weight = if ended.weight.compare(most).is_gt() { most } else { ended.weight };
        Some(weight * ended.returns)
    }
}
