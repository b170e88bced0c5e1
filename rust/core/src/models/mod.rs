//! Building blocks of models of Markov decision processes, which fitters and planners call.
//!
//! States are cells 0, 1, …, |S|-1 and actions 0, 1, …, |A|-1. The pair (s, a) has index s·|A| + a. An episode that
//! ends goes to an absorbing state of value 0, which has the index |S| where it needs one.

mod aligned;
pub mod cells;
pub mod counts;
pub mod dp;
pub mod integers;
pub mod kernel;
pub mod kernel_model;
pub mod logged_rows;
pub mod lookup;
pub mod model;
pub mod optimal;
pub mod particles;
pub mod reward_sum;
pub mod split;
