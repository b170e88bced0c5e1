//! `offpolicy._core`, the extension module: it takes Arrow streams, Parquet files and NumPy arrays, and returns partial
//! results, estimates and models. It only converts; the statistics are in `offpolicy-core`.

mod columns;
mod errors;
mod estimators;
mod identity;
mod imported;
mod job;
mod kernel;
mod mdp;
mod outcome;
mod pages;
mod parquet_files;
mod parquet_rows;
mod partial;
mod particles;
mod problems;
mod quantile;
mod runs;
mod runtime;
mod sound_files;
mod spec;
mod spool;
mod stream;
mod table;
mod whole;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::quiet_guarded_panics();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<estimators::EstimatorInfo>()?;
    module.add_function(wrap_pyfunction!(estimators::estimators, module)?)?;
    module.add_class::<spec::Pass>()?;
    module.add_class::<spec::PolicySpec>()?;
    module.add_class::<spec::Spec>()?;
    module.add_class::<job::Job>()?;
    module.add_class::<job::Normalisers>()?;
    module.add_function(wrap_pyfunction!(job::travelled_job, module)?)?;
    module.add_class::<partial::Partial>()?;
    module.add_class::<partial::Merger>()?;
    module.add_class::<whole::Whole>()?;
    module.add_class::<problems::FoundProblem>()?;
    module.add_class::<problems::FoundKind>()?;
    module.add_class::<problems::FoundProblems>()?;
    module.add_class::<outcome::Number>()?;
    module.add_class::<outcome::Outcome>()?;
    module.add_class::<outcome::EstimateOutcome>()?;
    module.add_class::<outcome::DifferenceOutcome>()?;
    module.add_class::<outcome::WeightsOutcome>()?;
    module.add_class::<outcome::Diagnosis>()?;
    module.add_class::<outcome::Leader>()?;
    module.add_function(wrap_pyfunction!(table::scan_table, module)?)?;
    module.add_function(wrap_pyfunction!(stream::scan_stream, module)?)?;
    module.add_function(wrap_pyfunction!(parquet_files::scan_parquet, module)?)?;
    module.add_function(wrap_pyfunction!(parquet_files::parquet_info, module)?)?;
    module.add_function(wrap_pyfunction!(sound_files::check_parquet, module)?)?;
    module.add_function(wrap_pyfunction!(parquet_files::check_unchanged, module)?)?;
    module.add_class::<parquet_rows::Rows>()?;
    module.add_function(wrap_pyfunction!(parquet_rows::parquet_units, module)?)?;
    module.add_function(wrap_pyfunction!(parquet_rows::parquet_rows, module)?)?;
    module.add_function(wrap_pyfunction!(spool::spool, module)?)?;
    module.add_function(wrap_pyfunction!(kernel::kernel_smooth, module)?)?;
    module.add_class::<kernel::KernelModel>()?;
    module.add_class::<mdp::Transitions>()?;
    module.add_class::<mdp::TabularModel>()?;
    module.add_function(wrap_pyfunction!(mdp::grid_cells, module)?)?;
    module.add_function(wrap_pyfunction!(mdp::tabular_lookup, module)?)?;
    module.add_function(wrap_pyfunction!(quantile::student_t_quantile, module)?)?;
    module.add_class::<particles::Marginals>()?;
    module.add_function(wrap_pyfunction!(particles::nearest, module)?)?;
    Ok(())
}
