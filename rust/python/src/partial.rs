//! Partial results, what a whole log adds up to, and the way between them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{IntoPyArray, PyArray1};
use offpolicy_core::accumulators::Accumulators;
use offpolicy_core::diagnosis::{BySteps, Diagnosis, diagnose};
use offpolicy_core::ids::Id;
use offpolicy_core::normalisers::{NoWeight, Normalisers};
use offpolicy_core::outcome::Outcome;
use offpolicy_core::scan::{self, Join};
use offpolicy_core::wire;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Failure, bad_state};
use crate::workers::Job;

/// What a part of a log adds up to; nothing once it has been added to the whole.
#[pyclass(frozen, module = "offpolicy._core")]
pub struct Partial(Mutex<scan::Partial>);

impl Partial {
    /// A part that was read.
    pub fn new(partial: scan::Partial) -> Self {
        Self(Mutex::new(partial))
    }

    fn get(&self) -> MutexGuard<'_, scan::Partial> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Partial {
    /// Bytes with a version and a checksum.
    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &wire::encode(&*self.get()).map_err(bad_state)?))
    }

    /// The partial result that was encoded.
    #[staticmethod]
    fn decode(bytes: &[u8]) -> PyResult<Self> {
        Ok(Self::new(wire::decode(bytes).map_err(bad_state)?))
    }
}

/// Ids of trajectories, and their values where f64 holds them.
type Values = (Vec<Py<PyAny>>, Vec<Option<f64>>);

/// Numbers by step: ESS_t, mean weight, mean ratio and mean squared ratio; NaN where no f64 holds them.
type Steps<'py> = [Bound<'py, PyArray1<f64>>; 4];

/// What a whole log adds up to.
#[pyclass(module = "offpolicy._core")]
pub struct Whole {
    job: Job,
    partial: scan::Partial,
    /// Bytes of the ids and of rows that waited for the beginning of their trajectory.
    taken: u64,
    digest: Option<Digest>,
}

/// What is kept of the sums over steps.
struct Digest {
    normalisers: Py<PyBytes>,
    diagnoses: Vec<Option<Diagnosis>>,
    steps: Vec<Option<BySteps>>,
}

/// Adds up all parts of a log, which are empty afterwards.
#[pyfunction]
pub fn finish(
    py: Python<'_>,
    spec: &str,
    pass_: &str,
    normalisers: Option<&[u8]>,
    partials: Vec<PyRef<'_, Partial>>,
) -> PyResult<Whole> {
    let job = Job::new(spec, pass_, normalisers, 1, None)?;
    let parts: Vec<scan::Partial> = partials.iter().map(|partial| std::mem::take(&mut *partial.get())).collect();
    let (partial, taken) = py.detach(|| {
        let mut join = Join::default();
        let mut whole = job.scan();
        parts.into_iter().for_each(|part| whole.merge(&mut join, part));
        let taken = whole.taken(&join);
        (whole.finish(join), taken)
    });
    Ok(Whole { job, partial, taken, digest: None })
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

    /// What is wrong with the log, as JSON: the first problems, and how many there are.
    fn problems(&self) -> PyResult<String> {
        json(&self.partial.problems)
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
        Ok(self.digest(py)?.normalisers.clone_ref(py))
    }

    /// Estimates and standard errors, as JSON.
    fn outcome(&mut self, py: Python<'_>, normalisers: &[u8], second: Option<PyRef<'_, Whole>>) -> PyResult<String> {
        let diagnoses = self.digest(py)?.diagnoses.clone();
        let normalisers: Normalisers = wire::decode(normalisers).map_err(bad_state)?;
        let second: Option<&Accumulators> = second.as_ref().map(|whole| &whole.partial.sums);
        json(&Outcome::new(&self.job.spec.plan, &self.partial.sums, diagnoses, &normalisers, second))
    }

    /// How the weights of a policy fare from step to step, where they are watched; given away once.
    fn steps<'py>(&mut self, py: Python<'py>, policy: usize) -> PyResult<Option<Steps<'py>>> {
        let found = self.digest(py)?.steps.get_mut(policy).and_then(Option::take);
        let array = |mut numbers: Vec<f64>| {
            numbers.iter_mut().filter(|x| x.is_infinite()).for_each(|x| *x = f64::NAN);
            numbers.into_pyarray(py)
        };
        let columns = |by: BySteps| [by.ess, by.mean_weight, by.mean_ratio, by.mean_squared_ratio];
        Ok(found.map(|found| columns(found).map(array)))
    }

    /// Per-trajectory values of a policy in log order: ids as integers or texts, and values (None where f64 holds none).
    fn values(&mut self, py: Python<'_>, policy: usize) -> PyResult<Values> {
        let values = &mut self.partial.sums.policies[policy].values;
        values.sort_by_key(|value| value.place);
        let ids = values.iter().map(|value| match &value.episode {
            Id::Int(id) => Ok(id.into_pyobject(py)?.into_any().unbind()),
            Id::Text(id) => Ok(id.into_pyobject(py)?.into_any().unbind()),
        });
        let ids = ids.collect::<PyResult<_>>()?;
        Ok((ids, values.iter().map(|value| value.value.to_f64()).collect()))
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
            let normalisers = PyBytes::new(py, &wire::encode(&normalisers).map_err(bad_state)?).unbind();
            let steps = |found: &mut Option<Diagnosis>| found.as_mut().map(|found| std::mem::take(&mut found.steps));
            let steps = diagnoses.iter_mut().map(steps).collect();
            self.digest = Some(Digest { normalisers, diagnoses, steps });
        }
        self.digest.as_mut().ok_or_else(|| Failure::Internal("there is no digest".into()).into())
    }

    fn cuts(&self) -> impl Iterator<Item = (&u64, &scan::Cut)> {
        let horizon = self.job.spec.plan.horizon.unwrap_or_else(|| self.partial.sums.longest());
        self.partial.truncated.range(..horizon)
    }
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| Failure::Internal(error.to_string()).into())
}
