//! Building blocks for models of Markov decision processes with finitely many states and actions.

pub mod kernel;
pub mod kernel_model;
