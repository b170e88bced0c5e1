//! The problems of a log, as Python reads them.

use offpolicy_core::log::problem::{self, Place, Summary};
use pyo3::prelude::*;

use crate::spec::{name_of, to_python};

/// One problem; `row` is None if the row is not known, and `source` too if the problem is that of the whole log.
#[pyclass(frozen, get_all, module = "offpolicy._core")]
pub struct FoundProblem {
    kind: String,
    source: Option<u32>,
    row: Option<u64>,
    episode: Option<Py<PyAny>>,
    step: Option<i64>,
    column: Option<String>,
    value: Option<String>,
    message: String,
}

/// A summary of the problems of one kind, with the first of them.
#[pyclass(frozen, get_all, module = "offpolicy._core")]
pub struct FoundKind {
    kind: String,
    problems: u64,
    rows: u64,
    episodes: u64,
    or_more: bool,
    examples: Vec<Py<FoundProblem>>,
}

/// The first problems of a log, the number of all, and a summary of each kind.
#[pyclass(frozen, get_all, module = "offpolicy._core")]
pub struct FoundProblems {
    kept: Vec<Py<FoundProblem>>,
    found: u64,
    kinds: Vec<Py<FoundKind>>,
}

impl FoundProblems {
    /// Converts the core's summary.
    pub fn new(py: Python<'_>, summary: &Summary<'_>) -> PyResult<Self> {
        let kinds = summary.kinds.iter().map(|group| {
            let found = FoundKind {
                kind: name_of(&group.kind)?,
                problems: group.problems,
                rows: group.rows,
                episodes: group.episodes,
                or_more: group.or_more,
                examples: all(py, group.examples)?,
            };
            Py::new(py, found)
        });
        Ok(Self { kept: all(py, summary.kept)?, found: summary.found, kinds: kinds.collect::<PyResult<_>>()? })
    }
}

fn all(py: Python<'_>, problems: &[problem::Problem]) -> PyResult<Vec<Py<FoundProblem>>> {
    let convert = |problem: &problem::Problem| {
        let known = |place: &Place| *place != Place::somewhere_in(place.source);
        let found = FoundProblem {
            kind: name_of(&problem.kind)?,
            source: problem.place.map(|place| place.source),
            row: problem.place.filter(known).map(|place| place.row),
            episode: problem.episode.as_ref().map(|id| to_python(py, id)).transpose()?,
            step: problem.step,
            column: problem.column.clone(),
            value: problem.value.clone(),
            message: problem.message.clone(),
        };
        Py::new(py, found)
    };
    problems.iter().map(convert).collect()
}
