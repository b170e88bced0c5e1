//! Tabular models for Python, on NumPy arrays. Rows that cannot be used raise `IndexError` with their number, which the
//! Python side turns into a message about the log. Any other misfit is a `ValueError`.

use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadonlyArray3,
    PyReadwriteArray1, PyReadwriteArray3,
};
use offpolicy_core::models::cells::Grid;
use offpolicy_core::models::counts::{BadSteps, CountedSteps, Counts};
use offpolicy_core::models::dp;
use offpolicy_core::models::integers::Integers;
use offpolicy_core::models::lookup::{Found, LoggedSteps, ValueTables, Values};
use offpolicy_core::models::model::Model;
use offpolicy_core::models::optimal::{Goal, NoOptimum, optimum};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{bad_state, shielded};

type Floats<'py> = PyReadonlyArray1<'py, f64>;
type Table<'py> = PyReadonlyArray2<'py, f64>;
type Longs<'py> = PyReadonlyArray1<'py, i64>;
type Flags<'py> = PyReadonlyArray1<'py, bool>;
type Matrix<'py, T> = Bound<'py, PyArray2<T>>;

/// An array of whole numbers of either width.
#[derive(FromPyObject)]
pub enum IntegerArray<'py> {
    /// 32 bits.
    Short(PyReadonlyArray1<'py, i32>),
    /// 64 bits.
    Long(PyReadonlyArray1<'py, i64>),
}

impl IntegerArray<'_> {
    fn get(&self) -> PyResult<Integers<'_>> {
        Ok(match self {
            Self::Short(array) => Integers::Short(array.as_slice()?),
            Self::Long(array) => Integers::Long(array.as_slice()?),
        })
    }
}

fn bad(why: impl Into<String>) -> PyErr {
    PyValueError::new_err(why.into())
}

fn bad_steps(why: BadSteps) -> PyErr {
    match why {
        BadSteps::Lengths => bad("all arrays of a batch must have the same length"),
        BadSteps::Row(row, what, value) => PyIndexError::new_err((row, what, value)),
        BadSteps::Shape => bad("counts merge only with counts over as many states and actions"),
        BadSteps::Size => bad("there must be at least one state and one action, and less than 2**32 pairs of them"),
    }
}

/// Mergeable counts of transitions.
#[pyclass(module = "offpolicy._core")]
pub struct Transitions(Counts);

#[pymethods]
impl Transitions {
    #[new]
    fn new(states: usize, actions: usize) -> PyResult<Self> {
        shielded(|| Counts::new(states, actions).map(Self).map_err(bad_steps))
    }

    /// Counts steps.
    #[expect(clippy::too_many_arguments, reason = "a Python signature")]
    fn add(
        &mut self,
        py: Python<'_>,
        states: Longs<'_>,
        actions: IntegerArray<'_>,
        rewards: Floats<'_>,
        next_states: Longs<'_>,
        terminal: Flags<'_>,
        known: Flags<'_>,
    ) -> PyResult<()> {
        shielded(|| {
            let steps = CountedSteps {
                states: states.as_slice()?,
                actions: actions.get()?,
                rewards: rewards.as_slice()?,
                next_states: next_states.as_slice()?,
                terminal: terminal.as_slice()?,
                known: known.as_slice()?,
            };
            py.detach(|| self.0.add(&steps)).map_err(bad_steps)
        })
    }

    /// Adds the counts of another part of the log.
    fn merge(&mut self, py: Python<'_>, other: PyRef<'_, Self>) -> PyResult<()> {
        shielded(|| {
            let theirs = &other.0;
            py.detach(|| self.0.merge(theirs)).map_err(bad_steps)
        })
    }

    /// Returns N(s, a) as a matrix.
    fn visits<'py>(&self, py: Python<'py>) -> PyResult<Matrix<'py, u64>> {
        shielded(|| PyArray1::from_slice(py, self.0.visits()).reshape([self.0.states(), self.0.actions()]))
    }

    /// Returns the model with R̂ and P̂ by frequencies.
    fn model(&self, py: Python<'_>, unseen_reward: f64) -> PyResult<TabularModel> {
        shielded(|| Ok(TabularModel(py.detach(|| self.0.model(unseen_reward)))))
    }

    /// Encodes the counts as bytes with a version and a checksum.
    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        shielded(|| Ok(PyBytes::new(py, &py.detach(|| self.0.encode()).map_err(bad_state)?)))
    }

    /// Decodes counts.
    #[staticmethod]
    fn decode(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        shielded(|| py.detach(|| Counts::decode(bytes)).map(Self).map_err(bad_state))
    }
}

