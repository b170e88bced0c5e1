//! The registry of estimators, with one line for each. An estimator is one file, with its equation on top.
//!
//! To add an estimator `my-own`, write `my_own.rs` with a type `MyOwn` that implements [`Formula`], and add the line
//! `MyOwn = my_own,` below. The engine, the outcome, Python and the command line read all else from that file.

#[macro_use]
mod listing;
pub mod about;
pub mod formula;

pub use about::About;
pub use formula::Formula;

estimators! {
    Mc = mc,
    Is = is,
    StepIs = step_is,
    Wis = wis,
    StepWis = step_wis,
    Reg = reg,
    Dr = dr,
    DrBsl = dr_bsl,
    DrV2 = dr_v2,
    Wdr = wdr,
    Magic = magic,
    IsTruncated = is_truncated,
}
