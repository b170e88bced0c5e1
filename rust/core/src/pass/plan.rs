//! The plan of an evaluation: the columns, the target policies and the estimators of each.

use serde::{Deserialize, Serialize};

use crate::estimators::about::StepSum;
use crate::estimators::{About, Estimator};
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

/// The source of ρ_t. Columns are given by the indices of their slots.
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
    /// (1−α) ρ_t + α with ρ_t of an earlier policy, for the mixture of that policy with the behaviour policy.
    Mixture {
        /// The index of the earlier policy.
        of: usize,
        /// α, the share of the behaviour policy.
        alpha: f64,
    },
}

/// A policy with its columns and estimators.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Policy {
    /// The name of the policy.
    pub name: String,
    /// The source of ρ_t.
    pub ratio: Ratio,
    /// The slot of Q̂(s_t, a_t).
    pub q_hat: Option<usize>,
    /// The slot of V̂(s_t).
    pub v_hat: Option<usize>,
    /// The slot of R̂(s_t, a_t).
    pub r_hat: Option<usize>,
    /// The slot of P̂/P.
    pub transition_ratio: Option<usize>,
    /// The estimators to compute.
    pub estimators: Vec<Estimator>,
}

/// The plan of one evaluation. Policy 0 is the behaviour policy, whose returns the other policies use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// γ
    pub discount: f64,
    /// H, or None for the length of the longest trajectory.
    pub horizon: Option<u64>,
    /// The constant of `dr-bsl`.
    pub baseline: Option<f64>,
    /// The columns to read.
    pub slots: Vec<Slot>,
    /// The slot of r_t.
    pub reward: usize,
    /// The behaviour policy, followed by the target policies.
    pub policies: Vec<Policy>,
    /// The column that says that a trajectory has ended.
    pub terminal: Option<String>,
    /// The column that says that a trajectory was cut off.
    pub truncated: Option<String>,
    /// True to take truncated trajectories as ended instead of refusing them.
    pub truncated_as_terminal: bool,
    /// The number of problems to report.
    pub problem_limit: usize,
    /// True to look for problems and compute nothing.
    pub check_only: bool,
    /// True to keep the sums for the diagnostics of the weights.
    pub diagnostics: bool,
    /// True to compare each policy with the behaviour policy, trajectory by trajectory.
    pub paired: bool,
    /// The episodes that are known to cross files, which [`crate::log::scan`] puts together.
    #[serde(default)]
    pub crossing: Vec<Id>,
    /// The number of the first step of every episode, if an earlier reading has found it.
    #[serde(default)]
    pub first_step: Option<i64>,
    /// The limit of memory in bytes, or None for no limit.
    #[serde(default)]
    pub memory: Option<u64>,
}

/// One reading of the log, with what it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pass {
    /// The first pass, which finds sums over trajectories and per step.
    First,
    /// The second pass, for what needs the normalisers or the horizon that the first pass found.
    Second,
    /// A pass that keeps the values of trajectories, whose mean is the estimate.
    Values,
    /// A pass that keeps influence values, whose spread gives the standard error. For means they are the values.
    Influence,
}

impl Pass {
    /// Returns the name of the pass in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Values => "values",
            Self::Influence => "influence",
        }
    }

    /// Returns true if the pass keeps a value of every trajectory instead of sums.
    pub fn keeps_values(self) -> bool {
        matches!(self, Self::Values | Self::Influence)
    }

    /// Returns true if the values of weighted estimators are their influence values.
    pub fn is_influence(self) -> bool {
        matches!(self, Self::Second | Self::Influence)
    }
}

/// The work of a pass for one estimator and each trajectory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// The estimator.
    pub estimator: Estimator,
    /// True if a trajectory has a value or an influence value, which holds for all estimators but blends.
    pub has_values: bool,
}

impl Work {
    /// Makes the work for an estimator.
    pub fn new(estimator: Estimator) -> Self {
        Self { estimator, has_values: !estimator.about().is_blend() }
    }

    /// Returns the number of running sums that are kept of a trajectory. Each has eight lanes.
    #[inline(always)]
    pub fn lanes(&self) -> usize {
        self.estimator.sums()
    }

