//! Arrow C streams, imported from the object that offers them. This is the only place that needs `unsafe`. The layout
//! that an array claims is compared with the schema before its memory is touched.

use std::ffi::CStr;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchOptions, StructArray};
use arrow_data::{ByteView, MAX_INLINE_VIEW_LEN, layout};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::{Failure, caught};

/// The limit on the rows of a batch.
const MOST_ROWS: usize = 1 << 48;

/// The limit on the buffers of a column of views. A negative number from a producer becomes a number above it.
const MOST_BUFFERS: usize = 1 << 31;

/// A stream of record batches that may move between threads.
pub struct Stream {
    stream: FFI_ArrowArrayStream,
    schema: SchemaRef,
}

/// Takes the stream out of an object with `__arrow_c_stream__`.
#[expect(unsafe_code, reason = "the Arrow PyCapsule interface hands over a C struct")]
pub fn import(object: &Bound<'_, PyAny>) -> PyResult<Stream> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let no_stream = || Failure::Stream("__arrow_c_stream__ gave no capsule of a stream".into());
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| no_stream())?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream")).map_err(|_| no_stream())?;
    // Safety: the name of the capsule guarantees that it holds this struct; `from_raw` moves it out and leaves a
    // released one.
    let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
    if stream.release().is_none() {
        return Err(Failure::Stream("the stream has been read already: it can be read once only".into()).into());
    }
    let schema = schema(&mut stream).map_err(failed)?;
    Ok(Stream { stream, schema })
}

/// Makes the error for a source that could not go on.
pub fn failed(error: ArrowError) -> Failure {
    Failure::Stream(format!("the log could not be read: {error}"))
}

impl Stream {
    /// Returns the columns of the stream.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    #[expect(unsafe_code, reason = "the Arrow C stream interface is made of function pointers")]
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let next = self.stream.get_next().ok_or_else(|| broken("the stream has no way to go on"))?;
        let mut array = FFI_ArrowArray::empty();
        // Safety: the function belongs to this stream, which has not been released.
        let code = unsafe { next(&raw mut self.stream, &raw mut array) };
        if code != 0 {
            return Err(producer_error(&mut self.stream, "batch", code));
        }
        if array.is_released() {
            return Ok(None);
        }
        let rows = array.len();
        let whole = DataType::Struct(self.schema.fields().clone());
        if !conforms(&array, &whole) {
            return Err(broken("a batch has other columns than its stream says"));
        }
        // Safety: the array has the buffers and children of this type, and their content is validated before it is
        // used.
        let data = unsafe { from_ffi_and_data_type(array, whole) }?;
        let columns = StructArray::from(data).into_parts().1;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map(Some)
    }
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let fault = |why: String| Err(broken(&format!("a batch is not what its stream says: {why}")));
        caught(|| self.read()).unwrap_or_else(fault).transpose()
    }
}

/// Refuses a column whose texts or indices lead out of its memory.
pub fn validate(column: &dyn Array) -> Result<(), ArrowError> {
    let checked = caught(|| column.to_data().validate_full());
    checked.unwrap_or_else(|why| Err(broken(&why)))
}

/// Refuses a column of a frame whose texts lead out of its memory. Views of texts, which are known to be UTF-8, are
/// checked only for their place, since their memory may have been imported from elsewhere.
pub fn validate_views(column: &dyn Array) -> Result<(), ArrowError> {
    let Some(texts) = column.as_string_view_opt() else { return validate(column) };
    let sizes: Vec<u64> = texts.data_buffers().iter().map(|buffer| buffer.len() as u64).collect();
    let inside = |view: &u128| {
        let ByteView { length, buffer_index, offset, .. } = ByteView::from(*view);
        let size = sizes.get(buffer_index as usize).copied().unwrap_or(0);
        (length <= MAX_INLINE_VIEW_LEN) | (u64::from(offset) + u64::from(length) <= size)
    };
    let fits = texts.views().iter().fold(true, |fits, view| fits & inside(view));
    if fits { Ok(()) } else { Err(broken("a text lies outside of its memory")) }
}

/// Returns true if the array and its children have as many buffers and children as their types require.
fn conforms(array: &FFI_ArrowArray, data_type: &DataType) -> bool {
    let layout = layout(data_type);
    let buffers = layout.buffers.len() + usize::from(layout.can_contain_null_mask);
    let found = array.num_buffers();
    let fits = if layout.variadic { found > buffers && found < MOST_BUFFERS } else { found == buffers };
    let fits = fits || layout.buffers.is_empty() && found == 0;
    let children = |fields: &mut dyn Iterator<Item = &DataType>| {
        let fields: Vec<&DataType> = fields.collect();
        array.num_children() == fields.len()
            && fields.iter().enumerate().all(|(index, field)| conforms(array.child(index), field))
    };
    let nested = match data_type {
        DataType::Struct(fields) => children(&mut fields.iter().map(|field| field.data_type())),
        DataType::Union(fields, _) => children(&mut fields.iter().map(|(_, field)| field.data_type())),
        DataType::RunEndEncoded(ends, values) => children(&mut [ends.data_type(), values.data_type()].into_iter()),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::Map(field, _) => children(&mut std::iter::once(field.data_type())),
        DataType::Dictionary(_, values) => array.dictionary().is_some_and(|found| conforms(found, values)),
        _ => array.dictionary().is_none() && array.num_children() == 0,
    };
    fits && nested && array.len() < MOST_ROWS && array.offset() < MOST_ROWS
}

#[expect(unsafe_code, reason = "the Arrow C stream interface is made of function pointers")]
fn schema(stream: &mut FFI_ArrowArrayStream) -> Result<SchemaRef, ArrowError> {
    let get = stream.get_schema().ok_or_else(|| broken("the stream has no schema"))?;
    let mut schema = FFI_ArrowSchema::empty();
    // Safety: the function belongs to this stream, which has not been released.
    let code = unsafe { get(&raw mut *stream, &raw mut schema) };
    if code != 0 {
        return Err(producer_error(stream, "schema", code));
    }
    let field = caught(|| Field::try_from(&schema)).unwrap_or_else(|why| Err(broken(&why)))?;
    match field.data_type() {
        DataType::Struct(fields) => Ok(Schema::new(fields.clone()).into()),
        other => Err(broken(&format!("the stream gives {other}, and not columns"))),
    }
}

#[expect(unsafe_code, reason = "the Arrow C stream interface is made of function pointers")]
fn producer_error(stream: &mut FFI_ArrowArrayStream, what: &str, code: i32) -> ArrowError {
    let said = stream.get_last_error().and_then(|get| {
        // Safety: the function belongs to this stream, and the text that it returns lives until the next call.
        let text = unsafe { get(&raw mut *stream) };
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    });
    broken(&format!("its source gave no {what}: {}", said.unwrap_or_else(|| format!("error {code}"))))
}

fn broken(why: &str) -> ArrowError {
    ArrowError::CDataInterface(why.to_owned())
}
