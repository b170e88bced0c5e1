//! Parts of a log that have been read, and the merger that adds them up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use offpolicy_core::log::scan::{self, Join, Scan};
use offpolicy_core::pass::fit;
use offpolicy_core::pass::memory::Budget;
use offpolicy_core::pass::stamp::Extent;
use offpolicy_core::pass::wire;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{Failure, bad_state, blame, shielded};
use crate::job::Job;
use crate::whole::Whole;

/// The sums of one part of a log, and the job that they belong to. It is empty once it has been merged.
#[pyclass(frozen, module = "offpolicy._core")]
pub struct Partial {
    job: Py<Job>,
    extents: Vec<Extent>,
    partial: Mutex<scan::Partial>,
}

/// Source, fingerprint of the log, first row and number of rows.
type Read = (u32, u64, u64, u64);

fn read(extent: &Extent) -> Read {
    (extent.source, extent.log, extent.row, extent.rows)
}

impl Partial {
    /// Wraps the result of reading for a job.
    pub fn new(job: &Bound<'_, Job>, extents: Vec<Extent>, partial: scan::Partial) -> Self {
        Self { job: job.clone().unbind(), extents, partial: Mutex::new(partial) }
    }

    fn get(&self) -> MutexGuard<'_, scan::Partial> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Partial {
    /// Encodes the part as bytes with a version, a checksum and a stamp.
    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        shielded(|| {
            let stamp = &self.job.get().stamp;
            let bytes = wire::encode(&(stamp, (&self.extents, &*self.get()))).map_err(bad_state)?;
            Ok(PyBytes::new(py, &bytes))
        })
    }
}

/// The sum of the parts of a log, to which parts are added.
#[pyclass(module = "offpolicy._core")]
pub struct Merger {
    job: Py<Job>,
    budget: Arc<Budget>,
    scan: Scan,
    join: Join,
    travelled: bool,
}

#[pymethods]
impl Merger {
    #[new]
    fn new(job: Py<Job>) -> PyResult<Self> {
        shielded(|| {
            let budget = job.get().budget();
            Ok(Self { scan: job.get().scan(&budget), join: Join::default(), travelled: false, budget, job })
        })
    }

    /// Adds a part that was read in this process, and returns the rows that it covers.
    fn add(&mut self, py: Python<'_>, partial: PyRef<'_, Partial>) -> PyResult<Vec<Read>> {
        shielded(|| {
            self.job.get().stamp.check(&partial.job.get().stamp).map_err(Failure::Internal)?;
            let part = std::mem::take(&mut *partial.get());
            py.detach(|| self.scan.merge(&mut self.join, part));
            Ok(partial.extents.iter().map(read).collect())
        })
    }

    /// Adds a part that was read elsewhere, and returns the rows that it covers.
    fn add_state(&mut self, py: Python<'_>, state: &[u8]) -> PyResult<Vec<Read>> {
        self.travelled = true;
        blame(true, || {
            py.detach(|| {
                let job = self.job.get();
                let (extents, part): (Vec<Extent>, scan::Partial) =
                    wire::decode_stamped(state, &job.stamp).map_err(|why| Failure::State(why.0))?;
                fit::check(job.plan(), job.pass, &extents, &part)
                    .map_err(|what| Failure::State(format!("the state is damaged: {what} do not fit")))?;
                self.scan.merge(&mut self.join, part);
                Ok(extents.iter().map(read).collect())
            })
        })
    }

    /// Returns the sum of all parts.
    fn finish(&mut self, py: Python<'_>) -> PyResult<Whole> {
        blame(self.travelled, || {
            let next = self.job.get().scan(&self.budget);
            let (scan, join) = (std::mem::replace(&mut self.scan, next), std::mem::take(&mut self.join));
            let (partial, taken) = py.detach(|| {
                let taken = scan.taken(&join);
                (scan.finish(join), taken)
            });
            if let Some(why) = &partial.lost_ids {
                return Err(
                    Failure::Stream(format!("ids that were written to a file cannot be read again: {why}")).into()
                );
            }
            Ok(Whole::new(self.job.clone_ref(py), partial, taken, self.travelled))
        })
    }
}
