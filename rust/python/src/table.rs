//! Scans of tables in memory, whose batches threads share as ranges of rows that start with an episode.

use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::RecordBatch;
use offpolicy_core::log::problem::Place;
use offpolicy_core::pass::stamp::Extent;
use pyo3::prelude::*;

use crate::columns::{Columns, check_types};
use crate::errors::{Failure, shielded};
use crate::imported::{failed, import, validate_views};
use crate::job::Job;
use crate::partial::Partial;
use crate::runtime::Readers;

/// The smallest number of rows of a unit.
const UNIT: usize = 1 << 16;
/// The index of the table, which is the only source of its log.
const SOURCE: u32 = 0;

/// Scans a table in memory.
#[pyfunction]
#[pyo3(signature = (job, table, log, row, threads, progress))]
pub fn scan_table(
    py: Python<'_>,
    job: &Bound<'_, Job>,
    table: &Bound<'_, PyAny>,
    log: u64,
    row: u64,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Partial> {
    shielded(|| {
        let readers = Readers::new(job.get(), threads, progress);
        let reader = import(table)?;
        check_types(job.get().spec(), &reader.schema())?;
        let batches: Vec<RecordBatch> = py.detach(|| reader.collect::<Result<_, _>>()).map_err(failed)?;
        let columns = batches
            .iter()
            .map(|batch| Columns::imported(job.get().spec(), batch, validate_views))
            .collect::<Result<Vec<_>, _>>()?;
        let units = units(&batches, &columns, readers.threads);
        let starts: Vec<u64> = batches
            .iter()
            .scan(row, |next, batch| Some(std::mem::replace(next, *next + batch.num_rows() as u64)))
            .collect();
        let next = AtomicUsize::new(0);
        let partial = readers.run(py, |worker| {
            while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
                for (batch, rows) in unit {
                    let place = Place { source: SOURCE, row: starts[*batch] };
                    worker.converter.push(worker.spec, &columns[*batch], rows.clone(), place, &mut worker.scan)?;
                    if !worker.go_on(rows.len()) {
                        return Ok(());
                    }
                }
                worker.end_unit();
            }
            Ok::<(), Failure>(())
        })?;
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        Ok(Partial::new(job, vec![Extent { source: SOURCE, log, row, rows }], partial))
    })
}

type Unit = Vec<(usize, std::ops::Range<usize>)>;

/// Cuts batches into ranges of rows, small enough to keep all threads busy. Each range starts with an episode if its
/// batch has a boundary.
fn units(batches: &[RecordBatch], columns: &[Columns], threads: usize) -> Vec<Unit> {
    let total: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let size = (total / (threads * 8)).clamp(UNIT, 16 * UNIT);
    let (mut units, mut unit, mut filled) = (vec![], vec![], 0);
    for (index, batch) in batches.iter().enumerate() {
        let mut start = 0;
        while start < batch.num_rows() {
            let end = columns[index].boundary(start + size - filled);
            unit.push((index, start..end));
            filled += end - start;
            if filled >= size {
                units.push(std::mem::take(&mut unit));
                filled = 0;
            }
            start = end;
        }
    }
    units.push(unit);
    units
}
