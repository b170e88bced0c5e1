//! Writes a stream that can be read only once to a temporary Parquet file.

use std::fs::File;
use std::path::PathBuf;

use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use pyo3::prelude::*;

use crate::errors::{Failure, shielded};
use crate::imported::{failed, import, validate};

/// Writes the named columns of a stream, or all of them.
#[pyfunction]
pub fn spool(py: Python<'_>, stream: &Bound<'_, PyAny>, names: Option<Vec<String>>, path: PathBuf) -> PyResult<()> {
    shielded(|| {
        let mut reader = import(stream)?;
        let schema = reader.schema();
        let wanted = |name: &String| names.as_ref().is_none_or(|names| names.contains(name));
        let found: Vec<usize> = (0..schema.fields().len()).filter(|&i| wanted(schema.field(i).name())).collect();
        let written = py.detach(|| {
            let broken = |error: &dyn std::fmt::Display| Failure::File(path.display().to_string(), error.to_string());
            let schema = schema.project(&found).map_err(failed)?.into();
            let file = File::create(&path).map_err(|error| broken(&error))?;
            let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
            let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).map_err(|error| broken(&error))?;
            for batch in &mut reader {
                let batch = batch.and_then(|batch| batch.project(&found)).map_err(failed)?;
                batch.columns().iter().try_for_each(|column| validate(column)).map_err(failed)?;
                writer.write(&batch).map_err(|error| broken(&error))?;
                Python::attach(|py| py.check_signals())?;
            }
            writer.close().map_err(|error| broken(&error))
        });
        written?;
        Ok(())
    })
}
