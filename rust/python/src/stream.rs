//! Arrow C streams: any object with `__arrow_c_stream__`, read batch by batch in bounded memory.

use std::sync::Mutex;

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_schema::{ArrowError, SchemaRef};
use offpolicy_core::problem::Place;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::columns::{Columns, check_types};
use crate::errors::Failure;
use crate::partial::Partial;
use crate::workers::Job;

/// A stream of record batches that may move between threads.
pub struct Stream(RecordBatchStreamReader);

impl Stream {
    /// Its columns.
    pub fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}

impl Iterator for Stream {
    type Item = Result<arrow_array::RecordBatch, ArrowError>;
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// Takes the stream out of an object with `__arrow_c_stream__`.
#[expect(unsafe_code, reason = "the Arrow PyCapsule interface hands over a C struct")]
pub fn import(object: &Bound<'_, PyAny>) -> PyResult<Stream> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule =
        capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("__arrow_c_stream__ gave no capsule"))?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // Safety: the capsule's name says that it holds this struct; `from_raw` moves it out and leaves a released one.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
    RecordBatchStreamReader::try_new(stream).map(Stream).map_err(|error| failed(error).into())
}

/// The source could not go on.
pub fn failed(error: ArrowError) -> Failure {
    Failure::Input(format!("the log could not be read: {error}"))
}

/// Scans a stream.
#[pyfunction]
#[pyo3(signature = (spec, pass_, normalisers, stream, source, threads, progress))]
#[expect(clippy::too_many_arguments, reason = "a Python signature")]
pub fn scan_stream(
    py: Python<'_>,
    spec: &str,
    pass_: &str,
    normalisers: Option<&[u8]>,
    stream: &Bound<'_, PyAny>,
    source: u32,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Partial> {
    let job = Job::new(spec, pass_, normalisers, threads, progress)?;
    let reader = import(stream)?;
    check_types(&job.spec, &reader.schema())?;
    let shared = Mutex::new((reader, 0));
    let partial = job.run(py, |worker| {
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
            let columns = Columns::new(worker.spec, &batch)?;
            let place = Place { source, row };
            worker.converter.push(worker.spec, &columns, 0..batch.num_rows(), place, &mut worker.scan)?;
            worker.end_unit();
            if !worker.go_on(batch.num_rows()) {
                return Ok(());
            }
        }
    })?;
    Ok(Partial::new(partial))
}
