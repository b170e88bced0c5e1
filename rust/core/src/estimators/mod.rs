//! One file an estimator, the equation on top.

pub mod dr;
pub mod dr_bsl;
pub mod dr_v2;
pub mod is;
pub mod magic;
pub mod mc;
pub mod reg;
pub mod step_is;
pub mod step_wis;
pub mod wdr;
pub mod wis;

use serde::{Deserialize, Serialize};

/// The estimators by their public ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Monte Carlo: the behaviour policy's own value.
    Mc,
    /// Trajectory-wise importance sampling.
    Is,
    /// Step-wise importance sampling.
    StepIs,
    /// Weighted importance sampling.
    Wis,
    /// Step-wise weighted importance sampling.
    StepWis,
    /// Regression: the model's value of the first state.
    Reg,
    /// Doubly robust.
    Dr,
    /// Doubly robust with a constant in the place of a model.
    DrBsl,
    /// Doubly robust with the model's transitions.
    DrV2,
    /// Weighted doubly robust.
    Wdr,
    /// Weighted doubly robust for some steps, then the model, blended over the number of steps.
    Magic,
}
