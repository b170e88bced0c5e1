//! The request that Python makes of the core, as typed objects: a [`Spec`] of columns by name, its policies, and the
//! [`Pass`].
//!
//! This is the one place where columns become numbered slots. It also writes the text whose fingerprint goes into the
//! stamp of a state. That text, JSON with sorted keys, is also the form in which a plan travels to another process.

use offpolicy_core::estimators::Estimator;
use offpolicy_core::log::checks::Check;
use offpolicy_core::log::ids::Id;
use offpolicy_core::number::fingerprint::fingerprint;
use offpolicy_core::pass::plan::{self, Plan, Policy, Ratio, Slot};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::errors::{Failure, shielded};

/// A kind of reading of the log, by the results that it keeps.
#[pyclass(frozen, eq, hash, module = "offpolicy._core", rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pass {
    /// Sums over trajectories, and over each step.
    First,
    /// Sums that need the normalisers, or the horizon, of the first pass.
    Second,
    /// Values of trajectories whose mean is the estimate.
    Values,
    /// Values of trajectories whose spread is the standard error.
    Influence,
}

#[pymethods]
impl Pass {
    /// The name under which the pass travels.
    #[getter]
    fn name(&self) -> &'static str {
        plan::Pass::from(*self).name()
    }
}

impl Pass {
    /// Returns the pass of this name.
    pub fn named(name: &str) -> Result<Self, Failure> {
        let all = [Self::First, Self::Second, Self::Values, Self::Influence];
        all.into_iter().find(|pass| pass.name() == name).ok_or_else(|| unreadable(format!("there is no pass {name:?}")))
    }
}

impl From<Pass> for plan::Pass {
    fn from(pass: Pass) -> Self {
        match pass {
            Pass::First => Self::First,
            Pass::Second => Self::Second,
            Pass::Values => Self::Values,
            Pass::Influence => Self::Influence,
        }
    }
}

/// The id of an episode: an integer or a text.
#[derive(FromPyObject)]
pub enum EpisodeId {
    /// Any integer up to 64 bits, signed or not.
    Int(i128),
    /// A text.
    Text(String),
}

impl From<EpisodeId> for Id {
    fn from(id: EpisodeId) -> Self {
        match id {
            EpisodeId::Int(id) => Self::Int(id),
            EpisodeId::Text(id) => Self::Text(id.into()),
        }
    }
}

/// Returns the id of an episode as Python has it.
pub fn to_python(py: Python<'_>, id: &Id) -> PyResult<Py<PyAny>> {
    Ok(match id {
        Id::Int(id) => id.into_pyobject(py)?.into_any().unbind(),
        Id::Text(id) => id.into_pyobject(py)?.into_any().unbind(),
    })
}

/// Returns the item that the core knows by this name, such as an estimator by its id.
fn named<T: DeserializeOwned>(word: &str) -> Result<T, Failure> {
    serde_json::from_value(word.into()).map_err(unreadable)
}

/// Returns the core's name of something.
pub fn name_of(thing: &impl Serialize) -> Result<String, Failure> {
    match serde_json::to_value(thing) {
        Ok(serde_json::Value::String(name)) => Ok(name),
        _ => Err(Failure::Internal("something has no name".into())),
    }
}

fn unreadable(why: impl std::fmt::Display) -> Failure {
    Failure::Internal(format!("the plan cannot be read: {why}"))
}

/// Returns the check for a column of a role.
fn check_of(role: &str, density: bool) -> Result<Check, Failure> {
    Ok(match (role, density) {
        ("reward" | "q_hat" | "v_hat" | "r_hat", _) => Check::Finite,
        ("ratio" | "transition_ratio", _) | ("target_prob", true) => Check::NonNegative,
        ("behavior_prob", true) => Check::PositiveDensity,
        ("behavior_prob", false) => Check::PositiveProbability,
        ("target_prob", false) => Check::Probability,
        _ => return Err(unreadable(format!("no column has the role {role:?}"))),
    })
}

/// A target policy: the estimators to compute for it, and the names of its columns. Its ratio comes from two
/// probabilities, from a column of its own or from a mixture with an earlier policy, or it is 1.
#[pyclass(frozen, module = "offpolicy._core")]
pub struct PolicySpec {
    name: String,
    estimators: Vec<Estimator>,
    ratio: RatioColumns,
    q_hat: Option<String>,
    v_hat: Option<String>,
    r_hat: Option<String>,
    transition_ratio: Option<String>,
}

