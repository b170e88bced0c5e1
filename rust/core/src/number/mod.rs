//! Numbers: exact sums that do not depend on the order of their terms, scaled floats, moments, blocks of eight steps
//! and quantiles.

pub mod block;
pub mod fingerprint;
pub mod gram;
pub mod largest;
pub mod magnitude;
pub mod moments;
pub mod prefix;
pub mod running_sum;
pub mod scaled;
pub mod simplex;
pub mod step_sums;
pub mod student;
pub mod sum;
