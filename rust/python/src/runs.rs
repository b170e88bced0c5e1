//! Cuts an episode column into runs of equal ids.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use offpolicy_core::ids::Id;
use offpolicy_core::scan::Run;

use crate::errors::Failure;

/// Appends the runs of `rows` to `runs`; starts count from the first of these rows.
pub fn find_runs(ids: &ArrayRef, rows: Range<usize>, runs: &mut Vec<Run>) -> Result<(), Failure> {
    macro_rules! integers {
        ($type:ty) => {
            equal_runs(&ids.as_primitive::<$type>().values()[rows], runs, |&id| Id::Int(id.into()))
        };
    }
    macro_rules! texts {
        ($array:expr) => {{
            let texts = $array;
            let slice: Vec<&str> = rows.map(|row| texts.value(row)).collect();
            equal_runs(&slice, runs, |text| Id::Text((*text).into()))
        }};
    }
    match ids.data_type() {
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::Int32 => integers!(Int32Type),
        DataType::Int64 => integers!(Int64Type),
        DataType::UInt8 => integers!(UInt8Type),
        DataType::UInt16 => integers!(UInt16Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::UInt64 => integers!(UInt64Type),
        DataType::Utf8 => texts!(ids.as_string::<i32>()),
        DataType::LargeUtf8 => texts!(ids.as_string::<i64>()),
        DataType::Utf8View => texts!(ids.as_string_view()),
        other => return Err(Failure::Input(format!("episode ids must be integers or strings, not {other}"))),
    }
    Ok(())
}

fn equal_runs<T: PartialEq>(ids: &[T], runs: &mut Vec<Run>, id: impl Fn(&T) -> Id) {
    let mut start = 0;
    while start < ids.len() {
        let len = run_length(&ids[start..]);
        runs.push(Run { start, len, id: id(&ids[start]) });
        start += len;
    }
}

/// How many of the first ids are equal.
fn run_length<T: PartialEq>(ids: &[T]) -> usize {
    const STRIDE: usize = 16;
    let first = &ids[0];
    let (chunks, _) = ids.as_chunks::<STRIDE>();
    let whole = chunks.iter().take_while(|chunk| chunk.iter().fold(true, |same, id| same & (id == first))).count();
    let rest = &ids[whole * STRIDE..];
    whole * STRIDE + rest.iter().position(|id| id != first).unwrap_or(rest.len())
}
