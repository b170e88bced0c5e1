//! Failures that are not problems of the log's rows, as Python exceptions.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;

use pyo3::prelude::*;
use pyo3::types::IntoPyDict;

/// The reason why a scan failed.
#[derive(Debug)]
pub enum Failure {
    /// A file that cannot be read: its name and the reason.
    File(String, String),
    /// A file that has changed since it was read: its name and the difference.
    Changed(String, String),
    /// A column of the wrong type, or an input of the wrong form.
    Input(String),
    /// A stream that broke off.
    Stream(String),
    /// A state that is damaged or belongs to another plan.
    State(String),
    /// A fault of this package.
    Internal(String),
    /// A Python exception: an interrupt, or one raised by the source.
    Python(PyErr),
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::File(file, why) => raise("of_files", "unreadable_file", &[("file", file), ("why", why)]),
            Failure::Changed(file, why) => raise("of_files", "changed_log", &[("file", file), ("why", why)]),
            Failure::Input(why) => raise("of_logs", "bad_input", &[("why", why)]),
            Failure::Stream(why) => raise("of_files", "broken_stream", &[("why", why)]),
            Failure::State(why) => raise("of_states", "foreign_state", &[("why", why)]),
            Failure::Internal(why) => raise("of_states", "internal", &[("why", why)]),
            Failure::Python(error) => error,
        }
    }
}

/// Makes an error of a kind of the catalogue in Python.
fn raise(room: &str, kind: &str, parameters: &[(&str, String)]) -> PyErr {
    Python::attach(|py| {
        let kinds = py.import(format!("offpolicy.errors.kinds.{room}"));
        let parameters = parameters.into_py_dict(py);
        let error = kinds.and_then(|kinds| kinds.getattr(kind)?.call((), Some(&parameters?)));
        error.map_or_else(|error| error, PyErr::from_value)
    })
}

/// Makes the error for a state that cannot be used.
pub fn bad_state(why: offpolicy_core::pass::wire::NotAState) -> PyErr {
    Failure::State(why.0).into()
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Stops panics inside `caught` from being printed, since they become errors.
pub fn quiet_guarded_panics() {
    let print = take_hook();
    set_hook(Box::new(move |panic| {
        if !GUARDED.get() {
            print(panic);
        }
    }));
}

/// Does the work, or returns the message of its panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let outer = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    result.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown fault".into())
    })
}

/// Reads a file, and reports a panic of the decoder as a damaged file.
pub fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    caught(read).unwrap_or_else(|why| Err(Failure::File(path.display().to_string(), why)))
}

/// Does the work of a function that Python calls. A panic becomes an error, which `except Exception` catches.
pub fn shielded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    caught(work).map_err(Failure::Internal)?
}

/// Does the work. A panic is blamed on the states if they came from elsewhere.
pub fn blame<T>(travelled: bool, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let why = |why: String| {
        if travelled {
            Failure::State(format!("states that came through map= do not add up: {why}"))
        } else {
            Failure::Internal(why)
        }
    };
    caught(work).map_err(why)?
}
