//! DR-v2, Jiang & Li (2016), eq. (12), for models with good transitions:
//!
//!     X_t = V̂(s_t) + ρ_t (r_t + γ X_{t+1} − R̂(s_t, a_t) − γ V̂(s_{t+1}) p_t),    p_t = P̂/P of the transition t → t+1
//!
//! unrolled, with p_0 = 0 and V̂ = 0 after the end:
//!
//!     X = Σ_t γ^{t−1} [ ρ_{1:t−1} V̂(s_t) (1 − p_{t−1}) + ρ_{1:t} (r_t − R̂(s_t, a_t)) ]
//!
//! With p = 1 only V̂(s_1) is left of the first part.

use crate::block::{Block, Real};
use crate::fold::{Cursor, Term};

/// The columns of DR-v2.
pub struct DrV2<'a> {
    /// r_t
    pub reward: &'a [f64],
    /// R̂(s_t, a_t)
    pub r_hat: &'a [f64],
    /// V̂(s_t)
    pub v_hat: &'a [f64],
    /// p_{t−1}, 0 at the first step
    pub previous_ratio: &'a [f64],
}

impl Term for DrV2<'_> {
    #[inline(always)]
    fn term<T: Real>(&self, before: Block<T>, after: Block<T>, at: Cursor) -> Block<T> {
        let unexplained = Block::splat(1.0) - at.row(self.previous_ratio);
        before * at.row(self.v_hat) * unexplained + after * (at.row(self.reward) - at.row(self.r_hat))
    }
}
