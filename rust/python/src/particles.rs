//! Factored transitions and their particles for Python, on NumPy arrays.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use offpolicy_core::models::particles;
use pyo3::prelude::*;

use crate::errors::{Failure, shielded};

type Numbers<'py> = PyReadonlyArray1<'py, u32>;

/// P̂ as one table per feature, for `offpolicy.models.fitters.marginals`.
#[pyclass(frozen)]
pub struct Marginals(particles::Marginals);

#[pymethods]
impl Marginals {
    #[new]
    fn new(
        actions: usize,
        sizes: Vec<usize>,
        moves: Vec<(Numbers<'_>, Numbers<'_>, Numbers<'_>, PyReadonlyArray1<'_, f64>)>,
    ) -> PyResult<Self> {
        shielded(|| {
            if sizes.len() != moves.len() {
                return Err(Failure::Input("sizes and moves must be of one length".into()).into());
            }
            let mut tables = Vec::with_capacity(sizes.len());
            for (&size, (action, x, y, count)) in sizes.iter().zip(&moves) {
                let (action, x, y, count) = (slice(action)?, slice(x)?, slice(y)?, slice(count)?);
                tables.push(particles::Moves { size, action, x, y, count });
            }
            let made = particles::Marginals::new(actions, &tables).map_err(Failure::Input)?;
            if !made.pairs_can_be_numbered() {
                return Err(Failure::Input(
                    "there are more states and actions than 2^63; use fewer features, or round them".into(),
                )
                .into());
            }
            Ok(Self(made))
        })
    }

    /// Returns the next states at given quantiles.
    fn next<'py>(
        &self,
        py: Python<'py>,
        states: PyReadonlyArray2<'py, u32>,
        actions: Numbers<'py>,
        quantiles: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<u32>>> {
        shielded(|| {
            let (s, a, u) = (rows(&states)?, slice(&actions)?, rows(&quantiles)?);
            let next = py.detach(|| self.0.next(s, a, u)).map_err(Failure::Input)?;
            Ok(matrix(py, next, self.0.features())?)
        })
    }

    /// Returns Σ_y P̂_i(y|x, a) f(y) for every action and value.
    fn expected<'py>(
        &self,
        py: Python<'py>,
        feature: usize,
        f: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        shielded(|| {
            let f = slice(&f)?;
            Ok(matrix(py, py.detach(|| self.0.expected(feature, f)).map_err(Failure::Input)?, f.len())?)
        })
    }

    /// Returns the distinct states among the particles of pairs, and the (pairs, particles) index into them.
    #[allow(clippy::type_complexity)]
    fn particles<'py>(
        &self,
        py: Python<'py>,
        states: PyReadonlyArray2<'py, u32>,
        actions: Numbers<'py>,
        count: usize,
        seed: u64,
    ) -> PyResult<(Bound<'py, PyArray2<u32>>, Bound<'py, PyArray2<u32>>)> {
        shielded(|| {
            let (s, a) = (rows(&states)?, slice(&actions)?);
            let found = py.detach(|| self.0.particles(s, a, count, seed)).map_err(Failure::Input)?;
            Ok((matrix(py, found.distinct, self.0.features())?, matrix(py, found.index, count)?))
        })
    }
}

/// Returns for each point the nearest of some others by the sum of absolute differences.
#[pyfunction]
pub fn nearest<'py>(
    py: Python<'py>,
    points: PyReadonlyArray2<'py, f32>,
    among: PyReadonlyArray2<'py, f32>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    shielded(|| {
        let k = among.shape()[1];
        if points.shape()[1] != k || among.shape()[0] == 0 {
            return Err(Failure::Input(format!(
                "points and the others must have {k} columns, and there must be others"
            ))
            .into());
        }
        let (p, q) = (rows(&points)?, rows(&among)?);
        Ok(py.detach(|| particles::nearest(p, q, k)).into_pyarray(py))
    })
}

fn slice<'a, T: numpy::Element>(array: &'a PyReadonlyArray1<'_, T>) -> Result<&'a [T], Failure> {
    array.as_slice().map_err(|why| Failure::Input(why.to_string()))
}

fn rows<'a, T: numpy::Element>(array: &'a PyReadonlyArray2<'_, T>) -> Result<&'a [T], Failure> {
    array.as_slice().map_err(|why| Failure::Input(why.to_string()))
}

fn matrix<T: numpy::Element>(py: Python<'_>, flat: Vec<T>, columns: usize) -> Result<Bound<'_, PyArray2<T>>, Failure> {
    let shape = (flat.len() / columns.max(1), columns);
    let array = Array2::from_shape_vec(shape, flat).map_err(|why| Failure::Internal(why.to_string()))?;
    Ok(array.into_pyarray(py))
}
