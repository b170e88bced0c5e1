//! Rows of Parquet files for other libraries, as Arrow. The reader of scans decodes them, so no other reader has to
//! open a file that this one refuses.

use std::path::PathBuf;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::{guarded, shielded};
use crate::parquet_files::{BATCH, Source, cut, failed};

/// Rows of one file, behind the Arrow PyCapsule interface.
#[pyclass(frozen, module = "offpolicy._core")]
pub struct Rows {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Rows {
    /// Returns the rows as an Arrow stream, always with their own schema.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// Returns the number of units in which a file is read.
#[pyfunction]
pub fn parquet_units(path: PathBuf) -> PyResult<usize> {
    shielded(|| Ok(cut(&Source::open(path, 0, None)?, 0, None).len()))
}

/// Decodes the named columns of one unit of a file.
#[pyfunction]
pub fn parquet_rows(py: Python<'_>, path: PathBuf, names: Vec<String>, unit: usize) -> PyResult<Rows> {
    shielded(|| read(py, path, &names, unit))
}

fn read(py: Python<'_>, path: PathBuf, names: &[String], unit: usize) -> PyResult<Rows> {
    let source = Source::open(path, 0, None)?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let units = cut(&source, 0, None);
    let unit = units.get(unit).ok_or_else(|| failed(&source.path, "it has fewer rows than when it was opened"))?;
    let rows = py.detach(|| {
        guarded(&source.path, || {
            let (reader, watched) = source.batches(unit, &names, BATCH)?;
            let schema = arrow_array::RecordBatchReader::schema(&reader);
            let batches: Vec<RecordBatch> =
                reader.collect::<Result<_, _>>().map_err(|error| failed(&source.path, error))?;
            let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
            source.check_read(unit, unit.row + count as u64, &watched)?;
            Ok(Rows { schema, batches })
        })
    });
    Ok(rows?)
}
