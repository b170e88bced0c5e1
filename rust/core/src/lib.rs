//! Off-policy value estimators over streams of logged steps, after Jiang & Li (2016).
//!
//! Plain slices in, small mergeable states out: no Python, no Arrow. A log is read by one or more [`log::scan::Scan`]s, in
//! units of any size and order; every sum is independent of how the log was cut, so the result has the same bits.

pub mod diagnostics;
pub mod estimators;
pub mod log;
pub mod models;
pub mod number;
pub mod pass;
