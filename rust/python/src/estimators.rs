//! The registry of estimators, for Python.

use offpolicy_core::estimators::about::{Column, StepSum};
use offpolicy_core::estimators::{About, Estimator};
use pyo3::prelude::*;

/// The description of an estimator: its identity, the columns that it needs, and its properties.
#[pyclass(frozen, module = "offpolicy._core")]
pub struct EstimatorInfo(&'static About);

#[pymethods]
impl EstimatorInfo {
    #[getter]
    fn id(&self) -> &'static str {
        self.0.id
    }

    #[getter]
    fn name(&self) -> &'static str {
        self.0.name
    }

    #[getter]
    fn equation(&self) -> &'static str {
        self.0.equation
    }

    #[getter]
    fn reference(&self) -> &'static str {
        self.0.reference
    }

    #[getter]
    fn needs(&self) -> Vec<&'static str> {
        names(self.0.needs, Column::name)
    }

    #[getter]
    fn reads(&self) -> Vec<&'static str> {
        names(self.0.reads, Column::name)
    }

    #[getter]
    fn uses_weights(&self) -> bool {
        self.0.needs.contains(&Column::Ratio)
    }

    #[getter]
    fn passes(&self) -> u8 {
        self.0.passes
    }

    #[getter]
    fn value_pass(&self) -> u8 {
        self.0.value_pass
    }

    #[getter]
    fn unbiased(&self) -> &'static str {
        self.0.unbiased.name()
    }

    #[getter]
    fn weighted(&self) -> bool {
        self.0.weighted
    }

    #[getter]
    fn blended(&self) -> bool {
        self.0.is_blend()
    }

    #[getter]
    fn shrinks(&self) -> bool {
        self.0.shrinks
    }

    #[getter]
    fn weights_returns(&self) -> bool {
        self.0.weights_returns
    }

    #[getter]
    fn of_behavior(&self) -> bool {
        self.0.of_behavior
    }

    #[getter]
    fn needs_baseline(&self) -> bool {
        self.0.needs_baseline
    }

    #[getter]
    fn corrects_first_value(&self) -> bool {
        self.0.corrects_first_value
    }

    #[getter]
    fn model(&self) -> &'static str {
        self.0.model.name()
    }

    #[getter]
    fn without_control(&self) -> Option<&'static str> {
        self.0.without_control.map(id)
    }

    #[getter]
    fn with_baseline(&self) -> Option<&'static str> {
        self.0.with_baseline.map(id)
    }

    #[getter]
    fn range(&self) -> &'static str {
        self.0.range.name()
    }

    #[getter]
    fn step_sums(&self) -> Vec<&'static str> {
        names(self.0.step_sums, StepSum::name)
    }

    #[getter]
    fn only_when_asked(&self) -> bool {
        self.0.only_when_asked
    }

    fn __repr__(&self) -> String {
        format!("EstimatorInfo({:?}, {:?})", self.0.id, self.0.name)
    }
}

fn id(estimator: Estimator) -> &'static str {
    estimator.about().id
}

fn names<T: Copy>(of: &[T], name: impl Fn(T) -> &'static str) -> Vec<&'static str> {
    of.iter().map(|&one| name(one)).collect()
}

/// Returns all estimators, in the order of the registry.
#[pyfunction]
pub fn estimators() -> Vec<EstimatorInfo> {
    Estimator::ALL.iter().map(|estimator| EstimatorInfo(estimator.about())).collect()
}
