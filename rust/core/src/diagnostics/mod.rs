//! Diagnostics of the weights: the sums that the first pass keeps, and the numbers that are made of them.

pub mod numbers;
pub mod sums;
