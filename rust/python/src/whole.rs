//! The sums over a whole log, and the outcome that is made of them.

use offpolicy_core::diagnostics::numbers::{BySteps, Diagnosis, diagnose};
use offpolicy_core::log::scan;
use offpolicy_core::pass::accumulators::Accumulators;
use offpolicy_core::pass::normalisers::{self, NoWeight};
use offpolicy_core::pass::outcome;
use offpolicy_core::pass::plan::{Pass, Plan};
use pyo3::prelude::*;

use crate::errors::{Failure, blame};
use crate::job::{Job, Normalisers};
use crate::outcome::Outcome;
use crate::problems::FoundProblems;
use crate::spec::to_python;

/// Ids of trajectories, and their values, or None for values out of the range of f64.
type Values = (Vec<Py<PyAny>>, Vec<Option<f64>>);

/// Ids of episodes that cross files, and the first step of every episode where it is known.
type Crossing = (Vec<Py<PyAny>>, Option<i64>);

/// The sums over a whole log.
#[pyclass(module = "offpolicy._core")]
pub struct Whole {
    job: Py<Job>,
    partial: scan::Partial,
    /// The bytes of the ids and of rows that waited for the beginning of their trajectory.
    taken: u64,
    digest: Option<Digest>,
    travelled: bool,
}

/// The results that are kept of the sums over steps.
struct Digest {
    normalisers: Py<Normalisers>,
    /// The diagnostics of each policy, or None once an outcome has taken them.
    diagnoses: Option<Vec<Option<Diagnosis>>>,
}

impl Whole {
    /// Wraps the sum of all parts of a log, some of which may have travelled.
    pub fn new(job: Py<Job>, partial: scan::Partial, taken: u64, travelled: bool) -> Self {
        Self { job, partial, taken, digest: None, travelled }
    }
}

#[pymethods]
impl Whole {
    /// The number of episodes, n.
    #[getter]
    fn episodes(&self) -> u64 {
        self.partial.sums.episodes()
    }

    /// Returns None unless the limit of memory was too small. If it was, returns the steps of the longest trajectory,
    /// and the bytes that suffice for the log with this many threads.
    fn too_large(&self, threads: u64) -> Option<(u64, u64)> {
        let (plan, sums) = (self.plan(), &self.partial.sums);
        let (steps, others) = (sums.longest(), self.taken + sums.bytes_by_trajectory());
        let needed = |readers: u64| plan.bytes_for(self.job.get().pass, steps, readers).saturating_add(others);
        let too_much = |needed: &u64| plan.memory.is_some_and(|limit| *needed > limit);
        let least = (1..=threads).map(needed).find(too_much).unwrap_or_else(|| needed(threads + 1));
        self.partial.too_large.then_some((steps, least))
    }

    /// The number of rows, a sum over the ids and lengths of the episodes, and the columns read with the sums of their
    /// bits.
    #[getter]
    fn content(&self) -> (u64, u64, Vec<(&str, u64)>) {
        let content = &self.partial.content;
        let names = self.plan().slots.iter().map(|slot| &*slot.name);
        (content.rows, content.episodes, names.zip(content.columns.iter().copied()).collect())
    }

    /// Returns the problems of the log: the first ones, the number of all, and a summary of each kind.
    fn problems(&self, py: Python<'_>) -> PyResult<FoundProblems> {
        FoundProblems::new(py, &self.partial.problems.summary())
    }

    /// Returns the facts that another reading needs about episodes that cross files, or None if nothing is new.
    fn crossing(&self, py: Python<'_>) -> PyResult<Option<Crossing>> {
        let Some(found) = self.partial.crossing(self.plan()) else { return Ok(None) };
        let ids = found.crossing.into_iter().map(|id| to_python(py, id)).collect::<PyResult<_>>()?;
        Ok(Some((ids, found.first_step)))
    }

    /// The number of episodes cut off before the horizon.
    #[getter]
    fn truncated(&self) -> u64 {
        self.cuts().map(|(_, cut)| cut.count).sum()
    }

    /// The length of the shortest episode that was cut off before the horizon.
    #[getter]
    fn shortest_truncated(&self) -> Option<u64> {
        self.cuts().next().map(|(&length, _)| length)
    }

    /// Whether a second pass is needed.
    #[getter]
    fn needs_second_pass(&self) -> bool {
        self.plan().needs_second_pass()
    }

