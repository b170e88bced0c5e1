//! Conversion of record batches of any numeric type to the slices that the core reads: no copy for f64, lossless
//! widening otherwise.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};
use arrow_select::take::take;
use offpolicy_core::log::problem::{Kind, Place};
use offpolicy_core::log::scan::{Batch, EpisodeRun, Flaw, Scan};
use offpolicy_core::log::steps::Steps;

use crate::errors::Failure;
use crate::runs::find_runs;
use crate::spec::Content;

/// The number of rows that are converted and folded together, so that their columns stay in the cache between the two.
const SLAB: usize = 4096;
/// The largest integer up to which all integers are exact in f64.
const EXACT: i64 = 1 << 53;

/// Scratch memory of one worker.
#[derive(Default)]
pub struct Converter {
    runs: Vec<EpisodeRun>,
    steps: Vec<i64>,
    numbers: Vec<Vec<f64>>,
    marks: [Vec<bool>; 2],
    flaws: Vec<Flaw>,
}

/// The columns of a batch in the plan's order.
pub struct Columns {
    episode: ArrayRef,
    step: ArrayRef,
    marks: [Option<ArrayRef>; 2],
    slots: Vec<ArrayRef>,
}

impl Columns {
    /// Finds the columns of a batch that was imported. Numbers lie within the length that the batch states, but the
    /// offsets of texts and the indices of dictionaries may lead anywhere, so those are validated once.
    pub fn imported(
        spec: &Content,
        batch: &RecordBatch,
        validate: impl FnOnce(&dyn Array) -> Result<(), ArrowError>,
    ) -> Result<Self, Failure> {
        let episode = batch.column_by_name(&spec.episode).filter(|column| !column.data_type().is_primitive());
        let wrong = |error| Failure::Input(format!("column {:?} is damaged: {error}", spec.episode));
        episode.map_or(Ok(()), |column| validate(column)).map_err(wrong)?;
        Self::new(spec, batch)
    }

