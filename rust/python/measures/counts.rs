//! Counts for the measures, for Python.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArray};
use pyo3::prelude::*;

use crate::edges::EdgeSource;
use crate::edges::Identity;
use crate::results::{Array, View, settled, with_parts};
use crate::run::{Options, detached};
use fastpart::internals::measure;
use fastpart::internals::measure::{Cut, Replicas, SparseMatrix, WeightedCut};

/// Records inside the parts and between them. The matrix (k, k) is `None` for many parts.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct CutCounts {
    internal: Py<PyArray1<i64>>,
    cut: Py<PyArray1<i64>>,
    volume: Py<PyArray1<i64>>,
    matrix: Option<Py<PyArray2<i64>>>,
    graph: Identity,
}

/// Counts of an edge partition: replicas per part, and vertices that any record touches.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct EdgeCounts {
    replicas: Py<PyArray1<i64>>,
    touched: u64,
    /// For each type its replicas per part, and its vertices that any record touches.
    types: Vec<(Py<PyArray1<i64>>, u64)>,
    graph: Identity,
}

/// Counts the records inside the parts of a vertex partition and between them.
#[pyfunction]
pub fn cut_counts<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: View<'py, i32>,
    k: u32,
    options: Options,
) -> PyResult<CutCounts> {
    let parts = &*settled(&assignment, "parts")?;
    let counts = detached(py, &options, |run| measure::cut(edges.stream(), parts, k, run))?;
    let volume = counts.volume();
    let Cut { internal, cut, matrix, loops, checksum } = counts;
    let shape = [k as usize, k as usize];
    let matrix = matrix.map(|matrix| signed(py, &matrix).reshape(shape)).transpose()?;
    Ok(CutCounts {
        internal: signed(py, &internal).unbind(),
        cut: signed(py, &cut).unbind(),
        volume: signed(py, &volume).unbind(),
        matrix: matrix.map(Bound::unbind),
        graph: identity(edges, loops, checksum),
    })
}

/// The halo of each part in a range, of each type. `types` are the sizes of the types.
#[pyfunction]
pub fn halo_counts<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: View<'py, i32>,
    k: u32,
    parts: (u32, u32),
    types: Vec<u64>,
    options: Options,
) -> PyResult<Vec<Array<'py, i64>>> {
    let assignment = &*settled(&assignment, "parts")?;
    let halos = detached(py, &options, |run| {
        measure::halo_sizes_of_types(edges.stream(), assignment, k, parts.0..parts.1, &types, run)
    })?;
    Ok(halos.iter().map(|halo| signed(py, halo)).collect())
}

/// The connected components of each part.
#[pyfunction]
pub fn component_counts<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: View<'py, i32>,
    k: u32,
    options: Options,
) -> PyResult<Array<'py, i64>> {
    let parts = &*settled(&assignment, "parts")?;
    let counts = detached(py, &options, |run| measure::components(edges.stream(), parts, k, run))?;
    Ok(signed(py, &counts))
}

/// The weight of the records inside each part, and of those that leave it.
#[pyfunction]
pub fn weighted_cut<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: View<'py, i32>,
    k: u32,
    options: Options,
) -> PyResult<Option<(Array<'py, u64>, Array<'py, u64>)>> {
    let Some(weights) = edges.weights() else { return Ok(None) };
    let parts = &*settled(&assignment, "parts")?;
    let WeightedCut { internal, cut } =
        detached(py, &options, |run| measure::weighted_cut(edges.stream(), weights, parts, k, run))?;
    Ok(Some((PyArray1::from_vec(py, internal), PyArray1::from_vec(py, cut))))
}

/// `types` are the sizes of the types of a typed graph.
#[pyfunction]
#[pyo3(signature = (edges, assignment, k, options, types = None))]
pub fn count_edge_partition<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: &Bound<'py, PyUntypedArray>,
    k: u32,
    options: Options,
    types: Option<Vec<u64>>,
) -> PyResult<EdgeCounts> {
    let stream = edges.stream();
    let sizes = types.clone().unwrap_or_else(|| vec![stream.num_vertices()]);
    let Replicas { sizes, touched, types: by_type, loops, checksum } = with_parts!(assignment, parts => {
        detached(py, &options, |run| measure::replicas_of_types(stream, parts, k, &sizes, run))?
    });
    let graph = identity(edges, loops, checksum);
    let by_type = types.iter().flat_map(|_| &by_type);
    let types = by_type.map(|each| (signed(py, &each.sizes).unbind(), each.touched)).collect();
    Ok(EdgeCounts { replicas: signed(py, &sizes).unbind(), touched, types, graph })
}

/// For each relation its loops, its cut records, and the most ends of its records in one part.
#[pyfunction]
pub fn relation_cuts<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: View<'py, i32>,
    k: u32,
    relations: Vec<u64>,
    options: Options,
) -> PyResult<Vec<(u64, u64, u64)>> {
    let parts = &*settled(&assignment, "parts")?;
    let cuts =
        detached(py, &options, |run| measure::relation_cuts(edges.stream(), parts, k, &relations, run))?;
    Ok(cuts.into_iter().map(|each| (each.loops, each.cut, each.largest_volume)).collect())
}

fn identity(edges: &EdgeSource, loops: u64, checksum: String) -> Identity {
    let stream = edges.stream();
    Identity { n: stream.num_vertices(), m: stream.num_edges(), loops, checksum }
}

/// Counts as int64, which everything in Python computes with.
fn signed<'py>(py: Python<'py>, counts: &[u64]) -> Array<'py, i64> {
    PyArray1::from_iter(py, counts.iter().map(|&count| count as i64))
}

/// The cut matrix of many parts, as three columns: part, other part, records.
#[pyfunction]
pub fn sparse_cut_matrix<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: View<'py, i32>,
    k: u32,
    options: Options,
) -> PyResult<(Array<'py, i32>, Array<'py, i32>, Array<'py, i64>)> {
    let parts = &*settled(&assignment, "parts")?;
    let SparseMatrix { first, second, records } =
        detached(py, &options, |run| measure::sparse_matrix(edges.stream(), parts, k, run))?;
    let ids = |parts: Vec<u32>| PyArray1::from_iter(py, parts.into_iter().map(|part| part as i32));
    Ok((ids(first), ids(second), signed(py, &records)))
}

/// Vertices of each part among `ids`.
#[pyfunction]
pub fn split_counts<'py>(
    py: Python<'py>,
    assignment: View<'py, i32>,
    ids: View<'py, i64>,
    k: u32,
    options: Options,
) -> PyResult<Array<'py, i64>> {
    let (parts, ids) = (settled(&assignment, "parts")?, settled(&ids, "ids of a split")?);
    let counts = detached(py, &options, |run| measure::split_counts(&parts, &ids, k, run))?;
    Ok(signed(py, &counts))
}

/// Distance of each part's labels to the graph's. NaN for parts without labels.
#[pyfunction]
pub fn label_skew<'py>(
    py: Python<'py>,
    assignment: View<'py, i32>,
    labels: View<'py, i64>,
    k: u32,
    options: Options,
) -> PyResult<Array<'py, f64>> {
    let (parts, labels) = (settled(&assignment, "parts")?, settled(&labels, "labels")?);
    let skew = detached(py, &options, |run| measure::label_skew(&parts, &labels, k, run))?;
    Ok(PyArray1::from_vec(py, skew))
}
