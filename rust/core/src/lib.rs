//! Off-policy value estimators over streams of logged steps, after Jiang & Li (2016).
//!
//! Plain slices in, small mergeable states out: no Python, no Arrow. A log is read by one or more [`scan::Scan`]s, in
//! units of any size and order; every sum is independent of how the log was cut, so the result has the same bits.

pub mod accumulators;
pub mod block;
pub mod content;
pub mod cut_off;
pub mod diagnosis;
pub mod ending;
pub mod engine;
pub mod entries;
pub mod episode;
pub mod estimators;
pub mod fingerprint;
pub mod fit;
pub mod fold;
pub mod gram;
pub mod ids;
pub mod inspect;
pub mod lanes;
pub mod largest;
pub mod mdp;
pub mod memory;
pub mod moments;
pub mod normalisers;
pub mod outcome;
pub mod plan;
pub mod prefix;
pub mod problem;
pub mod ratios;
pub mod runs;
pub mod scaled;
pub mod scan;
pub mod simplex;
pub mod stamp;
pub mod step_sums;
pub mod steps;
pub mod student;
pub mod sum;
pub mod table;
pub mod watch;
pub mod weights;
pub mod wire;
