//! The registry of partitioners for Python, and the one call that runs them.

use std::collections::HashMap;
use std::iter;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::edges::EdgeSource;
use crate::errors::raise;
use crate::partitions::results::result;
use crate::results::View;
use crate::run::{Options, detached};
use crate::values::{from_python, to_python};
use fastpart::internals::algorithms::multilevel::refine::Refine;
use fastpart::internals::algorithms::multilevel::{self, Costs, Goal, Multilevel};
use fastpart::internals::algorithms::{PARTITIONERS, SUCCESSORS};
use fastpart::internals::base::{Error, Meter, Result, Run};
use fastpart::internals::edges::Directedness;
use fastpart::internals::graph::Csr;
use fastpart::internals::partition::{Entry, Field as Known, Given, Input, Of, Shape, Value};

/// A parameter of a partitioner.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct Field {
    name: &'static str,
    doc: &'static str,
    kind: &'static str,
    default: Py<PyAny>,
    /// The words that a choice is among.
    words: Vec<&'static str>,
    /// The bounds of an integer.
    range: Option<(u64, u64)>,
    /// The only value of `of` it belongs to.
    only: Option<&'static str>,
}

/// A partitioner.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct Algorithm {
    name: &'static str,
    of: Vec<&'static str>,
    doc: &'static str,
    /// Whether weights of records count.
    reads_weights: bool,
    variants: Vec<(&'static str, &'static str)>,
    fields: Vec<Py<Field>>,
}

/// All partitioners, in the order of the registry.
#[pyfunction]
pub fn algorithms(py: Python<'_>) -> PyResult<Vec<Algorithm>> {
    PARTITIONERS.iter().map(|entry| algorithm(py, entry)).collect()
}

/// Algorithms that begin with a vertex partition.
#[pyfunction]
pub fn successors(py: Python<'_>) -> PyResult<Vec<Algorithm>> {
    SUCCESSORS.iter().map(|entry| algorithm(py, entry)).collect()
}

fn algorithm(py: Python<'_>, entry: &Entry) -> PyResult<Algorithm> {
    let fields = (entry.fields)().into_iter().map(|known| Py::new(py, field(py, known)?));
    Ok(Algorithm {
        name: entry.name,
        of: entry.of.iter().map(|of| of.name()).collect(),
        doc: entry.doc,
        reads_weights: entry.reads_weights,
        variants: entry.variants.to_vec(),
        fields: fields.collect::<PyResult<_>>()?,
    })
}

fn field(py: Python<'_>, known: Known) -> PyResult<Field> {
    let Known { name, doc, kind, words, range, default, only } = known;
    let default = match default {
        Value::List(items) => {
            let items = items.into_iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, items)?.into_any().unbind()
        }
        one => to_python(py, one)?,
    };
    Ok(Field { name, doc, kind, default, words: words.to_vec(), range, only: only.map(Of::name) })
}

/// Runs the partitioner called `name`. `of` is "vertices" or "edges".
#[pyfunction]
#[pyo3(signature = (name, edges, values, *, k, of, directedness, out, options))]
pub fn partition<'py>(
    py: Python<'py>,
    name: &str,
    edges: &EdgeSource,
    values: &Bound<'py, PyDict>,
    k: u32,
    of: &str,
    directedness: &str,
    out: Option<PathBuf>,
    options: Options,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(entry) = PARTITIONERS.iter().chain(SUCCESSORS).find(|entry| entry.name == name) else {
        return Err(raise(py, Error::parameter("algorithm", format!("unknown {name:?}"))));
    };
    let of = Of::named(of).unwrap_or(entry.of[0]);
    let values = values.iter().map(|(name, item)| Ok((name.extract()?, from_python(&item)?)));
    let given = Given { k, of, values: values.collect::<PyResult<_>>()? };
    let directedness = Directedness::named(directedness).map_err(|error| raise(py, error))?;
    let input = Input { out: out.as_deref(), ..edges.input(entry.reads_weights, directedness) };
    let meter = Meter::start();
    let outcome = detached(py, &options, |run| (entry.partition)(given, &input, run))?;
    result(py, outcome, meter.usage())
}

/// Bytes that each partitioner, and a refinement, would take beside the adjacency for `k` parts, by name, and
/// bytes of the adjacency.
#[pyfunction]
pub fn memory_estimates<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    symmetric: bool,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let estimates = PyDict::new(py);
    let (stream, weighted) = (edges.stream(), edges.weights().is_some());
    let shape = Shape { n: stream.num_vertices(), m: stream.num_edges(), symmetric, in_file: false };
    let needs = detached(py, &options, |run| {
        let adjacency = ("adjacency", Csr::memory(stream, weighted, symmetric, run));
        let refine = [Entry::of::<Refine>()];
        let each = PARTITIONERS.iter().chain(&refine).map(|entry| {
            let given = Given { k, of: entry.of[0], values: HashMap::new() };
            Ok((entry.name, (entry.memory)(given, &shape, run)?.beside))
        });
        iter::once(Ok(adjacency)).chain(each).collect::<Result<Vec<_>>>()
    })?;
    needs.into_iter().try_for_each(|(name, bytes)| estimates.set_item(name, bytes))?;
    Ok(estimates)
}

/// The costs of a multilevel partition with some memory limit.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct PlanCosts {
    /// The least limit.
    memory: u64,
    path: &'static str,
    sample: f64,
    /// Whether the adjacency lies in files.
    outside: bool,
    files: u64,
    read: u64,
    written: u64,
    /// With all in the page cache.
    seconds: f64,
}

/// The multilevel partitioner with the defaults for `k` parts, and with a bound on volume if one is given.
pub fn bounded(k: u32, volume_balance: Option<f64>) -> Multilevel {
    let bounds = volume_balance.map(multilevel::Bound::Volume).into_iter().collect();
    Goal { bounds, ..Goal::new(k) }.into()
}

/// The plans of the multilevel partitioner for `k` parts, with or without a bound on volume, by memory limit,
/// the lowest first. The degrees, one per vertex, say whether hubs make it take longer.
#[pyfunction]
pub fn multilevel_plans(
    py: Python<'_>,
    edges: &EdgeSource,
    k: u32,
    symmetric: bool,
    volume_balance: Option<f64>,
    degrees: Option<View<'_, u32>>,
    options: Options,
) -> PyResult<Vec<PlanCosts>> {
    let directedness = if symmetric { Directedness::Symmetric } else { Directedness::Undirected };
    let multilevel = bounded(k, volume_balance);
    let degrees = degrees.as_ref().map(|degrees| degrees.as_slice()).transpose()?;
    let costs = |run: &Run| {
        let hubs = degrees.map(|degrees| multilevel.hubs(degrees)).transpose()?.unwrap_or_default();
        Ok(multilevel.costs(&edges.input(true, directedness), hubs, run))
    };
    let costs = detached(py, &options, costs)?;
    let row = |costs: Costs| PlanCosts {
        memory: costs.memory,
        path: costs.plan.path.name(),
        sample: costs.plan.sample,
        outside: costs.outside,
        files: costs.files,
        read: costs.read,
        written: costs.written,
        seconds: costs.seconds,
    };
    Ok(costs.into_iter().map(row).collect())
}
