//! Scans of Arrow streams, batch by batch in bounded memory.

use std::sync::Mutex;

use offpolicy_core::log::problem::Place;
use offpolicy_core::pass::stamp::Extent;
use pyo3::prelude::*;

use crate::columns::{Columns, check_types};
use crate::errors::shielded;
use crate::imported::{failed, import, validate};
use crate::job::Job;
use crate::partial::Partial;
use crate::runtime::Readers;

/// The index of the stream, which is the only source of its log.
const SOURCE: u32 = 0;

/// Scans a stream.
#[pyfunction]
#[pyo3(signature = (job, stream, log, threads, progress))]
pub fn scan_stream(
    py: Python<'_>,
    job: &Bound<'_, Job>,
    stream: &Bound<'_, PyAny>,
    log: u64,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Partial> {
    shielded(|| {
        let readers = Readers::new(job.get(), threads, progress);
        let reader = import(stream)?;
        check_types(job.get().spec(), &reader.schema())?;
        let shared = Mutex::new((reader, 0));
        let partial = readers.run(py, |worker| {
            loop {
                let (batch, row) = {
                    let Ok(mut guard) = shared.lock() else {
                        return Ok(());
                    };
                    let Some(batch) = guard.0.next() else {
                        return Ok(());
                    };
                    let batch = batch.map_err(failed)?;
                    let row = guard.1;
                    guard.1 += batch.num_rows() as u64;
                    (batch, row)
                };
                let columns = Columns::imported(worker.spec, &batch, validate)?;
                let place = Place { source: SOURCE, row };
                worker.converter.push(worker.spec, &columns, 0..batch.num_rows(), place, &mut worker.scan)?;
                worker.end_unit();
                if !worker.go_on(batch.num_rows()) {
                    return Ok(());
                }
            }
        })?;
        let extent = Extent { source: SOURCE, log, row: 0, rows: partial.content.rows };
        Ok(Partial::new(job, vec![extent], partial))
    })
}
