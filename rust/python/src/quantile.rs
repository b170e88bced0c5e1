//! Quantiles of Student's t, for intervals.

use offpolicy_core::number::student::quantile;
use pyo3::prelude::*;

use crate::errors::shielded;

/// Returns the p-quantile of Student's t with `df` degrees of freedom.
#[pyfunction]
pub fn student_t_quantile(p: f64, df: f64) -> PyResult<f64> {
    shielded(|| Ok(quantile(p, df)))
}