    /// The first policy with weighted estimators all of whose weights are zero at a step, and that step, counted from
    /// 1.
    #[getter]
    fn without_weight(&self) -> Option<(&str, u64)> {
        let none = |NoWeight { policy, step }| (&*self.plan().policies[policy].name, step);
        normalisers::Normalisers::need_weights(self.plan(), &self.partial.sums).err().map(none)
    }

    /// The normalisers that the second pass uses, which are made once.
    #[getter]
    fn normalisers(&mut self, py: Python<'_>) -> PyResult<Py<Normalisers>> {
        blame(self.travelled, || Ok(self.digest(py)?.normalisers.clone_ref(py)))
    }

    /// Returns estimates and standard errors. It can be called only once, because the sums are moved into the result.
    #[pyo3(signature = (second=None))]
    fn outcome(&mut self, py: Python<'_>, second: Option<PyRef<'_, Whole>>) -> PyResult<Outcome> {
        let travelled = self.travelled || second.as_ref().is_some_and(|second| second.travelled);
        blame(travelled, || {
            let second: Option<&Accumulators> = second.as_ref().map(|whole| &whole.partial.sums);
            if !self.fits(Pass::First, &self.partial.sums) || !second.is_none_or(|sums| self.fits(Pass::Second, sums)) {
                return Err(misused("an outcome is made of a first and a second pass of one plan"));
            }
            let digest = self.digest(py)?;
            let normalisers = digest.normalisers.clone_ref(py);
            let mut diagnoses = digest.diagnoses.take().ok_or_else(|| misused("an outcome is made once"))?;
            let has_nan = diagnoses.iter().flatten().any(Diagnosis::has_nan);
            let steps = |found: &mut Option<Diagnosis>| found.as_mut().map(|found| std::mem::take(&mut found.steps));
            let steps: Vec<Option<BySteps>> = diagnoses.iter_mut().map(steps).collect();
            normalisers.get().check(self.plan())?;
            let (sums, normalisers) = (&self.partial.sums, &normalisers.get().content);
            let found = outcome::Outcome::new(self.plan(), sums, diagnoses, normalisers, second);
            if travelled && (has_nan || found.has_nan()) {
                return Err(Failure::State("states that came through map= are not the sums of a log".into()).into());
            }
            Outcome::new(py, found, steps)
        })
    }

    /// Returns the per-trajectory values of a policy in log order: ids as integers or texts, and values (None where out
    /// of the range of f64).
    fn values(&mut self, py: Python<'_>, policy: usize) -> PyResult<Values> {
        blame(self.travelled, || {
            let sums = self.partial.sums.policies.get_mut(policy);
            let values = &mut sums.ok_or_else(|| misused(&format!("there is no policy {policy}")))?.values;
            values.sort_by_key(|value| value.place);
            let ids = values.iter().map(|value| to_python(py, &value.episode)).collect::<PyResult<_>>()?;
            Ok((ids, values.iter().map(|value| value.value.to_f64()).collect()))
        })
    }
}

fn misused(why: &str) -> PyErr {
    Failure::Internal(why.to_owned()).into()
}

impl Whole {
    fn plan(&self) -> &Plan {
        self.job.get().plan()
    }

    /// Reads the sums over steps once, and frees them.
    fn digest(&mut self, py: Python<'_>) -> PyResult<&mut Digest> {
        if self.digest.is_none() {
            let (plan, sums) = (self.job.get().plan(), &mut self.partial.sums);
            let none = |none: NoWeight| misused(&format!("policy {} has no weight at {}", none.policy, none.step));
            normalisers::Normalisers::need_weights(plan, sums).map_err(none)?;
            let diagnoses = Some(diagnose(plan, sums));
            let normalisers = normalisers::Normalisers::new(plan, sums, !self.partial.wild).map_err(none)?;
            let normalisers = Py::new(py, Normalisers::new(normalisers)?)?;
            self.digest = Some(Digest { normalisers, diagnoses });
        }
        self.digest.as_mut().ok_or_else(|| misused("there is no digest"))
    }

    /// Returns true if the sums are those that a pass of the plan computes.
    fn fits(&self, pass: Pass, sums: &Accumulators) -> bool {
        let plan = self.plan();
        let moments = sums.policies.iter().map(|own| own.moments.len());
        moments.eq(plan.policies.iter().map(|policy| plan.work(policy, pass).len()))
    }

    fn cuts(&self) -> impl Iterator<Item = (&u64, &scan::Cut)> {
        let horizon = self.plan().horizon.unwrap_or_else(|| self.partial.sums.longest());
        self.partial.truncated.range(..horizon)
    }
}
