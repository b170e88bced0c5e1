//! Partial results, what a whole log adds up to, and the way between them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{IntoPyArray, PyArray1};
use offpolicy_core::diagnostics::numbers::{BySteps, Diagnosis, diagnose};
use offpolicy_core::log::ids::Id;
use offpolicy_core::log::scan::{self, Join, Scan};
use offpolicy_core::pass::accumulators::Accumulators;
use offpolicy_core::pass::fit;
use offpolicy_core::pass::normalisers::{NoWeight, Normalisers};
use offpolicy_core::pass::outcome::Outcome;
use offpolicy_core::pass::plan::Pass;
use offpolicy_core::pass::stamp::{Extent, Stamp};
use offpolicy_core::pass::wire;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Failure, bad_state, caught, shielded};
use crate::workers::Job;

/// What a part of a log adds up to, and what it was made for; nothing once it has been added to the whole.
#[pyclass(frozen, module = "offpolicy._core")]
pub struct Partial {
    stamp: Stamp,
    extents: Vec<Extent>,
    partial: Mutex<scan::Partial>,
}

/// Source, fingerprint of the log, first row and number of rows.
type Read = (u32, u64, u64, u64);

fn read(extent: &Extent) -> Read {
    (extent.source, extent.log, extent.row, extent.rows)
}

impl Partial {
    /// What a job has read.
    pub fn new(job: &Job, extents: Vec<Extent>, partial: scan::Partial) -> Self {
        Self { stamp: job.stamp.clone(), extents, partial: Mutex::new(partial) }
    }

    fn get(&self) -> MutexGuard<'_, scan::Partial> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Partial {
    /// Bytes with a version, a checksum and a stamp.
    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        shielded(|| {
            let bytes = wire::encode(&(&self.stamp, (&self.extents, &*self.get()))).map_err(bad_state)?;
            Ok(PyBytes::new(py, &bytes))
        })
    }
}

/// Ids of trajectories, and their values where f64 holds them.
type Values = (Vec<Py<PyAny>>, Vec<Option<f64>>);

/// Numbers by step: ESS_t, mean weight, mean ratio and mean squared ratio; NaN where no f64 holds them.
type Steps<'py> = [Bound<'py, PyArray1<f64>>; 4];

/// Adds up the parts of a log.
#[pyclass(module = "offpolicy._core")]
pub struct Merger {
    job: Job,
    scan: Scan,
    join: Join,
    travelled: bool,
}

#[pymethods]
impl Merger {
    #[new]
    fn new(spec: &str, pass_: &str, normalisers: Option<&[u8]>) -> PyResult<Self> {
        shielded(|| {
            let job = Job::new(spec, pass_, normalisers, 1, None)?;
            Ok(Self { scan: job.scan(), join: Join::default(), travelled: false, job })
        })
    }

    /// Adds a part that was read here.
    fn add(&mut self, py: Python<'_>, partial: PyRef<'_, Partial>) -> PyResult<Vec<Read>> {
        shielded(|| {
            self.job.stamp.check(&partial.stamp).map_err(Failure::Internal)?;
            let part = std::mem::take(&mut *partial.get());
            py.detach(|| self.scan.merge(&mut self.join, part));
            Ok(partial.extents.iter().map(read).collect())
        })
    }

    /// Adds a part that was read elsewhere, and tells which it is.
    fn add_state(&mut self, py: Python<'_>, state: &[u8]) -> PyResult<Vec<Read>> {
        self.travelled = true;
        self.shielded(|merger| {
            py.detach(|| {
                let (extents, part): (Vec<Extent>, scan::Partial) =
                    wire::decode_stamped(state, &merger.job.stamp).map_err(|why| Failure::State(why.0))?;
                fit::check(&merger.job.spec.plan, merger.job.pass, &extents, &part)
                    .map_err(|what| Failure::State(format!("the state is damaged: {what} do not fit")))?;
                merger.scan.merge(&mut merger.join, part);
                Ok(extents.iter().map(read).collect())
            })
        })
    }

