//! The registry of partitioners for Python, and the one call that runs them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::edges::EdgeSource;
use super::errors::raise;
use super::partitions::result;
use super::run::{Options, detached};
use super::values::{from_python, to_python};
use crate::algorithms::multilevel::{Costs, Multilevel, refining};
use crate::algorithms::{PARTITIONERS, SUCCESSORS};
use crate::base::{Error, Meter, Result, Run};
use crate::edges::EdgeStream;
use crate::graph::Csr;
use crate::partition::parameters::{self, Kind, Values};
use crate::partition::{Entry, Input, Of, Shape, Value};
use crate::parts::Kind as RecordKind;

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

/// What begins with a vertex partition.
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

fn field(py: Python<'_>, known: parameters::Field) -> PyResult<Field> {
    let parameters::Field { name, doc, kind, default, only } = known;
    let (kind, words, range) = match kind {
        Kind::Ratio => ("ratio", vec![], None),
        Kind::Number => ("number", vec![], None),
        Kind::Integer(low, high) => ("integer", vec![], Some((low, high))),
        Kind::Flag => ("flag", vec![], None),
        Kind::Choice(words) => ("choice", words.to_vec(), None),
        Kind::Integers => ("integers", vec![], None),
        Kind::Numbers => ("numbers", vec![], None),
        Kind::Seed => ("seed", vec![], None),
        Kind::Weights => ("weights", vec![], None),
        Kind::SeveralWeights => ("several_weights", vec![], None),
        Kind::Splits => ("splits", vec![], None),
        Kind::Degrees => ("degrees", vec![], None),
        Kind::Partition => ("partition", vec![], None),
        Kind::Chunk => ("chunk", vec![], None),
        Kind::NumberOr(word) => ("number_or", vec![word], None),
        Kind::Folder => ("folder", vec![], None),
    };
    let default = match default {
        Value::List(items) => {
            let items = items.into_iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyTuple::new(py, items)?.into_any().unbind()
        }
        one => to_python(py, one)?,
    };
    Ok(Field { name, doc, kind, default, words, range, only: only.map(Of::name) })
}

/// The graph of a call.
struct Call<'a> {
    source: &'a EdgeSource,
    weighted: bool,
    kind: RecordKind,
    out: Option<PathBuf>,
}

impl Input for Call<'_> {
    fn edges(&self) -> &dyn EdgeStream {
        self.source.stream()
    }

    fn is_symmetric(&self) -> bool {
        self.kind == RecordKind::Symmetric
    }

    fn is_directed(&self) -> bool {
        self.kind == RecordKind::Directed
    }

    fn is_weighted(&self) -> bool {
        self.weighted && self.source.weights().is_some()
    }

    fn adjacency(&self, run: &Run) -> Result<Arc<Csr>> {
        self.source.csr(self.weighted, self.is_symmetric(), run)
    }

    fn out(&self) -> Option<&Path> {
        self.out.as_deref()
    }
}

/// Runs the partitioner called `name`. `of` is "vertices" or "edges".
#[pyfunction]
#[pyo3(signature = (name, edges, values, *, k, of, directedness, out, options))]
#[expect(clippy::too_many_arguments, reason = "the whole call")]
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
    let fields = (entry.fields)();
    let of = if of == Of::Edges.name() { Of::Edges } else { Of::Vertices };
    let mut given = Values::new(k, of, &fields);
    for (name, item) in values {
        given.set(&name.extract::<String>()?, from_python(&item)?);
    }
    given.refuse_other_of(of, &fields).map_err(|error| raise(py, error))?;
    let kind = RecordKind::named(directedness).map_err(|error| raise(py, error))?;
    let call = Call { source: edges, weighted: entry.reads_weights, kind, out };
    let meter = Meter::start();
    let outcome = detached(py, &options, |run| (entry.solve)(given, &call, run))?;
    result(py, outcome, meter.usage())
}

/// Bytes that each partitioner, and a refinement, would take beside the adjacency for `k` parts, by name, and those of the
/// adjacency.
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
    let shape = Shape { n: stream.num_vertices(), m: stream.num_edges(), symmetric };
    let (adjacency, threads) =
        detached(py, &options, |run| Ok((Csr::memory(stream, weighted, symmetric, run), run.threads())))?;
    estimates.set_item("adjacency", adjacency)?;
    for entry in PARTITIONERS {
        let values = Values::new(k, entry.of[0], &(entry.fields)());
        let bytes = (entry.memory)(values, &shape, threads).map_err(|error| raise(py, error))?;
        estimates.set_item(entry.name, bytes)?;
    }
    estimates.set_item("refine", refining::memory(&Multilevel::new(k), &shape))?;
    Ok(estimates)
}

/// What a multilevel partition costs with each memory limit.
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

/// The plans of the multilevel partitioner for `k` parts, by memory limit, the lowest first.
#[pyfunction]
pub fn multilevel_plans(
    py: Python<'_>,
    edges: &EdgeSource,
    k: u32,
    symmetric: bool,
    options: Options,
) -> PyResult<Vec<PlanCosts>> {
    let kind = if symmetric { RecordKind::Symmetric } else { RecordKind::Undirected };
    let call = Call { source: edges, weighted: true, kind, out: None };
    let costs = detached(py, &options, |run| Ok(Multilevel::new(k).costs(&call, run)))?;
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
