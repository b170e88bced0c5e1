//! What one evaluation computes: the columns, the target policies and the estimators of each.

use serde::{Deserialize, Serialize};

use crate::estimators::{Estimator, magic};
use crate::log::checks::Check;
use crate::log::ids::Id;

/// A column that the scan reads, as f64.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Slot {
    /// Its name in the log.
    pub name: String,
    /// What its values must be.
    pub check: Check,
}

/// Where ρ_t comes from; numbers are indices of slots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ratio {
    /// ρ_t = 1: the behaviour policy itself.
    One,
    /// ρ_t = π1(a_t|s_t) / π0(a_t|s_t).
    Probabilities {
        /// π0(a_t|s_t)
        behavior: usize,
        /// π1(a_t|s_t)
        target: usize,
    },
    /// ρ_t as logged.
    Column {
        /// ρ_t
        ratio: usize,
    },
    /// (1−α) ρ_t + α with the ratio of an earlier policy: the mixture of that policy with the behaviour policy.
    Mixture {
        /// Index of that policy.
        of: usize,
        /// Share of the behaviour policy.
        alpha: f64,
    },
}

/// A target policy: its columns and what to estimate of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// ρ_t
    pub ratio: Ratio,
    /// Slot of Q̂(s_t, a_t)
    pub q_hat: Option<usize>,
    /// Slot of V̂(s_t)
    pub v_hat: Option<usize>,
    /// Slot of R̂(s_t, a_t)
    pub r_hat: Option<usize>,
    /// Slot of P̂/P
    pub transition_ratio: Option<usize>,
    /// What to estimate.
    pub estimators: Vec<Estimator>,
}

/// One evaluation. Policy 0 is the behaviour policy, whose return the others use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// γ
    pub discount: f64,
    /// H, or None for the length of the longest trajectory.
    pub horizon: Option<u64>,
    /// The constant of `dr-bsl`.
    pub baseline: Option<f64>,
    /// Columns to read.
    pub slots: Vec<Slot>,
    /// Slot of r_t
    pub reward: usize,
    /// The behaviour policy, then the targets.
    pub policies: Vec<Policy>,
    /// The column that says that a trajectory has ended.
    pub terminal: Option<String>,
    /// The column that says that a trajectory was cut off.
    pub truncated: Option<String>,
    /// Take truncated trajectories as ended, instead of refusing them.
    pub truncated_as_terminal: bool,
    /// How many problems to keep.
    pub problem_limit: usize,
    /// Look for problems only.
    pub check_only: bool,
    /// Keep what tells whether weights can be trusted.
    pub diagnostics: bool,
    /// Compare each policy with the behaviour policy, trajectory by trajectory.
    pub paired: bool,
    /// Episodes that are known to cross files; see `scan::pieces`.
    #[serde(default)]
    pub crossing: Vec<Id>,
    /// The first step of every episode, where an earlier reading has found it.
    #[serde(default)]
    pub first_step: Option<i64>,
    /// Bytes that may be taken, None for any number.
    #[serde(default)]
    pub memory: Option<u64>,
}

/// The table in the place of γ^{t−1}.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Table {
    /// γ^{t−1}
    Discount,
    /// γ^{t−1} / D_t
    OverWeight,
    /// γ^{t−1} / D_{t−1}
    OverPreviousWeight,
}

/// A term by name; the columns come from the policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// ρ_{1:t} r_t
    StepIs,
    /// eq. (10)
    Dr,
    /// eq. (10) with a constant
    DrBsl,
    /// eq. (12)
    DrV2,
    /// ρ_{1:t} (r_t − Q̂_t)
    Residual,
    /// ρ_{1:t−1} V̂_t
    Value,
    /// ψ of step-WIS
    StepWisInfluence,
    /// ψ of WDR, first part
    ResidualInfluence,
    /// ψ of WDR, second part
    ValueInfluence,
}

/// A sum for each step over all trajectories.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepForm {
    /// Σ c_t
    Weight,
    /// Σ c_t²
    SquaredWeight,
    /// Σ c_t |r_t|
    AbsoluteReward,
    /// Σ c_t r_t
    Reward,
    /// Σ c_t (r_t − Q̂_t)
    Residual,
    /// Σ c_{t−1} V̂_t
    Value,
}

/// How often the log has been read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pass {
    /// Sums over trajectories, and over each step.
    First,
    /// What needs the normalisers, or the horizon, of the first.
    Second,
    /// Per-trajectory values whose mean is the estimate.
    Values,
    /// Per-trajectory values whose spread is the standard error: those of `Values` for means, otherwise influence values.
    Influence,
}