    /// Finds the columns. A dictionary of texts becomes plain text.
    pub fn new(spec: &Content, batch: &RecordBatch) -> Result<Self, Failure> {
        let find = |name: &str| {
            batch.column_by_name(name).cloned().ok_or_else(|| Failure::Input(format!("the log has no column {name:?}")))
        };
        let mut episode = find(&spec.episode)?;
        if let Some(coded) = episode.as_any_dictionary_opt() {
            episode = take(coded.values(), coded.keys(), None).map_err(|error| Failure::Input(error.to_string()))?;
        }
        let marks = spec.marks();
        Ok(Self {
            episode,
            step: find(&spec.step)?,
            marks: [marks[0].map(|name| find(name)).transpose()?, marks[1].map(|name| find(name)).transpose()?],
            slots: spec.plan.slots.iter().map(|slot| find(&slot.name)).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the first row at or after `row` at which an episode starts.
    pub fn boundary(&self, row: usize) -> usize {
        let len = self.episode.len();
        if row == 0 || row >= len {
            return row.min(len);
        }
        let mut start = row - 1;
        while start < len {
            let mut runs = vec![];
            let end = len.min(start + SLAB);
            if find_runs(&self.episode, start..end, false, &mut runs).is_err() {
                return row;
            }
            if runs.len() > 1 {
                return start + runs[0].len;
            }
            start = if end == len { len } else { end - 1 };
        }
        len
    }
}

/// Refuses columns whose types cannot be what their names say.
pub fn check_types(spec: &Content, schema: &Schema) -> Result<(), Failure> {
    let data_type = |name: &str| {
        let field = schema.field_with_name(name);
        field
            .map(|field| field.data_type().clone())
            .map_err(|_| Failure::Input(format!("the log has no column {name:?}")))
    };
    let wrong = |name: &str, expected: &str, found: &DataType| {
        Err(Failure::Input(format!("column {name:?} must be {expected}, but it is {found}; cast it first")))
    };
    let episode = data_type(&spec.episode)?;
    let inner = if let DataType::Dictionary(_, values) = &episode { values } else { &episode };
    let text = matches!(inner, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    if !(text || inner.is_integer()) {
        return wrong(&spec.episode, "an integer or a string", &episode);
    }
    let step = data_type(&spec.step)?;
    if !step.is_integer() {
        return wrong(&spec.step, "an integer", &step);
    }
    for (name, role) in spec.marks().into_iter().zip(["terminal", "truncated"]) {
        let Some(name) = name else { continue };
        let found = data_type(name)?;
        if !(found == DataType::Boolean || found.is_integer()) {
            return Err(Failure::Input(format!(
                "column {name:?} must be a boolean, or an integer that is 0 or 1, but it is {found}; cast it first, or leave it \
                 unread with Columns({role}=None)"
            )));
        }
    }
    for slot in &spec.plan.slots {
        let found = data_type(&slot.name)?;
        if !(found.is_integer() || found.is_floating()) {
            return wrong(&slot.name, "a number (float or integer)", &found);
        }
    }
    Ok(())
}

impl Converter {
    /// Converts rows of a batch, slab by slab, and pushes them into the scan. `place` is that of the batch's first row.
    pub fn push(
        &mut self,
        spec: &Content,
        columns: &Columns,
        rows: Range<usize>,
        place: Place,
        scan: &mut Scan,
    ) -> Result<(), Failure> {
        let mut start = rows.start;
        while start < rows.end {
            let end = rows.end.min(start + SLAB);
            let place = Place { row: place.row + start as u64, ..place };
            start += self.push_slab(spec, columns, start..end, end < rows.end, place, scan)?;
        }
        Ok(())
    }

    /// Converts one slab, and returns how many rows were pushed. An episode that may go on behind the slab is left to
    /// the next slab, so that its pieces need not be joined.
    fn push_slab(
        &mut self,
        spec: &Content,
        columns: &Columns,
        rows: Range<usize>,
        more: bool,
        place: Place,
        scan: &mut Scan,
    ) -> Result<usize, Failure> {
        self.runs.clear();
        self.flaws.clear();
        find_runs(&columns.episode, rows.clone(), scan.knows_log(), &mut self.runs)?;
        nulls(&columns.episode, &rows, &spec.episode, &mut self.flaws);
        nulls(&columns.step, &rows, &spec.step, &mut self.flaws);
        widen_steps(&columns.step, &rows, &spec.step, &mut self.steps, &mut self.flaws)?;
        self.numbers.resize_with(columns.slots.len(), Vec::new);
        for ((column, slot), scratch) in columns.slots.iter().zip(&spec.plan.slots).zip(&mut self.numbers) {
            widen(column, &rows, slot.check.neutral(), &slot.name, scratch, &mut self.flaws)?;
        }
        for ((column, name), scratch) in columns.marks.iter().zip(spec.marks()).zip(&mut self.marks) {
            if let (Some(column), Some(name)) = (column, name) {
                read_marks(column, &rows, name, scratch, &mut self.flaws)?;
            }
        }
        let complete = more && self.runs.len() > 1;
        let cut = if complete { self.runs.pop().map(|run| run.start) } else { None };
        let pushed = cut.unwrap_or(rows.len());
        self.flaws.retain(|flaw| flaw.row < pushed);
        let slices: Vec<&[f64]> = columns
            .slots
            .iter()
            .zip(&self.numbers)
            .map(|(column, scratch)| plain(column).map_or(&scratch[..], |values| &values[rows.clone()]))
            .collect();
        let steps = match columns.step.data_type() {
            DataType::Int32 => Steps::Int32(&columns.step.as_primitive::<Int32Type>().values()[rows]),
            DataType::Int64 => Steps::Int64(&columns.step.as_primitive::<Int64Type>().values()[rows]),
            _ => Steps::Int64(&self.steps),
        };
        scan.push(&Batch {
            place,
            runs: &self.runs,
            complete,
            steps,
            columns: &slices,
            terminal: columns.marks[0].is_some().then_some(&self.marks[0]),
            truncated: columns.marks[1].is_some().then_some(&self.marks[1]),
            flaws: &self.flaws,
        });
        Ok(pushed)
    }
}

/// Returns the values of an f64 column without nulls, and None for any other column.
fn plain(column: &ArrayRef) -> Option<&[f64]> {
    let is_plain = *column.data_type() == DataType::Float64 && column.null_count() == 0;
    is_plain.then(|| &column.as_primitive::<Float64Type>().values()[..])
}

fn nulls(column: &ArrayRef, rows: &Range<usize>, name: &str, flaws: &mut Vec<Flaw>) {
    if column.null_count() > 0 {
        for row in rows.clone().filter(|&row| column.is_null(row)) {
            let (column, value) = (name.to_owned(), "null".to_owned());
            flaws.push(Flaw { row: row - rows.start, column, kind: Kind::Null, value });
        }
    }
}

/// Reads marks, which are booleans or the integers 0 and 1. Any other value becomes false and is reported as a flaw.
fn read_marks(
    column: &ArrayRef,
    rows: &Range<usize>,
    name: &str,
    marks: &mut Vec<bool>,
    flaws: &mut Vec<Flaw>,
) -> Result<(), Failure> {
    marks.clear();
    if let Some(booleans) = column.as_boolean_opt() {
        nulls(column, rows, name, flaws);
        marks.extend(rows.clone().map(|row| booleans.value(row)));
        return Ok(());
    }
    let mut numbers = vec![];
    widen(column, rows, 0.0, name, &mut numbers, flaws)?;
    for (row, &x) in numbers.iter().enumerate().filter(|&(_, &x)| x != 0.0 && x != 1.0) {
        flaws.push(Flaw { row, column: name.to_owned(), kind: Kind::NotAMark, value: x.to_string() });
    }
    marks.extend(numbers.iter().map(|&x| x == 1.0));
    Ok(())
}

/// Widens a numeric column to f64. A null or inexact value becomes `neutral` and is reported as a flaw.
fn widen(
    column: &ArrayRef,
    rows: &Range<usize>,
    neutral: f64,
    name: &str,
    scratch: &mut Vec<f64>,
    flaws: &mut Vec<Flaw>,
) -> Result<(), Failure> {
    if plain(column).is_some() {
        return Ok(());
    }
    scratch.clear();
    let before = flaws.len();
    match column.data_type() {
        DataType::Float64 => copy::<Float64Type>(column, rows, scratch, |x| x),
        DataType::Float32 => copy::<Float32Type>(column, rows, scratch, f64::from),
        DataType::Float16 => copy::<Float16Type>(column, rows, scratch, f64::from),
        DataType::Int8 => copy::<Int8Type>(column, rows, scratch, f64::from),
        DataType::Int16 => copy::<Int16Type>(column, rows, scratch, f64::from),
        DataType::Int32 => copy::<Int32Type>(column, rows, scratch, f64::from),
        DataType::UInt8 => copy::<UInt8Type>(column, rows, scratch, f64::from),
        DataType::UInt16 => copy::<UInt16Type>(column, rows, scratch, f64::from),
        DataType::UInt32 => copy::<UInt32Type>(column, rows, scratch, f64::from),
        DataType::Int64 => {
            copy::<Int64Type>(column, rows, scratch, |x| x as f64);
            let exact = |x: i64| (-EXACT..=EXACT).contains(&x);
            inexact::<Int64Type>(column, rows, name, exact, flaws);
        }
        DataType::UInt64 => {
            copy::<UInt64Type>(column, rows, scratch, |x| x as f64);
            inexact::<UInt64Type>(column, rows, name, |x| x <= EXACT as u64, flaws);
        }
        other => {
            return Err(Failure::Input(format!("column {name:?} must be a number, but it is {other}")));
        }
    }
    nulls(column, rows, name, flaws);
    for flaw in &flaws[before..] {
        scratch[flaw.row] = neutral;
    }
    Ok(())
}

fn copy<T: ArrowPrimitiveType>(
    column: &ArrayRef,
    rows: &Range<usize>,
    scratch: &mut Vec<f64>,
    widen: impl Fn(T::Native) -> f64,
) {
    scratch.extend(column.as_primitive::<T>().values()[rows.clone()].iter().map(|&x| widen(x)));
}

fn inexact<T: ArrowPrimitiveType>(
    column: &ArrayRef,
    rows: &Range<usize>,
    name: &str,
    exact: impl Fn(T::Native) -> bool,
    flaws: &mut Vec<Flaw>,
) where
    T::Native: std::fmt::Display,
{
    let values = column.as_primitive::<T>();
    for row in rows.clone().filter(|&row| !column.is_null(row) && !exact(values.value(row))) {
        let (row, value) = (row - rows.start, values.value(row).to_string());
        flaws.push(Flaw { row, column: name.to_owned(), kind: Kind::InexactInteger, value });
    }
}

fn widen_steps(
    column: &ArrayRef,
    rows: &Range<usize>,
    name: &str,
    steps: &mut Vec<i64>,
    flaws: &mut Vec<Flaw>,
) -> Result<(), Failure> {
    macro_rules! integers {
        ($type:ty) => {
            steps.extend(column.as_primitive::<$type>().values()[rows.clone()].iter().map(|&step| i64::from(step)))
        };
    }
    steps.clear();
    match column.data_type() {
        DataType::Int32 | DataType::Int64 => {}
        DataType::Int8 => integers!(Int8Type),
        DataType::Int16 => integers!(Int16Type),
        DataType::UInt8 => integers!(UInt8Type),
        DataType::UInt16 => integers!(UInt16Type),
        DataType::UInt32 => integers!(UInt32Type),
        DataType::UInt64 => {
            let values = &column.as_primitive::<UInt64Type>().values()[rows.clone()];
            steps.extend(values.iter().map(|&step| i64::try_from(step).unwrap_or(i64::MAX - 1)));
            inexact::<UInt64Type>(column, rows, name, |x| x <= EXACT as u64, flaws);
        }
        other => {
            return Err(Failure::Input(format!("column {name:?} must be an integer, but it is {other}")));
        }
    }
    Ok(())
}
