//! One pass over a log: the plan, the engine, its sums and normalisers, the outcome, and the states that processes
//! send.

pub mod accumulators;
pub mod cut_off;
pub mod engine;
pub mod fit;
pub mod fold;
pub mod memory;
pub mod normalisers;
pub mod outcome;
pub mod plan;
pub mod ratios;
pub mod stamp;
pub mod table;
pub mod weights;
pub mod wire;
