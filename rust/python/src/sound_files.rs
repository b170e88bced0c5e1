//! Decodes Parquet files once before another library reads them, so that a damaged one is refused here, by its name.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use pyo3::prelude::*;

use crate::errors::{Failure, guarded, shielded};
use crate::parquet_files::{BATCH, Source, Unit, cut, failed};

/// Decodes the named columns of all files, and keeps nothing of them.
#[pyfunction]
pub fn check_parquet(py: Python<'_>, paths: Vec<PathBuf>, names: Vec<String>, threads: usize) -> PyResult<()> {
    shielded(|| check(py, paths, &names, threads))
}

fn check(py: Python<'_>, paths: Vec<PathBuf>, names: &[String], threads: usize) -> PyResult<()> {
    let sources = paths.into_iter().map(|path| Source::open(path, 0, None)).collect::<Result<Vec<_>, _>>()?;
    let units: Vec<Unit> = sources.iter().enumerate().flat_map(|(index, source)| cut(source, index, None)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (next, stop, failure) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
    let work = || {
        while !stop.load(Ordering::Relaxed)
            && let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let source = &sources[unit.source];
            if let Err(why) = guarded(&source.path, || decode(source, unit, &names, &stop)) {
                stop.store(true, Ordering::Relaxed);
                failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(why);
            }
        }
    };
    py.detach(|| {
        thread::scope(|scope| {
            for _ in 1..threads.min(units.len()) {
                scope.spawn(work);
            }
            work();
        });
    });
    let failure = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(failure.map_or(Ok(()), Err)?)
}

/// Reads a unit to its end, unless another thread has failed or the user interrupts.
fn decode(source: &Source, unit: &Unit, names: &[&str], stop: &AtomicBool) -> Result<(), Failure> {
    let mut row = unit.row;
    let (batches, watched) = source.batches(unit, names, BATCH)?;
    for batch in batches {
        row += batch.map_err(|error| failed(&source.path, error))?.num_rows() as u64;
        Python::attach(|py| py.check_signals())?;
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    source.check_read(unit, row, &watched)
}
