//! Cuts an episode column into runs of equal ids.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use offpolicy_core::log::ids::Id;
use offpolicy_core::log::runs::{contiguous_runs, equal_runs};
use offpolicy_core::log::scan::EpisodeRun;

use crate::errors::Failure;

/// Appends the runs of `rows` to `runs`, with starts that count from the first of these rows. Where the rows of an
/// episode are known to be `contiguous`, not every row is read.
pub fn find_runs(
    ids: &ArrayRef,
    rows: Range<usize>,
    contiguous: bool,
    runs: &mut Vec<EpisodeRun>,
) -> Result<(), Failure> {
    macro_rules! integers {
        ($type:ty) => {{
            let ids = &ids.as_primitive::<$type>().values()[rows];
            let found = |start: usize, len| runs.push(EpisodeRun { start, len, id: Id::Int(ids[start].into()) });
            if contiguous { contiguous_runs(ids, found) } else { equal_runs(ids, found) }
        }};
    }
    macro_rules! texts {
        ($array:expr) => {{
            let texts = $array;
            let ids: Vec<&str> = rows.map(|row| texts.value(row)).collect();
            equal_runs(&ids, |start, len| runs.push(EpisodeRun { start, len, id: Id::Text(ids[start].into()) }))
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
        other => {
            return Err(Failure::Input(format!("episode ids must be integers or strings, not {other}")));
        }
    }
    Ok(())
}
