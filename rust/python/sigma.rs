//! SIGMA for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::edges::EdgeSource;
use super::partitions::vertex_partition;
use super::run::{Options, detached};
use crate::algorithms::sigma::vertex::{Objective, SigmaVertex};
use crate::partition::AdjacencyPartitioner;

/// The vertex mode; see `fastpart.sigma`.
#[pyfunction]
#[pyo3(signature = (edges, *, symmetric, k, balance, volume_balance, objective, tau, gamma, batch, strict, options))]
#[expect(clippy::too_many_arguments, reason = "one per parameter of the algorithm")]
fn sigma_vertex<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    symmetric: bool,
    k: u32,
    balance: f64,
    volume_balance: f64,
    objective: &str,
    tau: f64,
    gamma: f64,
    batch: Option<u64>,
    strict: bool,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let objective = if objective == "cut" { Objective::Cut } else { Objective::Multi };
    let sigma = SigmaVertex { k, balance, volume_balance, objective, tau, gamma, batch, repair: strict };
    let partition = detached(py, &options, |run| {
        sigma.validate()?;
        sigma.partition(&*edges.csr(symmetric, run)?, run)
    })?;
    vertex_partition(py, partition)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sigma_vertex, module)?)
}
