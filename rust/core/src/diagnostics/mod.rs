//! What tells whether weights can be trusted: sums kept in the first pass, and the numbers made of them.

pub mod numbers;
pub mod sums;
