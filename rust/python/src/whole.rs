//! What a whole log adds up to, and what an evaluation finds in it.

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
use crate::spec::to_python;

/// Ids of trajectories, and their values where f64 holds them.
type Values = (Vec<Py<PyAny>>, Vec<Option<f64>>);

/// Ids of episodes that cross files, and the first step of every episode where it is known.
type Crossing = (Vec<Py<PyAny>>, Option<i64>);

/// What a whole log adds up to.
#[pyclass(module = "offpolicy._core")]
pub struct Whole {
    job: Py<Job>,
    partial: scan::Partial,
    /// Bytes of the ids and of rows that waited for the beginning of their trajectory.
    taken: u64,
    digest: Option<Digest>,
    travelled: bool,
}

/// What is kept of the sums over steps.
struct Digest {
    normalisers: Py<Normalisers>,
    /// None once an outcome was made of them.
    diagnoses: Option<Vec<Option<Diagnosis>>>,
}

impl Whole {
    /// Of all parts of a log, some of which may have travelled.
    pub fn new(job: Py<Job>, partial: scan::Partial, taken: u64, travelled: bool) -> Self {
        Self { job, partial, taken, digest: None, travelled }
    }
}

#[pymethods]
impl Whole {
    /// n
    #[getter]
    fn episodes(&self) -> u64 {
        self.partial.sums.episodes()
    }

    /// Where the limit of memory was too small: the steps of the longest trajectory, and the bytes that suffice for the log
    /// where so many threads read it.
    fn too_large(&self, threads: u64) -> Option<(u64, u64)> {
        let (plan, sums) = (self.plan(), &self.partial.sums);
        let (steps, others) = (sums.longest(), self.taken + sums.bytes_by_trajectory());
        let needed = |readers: u64| plan.bytes_for(self.job.get().pass, steps, readers).saturating_add(others);
        let too_much = |needed: &u64| plan.memory.is_some_and(|limit| *needed > limit);
        let least = (1..=threads).map(needed).find(too_much).unwrap_or_else(|| needed(threads + 1));
        self.partial.too_large.then_some((steps, least))
    }

    /// Rows, a sum over the ids and lengths of the episodes, and the names of the columns read with the sums of their bits.
    #[getter]
    fn content(&self) -> (u64, u64, Vec<(&str, u64)>) {
        let content = &self.partial.content;
        let names = self.plan().slots.iter().map(|slot| &*slot.name);
        (content.rows, content.episodes, names.zip(content.columns.iter().copied()).collect())
    }

    /// What is wrong with the log, as JSON: the first problems, how many there are, and how many of each kind.
    fn problems(&self) -> PyResult<String> {
        let summary = serde_json::to_string(&self.partial.problems.summary());
        summary.map_err(|error| Failure::Internal(error.to_string()).into())
    }

    /// What another reading of several files must know of the episodes that cross them; None if nothing.
    fn crossing(&self, py: Python<'_>) -> PyResult<Option<Crossing>> {
        let Some(found) = self.partial.crossing(self.plan()) else { return Ok(None) };
        let ids = found.crossing.into_iter().map(|id| to_python(py, id)).collect::<PyResult<_>>()?;
        Ok(Some((ids, found.first_step)))
    }

    /// Episodes cut off before the horizon.
    #[getter]
    fn truncated(&self) -> u64 {
        self.cuts().map(|(_, cut)| cut.count).sum()
    }

    /// The length of the shortest of them.
    #[getter]
    fn shortest_truncated(&self) -> Option<u64> {
        self.cuts().next().map(|(&length, _)| length)
    }

    /// True where a second pass is needed.
    #[getter]
    fn needs_second_pass(&self) -> bool {
        self.plan().needs_second_pass()
    }

    /// The first policy with weighted estimators all of whose weights are zero at a step, and the step from 1.
    #[getter]
    fn without_weight(&self) -> Option<(&str, u64)> {
        let none = |NoWeight { policy, step }| (&*self.plan().policies[policy].name, step);
        normalisers::Normalisers::need_weights(self.plan(), &self.partial.sums).err().map(none)
    }

    /// What the second pass reads; made once.
    #[getter]
    fn normalisers(&mut self, py: Python<'_>) -> PyResult<Py<Normalisers>> {
        blame(self.travelled, || Ok(self.digest(py)?.normalisers.clone_ref(py)))
    }

    /// Estimates and standard errors, which can be asked for once: the sums that they are made of go into them.
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

    /// Per-trajectory values of a policy in log order: ids as integers or texts, and values (None where f64 holds none).
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

    /// Reads the sums over steps once, and lets go of them.
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

    /// True where sums are of as much as a pass of the plan computes.
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
