//! Importance sampling over whole trajectories, Jiang & Li (2016), eq. (4):
//!
//!     IS = ρ_{1:H} Σ_t γ^{t−1} r_t
//!
//! A trajectory that ends before H is absorbed with ratio 1, so ρ_{1:H} is the weight at its end.

use crate::number::scaled::Scaled;

/// IS of one trajectory with weight ρ_{1:H} and return Σ γ^{t−1} r_t.
pub fn value(weight: Scaled, discounted_return: Scaled) -> Scaled {
    weight * discounted_return
}