/// A model R̂ and P̂ with sparse rows.
#[pyclass(frozen, module = "offpolicy._core")]
pub struct TabularModel(Model);

#[pymethods]
impl TabularModel {
    #[new]
    fn new(
        states: usize,
        actions: usize,
        rewards: Floats<'_>,
        start: Longs<'_>,
        next: Longs<'_>,
        probability: Floats<'_>,
    ) -> PyResult<Self> {
        shielded(|| {
            let start = start.as_slice()?.iter().map(|&i| usize::try_from(i)).collect::<Result<Vec<_>, _>>();
            let next = next.as_slice()?.iter().map(|&s| u32::try_from(s)).collect::<Result<Vec<_>, _>>();
            let (start, next) = start.ok().zip(next.ok()).ok_or_else(|| bad("an index is negative or too large"))?;
            let (rewards, probability) = (rewards.as_slice()?.to_vec(), probability.as_slice()?.to_vec());
            Model::new(states, actions, rewards, start, next, probability).map(Self).map_err(bad)
        })
    }

    /// Returns |S|.
    #[getter]
    fn states(&self) -> usize {
        self.0.states()
    }

    /// Returns |A|.
    #[getter]
    fn actions(&self) -> usize {
        self.0.actions()
    }

    /// Returns R̂ as a matrix.
    fn rewards<'py>(&self, py: Python<'py>) -> PyResult<Matrix<'py, f64>> {
        shielded(|| PyArray1::from_slice(py, self.0.rewards()).reshape([self.0.states(), self.0.actions()]))
    }

    /// Returns P̂ as row starts, successors and probabilities.
    #[expect(clippy::type_complexity, reason = "three arrays")]
    fn successors<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>)> {
        shielded(|| {
            let start: Vec<i64> = self.0.start().iter().map(|&i| i as i64).collect();
            let next: Vec<i64> = self.0.next().iter().map(|&s| s.into()).collect();
            Ok((start.into_pyarray(py), next.into_pyarray(py), PyArray1::from_slice(py, self.0.probability())))
        })
    }

    /// Fills `values`, horizon × |S| × policies, with V. A policy is a flat table of π(a|s), or one table for each
    /// step.
    fn evaluate(
        &self,
        py: Python<'_>,
        policies: Vec<Floats<'_>>,
        discount: f64,
        mut values: PyReadwriteArray3<'_, f64>,
    ) -> PyResult<()> {
        shielded(|| {
            let tables = policies.iter().map(Floats::as_slice).collect::<Result<Vec<_>, _>>()?;
            let horizon = values.as_array().shape()[0];
            let values = values.as_slice_mut()?;
            let done = py.detach(|| dp::evaluate(&self.0, &tables, horizon, discount, values));
            done.then_some(()).ok_or_else(|| bad(format!("1 to {} policies, each a table or one a step", dp::LANES)))
        })
    }

    /// Returns Q of all pairs at step t, given V as horizon × |S|.
    fn q_table<'py>(&self, py: Python<'py>, v: Table<'py>, t: usize, discount: f64) -> PyResult<Matrix<'py, f64>> {
        shielded(|| {
            let (horizon, states) = v.as_array().dim();
            if states != self.0.states() || t >= horizon {
                return Err(bad(format!("V has no step {t} over {} states", self.0.states())));
            }
            let values = Values { model: &self.0, v: v.as_slice()?, lanes: 1, lane: 0, discount };
            let q = py.detach(|| values.q_table(t));
            q.into_pyarray(py).reshape([self.0.states(), self.0.actions()])
        })
    }

    /// Returns the best stationary policy, its values, and the number of sweeps they took.
    #[expect(clippy::type_complexity, reason = "two arrays and a number")]
    fn optimum<'py>(
        &self,
        py: Python<'py>,
        discount: f64,
        maximize: bool,
        legal: Option<Flags<'py>>,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>, usize)> {
        shielded(|| {
            let goal = if maximize { Goal::Maximize } else { Goal::Minimize };
            let legal = legal.as_ref().map(Flags::as_slice).transpose()?;
            let best = py.detach(|| optimum(&self.0, discount, goal, legal)).map_err(|why| match why {
                NoOptimum::Discount => bad(format!("discount must be at least 0 and below 1, not {discount}")),
                NoOptimum::Mask => bad("legal must have a value for each state and action"),
                NoOptimum::NoAction(state) => bad(format!("state {state} has no legal action")),
            })?;
            Ok((best.actions.into_pyarray(py), best.values.into_pyarray(py), best.sweeps))
        })
    }
}