    /// What all parts add up to.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Whole> {
        self.shielded(|merger| {
            let (scan, join) =
                (std::mem::replace(&mut merger.scan, merger.job.scan()), std::mem::take(&mut merger.join));
            let (partial, taken) = py.detach(|| {
                let taken = scan.taken(&join);
                (scan.finish(join), taken)
            });
            if let Some(why) = &partial.lost_ids {
                return Err(
                    Failure::Stream(format!("ids that were written to a file cannot be read again: {why}")).into()
                );
            }
            Ok(Whole { job: merger.job.clone(), partial, taken, digest: None, travelled: merger.travelled })
        })
    }
}

impl Merger {
    fn shielded<T>(&mut self, work: impl FnOnce(&mut Self) -> PyResult<T>) -> PyResult<T> {
        let travelled = self.travelled;
        blame(travelled, || work(self))
    }
}

/// Does the work; where states came from elsewhere, a panic is theirs.
fn blame<T>(travelled: bool, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let why = |why: String| {
        if travelled {
            Failure::State(format!("states that came through map= do not add up: {why}"))
        } else {
            Failure::Internal(why)
        }
    };
    caught(work).map_err(why)?
}

/// What a whole log adds up to.
#[pyclass(module = "offpolicy._core")]
pub struct Whole {
    job: Job,
    partial: scan::Partial,
    /// Bytes of the ids and of rows that waited for the beginning of their trajectory.
    taken: u64,
    digest: Option<Digest>,
    travelled: bool,
}

/// What is kept of the sums over steps.
struct Digest {
    normalisers: Py<PyBytes>,
    diagnoses: Vec<Option<Diagnosis>>,
    steps: Vec<Option<BySteps>>,
    has_nan: bool,
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
        let (plan, sums) = (&self.job.spec.plan, &self.partial.sums);
        let (steps, others) = (sums.longest(), self.taken + sums.bytes_by_trajectory());
        let needed = |readers: u64| plan.bytes_for(self.job.pass, steps, readers).saturating_add(others);
        let too_much = |needed: &u64| plan.memory.is_some_and(|limit| *needed > limit);
        let least = (1..=threads).map(needed).find(too_much).unwrap_or_else(|| needed(threads + 1));
        self.partial.too_large.then_some((steps, least))
    }

    /// Rows, a sum over the ids and lengths of the episodes, and the names of the columns read with the sums of their bits.
    #[getter]
    fn content(&self) -> (u64, u64, Vec<(&str, u64)>) {
        let content = &self.partial.content;
        let names = self.job.spec.plan.slots.iter().map(|slot| &*slot.name);
        (content.rows, content.episodes, names.zip(content.columns.iter().copied()).collect())
    }

    /// What is wrong with the log, as JSON: the first problems, how many there are, and how many of each kind.
    fn problems(&self) -> PyResult<String> {
        json(&self.partial.problems.summary())
    }

    /// As JSON, what another reading of several files must know of the episodes that cross them; None if nothing.
    fn crossing(&self) -> PyResult<Option<String>> {
        self.partial.crossing(&self.job.spec.plan).map(|found| json(&found)).transpose()
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
        self.job.spec.plan.needs_second_pass()
    }

    /// What the second pass reads; raises `NoWeight` with the index of the policy and the step.
    fn normalisers(&mut self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        blame(self.travelled, || Ok(self.digest(py)?.normalisers.clone_ref(py)))
    }

    /// Estimates and standard errors, as JSON.
    fn outcome(&mut self, py: Python<'_>, normalisers: &[u8], second: Option<PyRef<'_, Whole>>) -> PyResult<String> {
        let travelled = self.travelled || second.as_ref().is_some_and(|second| second.travelled);
        blame(travelled, || {
            let second: Option<&Accumulators> = second.as_ref().map(|whole| &whole.partial.sums);
            if !self.fits(Pass::First, &self.partial.sums) || !second.is_none_or(|sums| self.fits(Pass::Second, sums)) {
                return Err(
                    Failure::Internal("an outcome is made of a first and a second pass of one plan".into()).into()
                );
            }
            let digest = self.digest(py)?;
            let (diagnoses, has_nan) = (digest.diagnoses.clone(), digest.has_nan);
            let plan = &self.job.spec.plan;
            let normalisers = crate::workers::normalisers(normalisers, plan)?;
            let outcome = Outcome::new(plan, &self.partial.sums, diagnoses, &normalisers, second);
            if travelled && (has_nan || outcome.has_nan()) {
                return Err(Failure::State("states that came through map= are not the sums of a log".into()).into());
            }
            json(&outcome)
        })
    }

    /// How the weights of a policy fare from step to step, where they are watched; given away once.
    fn steps<'py>(&mut self, py: Python<'py>, policy: usize) -> PyResult<Option<Steps<'py>>> {
        blame(self.travelled, || {
            let found = self.digest(py)?.steps.get_mut(policy).and_then(Option::take);
            let array = |mut numbers: Vec<f64>| {
                numbers.iter_mut().filter(|x| x.is_infinite()).for_each(|x| *x = f64::NAN);
                numbers.into_pyarray(py)
            };
            let columns = |by: BySteps| [by.ess, by.mean_weight, by.mean_ratio, by.mean_squared_ratio];
            Ok(found.map(|found| columns(found).map(array)))
        })
    }

    /// Per-trajectory values of a policy in log order: ids as integers or texts, and values (None where f64 holds none).
    fn values(&mut self, py: Python<'_>, policy: usize) -> PyResult<Values> {
        blame(self.travelled, || {
            let sums = self.partial.sums.policies.get_mut(policy);
            let values = &mut sums.ok_or_else(|| Failure::Internal(format!("there is no policy {policy}")))?.values;
            values.sort_by_key(|value| value.place);
            let ids = values.iter().map(|value| match &value.episode {
                Id::Int(id) => Ok(id.into_pyobject(py)?.into_any().unbind()),
                Id::Text(id) => Ok(id.into_pyobject(py)?.into_any().unbind()),
            });
            let ids = ids.collect::<PyResult<_>>()?;
            Ok((ids, values.iter().map(|value| value.value.to_f64()).collect()))
        })
    }
}