    /// Returns the indices of the first estimator with a control variate, and of the estimator that remains without it.
    pub fn control(work: &[Self]) -> Option<(usize, usize)> {
        let place = |estimator| work.iter().position(|other| other.estimator == estimator);
        let pair = |(index, own): (usize, &Self)| Some((index, place(own.estimator.about().without_control?)?));
        work.iter().enumerate().find_map(pair)
    }
}

impl Plan {
    /// Returns true if the first pass cannot give every value and standard error.
    pub fn needs_second_pass(&self) -> bool {
        self.policies.iter().any(|policy| !self.work(policy, Pass::Second).is_empty())
    }

    /// Returns what a pass computes for each trajectory of a policy.
    pub fn work(&self, policy: &Policy, pass: Pass) -> Vec<Work> {
        let busy = |estimator: &Estimator| self.works_in(pass, estimator.about());
        let mut estimators: Vec<Estimator> = policy.estimators.iter().copied().filter(busy).collect();
        if self.watches(policy, pass) {
            // The difference of an estimator and the one that remains without its control variate is the control
            // variate.
            let bases: Vec<Estimator> = estimators.iter().filter_map(|e| e.about().without_control).collect();
            for base in bases {
                if !estimators.contains(&base) {
                    estimators.push(base);
                }
            }
        }
        estimators.into_iter().map(Work::new).collect()
    }

    /// Returns true if an estimator has something to do in a pass.
    fn works_in(&self, pass: Pass, about: &About) -> bool {
        match pass {
            Pass::First => about.passes == 1 && !(about.needs_baseline && self.horizon.is_none()),
            Pass::Second if about.of_behavior => self.needs_returns_again(),
            Pass::Second => self.works_again(about),
            Pass::Values | Pass::Influence => !about.is_blend(),
        }
    }

    /// Returns true if an estimator of a target policy needs the second pass for its values, for its standard error, or
    /// for the influence values from which diagnostics and differences are computed.
    fn works_again(&self, about: &About) -> bool {
        about.passes == 2
            || about.needs_baseline && self.horizon.is_none()
            || about.weighted && (self.diagnostics || self.paired)
    }

    /// Returns true if the second pass needs the returns of trajectories too.
    fn needs_returns_again(&self) -> bool {
        let estimators = self.policies.iter().flat_map(|policy| &policy.estimators).map(|estimator| estimator.about());
        let reads = |about: &About| (about.weights_returns || self.paired) && !about.is_blend();
        estimators.filter(|about| reads(about)).any(|about| self.works_again(about))
    }

    /// Returns true if a pass keeps the sums for the diagnostics of a policy's weights.
    pub fn watches(&self, policy: &Policy, pass: Pass) -> bool {
        self.diagnostics && pass == Pass::First && policy.ratio != Ratio::One && !policy.estimators.is_empty()
    }

    /// Returns the kinds of sums per step that a pass keeps.
    pub fn step_sums(&self, policy: &Policy, pass: Pass) -> Vec<StepSum> {
        let watches = self.watches(policy, pass);
        let wanted = |sum: &StepSum| match sum {
            StepSum::SquaredWeight => watches,
            StepSum::AbsoluteReward => watches && self.truncated_as_terminal,
            StepSum::Weight if watches => true,
            _ => pass == Pass::First && policy.sums_by_step(*sum),
        };
        StepSum::ALL.into_iter().filter(wanted).collect()
    }
}

impl Policy {
    /// Returns true if an estimator of the policy needs this sum per step.
    pub fn sums_by_step(&self, sum: StepSum) -> bool {
        self.estimators.iter().any(|estimator| estimator.about().step_sums.contains(&sum))
    }

    /// Returns true if an estimator normalises the weights of each step.
    pub fn normalises_steps(&self) -> bool {
        self.estimators.iter().any(|estimator| estimator.about().sums_by_step())
    }

    /// Returns true if an estimator normalises the weights of whole trajectories.
    pub fn normalises_returns(&self) -> bool {
        let normalises = |about: &About| about.weighted && about.weights_returns;
        self.estimators.iter().any(|estimator| normalises(estimator.about()))
    }
}
