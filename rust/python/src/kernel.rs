//! Kernel smoothing and kernel-based models for Python, on flat NumPy arrays.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use offpolicy_core::models::kernel::{Axis, Kernel, NotAKernel, smoothed};
use offpolicy_core::models::kernel_model::{self, PairPolicy, Samples};
use offpolicy_core::models::logged_rows::RowsByRemaining;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{Failure, shielded};

type Floats<'py> = PyReadonlyArray1<'py, f64>;
type Wholes<'py> = PyReadonlyArray1<'py, u32>;
type Array<'py> = Bound<'py, PyArray1<f64>>;

fn kernel(axes: Vec<(usize, String)>, bandwidth: f64) -> PyResult<Kernel> {
    let axes = axes.into_iter().map(|(size, kind)| match kind.as_str() {
        "line" => Ok((size, Axis::Line)),
        "circle" => Ok((size, Axis::Circle)),
        "apart" => Ok((size, Axis::Apart)),
        _ => Err(Failure::Input(format!("cells lie in a 'line', a 'circle' or 'apart', not {kind:?}"))),
    });
    let axes = axes.collect::<Result<_, _>>()?;
    Ok(Kernel::exponential(axes, bandwidth).map_err(|NotAKernel(why)| Failure::Input(why))?)
}

fn check(fits: bool, what: &str) -> PyResult<()> {
    if fits { Ok(()) } else { Err(PyValueError::new_err(format!("{what} do not fit the model"))) }
}

/// Returns S(x) of each function on the grid; x holds them one after the other.
#[pyfunction]
pub fn kernel_smooth<'py>(
    py: Python<'py>,
    x: Floats<'py>,
    axes: Vec<(usize, String)>,
    bandwidth: f64,
) -> PyResult<Array<'py>> {
    shielded(|| {
        let kernel = kernel(axes, bandwidth)?;
        let x = x.as_slice()?;
        check(x.len().is_multiple_of(kernel.cells()), "the values")?;
        let smooth =
            py.detach(|| x.chunks_exact(kernel.cells()).flat_map(|x| smoothed(&kernel, x)).collect::<Vec<_>>());
        Ok(smooth.into_pyarray(py))
    })
}

/// A kernel-based model, where pair = state · actions + action.
#[pyclass(frozen)]
pub struct KernelModel(kernel_model::KernelModel);

#[pymethods]
impl KernelModel {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "the columns of the samples")]
    fn new(
        py: Python<'_>,
        axes: Vec<(usize, String)>,
        bandwidth: f64,
        count: Floats<'_>,
        reward: Floats<'_>,
        known: Floats<'_>,
        pair: Wholes<'_>,
        next: Wholes<'_>,
        times: Floats<'_>,
        unseen_reward: f64,
    ) -> PyResult<Self> {
        shielded(|| {
            let actions = axes.last().map_or(1, |axis| axis.0);
            let kernel = kernel(axes, bandwidth)?;
            let samples = Samples {
                count: count.as_slice()?,
                reward: reward.as_slice()?,
                known: known.as_slice()?,
                pair: pair.as_slice()?,
                next: next.as_slice()?,
                times: times.as_slice()?,
            };
            let pairs = kernel.cells();
            check(
                [samples.count, samples.reward, samples.known].iter().all(|x| x.len() == pairs),
                "the sums of the pairs",
            )?;
            let seen = samples.pair.len();
            check(samples.next.len() == seen && samples.times.len() == seen, "the successors")?;
            check(samples.pair.is_sorted() && samples.pair.iter().all(|&pair| (pair as usize) < pairs), "the pairs")?;
            check(samples.next.iter().all(|&next| (next as usize) < pairs / actions), "the next states")?;
            Ok(Self(py.detach(|| kernel_model::KernelModel::fit(kernel, actions, samples, unseen_reward))))
        })
    }

    /// Returns R̂ by pair.
    fn reward<'py>(&self, py: Python<'py>) -> PyResult<Array<'py>> {
        shielded(|| Ok(self.0.reward().to_vec().into_pyarray(py)))
    }

    /// Returns V^0, …, V^horizon of each policy by state, and its Q at rows of pairs and remaining steps. A policy is a
    /// table of π(a|s), or one table for each step.
    fn values<'py>(
        &self,
        py: Python<'py>,
        policies: Vec<Floats<'py>>,
        horizon: usize,
        discount: f64,
        pairs: Wholes<'py>,
        remaining: Wholes<'py>,
    ) -> PyResult<Vec<(Array<'py>, Array<'py>)>> {
        shielded(|| {
            let size = self.0.pairs();
            let mut tables = Vec::with_capacity(policies.len());
            for policy in &policies {
                let table = policy.as_slice()?;
                check(table.len() == size || table.len() == size * horizon, "the tables of a policy")?;
                tables.push(PairPolicy::new(table, size));
            }
            let rows = self.rows(&pairs, &remaining, horizon)?;
            let values = py.detach(|| self.0.values(&tables, horizon, discount, &rows));
            Ok(values.into_iter().map(|(v, q)| (v.into_pyarray(py), q.into_pyarray(py))).collect())
        })
    }

    /// Returns Q at rows of pairs and remaining steps, given the V that `values` returned.
    fn action_values<'py>(
        &self,
        py: Python<'py>,
        values: Floats<'py>,
        discount: f64,
        pairs: Wholes<'py>,
        remaining: Wholes<'py>,
    ) -> PyResult<Array<'py>> {
        shielded(|| {
            let values = values.as_slice()?;
            check(values.len() >= self.0.states(), "the values")?;
            let rows = self.rows(&pairs, &remaining, values.len() / self.0.states() - 1)?;
            let q = py.detach(|| self.0.action_values(values, discount, &rows));
            Ok(q.into_pyarray(py))
        })
    }

    /// Returns the best legal action of each state, or the worst, or None if the values do not settle.
    fn optimal_actions<'py>(
        &self,
        py: Python<'py>,
        legal: PyReadonlyArray1<'py, bool>,
        discount: f64,
        maximize: bool,
        tolerance: f64,
    ) -> PyResult<Option<Bound<'py, PyArray1<u32>>>> {
        shielded(|| {
            let legal = legal.as_slice()?;
            check(legal.len() == self.0.pairs(), "the legal actions")?;
            let actions = py.detach(|| self.0.optimal_actions(legal, discount, maximize, tolerance));
            Ok(actions.map(|actions| actions.into_pyarray(py)))
        })
    }
}

impl KernelModel {
    fn rows<'a>(&self, pairs: &'a Wholes<'_>, remaining: &Wholes<'_>, horizon: usize) -> PyResult<RowsByRemaining<'a>> {
        let (pairs, remaining) = (pairs.as_slice()?, remaining.as_slice()?);
        check(pairs.len() == remaining.len(), "the rows")?;
        check(pairs.iter().all(|&pair| (pair as usize) < self.0.pairs()), "the pairs")?;
        check(remaining.iter().all(|&h| h as usize <= horizon), "the remaining steps")?;
        Ok(self.0.rows(pairs, remaining, horizon))
    }
}
