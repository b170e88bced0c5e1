//! Scans of Parquet files: threads decode and fold row groups side by side, in bounded memory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use offpolicy_core::log::problem::Place;
use offpolicy_core::pass::stamp::Extent;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::schema::types::SchemaDescriptor;
use pyo3::prelude::*;

use crate::columns::{Columns, check_types};
use crate::errors::{Failure, guarded, shielded};
use crate::identity::{Described, Identity};
use crate::job::Job;
use crate::pages::Pages;
use crate::partial::Partial;
use crate::runtime::{Readers, Worker};

/// The number of rows that are decoded together.
pub const BATCH: usize = 1 << 14;
/// The number of rows up to which small row groups are combined into one unit.
const UNIT: i64 = 1 << 18;

/// A file, its metadata, and its index among the sources of the log.
pub struct Source {
    /// The path of the file.
    pub path: PathBuf,
    metadata: ArrowReaderMetadata,
    identity: Identity,
    index: u32,
}

/// Row groups that are read one after the other.
pub struct Unit {
    /// The index of its file.
    pub source: usize,
    groups: Vec<usize>,
    /// The number of its first row in the file.
    pub row: u64,
    rows: i64,
}

impl Source {
    /// Opens a file, and refuses one that has changed.
    pub fn open(path: PathBuf, index: u32, before: Option<Described>) -> Result<Self, Failure> {
        let (metadata, identity) = guarded(&path, || {
            let mut file = File::open(&path).map_err(|error| failed(&path, error))?;
            let identity = Identity::of(&mut file).map_err(|error| failed(&path, error))?;
            before.map_or(Ok(()), |before| identity.check(&path, before))?;
            let metadata =
                ArrowReaderMetadata::load(&file, Default::default()).map_err(|error| failed(&path, error))?;
            Ok((metadata, identity))
        })?;
        Ok(Self { path, metadata, identity, index })
    }

    fn groups(&self) -> impl Iterator<Item = i64> {
        self.metadata.metadata().row_groups().iter().map(|group| group.num_rows())
    }

    /// Decodes the named columns of a unit, batch by batch. The open file shows at the end whether it has changed.
    pub fn batches(
        &self,
        unit: &Unit,
        names: &[&str],
        rows: usize,
    ) -> Result<(ParquetRecordBatchReader, File), Failure> {
        let why = |error: &dyn std::fmt::Display| failed(&self.path, error);
        let file = File::open(&self.path).map_err(|error| why(&error))?;
        self.identity.check_open(&self.path, &file)?;
        let watched = file.try_clone().map_err(|error| why(&error))?;
        let pages = Pages::new(file, self.metadata.metadata(), &unit.groups);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pages, self.metadata.clone());
        let mask = projection(builder.parquet_schema(), names);
        let builder = builder.with_projection(mask).with_row_groups(unit.groups.clone()).with_batch_size(rows);
        Ok((builder.build().map_err(|error| why(&error))?, watched))
    }

    /// Refuses a unit without the rows that the footer promises, and a file that changed while it was read.
    pub fn check_read(&self, unit: &Unit, row: u64, watched: &File) -> Result<(), Failure> {
        let expected = unit.row + unit.rows.max(0).cast_unsigned();
        if row != expected {
            return Err(failed(&self.path, format!("the file promises {expected} rows but has {row}")));
        }
        self.identity.check_open(&self.path, watched)
    }
}

/// Makes the error for a file that could not be read.
pub fn failed(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::File(path.display().to_string(), error.to_string())
}

/// Returns the column names and row-group sizes of a file, its identity, and the fingerprint of its content.
#[pyfunction]
pub fn parquet_info(path: PathBuf) -> PyResult<(Vec<String>, Vec<i64>, Described, u64)> {
    shielded(|| {
        let source = Source::open(path, 0, None)?;
        let names = source.metadata.schema().fields().iter().map(|field| field.name().clone()).collect();
        let identity = source.identity;
        Ok((names, source.groups().collect(), identity.describe(), identity.content()))
    })
}

/// Raises an error if a file has changed.
#[pyfunction]
pub fn check_unchanged(path: PathBuf, before: Described) -> PyResult<()> {
    shielded(|| {
        let mut file = File::open(&path).map_err(|error| failed(&path, error))?;
        Ok(Identity::of(&mut file).map_err(|error| failed(&path, error))?.check(&path, before)?)
    })
}

/// A path, the index of the source, its row groups or None for all, and the earlier description of the file.
type Asked = (PathBuf, u32, Option<Vec<usize>>, Described);

/// Scans Parquet files.
#[pyfunction]
#[pyo3(signature = (job, files, batch_rows, threads, progress))]
pub fn scan_parquet(
    py: Python<'_>,
    job: &Bound<'_, Job>,
    files: Vec<Asked>,
    batch_rows: Option<usize>,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Partial> {
    shielded(|| {
        let readers = Readers::new(job.get(), threads, progress);
        let batch_rows = batch_rows.unwrap_or(BATCH);
        let (mut sources, mut units, mut extents) = (vec![], vec![], vec![]);
        for (path, index, groups, before) in files {
            let source = Source::open(path, index, Some(before))?;
            check_types(job.get().spec(), source.metadata.schema()).map_err(|why| in_file(&source, why))?;
            let own = cut(&source, sources.len(), groups);
            let rows = own.iter().map(|unit| unit.rows.max(0).cast_unsigned()).sum();
            let row = own.first().map_or(0, |unit| unit.row);
            extents.push(Extent { source: index, log: source.identity.content(), row, rows });
            units.extend(own);
            sources.push(source);
        }
        let next = AtomicUsize::new(0);
        let partial = readers.run(py, |worker| {
            worker.scan.adds_bits = false;
            while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
                let source = &sources[unit.source];
                if !guarded(&source.path, || read(worker, source, unit, batch_rows))? {
                    break;
                }
            }
            Ok(())
        })?;
        Ok(Partial::new(job, extents, partial))
    })
}

fn in_file(source: &Source, why: Failure) -> Failure {
    match why {
        Failure::Input(why) => Failure::Input(format!("{}: {why}", source.path.display())),
        other => other,
    }
}

/// Cuts a file into units of whole row groups.
pub fn cut(source: &Source, index: usize, groups: Option<Vec<usize>>) -> Vec<Unit> {
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

/// Selects columns by their whole names, which may contain dots.
fn projection(schema: &SchemaDescriptor, names: &[&str]) -> ProjectionMask {
    let fields = schema.root_schema().get_fields().iter().enumerate();
    let wanted = fields.filter(|(_, field)| names.contains(&field.name())).map(|(index, _)| index);
    ProjectionMask::roots(schema, wanted)
}

/// Reads a unit. Returns false if the work must stop.
fn read(worker: &mut Worker, source: &Source, unit: &Unit, batch_rows: usize) -> Result<bool, Failure> {
    let (batches, watched) = source.batches(unit, &worker.spec.names(), batch_rows)?;
    let mut row = unit.row;
    for batch in batches {
        let batch = batch.map_err(|error| failed(&source.path, error))?;
        let columns = Columns::new(worker.spec, &batch)?;
        let place = Place { source: source.index, row };
        worker.converter.push(worker.spec, &columns, 0..batch.num_rows(), place, &mut worker.scan)?;
        row += batch.num_rows() as u64;
        if !worker.go_on(batch.num_rows()) {
            return Ok(false);
        }
    }
    source.check_read(unit, row, &watched)?;
    worker.end_unit();
    Ok(true)
}