/// Fills `cells` with the cell of each row, given one column for each coordinate.
#[pyfunction]
pub fn grid_cells(
    py: Python<'_>,
    columns: Vec<Floats<'_>>,
    size: Vec<u32>,
    low: Vec<i32>,
    scale: Vec<f64>,
    threads: usize,
    mut cells: PyReadwriteArray1<'_, i64>,
) -> PyResult<()> {
    shielded(|| {
        let grid = Grid::new(&size, &low, &scale).ok_or_else(|| bad("no grid has these sizes, lows and scales"))?;
        let columns = columns.iter().map(Floats::as_slice).collect::<Result<Vec<_>, _>>()?;
        let cells = cells.as_slice_mut()?;
        if columns.len() != grid.dimensions() || columns.iter().any(|column| column.len() != cells.len()) {
            return Err(bad(format!(
                "a grid of {} coordinates needs as many columns, all of one length",
                grid.dimensions()
            )));
        }
        py.detach(|| grid.index(&columns, cells, threads))
            .map_err(|outside| PyIndexError::new_err((outside.row, outside.coordinate)))
    })
}

/// The columns to fill: π(a|s), Q̂ and V̂ of each policy, and R̂.
type LookedUp<'py> = (
    Option<PyReadwriteArray1<'py, f64>>,
    Vec<PyReadwriteArray1<'py, f64>>,
    Vec<PyReadwriteArray1<'py, f64>>,
    Option<PyReadwriteArray1<'py, f64>>,
);

/// Fills the given columns with π(a|s), Q̂, V̂ and R̂ of each row, as far as there are tables for them.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "a Python signature")]
pub fn tabular_lookup<'py>(
    py: Python<'py>,
    cells: Longs<'py>,
    actions: IntegerArray<'py>,
    steps: IntegerArray<'py>,
    first_step: i64,
    shape: (usize, usize, usize),
    policy: Option<Floats<'py>>,
    values: Option<(PyRef<'py, TabularModel>, PyReadonlyArray3<'py, f64>, usize, f64)>,
    threads: usize,
    columns: LookedUp<'py>,
) -> PyResult<()> {
    shielded(|| {
        let (horizon, states, n_actions) = shape;
        let rows = LoggedSteps { cells: cells.as_slice()?, actions: actions.get()?, steps: steps.get()?, first_step };
        let n = rows.cells.len();
        let pairs = states.saturating_mul(n_actions);
        let policy = policy.as_ref().map(Floats::as_slice).transpose()?;
        let (mut p, mut q, mut v, mut r) = columns;
        let found = Found {
            target_prob: p.as_mut().map(PyReadwriteArray1::as_slice_mut).transpose()?,
            q_hat: q.iter_mut().map(PyReadwriteArray1::as_slice_mut).collect::<Result<_, _>>()?,
            v_hat: v.iter_mut().map(PyReadwriteArray1::as_slice_mut).collect::<Result<_, _>>()?,
            r_hat: r.as_mut().map(PyReadwriteArray1::as_slice_mut).transpose()?,
        };
        let some = found.target_prob.iter().chain(&found.q_hat).chain(&found.v_hat).chain(&found.r_hat);
        if some.map(|column| column.len()).chain([rows.actions.len(), rows.steps.len()]).any(|len| len != n) {
            return Err(bad("all arrays of a batch must have the same length"));
        }
        if policy.is_some_and(|table| table.len() != pairs && Some(table.len()) != pairs.checked_mul(horizon)) {
            return Err(bad("a policy must be a table of states × actions, or one for each step"));
        }
        let values = match &values {
            None => None,
            Some((model, v, lane, discount)) => {
                let (model, lanes) = (&model.0, v.as_array().dim().2);
                let fits = (model.states(), model.actions()) == (states, n_actions);
                if !fits
                    || v.as_array().dim() != (horizon, states, lanes)
                    || lane + found.q_hat.len().max(found.v_hat.len()).max(1) > lanes
                {
                    return Err(bad("the values belong to another model or horizon"));
                }
                Some(Values { model, v: v.as_slice()?, lanes, lane: *lane, discount: *discount })
            }
        };
        let tables = ValueTables { states, actions: n_actions, horizon, policy, values };
        py.detach(|| tables.look_up(&rows, found, threads)).map_err(PyIndexError::new_err)
    })
}
