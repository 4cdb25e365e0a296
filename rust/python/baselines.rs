//! The baselines for Python.

use std::path::PathBuf;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::edges::EdgeSource;
use super::partitions::{edge_partition, vertex_partition};
use super::results::copied;
use super::run::{Options, detached};
use crate::algorithms::dbh::Dbh;
use crate::algorithms::random::{HashVertices, RandomEdges, RandomVertices};
use crate::algorithms::two_phase::{Scoring, TwoPhase};
use crate::algorithms::vertex_streams::{Rule, VertexStream};
use crate::capacity::BalanceOn;
use crate::partition::{AdjacencyPartitioner, EdgePartitioner, VertexPartitioner};

/// See `fastpart.random`.
#[pyfunction]
#[pyo3(signature = (edges, *, k, seed, balance_on, balance_on_ratio, options))]
fn random_vertices<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    seed: u64,
    balance_on: Option<PyReadonlyArray1<'py, u32>>,
    balance_on_ratio: f64,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let weights = balance_on.map(|weights| copied(&weights, "balance_on")).transpose()?;
    let partition = detached(py, &options, |run| {
        let balance_on = weights.map(|weights| BalanceOn::new(weights, balance_on_ratio)).transpose()?;
        RandomVertices { k, seed, balance_on }.partition(edges.stream(), run)
    })?;
    vertex_partition(py, partition)
}

/// See `fastpart.hash`.
#[pyfunction]
#[pyo3(signature = (edges, *, k, seed, options))]
fn hash_vertices<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    seed: u64,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let partition = detached(py, &options, |run| HashVertices { k, seed }.partition(edges.stream(), run))?;
    vertex_partition(py, partition)
}

/// See `fastpart.random`.
#[pyfunction]
#[pyo3(signature = (edges, *, k, seed, out, options))]
fn random_edges<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    seed: u64,
    out: Option<PathBuf>,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let partition =
        detached(py, &options, |run| RandomEdges { k, seed }.partition(edges.stream(), out.as_deref(), run))?;
    edge_partition(py, partition)
}

/// See `fastpart.ldg` and `fastpart.fennel`.
#[pyfunction]
#[pyo3(signature = (edges, *, rule, symmetric, k, balance, balance_on, balance_on_ratio, passes, batch, options))]
#[expect(clippy::too_many_arguments, reason = "one per parameter of the algorithm")]
fn vertex_stream<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    rule: &str,
    symmetric: bool,
    k: u32,
    balance: f64,
    balance_on: Option<PyReadonlyArray1<'py, u32>>,
    balance_on_ratio: f64,
    passes: u32,
    batch: Option<u64>,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let weights = balance_on.map(|weights| copied(&weights, "balance_on")).transpose()?;
    let rule = if rule == "ldg" { Rule::Ldg } else { Rule::Fennel };
    let partition = detached(py, &options, |run| {
        let balance_on = weights.map(|weights| BalanceOn::new(weights, balance_on_ratio)).transpose()?;
        let stream = VertexStream { rule, k, balance, passes, batch, balance_on };
        stream.validate(edges.stream().num_vertices())?;
        stream.partition(&*edges.csr(symmetric, run)?, run)
    })?;
    vertex_partition(py, partition)
}

/// See `fastpart.dbh`.
#[pyfunction]
#[pyo3(signature = (edges, *, k, seed, out, options))]
fn dbh<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    seed: u64,
    out: Option<PathBuf>,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let partition =
        detached(py, &options, |run| Dbh { k, seed }.partition(edges.stream(), out.as_deref(), run))?;
    edge_partition(py, partition)
}

/// See `fastpart.two_phase`.
#[pyfunction]
#[pyo3(signature = (edges, *, k, balance, scoring, seed, batch, out, options))]
#[expect(clippy::too_many_arguments, reason = "one per parameter of the algorithm")]
fn two_phase<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    balance: f64,
    scoring: &str,
    seed: u64,
    batch: Option<u64>,
    out: Option<PathBuf>,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let scoring = if scoring == "hdrf" { Scoring::Hdrf } else { Scoring::Linear };
    let two_phase = TwoPhase { k, balance, scoring, seed, batch };
    let partition = detached(py, &options, |run| two_phase.partition(edges.stream(), out.as_deref(), run))?;
    edge_partition(py, partition)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(random_vertices, module)?)?;
    module.add_function(wrap_pyfunction!(hash_vertices, module)?)?;
    module.add_function(wrap_pyfunction!(random_edges, module)?)?;
    module.add_function(wrap_pyfunction!(vertex_stream, module)?)?;
    module.add_function(wrap_pyfunction!(dbh, module)?)?;
    module.add_function(wrap_pyfunction!(two_phase, module)?)
}
