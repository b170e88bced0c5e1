//! Building blocks of models of Markov decision processes: what fitters and planners call.

pub mod kernel;
pub mod kernel_model;
pub mod particles;
