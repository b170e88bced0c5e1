//! Parquet files: threads decode and fold row groups side by side, in bounded memory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use offpolicy_core::problem::Place;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::schema::types::SchemaDescriptor;
use pyo3::prelude::*;

use crate::columns::{Columns, check_types};
use crate::errors::{Failure, guarded};
use crate::partial::Partial;
use crate::workers::{Job, Worker};

/// Rows decoded together.
const BATCH: usize = 1 << 14;
/// Small row groups are read one after the other up to so many rows.
const UNIT: i64 = 1 << 18;

/// A file, its metadata, and the index of the source that it is.
struct Source {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    index: u32,
}

struct Unit {
    source: usize,
    groups: Vec<usize>,
    row: u64,
    rows: i64,
}

impl Source {
    fn open(path: PathBuf, index: u32) -> Result<Self, Failure> {
        let metadata = guarded(&path, || {
            let file = File::open(&path).map_err(|error| failed(&path, error))?;
            ArrowReaderMetadata::load(&file, Default::default()).map_err(|error| failed(&path, error))
        })?;
        Ok(Self { path, metadata, index })
    }

    fn groups(&self) -> impl Iterator<Item = i64> {
        self.metadata.metadata().row_groups().iter().map(|group| group.num_rows())
    }
}

fn failed(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::File(path.display().to_string(), error.to_string())
}

/// Column names and row-group sizes of a file.
#[pyfunction]
pub fn parquet_info(path: PathBuf) -> PyResult<(Vec<String>, Vec<i64>)> {
    let source = Source::open(path, 0)?;
    let names = source.metadata.schema().fields().iter().map(|field| field.name().clone()).collect();
    Ok((names, source.groups().collect()))
}

/// Scans files, given as (path, source, row groups or None for all).
#[pyfunction]
#[pyo3(signature = (spec, pass_, normalisers, files, batch_rows, threads, progress))]
#[expect(clippy::too_many_arguments, reason = "a Python signature")]
pub fn scan_parquet(
    py: Python<'_>,
    spec: &str,
    pass_: &str,
    normalisers: Option<&[u8]>,
    files: Vec<(PathBuf, u32, Option<Vec<usize>>)>,
    batch_rows: Option<usize>,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Partial> {
    let job = Job::new(spec, pass_, normalisers, threads, progress)?;
    let (mut sources, mut units) = (vec![], vec![]);
    for (path, index, groups) in files {
        let source = Source::open(path, index)?;
        check_types(&job.spec, source.metadata.schema()).map_err(|why| in_file(&source, why))?;
        units.extend(cut(&source, sources.len(), groups));
        sources.push(source);
    }
    let next = AtomicUsize::new(0);
    let partial = job.run(py, |worker| {
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            let source = &sources[unit.source];
            if !guarded(&source.path, || read(worker, source, unit, batch_rows.unwrap_or(BATCH)))? {
                break;
            }
        }
        Ok(())
    })?;
    Ok(Partial::new(partial))
}

fn in_file(source: &Source, why: Failure) -> Failure {
    match why {
        Failure::Input(why) => Failure::Input(format!("{}: {why}", source.path.display())),
        other => other,
    }
}

/// Units of whole row groups.
fn cut(source: &Source, index: usize, groups: Option<Vec<usize>>) -> Vec<Unit> {
    let mut units: Vec<Unit> = vec![];
    let mut row = 0;
    for (group, rows) in source.groups().enumerate() {
        if groups.as_ref().is_none_or(|groups| groups.contains(&group)) {
            match units.last_mut() {
                Some(unit) if unit.rows + rows <= UNIT && unit.groups.last() == Some(&(group - 1)) => {
                    unit.groups.push(group);
                    unit.rows += rows;
                }
                _ => units.push(Unit { source: index, groups: vec![group], row, rows }),
            }
        }
        row += rows.max(0).cast_unsigned();
    }
    units
}

/// Columns by their whole names: one may have a dot in it.
fn projection(schema: &SchemaDescriptor, names: &[&str]) -> ProjectionMask {
    let fields = schema.root_schema().get_fields().iter().enumerate();
    let wanted = fields.filter(|(_, field)| names.contains(&field.name())).map(|(index, _)| index);
    ProjectionMask::roots(schema, wanted)
}

/// Reads a unit; false if the work is to stop.
fn read(worker: &mut Worker, source: &Source, unit: &Unit, batch_rows: usize) -> Result<bool, Failure> {
    let why = |error: &dyn std::fmt::Display| failed(&source.path, error);
    let file = File::open(&source.path).map_err(|error| why(&error))?;
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, source.metadata.clone());
    let mask = projection(builder.parquet_schema(), &worker.spec.names());
    let builder = builder.with_projection(mask).with_row_groups(unit.groups.clone()).with_batch_size(batch_rows);
    let mut row = unit.row;
    for batch in builder.build().map_err(|error| why(&error))? {
        let batch = batch.map_err(|error| why(&error))?;
        let columns = Columns::new(worker.spec, &batch)?;
        let place = Place { source: source.index, row };
        worker.converter.push(worker.spec, &columns, 0..batch.num_rows(), place, &mut worker.scan)?;
        row += batch.num_rows() as u64;
        if !worker.go_on(batch.num_rows()) {
            return Ok(false);
        }
    }
    let expected = unit.row + unit.rows.max(0).cast_unsigned();
    if row != expected {
        return Err(why(&format!("the file promises {expected} rows but has {row}")));
    }
    worker.end_unit();
    Ok(true)
}
