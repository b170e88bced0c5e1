//! The outcome of an evaluation, as typed objects for Python.
//!
//! An infinite or NaN float, which JSON could not hold, becomes None, since nothing is computed with it.

use numpy::{IntoPyArray, PyArray1};
use offpolicy_core::diagnostics::numbers::{self, BySteps};
use offpolicy_core::pass::outcome;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::spec::{name_of, to_python};

/// A number that may be out of the range of f64. If so, `value` is None and `log10` is the logarithm of its magnitude.
#[pyclass(frozen, get_all, module = "offpolicy._core")]
#[derive(Clone, Copy)]
pub struct Number {
    value: Option<f64>,
    log10: Option<f64>,
}

impl From<outcome::Number> for Number {
    fn from(number: outcome::Number) -> Self {
        Self { value: number.value.and_then(finite), log10: number.log10.and_then(finite) }
    }
}

fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

/// Returns the smallest and the largest value, with ∓∞ where they are out of the range of f64.
fn range((least, largest): (f64, f64)) -> (f64, f64) {
    (finite(least).unwrap_or(f64::NEG_INFINITY), finite(largest).unwrap_or(f64::INFINITY))
}

/// The outcome of an evaluation.
#[pyclass(frozen, get_all, module = "offpolicy._core")]
pub struct Outcome {
    episodes: u64,
    steps: u64,
    horizon: u64,
    lengths: Vec<(u64, u64)>,
    estimates: Vec<Py<EstimateOutcome>>,
    weights: Vec<Py<WeightsOutcome>>,
}

/// The estimate of one policy's value by one estimator.
#[pyclass(frozen, get_all, module = "offpolicy._core")]
pub struct EstimateOutcome {
    policy: usize,
    estimator: String,
    value: Number,
    std_error: Option<Number>,
    extremes: Option<(f64, f64)>,
    concentration: Option<f64>,
    skewness: Option<f64>,
    difference: Option<Py<DifferenceOutcome>>,
    blend: Option<Vec<(usize, f64)>>,
}

/// An estimate minus the mean return.
#[pyclass(frozen, get_all, module = "offpolicy._core")]
pub struct DifferenceOutcome {
    value: Number,
    std_error: Option<Number>,
    extremes: Option<(f64, f64)>,
    concentration: Option<f64>,
}

/// Facts about a policy's weights.
#[pyclass(frozen, get_all, module = "offpolicy._core")]
pub struct WeightsOutcome {
    ess: f64,
    largest_share: f64,
    mean: Option<f64>,
    dead_from: Option<u64>,
    diagnosis: Option<Py<Diagnosis>>,
}

/// The diagnostics of a policy's weights. Arrays are by step, with NaN for numbers out of the range of f64.
#[pyclass(frozen, get_all, module = "offpolicy._core")]
pub struct Diagnosis {
    ess: Py<PyArray1<f64>>,
    mean_weight: Py<PyArray1<f64>>,
    mean_ratio: Py<PyArray1<f64>>,
    mean_squared_ratio: Py<PyArray1<f64>>,
    largest: Py<PyArray1<f64>>,
    excess: Option<f64>,
    squared_excess: Option<f64>,
    leaders: Vec<Py<Leader>>,
    control: Option<(Number, Option<Number>)>,
    variance_ratio: Option<f64>,
    cut_off_bias: Option<f64>,
}

/// A trajectory with a large weight. `values` has its value by each estimator that is a mean over trajectories.
#[pyclass(frozen, get_all, module = "offpolicy._core")]
pub struct Leader {
    episode: Py<PyAny>,
    weight: Number,
    share: Option<f64>,
    returns: Number,
    first_v_hat: Number,
    values: Py<PyDict>,
}

impl Outcome {
    /// Converts the core's outcome, with the numbers by step of each policy that has diagnostics.
    pub fn new(py: Python<'_>, found: outcome::Outcome, steps: Vec<Option<BySteps>>) -> PyResult<Self> {
        let weights = found.weights.into_iter().zip(steps);
        Ok(Self {
            episodes: found.episodes,
            steps: found.steps,
            horizon: found.horizon,
            lengths: found.lengths,
            estimates: found.estimates.into_iter().map(|each| estimate(py, each)).collect::<PyResult<_>>()?,
            weights: weights.map(|(each, steps)| weights_of(py, each, steps)).collect::<PyResult<_>>()?,
        })
    }
}

fn estimate(py: Python<'_>, found: outcome::Estimate) -> PyResult<Py<EstimateOutcome>> {
    let difference = found.difference.map(|found| {
        let difference = DifferenceOutcome {
            value: found.value.into(),
            std_error: found.std_error.map(Number::from),
            extremes: found.extremes.map(range),
            concentration: found.concentration.and_then(finite),
        };
        Py::new(py, difference)
    });
    let estimate = EstimateOutcome {
        policy: found.policy,
        estimator: name_of(&found.estimator)?,
        value: found.value.into(),
        std_error: found.std_error.map(Number::from),
        extremes: found.extremes.map(range),
        concentration: found.concentration.and_then(finite),
        skewness: found.skewness.and_then(finite),
        difference: difference.transpose()?,
        blend: found.blend,
    };
    Py::new(py, estimate)
}

fn weights_of(py: Python<'_>, found: outcome::Weights, steps: Option<BySteps>) -> PyResult<Py<WeightsOutcome>> {
    let diagnosis = found.diagnosis.map(|found| diagnosis(py, found, steps.unwrap_or_default())).transpose()?;
    let weights = WeightsOutcome {
        ess: found.ess,
        largest_share: found.largest_share,
        mean: finite(found.mean),
        dead_from: found.dead_from,
        diagnosis,
    };
    Py::new(py, weights)
}

fn diagnosis(py: Python<'_>, found: numbers::Diagnosis, steps: BySteps) -> PyResult<Py<Diagnosis>> {
    let array = |mut numbers: Vec<f64>| {
        numbers.iter_mut().filter(|x| x.is_infinite()).for_each(|x| *x = f64::NAN);
        numbers.into_pyarray(py).unbind()
    };
    let diagnosis = Diagnosis {
        ess: array(steps.ess),
        mean_weight: array(steps.mean_weight),
        mean_ratio: array(steps.mean_ratio),
        mean_squared_ratio: array(steps.mean_squared_ratio),
        largest: found.largest.into_pyarray(py).unbind(),
        excess: finite(found.excess),
        squared_excess: finite(found.squared_excess),
        leaders: found.leaders.into_iter().map(|each| leader(py, each)).collect::<PyResult<_>>()?,
        control: found.control.map(|(mean, error)| (mean.into(), error.map(Number::from))),
        variance_ratio: found.variance_ratio.and_then(finite),
        cut_off_bias: finite(found.cut_off_bias),
    };
    Py::new(py, diagnosis)
}

fn leader(py: Python<'_>, found: numbers::Leading) -> PyResult<Py<Leader>> {
    let values = PyDict::new(py);
    for (estimator, value) in found.values {
        values.set_item(name_of(&estimator)?, Number::from(value))?;
    }
    let leader = Leader {
        episode: to_python(py, &found.episode)?,
        weight: found.weight.into(),
        share: finite(found.share),
        returns: found.returns.into(),
        first_v_hat: found.first_v_hat.into(),
        values: values.unbind(),
    };
    Py::new(py, leader)
}
