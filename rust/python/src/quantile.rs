//! Student's t, for intervals.

use offpolicy_core::student::quantile;
use pyo3::prelude::*;

/// The p-quantile of Student's t with `df` degrees of freedom.
#[pyfunction]
pub fn student_t_quantile(p: f64, df: f64) -> f64 {
    quantile(p, df)
}