enum RatioColumns {
    One,
    Probabilities { behavior: String, target: String },
    Column(String),
    Mixture { of: String, alpha: f64 },
}

#[pymethods]
impl PolicySpec {
    #[new]
    #[pyo3(signature = (
        name, estimators, *, probabilities=None, ratio=None, mixture=None, q_hat=None, v_hat=None, r_hat=None,
        transition_ratio=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "a Python signature")]
    fn new(
        name: String,
        estimators: Vec<String>,
        probabilities: Option<(String, String)>,
        ratio: Option<String>,
        mixture: Option<(String, f64)>,
        q_hat: Option<String>,
        v_hat: Option<String>,
        r_hat: Option<String>,
        transition_ratio: Option<String>,
    ) -> PyResult<Self> {
        let ratio = match (probabilities, ratio, mixture) {
            (None, None, None) => RatioColumns::One,
            (Some((behavior, target)), None, None) => RatioColumns::Probabilities { behavior, target },
            (None, Some(ratio), None) => RatioColumns::Column(ratio),
            (None, None, Some((of, alpha))) => RatioColumns::Mixture { of, alpha },
            _ => return Err(unreadable(format!("policy {name:?} has more than one ratio")).into()),
        };
        let estimators = estimators.iter().map(|id| named(id)).collect::<Result<_, _>>()?;
        Ok(Self { name, estimators, ratio, q_hat, v_hat, r_hat, transition_ratio })
    }
}

/// A plan of the core, and the names of the columns that are not numbers.
#[pyclass(frozen, module = "offpolicy._core")]
#[derive(Debug)]
pub struct Spec {
    /// The columns to read and the plan.
    pub content: Content,
    /// The fingerprint of all but the limit of memory, which belongs to one machine and changes no number.
    pub fingerprint: u64,
}

/// The content of a [`Spec`] as it travels.
#[derive(Debug, Serialize, Deserialize)]
pub struct Content {
    /// The name of the column of episode ids.
    pub episode: String,
    /// The name of the column of steps.
    pub step: String,
    /// The plan.
    pub plan: Plan,
}

/// The columns to read as numbers, one slot for each column and check.
#[derive(Default)]
struct Slots {
    slots: Vec<Slot>,
    density: bool,
}

impl Slots {
    fn number(&mut self, name: &str, role: &str) -> Result<usize, Failure> {
        let check = check_of(role, self.density)?;
        let known = self.slots.iter().position(|slot| slot.name == name && slot.check == check);
        Ok(known.unwrap_or_else(|| {
            self.slots.push(Slot { name: name.to_owned(), check });
            self.slots.len() - 1
        }))
    }

    fn model(&mut self, name: Option<&String>, role: &str) -> Result<Option<usize>, Failure> {
        name.map(|name| self.number(name, role)).transpose()
    }

    /// Makes a policy that comes after those in `before`.
    fn policy(&mut self, before: &[Policy], asked: &PolicySpec) -> Result<Policy, Failure> {
        let ratio = match &asked.ratio {
            RatioColumns::One => Ratio::One,
            RatioColumns::Probabilities { behavior, target } => Ratio::Probabilities {
                behavior: self.number(behavior, "behavior_prob")?,
                target: self.number(target, "target_prob")?,
            },
            RatioColumns::Column(ratio) => Ratio::Column { ratio: self.number(ratio, "ratio")? },
            RatioColumns::Mixture { of, alpha } => {
                let known = before.iter().position(|policy| policy.name == *of);
                let missing = || unreadable(format!("policy {:?} mixes {of:?}, which is not before it", asked.name));
                Ratio::Mixture { of: known.ok_or_else(missing)?, alpha: *alpha }
            }
        };
        Ok(Policy {
            name: asked.name.clone(),
            ratio,
            q_hat: self.model(asked.q_hat.as_ref(), "q_hat")?,
            v_hat: self.model(asked.v_hat.as_ref(), "v_hat")?,
            r_hat: self.model(asked.r_hat.as_ref(), "r_hat")?,
            transition_ratio: self.model(asked.transition_ratio.as_ref(), "transition_ratio")?,
            estimators: asked.estimators.clone(),
        })
    }
}

