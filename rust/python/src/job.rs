//! One pass of a plan, made once and shared by all its readers, and the normalisers that a later pass uses.

use offpolicy_core::number::fingerprint::fingerprint;
use offpolicy_core::pass::normalisers::{self, Tables};
use offpolicy_core::pass::plan::{self, Plan};
use offpolicy_core::pass::stamp::Stamp;
use offpolicy_core::pass::wire;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Failure, bad_state, shielded};
use crate::spec::{Content, Pass, Spec};

/// The results of the first pass that later passes use.
#[pyclass(frozen, module = "offpolicy._core")]
pub struct Normalisers {
    /// The normalisers as the core has them.
    pub content: normalisers::Normalisers,
    fingerprint: u64,
}

impl Normalisers {
    /// Wraps the normalisers that a first pass gave.
    pub fn new(content: normalisers::Normalisers) -> PyResult<Self> {
        let fingerprint = fingerprint(&encoded(&content)?);
        Ok(Self { content, fingerprint })
    }

    fn decode(bytes: &[u8]) -> PyResult<Self> {
        let (kind, content): (String, normalisers::Normalisers) = wire::decode(bytes).map_err(bad_state)?;
        if kind != normalisers::Normalisers::KIND {
            return Err(Failure::State("these bytes are no normalisers".to_owned()).into());
        }
        Ok(Self { content, fingerprint: fingerprint(bytes) })
    }

    /// Refuses normalisers that do not fit a plan.
    pub fn check(&self, plan: &Plan) -> Result<(), Failure> {
        let elsewhere = |why| Failure::State(format!("the state belongs elsewhere: {why}"));
        self.content.check(plan).map_err(elsewhere)
    }
}

fn encoded(content: &normalisers::Normalisers) -> PyResult<Vec<u8>> {
    wire::encode(&(normalisers::Normalisers::KIND, content)).map_err(bad_state)
}

/// One pass of a plan: the columns to read and the estimates to compute, the tables that all readers share, and the
/// stamp of its states.
#[pyclass(frozen, module = "offpolicy._core")]
pub struct Job {
    spec: Py<Spec>,
    normalisers: Option<Py<Normalisers>>,
    /// The pass, as the core names it.
    pub pass: plan::Pass,
    /// The stamp that ties states to this pass.
    pub stamp: Stamp,
    /// The tables made from the results of the first pass.
    pub tables: Tables,
    /// Whether the first pass saw only values of ordinary magnitude.
    pub tame: bool,
}

#[pymethods]
impl Job {
    #[new]
    #[pyo3(signature = (spec, pass_, normalisers=None))]
    fn new(spec: Py<Spec>, pass_: PyRef<'_, Pass>, normalisers: Option<Py<Normalisers>>) -> PyResult<Self> {
        shielded(|| Self::make(spec, *pass_, normalisers))
    }

    /// Pickles the job as texts and bytes, which `travelled_job` reads.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Travelling<'py>)> {
        shielded(|| {
            let normalisers = self.normalisers.as_ref().map(|found| encoded(&found.get().content)).transpose()?;
            let normalisers = normalisers.map(|bytes| PyBytes::new(py, &bytes));
            let reader = py.import("offpolicy._core")?.getattr("travelled_job")?;
            Ok((reader, (self.spec.get().to_json()?, self.pass.name(), normalisers)))
        })
    }
}

/// A plan as JSON, the name of the pass, and the encoded normalisers.
type Travelling<'py> = (String, &'static str, Option<Bound<'py, PyBytes>>);

/// Makes a job from the parts that have travelled through `map=`.
#[pyfunction]
pub fn travelled_job(py: Python<'_>, plan: &str, pass_: &str, normalisers: Option<&[u8]>) -> PyResult<Job> {
    shielded(|| {
        let normalisers = normalisers.map(|bytes| Py::new(py, Normalisers::decode(bytes)?)).transpose()?;
        Job::make(Py::new(py, Spec::from_json(plan)?)?, Pass::named(pass_)?, normalisers)
    })
}

impl Job {
    fn make(spec: Py<Spec>, pass: Pass, normalisers: Option<Py<Normalisers>>) -> PyResult<Self> {
        let (pass, read) = (plan::Pass::from(pass), normalisers.as_ref().map(|found| found.get()));
        let plan = &spec.get().content.plan;
        read.map_or(Ok(()), |found| found.check(plan))?;
        Ok(Self {
            stamp: Stamp::new(spec.get().fingerprint, pass, read.map(|found| found.fingerprint)),
            tables: Tables::new(plan, read.map(|found| found.content.clone())),
            tame: read.is_some_and(|found| found.content.tame),
            spec,
            normalisers,
            pass,
        })
    }

    /// Returns the columns to read and the plan.
    pub fn spec(&self) -> &Content {
        &self.spec.get().content
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.spec().plan
    }
}
