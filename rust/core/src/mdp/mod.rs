//! Tabular models of a Markov decision process: counted from logs, evaluated and optimised by dynamic programming.
//!
//! States are cells 0, 1, …, |S|-1 and actions 0, 1, …, |A|-1; the pair (s, a) has index s·|A| + a. An episode that
//! ends goes to an absorbing state of value 0, which has the index |S| where it must be named.

pub mod cells;
pub mod counts;
pub mod dp;
pub mod integers;
pub mod lookup;
pub mod model;
pub mod optimal;
pub mod reward_sum;
pub mod split;
