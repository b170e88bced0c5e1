//! Monte Carlo: the discounted return itself, hence the behaviour policy's own value,
//!
//!     MC = Σ_t γ^{t−1} r_t,
//!
//! which is step-wise IS with every ratio 1: the behaviour policy is folded as a target policy of its own.

pub use super::step_is::StepIs as Mc;
