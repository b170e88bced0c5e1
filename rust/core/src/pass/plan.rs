//! What one evaluation computes: the columns, the target policies and the estimators of each.

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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Of which estimator.
    pub estimator: Estimator,
    /// True where a trajectory has a value, or an influence value: of all but blends.
    pub has_values: bool,
}

impl Work {
    /// Of an estimator.
    pub fn new(estimator: Estimator) -> Self {
        Self { estimator, has_values: !estimator.about().is_blend() }
    }

    /// How many running sums of a trajectory it takes, eight lanes each.
    #[inline(always)]
    pub fn lanes(&self) -> usize {
        self.estimator.sums()
    }

    /// Where in some work an estimator with a control variate is, and what is left of it without: the first such pair.
    pub fn control(work: &[Self]) -> Option<(usize, usize)> {
        let place = |estimator| work.iter().position(|other| other.estimator == estimator);
        let pair = |(index, own): (usize, &Self)| Some((index, place(own.estimator.about().without_control?)?));
        work.iter().enumerate().find_map(pair)
    }
}

impl Plan {
    /// True where the first pass cannot give every value and standard error.
    pub fn needs_second_pass(&self) -> bool {
        self.policies.iter().any(|policy| !self.work(policy, Pass::Second).is_empty())
    }

    /// What a pass computes for each trajectory of a policy.
    pub fn work(&self, policy: &Policy, pass: Pass) -> Vec<Work> {
        let busy = |estimator: &Estimator| self.works_in(pass, estimator.about());
        let mut estimators: Vec<Estimator> = policy.estimators.iter().copied().filter(busy).collect();
        if self.watches(policy, pass) {
            // What is left of an estimator without its control variate tells the control variate.
            let bases: Vec<Estimator> = estimators.iter().filter_map(|e| e.about().without_control).collect();
            for base in bases {
                if !estimators.contains(&base) {
                    estimators.push(base);
                }
            }
        }
        estimators.into_iter().map(Work::new).collect()
    }

    /// True where an estimator has something to do in a pass.
    fn works_in(&self, pass: Pass, about: &About) -> bool {
        match pass {
            Pass::First => about.passes == 1 && !(about.needs_baseline && self.horizon.is_none()),
            Pass::Second if about.of_behavior => self.needs_returns_again(),
            Pass::Second => self.works_again(about),
            Pass::Values | Pass::Influence => !about.is_blend(),
        }
    }

    /// True where an estimator of a target policy needs the second pass: for its values, for its standard error, or for
    /// the influence values that diagnostics and differences are made of.
    fn works_again(&self, about: &About) -> bool {
        about.passes == 2
            || about.needs_baseline && self.horizon.is_none()
            || about.weighted && (self.diagnostics || self.paired)
    }

    /// True where the second pass needs the returns of trajectories too.
    fn needs_returns_again(&self) -> bool {
        let estimators = self.policies.iter().flat_map(|policy| &policy.estimators).map(|estimator| estimator.about());
        let reads = |about: &About| (about.weights_returns || self.paired) && !about.is_blend();
        estimators.filter(|about| reads(about)).any(|about| self.works_again(about))
    }

    /// True where a pass keeps what tells whether a policy's weights can be trusted.
    pub fn watches(&self, policy: &Policy, pass: Pass) -> bool {
        self.diagnostics && pass == Pass::First && policy.ratio != Ratio::One && !policy.estimators.is_empty()
    }

    /// The sums over trajectories for each step that the first pass keeps.
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
    /// True where an estimator of the policy needs a sum for each step.
    pub fn sums_by_step(&self, sum: StepSum) -> bool {
        self.estimators.iter().any(|estimator| estimator.about().step_sums.contains(&sum))
    }

    /// True where the weights of each step are normalised.
    pub fn normalises_steps(&self) -> bool {
        self.estimators.iter().any(|estimator| estimator.about().sums_by_step())
    }

    /// True where the weights of whole trajectories are normalised.
    pub fn normalises_returns(&self) -> bool {
        let normalises = |about: &About| about.weighted && about.weights_returns;
        self.estimators.iter().any(|estimator| normalises(estimator.about()))
    }
}