impl Pass {
    /// How it is called in a message.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Values => "values",
            Self::Influence => "influence",
        }
    }

    /// True where the pass keeps a value of every trajectory instead of sums.
    pub fn keeps_values(self) -> bool {
        matches!(self, Self::Values | Self::Influence)
    }

    /// True where the values of weighted estimators are their influence values.
    pub fn is_influence(self) -> bool {
        matches!(self, Self::Second | Self::Influence)
    }
}

/// What a pass computes of one estimator, trajectory by trajectory.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Of which estimator.
    pub estimator: Estimator,
    /// Running sums of the trajectory; `magic` has its own.
    pub terms: Vec<(Table, Form)>,
}

impl Work {
    /// How many running sums, eight lanes each.
    pub fn lanes(&self) -> usize {
        if self.estimator == Estimator::Magic { magic::SUMS } else { self.terms.len() }
    }
}

impl Plan {
    /// True where the first pass cannot give every value and standard error.
    pub fn needs_second_pass(&self) -> bool {
        self.policies.iter().any(|policy| !self.work(policy, Pass::Second).is_empty())
    }

    /// What a pass computes for each trajectory of a policy.
    pub fn work(&self, policy: &Policy, pass: Pass) -> Vec<Work> {
        use {Estimator::*, Form as F, Table::*};
        let knows_horizon = self.horizon.is_some();
        let item = |&estimator: &Estimator| {
            let terms = match (estimator, pass) {
                (StepWis, Pass::Second | Pass::Influence) => vec![(OverWeight, F::StepWisInfluence)],
                (StepWis, Pass::Values) => vec![(OverWeight, F::StepIs)],
                (Wdr, Pass::Second | Pass::Influence) => {
                    vec![(OverWeight, F::ResidualInfluence), (OverPreviousWeight, F::ValueInfluence)]
                }
                (Wdr, Pass::Values) => {
                    vec![(OverWeight, F::Residual), (OverPreviousWeight, F::Value)]
                }
                (Magic, Pass::Second) => vec![],
                (Wis, Pass::Second) if self.diagnostics || self.paired => vec![],
                (Mc, Pass::Second) if self.needs_returns_again() => vec![(Discount, F::StepIs)],
                (StepWis | Wdr | Magic, Pass::First) | (Magic, Pass::Values | Pass::Influence) => return None,
                (DrBsl, _) if !pass.keeps_values() && (pass == Pass::First) != knows_horizon => {
                    return None;
                }
                (DrBsl, _) => vec![(Discount, F::DrBsl)],
                (_, Pass::Second) => return None,
                (Mc | StepIs, _) => vec![(Discount, F::StepIs)],
                (Dr, _) => vec![(Discount, F::Dr)],
                (DrV2, _) => vec![(Discount, F::DrV2)],
                (Is | Wis | Reg, _) => vec![],
            };
            Some(Work { estimator, terms })
        };
        let mut work: Vec<Work> = policy.estimators.iter().filter_map(item).collect();
        // Step-IS less DR is the control variate.
        if self.watches(policy, pass) && work.iter().any(|w| w.estimator == Dr) {
            let terms = vec![(Discount, F::StepIs)];
            work.extend((!policy.estimators.contains(&StepIs)).then_some(Work { estimator: StepIs, terms }));
        }
        work
    }

    /// True where the second pass needs the returns of trajectories too.
    fn needs_returns_again(&self) -> bool {
        use Estimator::*;
        let late = [Wis, StepWis, Wdr].into_iter().any(|estimator| self.asks(estimator));
        self.diagnostics && self.asks(Wis) || self.paired && (late || self.asks(DrBsl) && self.horizon.is_none())
    }

    fn asks(&self, estimator: Estimator) -> bool {
        self.policies.iter().any(|policy| policy.estimators.contains(&estimator))
    }

    /// True where a pass keeps what tells whether a policy's weights can be trusted.
    pub fn watches(&self, policy: &Policy, pass: Pass) -> bool {
        self.diagnostics && pass == Pass::First && policy.ratio != Ratio::One && !policy.estimators.is_empty()
    }

    /// The sums over trajectories for each step that the first pass keeps.
    pub fn step_forms(&self, policy: &Policy, pass: Pass) -> Vec<StepForm> {
        let wants = |estimator| pass == Pass::First && policy.estimators.contains(&estimator);
        let mut forms = vec![];
        let watches = self.watches(policy, pass);
        let doubly_robust = wants(Estimator::Wdr) || wants(Estimator::Magic);
        if wants(Estimator::StepWis) || doubly_robust || watches {
            forms.push(StepForm::Weight);
        }
        if watches {
            forms.push(StepForm::SquaredWeight);
        }
        if watches && self.truncated_as_terminal {
            forms.push(StepForm::AbsoluteReward);
        }
        if wants(Estimator::StepWis) {
            forms.push(StepForm::Reward);
        }
        if doubly_robust {
            forms.extend([StepForm::Residual, StepForm::Value]);
        }
        forms
    }
}
