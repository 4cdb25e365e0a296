//! What streams records, for Python: HDRF, the greedy rule, SIGMA's edge mode.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::edges::EdgeSource;
use super::partitions::edge_partition;
use super::run::{Options, detached};
use crate::algorithms::edge_streams::greedy::Greedy;
use crate::algorithms::edge_streams::hdrf::Hdrf;
use crate::algorithms::sigma::edge::SigmaEdge;
use crate::partition::EdgePartitioner;

/// See `fastpart.hdrf`.
#[pyfunction]
#[pyo3(signature = (edges, *, k, balance, balance_weight, out, options))]
fn hdrf<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    balance: f64,
    balance_weight: f64,
    out: Option<PathBuf>,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let hdrf = Hdrf { k, balance, lambda: balance_weight };
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

/// The edge mode; see `fastpart.sigma`.
#[pyfunction]
#[pyo3(signature = (edges, *, symmetric, k, balance, balance_weight, bands, out, options))]
#[expect(clippy::too_many_arguments, reason = "one per parameter of the algorithm")]
fn sigma_edge<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    symmetric: bool,
    k: u32,
    balance: f64,
    balance_weight: f64,
    bands: u32,
    out: Option<PathBuf>,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let sigma = SigmaEdge { k, balance, lambda: balance_weight, bands };
    let partition = detached(py, &options, |run| {
        sigma.validate()?;
        sigma.partition(edges.stream(), &*edges.csr(symmetric, run)?, out.as_deref(), run)
    })?;
    edge_partition(py, partition)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(hdrf, module)?)?;
    module.add_function(wrap_pyfunction!(greedy, module)?)?;
    module.add_function(wrap_pyfunction!(sigma_edge, module)?)
}
