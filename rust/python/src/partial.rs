//! Partial results, what a whole log adds up to, and the way between them.

use offpolicy_core::accumulators::Accumulators;
use offpolicy_core::ids::Id;
use offpolicy_core::normalisers::Normalisers;
use offpolicy_core::outcome::Outcome;
use offpolicy_core::scan::{self, Join};
use offpolicy_core::wire;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Failure, bad_state};
use crate::workers::Job;

/// What a part of a log adds up to.
#[pyclass(frozen, module = "offpolicy._core")]
pub struct Partial(pub scan::Partial);

#[pymethods]
impl Partial {
    /// Bytes with a version and a checksum.
    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &wire::encode(&self.0).map_err(bad_state)?))
    }

    /// The partial result that was encoded.
    #[staticmethod]
    fn decode(bytes: &[u8]) -> PyResult<Self> {
        Ok(Self(wire::decode(bytes).map_err(bad_state)?))
    }
}

/// Ids of trajectories, and their values where f64 holds them.
type Values = (Vec<Py<PyAny>>, Vec<Option<f64>>);

/// What a whole log adds up to.
#[pyclass(module = "offpolicy._core")]
pub struct Whole {
    job: Job,
    partial: scan::Partial,
}

/// Adds up all parts of a log.
#[pyfunction]
pub fn finish(
    py: Python<'_>,
    spec: &str,
    pass_: &str,
    normalisers: Option<&[u8]>,
    partials: Vec<PyRef<'_, Partial>>,
) -> PyResult<Whole> {
    let job = Job::new(spec, pass_, normalisers, 1, None)?;
    let parts: Vec<scan::Partial> = partials.iter().map(|partial| partial.0.clone()).collect();
    let partial = py.detach(|| {
        let mut join = Join::default();
        let mut whole = job.scan();
        parts.into_iter().for_each(|part| whole.merge(&mut join, part));
        whole.finish(join)
    });
    Ok(Whole { job, partial })
}

#[pymethods]
impl Whole {
    /// n
    #[getter]
    fn episodes(&self) -> u64 {
        self.partial.sums.episodes()
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
    fn normalisers<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let tame = !self.partial.wild;
        let normalisers = Normalisers::new(&self.job.spec.plan, &mut self.partial.sums, tame)
            .map_err(|none| PyValueError::new_err((none.policy, none.step)))?;
        Ok(PyBytes::new(py, &wire::encode(&normalisers).map_err(bad_state)?))
    }

    /// Estimates and standard errors, as JSON.
    fn outcome(&self, normalisers: &[u8], second: Option<PyRef<'_, Whole>>) -> PyResult<String> {
        let normalisers: Normalisers = wire::decode(normalisers).map_err(bad_state)?;
        let second: Option<&Accumulators> = second.as_ref().map(|whole| &whole.partial.sums);
        json(&Outcome::new(&self.job.spec.plan, &self.partial.sums, &normalisers, second))
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
    fn cuts(&self) -> impl Iterator<Item = (&u64, &scan::Cut)> {
        let horizon = self.job.spec.plan.horizon.unwrap_or_else(|| self.partial.sums.longest());
        self.partial.truncated.range(..horizon)
    }
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| Failure::Internal(error.to_string()).into())
}
