//! HDRF and the greedy rule for Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::edges::EdgeSource;
use super::partitions::edge_partition;
use super::run::{Options, detached};
use crate::baselines::greedy::Greedy;
use crate::baselines::hdrf::Hdrf;
use crate::partition::EdgePartitioner;

/// See `fastpart.hdrf`.
#[pyfunction]
#[pyo3(signature = (edges, *, k, balance, lambda_, out, options))]
fn hdrf<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    balance: f64,
    lambda_: f64,
    out: Option<PathBuf>,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let hdrf = Hdrf { k, balance, lambda: lambda_ };
    edge_partition(py, detached(py, &options, |run| hdrf.partition(edges.stream(), out.as_deref(), run))?)
}

/// See `fastpart.greedy`.
#[pyfunction]
#[pyo3(signature = (edges, *, k, balance, out, options))]
fn greedy<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    balance: f64,
    out: Option<PathBuf>,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let greedy = Greedy { k, balance };
    edge_partition(py, detached(py, &options, |run| greedy.partition(edges.stream(), out.as_deref(), run))?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(hdrf, module)?)?;
    module.add_function(wrap_pyfunction!(greedy, module)?)
}
