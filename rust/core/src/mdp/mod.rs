//! Building blocks of models: what fitters and planners call.

pub mod particles;