#[pymethods]
impl Spec {
    /// `policies` begins with the behaviour policy. `extra` names further columns to check, with their roles.
    #[new]
    #[pyo3(signature = (
        *, episode, step, reward, policies, discount=1.0, horizon=None, baseline=None, density=false, terminal=None,
        truncated=None, truncated_as_terminal=false, problem_limit=100, check_only=false, diagnostics=false, paired=false,
        extra=vec![], crossing=vec![], first_step=None, memory=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "a Python signature")]
    fn new(
        episode: String,
        step: String,
        reward: String,
        policies: Vec<PyRef<'_, PolicySpec>>,
        discount: f64,
        horizon: Option<u64>,
        baseline: Option<f64>,
        density: bool,
        terminal: Option<String>,
        truncated: Option<String>,
        truncated_as_terminal: bool,
        problem_limit: usize,
        check_only: bool,
        diagnostics: bool,
        paired: bool,
        extra: Vec<(String, String)>,
        crossing: Vec<EpisodeId>,
        first_step: Option<i64>,
        memory: Option<u64>,
    ) -> PyResult<Self> {
        shielded(|| {
            let mut slots = Slots { density, ..Slots::default() };
            let reward = slots.number(&reward, "reward")?;
            let mut numbered = vec![];
            for asked in &policies {
                numbered.push(slots.policy(&numbered, asked)?);
            }
            for (name, role) in &extra {
                slots.number(name, role)?;
            }
            let plan = Plan {
                discount,
                horizon,
                baseline,
                slots: slots.slots,
                reward,
                policies: numbered,
                terminal,
                truncated,
                truncated_as_terminal,
                problem_limit,
                check_only,
                diagnostics,
                paired,
                crossing: crossing.into_iter().map(Id::from).collect(),
                first_step,
                memory,
            };
            Ok(Self::of(Content { episode, step, plan })?)
        })
    }

    /// The names of all columns that a scan reads, without repetition.
    #[getter]
    fn names(&self) -> Vec<&str> {
        let mut names = vec![];
        for name in self.content.names() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

impl Spec {
    fn of(content: Content) -> Result<Self, Failure> {
        content.check()?;
        let mut lasting = serde_json::to_value(&content).map_err(unreadable)?;
        if let Some(plan) = lasting.get_mut("plan").and_then(serde_json::Value::as_object_mut) {
            plan.remove("memory");
        }
        Ok(Self { content, fingerprint: fingerprint(lasting.to_string().as_bytes()) })
    }

    /// Returns the text in which the spec travels.
    pub fn to_json(&self) -> Result<String, Failure> {
        serde_json::to_string(&self.content).map_err(unreadable)
    }

    /// Reads the text in which a spec has travelled.
    pub fn from_json(text: &str) -> Result<Self, Failure> {
        Self::of(serde_json::from_str(text).map_err(unreadable)?)
    }
}

impl Content {
    /// Refuses indices of slots or policies that do not exist, and settings that no evaluation has.
    fn check(&self) -> Result<(), Failure> {
        let plan = &self.plan;
        let slot = |number: usize| number < plan.slots.len();
        let fits = |(index, policy): (usize, &Policy)| {
            let models = [policy.q_hat, policy.v_hat, policy.r_hat, policy.transition_ratio];
            let ratio = match policy.ratio {
                Ratio::One => true,
                Ratio::Probabilities { behavior, target } => slot(behavior) && slot(target),
                Ratio::Column { ratio } => slot(ratio),
                Ratio::Mixture { of, alpha } => of < index && (0.0..=1.0).contains(&alpha),
            };
            ratio && models.into_iter().flatten().all(slot)
        };
        let sound = slot(plan.reward)
            && (0.0..=1.0).contains(&plan.discount)
            && plan.baseline.is_none_or(f64::is_finite)
            && plan.policies.iter().enumerate().all(fits);
        if sound { Ok(()) } else { Err(unreadable("its numbers do not fit together")) }
    }

    /// Returns the names of all columns to read, with episode, step and marks first.
    pub fn names(&self) -> Vec<&str> {
        let first = [&self.episode, &self.step].into_iter().chain(self.marks().into_iter().flatten());
        first.map(String::as_str).chain(self.plan.slots.iter().map(|slot| slot.name.as_str())).collect()
    }

    /// Returns the names of the columns of marks, where the log has them.
    pub fn marks(&self) -> [Option<&String>; 2] {
        [self.plan.terminal.as_ref(), self.plan.truncated.as_ref()]
    }
}