impl Whole {
    /// Reads the sums over steps once, and lets go of them.
    fn digest(&mut self, py: Python<'_>) -> PyResult<&mut Digest> {
        if self.digest.is_none() {
            let (plan, sums) = (&self.job.spec.plan, &mut self.partial.sums);
            let none = |none: NoWeight| PyValueError::new_err((none.policy, none.step));
            Normalisers::need_weights(plan, sums).map_err(none)?;
            let mut diagnoses = diagnose(plan, sums);
            let normalisers = Normalisers::new(plan, sums, !self.partial.wild).map_err(none)?;
            let normalisers = wire::encode(&(Normalisers::KIND, &normalisers)).map_err(bad_state)?;
            let normalisers = PyBytes::new(py, &normalisers).unbind();
            let has_nan = diagnoses.iter().flatten().any(Diagnosis::has_nan);
            let steps = |found: &mut Option<Diagnosis>| found.as_mut().map(|found| std::mem::take(&mut found.steps));
            let steps = diagnoses.iter_mut().map(steps).collect();
            self.digest = Some(Digest { normalisers, diagnoses, steps, has_nan });
        }
        self.digest.as_mut().ok_or_else(|| Failure::Internal("there is no digest".into()).into())
    }

    /// True where sums are of as much as a pass of the plan computes.
    fn fits(&self, pass: Pass, sums: &Accumulators) -> bool {
        let plan = &self.job.spec.plan;
        let moments = sums.policies.iter().map(|own| own.moments.len());
        moments.eq(plan.policies.iter().map(|policy| plan.work(policy, pass).len()))
    }

    fn cuts(&self) -> impl Iterator<Item = (&u64, &scan::Cut)> {
        let horizon = self.job.spec.plan.horizon.unwrap_or_else(|| self.partial.sums.longest());
        self.partial.truncated.range(..horizon)
    }
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| Failure::Internal(error.to_string()).into())
}
