//! Counts for the measures, for Python.

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::edges::EdgeSource;
use super::results::{Part, WithParts, with_parts};
use super::run::{Options, detached};
use crate::measure;
use crate::measure::{Cut, Replicas, SparseMatrix};

/// Counts of a vertex partition: per part `internal`, `cut`, `volume`, `halo`; `matrix` (k, k) or `None` for many
/// parts; `loops` and `checksum` of the graph.
#[pyfunction]
fn count_vertex_partition<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: PyReadonlyArray1<'py, i32>,
    k: u32,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let parts = assignment.as_slice()?;
    let (cut, halo) = detached(py, &options, |run| {
        Ok((
            measure::cut(edges.stream(), parts, k, run)?,
            measure::halo_sizes(edges.stream(), parts, k, run)?,
        ))
    })?;
    let fields = PyDict::new(py);
    fields.set_item("volume", signed(py, &cut.volume()))?;
    fields.set_item("halo", signed(py, &halo))?;
    let Cut { internal, cut, matrix, loops, checksum } = cut;
    fields.set_item("internal", signed(py, &internal))?;
    fields.set_item("cut", signed(py, &cut))?;
    let matrix = matrix.map(|matrix| signed(py, &matrix).reshape([k as usize, k as usize])).transpose()?;
    fields.set_item("matrix", matrix)?;
    fields.set_item("loops", loops)?;
    fields.set_item("checksum", checksum)?;
    Ok(fields)
}

/// Counts of an edge partition: `replicas` per part, `touched` vertices, `loops` and `checksum` of the graph.
#[pyfunction]
fn count_edge_partition<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: &Bound<'py, PyUntypedArray>,
    k: u32,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let counted = with_parts(assignment, CountReplicas { py, edges, k, options: &options })?;
    let fields = PyDict::new(py);
    fields.set_item("replicas", signed(py, &counted.sizes))?;
    fields.set_item("touched", counted.touched)?;
    fields.set_item("loops", counted.loops)?;
    fields.set_item("checksum", counted.checksum)?;
    Ok(fields)
}

struct CountReplicas<'py, 'a> {
    py: Python<'py>,
    edges: &'a EdgeSource,
    k: u32,
    options: &'a Options,
}

impl WithParts for CountReplicas<'_, '_> {
    type Output = Replicas;
    fn call<T: Part>(self, _: &str, parts: &[T]) -> PyResult<Replicas> {
        detached(self.py, self.options, |run| measure::replicas(self.edges.stream(), parts, self.k, run))
    }
}

/// Counts as int64, which everything in Python computes with.
fn signed<'py>(py: Python<'py>, counts: &[u64]) -> Bound<'py, PyArray1<i64>> {
    PyArray1::from_iter(py, counts.iter().map(|&count| count as i64))
}

/// The cut matrix of many parts, as three columns: part, other part, records.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "three columns")]
fn sparse_cut_matrix<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: PyReadonlyArray1<'py, i32>,
    k: u32,
    options: Options,
) -> PyResult<(Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i64>>)> {
    let parts = assignment.as_slice()?;
    let SparseMatrix { first, second, records } =
        detached(py, &options, |run| measure::sparse_matrix(edges.stream(), parts, k, run))?;
    let ids = |parts: Vec<u32>| PyArray1::from_iter(py, parts.into_iter().map(|part| part as i32));
    Ok((ids(first), ids(second), signed(py, &records)))
}

/// Vertices of each part among `ids`.
#[pyfunction]
fn split_counts<'py>(
    py: Python<'py>,
    assignment: PyReadonlyArray1<'py, i32>,
    ids: PyReadonlyArray1<'py, i64>,
    k: u32,
    options: Options,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (parts, ids) = (assignment.as_slice()?, ids.as_slice()?);
    let counts = detached(py, &options, |run| measure::split_counts(parts, ids, k, run))?;
    Ok(signed(py, &counts))
}

/// Distance of each part's labels to the graph's; NaN for parts without labels.
#[pyfunction]
fn label_skew<'py>(
    py: Python<'py>,
    assignment: PyReadonlyArray1<'py, i32>,
    labels: PyReadonlyArray1<'py, i64>,
    k: u32,
    options: Options,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (parts, labels) = (assignment.as_slice()?, labels.as_slice()?);
    let skew = detached(py, &options, |run| measure::label_skew(parts, labels, k, run))?;
    Ok(PyArray1::from_vec(py, skew))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(count_vertex_partition, module)?)?;
    module.add_function(wrap_pyfunction!(count_edge_partition, module)?)?;
    module.add_function(wrap_pyfunction!(sparse_cut_matrix, module)?)?;
    module.add_function(wrap_pyfunction!(split_counts, module)?)?;
    module.add_function(wrap_pyfunction!(label_skew, module)?)
}
