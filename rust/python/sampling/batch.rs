//! One batch, as arrays.

use numpy::{Element, PyArray1};
use pyo3::prelude::*;

use super::features::Features;
use crate::results::array_within;
use fastpart::internals::sampling::{Batch, EdgeColumns, Pooled, Sample};

/// One batch, as arrays. See `_core.pyi`.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct SampledBatch {
    rows: Py<PyArray1<u32>>,
    n_id: Py<PyArray1<i64>>,
    indptr: Py<PyArray1<i32>>,
    indices: Py<PyArray1<i32>>,
    e_id: Option<Py<PyArray1<i64>>>,
    edge_rows: Option<Py<PyArray1<i64>>>,
    seed_time: Option<Py<PyArray1<i64>>>,
    num_sampled_nodes: Vec<u64>,
    num_sampled_edges: Vec<u64>,
    features: Option<Py<PyAny>>,
    edge_features: Option<Py<PyAny>>,
}

/// One batch of a typed graph, as arrays by type and by relation. See `_core.pyi`.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct TypedSampledBatch {
    rows: Vec<Py<PyArray1<u32>>>,
    n_id: Vec<Py<PyArray1<i64>>>,
    seed_time: Option<Vec<Py<PyArray1<i64>>>>,
    indptr: Vec<Py<PyArray1<i32>>>,
    indices: Vec<Py<PyArray1<i32>>>,
    e_id: Option<Vec<Py<PyArray1<i64>>>>,
    num_sampled_nodes: Vec<Vec<u64>>,
    num_sampled_edges: Vec<Vec<u64>>,
    features: Vec<Option<Py<PyAny>>>,
}

/// A batch of a graph with or without types.
#[derive(IntoPyObject)]
pub enum Arrays {
    Plain(SampledBatch),
    Typed(TypedSampledBatch),
}

/// The columns of batches beside their nodes and the sources of in-edges.
pub(super) struct Columns {
    /// Whether the graph has types.
    pub(super) typed: bool,
    pub(super) edges: EdgeColumns,
    /// By type. Empty: there are none.
    pub(super) features: Vec<Option<Py<Features>>>,
    pub(super) edge_features: Option<Py<Features>>,
}

impl Columns {
    /// The arrays of a batch. They lie in its memory, which is used again when the last of them is gone.
    pub(super) fn of(&self, py: Python<'_>, batch: Batch) -> PyResult<Arrays> {
        let Batch { sample, features, edge_features } = batch;
        let rows = |of: &Option<Py<Features>>, memory, count| match (of, memory) {
            (Some(of), Some(memory)) => of.get().array(py, memory, count).map(|array| Some(array.unbind())),
            _ => Ok(None),
        };
        let counts = sample.nodes.windows(2).map(|bounds| bounds[1] - bounds[0]);
        let features = self.features.iter().zip(features).zip(counts);
        let mut features =
            features.map(|((of, memory), count)| rows(of, memory, count)).collect::<PyResult<Vec<_>>>()?;
        let edge_features = rows(&self.edge_features, edge_features, sample.edge_rows.len())?;
        let batch = Bound::new(py, Owned(sample))?;
        let sample = &batch.get().0;
        let (nodes, targets, edges) = (&sample.nodes, &sample.targets, &sample.edges);
        if self.typed {
            return Ok(Arrays::Typed(TypedSampledBatch {
                rows: divided(&batch, &sample.rows, nodes),
                n_id: divided(&batch, &sample.ids, nodes),
                seed_time: sample.temporal.then(|| divided(&batch, &sample.seed_times, nodes)),
                indptr: divided(&batch, &sample.indptr, targets),
                indices: divided(&batch, &sample.indices, edges),
                e_id: self.edges.ids.then(|| divided(&batch, &sample.edge_ids, edges)),
                num_sampled_nodes: shares(&sample.num_nodes, nodes.len() - 1),
                num_sampled_edges: shares(&sample.num_edges, edges.len() - 1),
                features,
            }));
        }
        Ok(Arrays::Plain(SampledBatch {
            rows: array(&batch, &sample.rows),
            n_id: array(&batch, &sample.ids),
            indptr: array(&batch, &sample.indptr),
            indices: array(&batch, &sample.indices),
            e_id: self.edges.ids.then(|| array(&batch, &sample.edge_ids)),
            edge_rows: self.edges.rows.then(|| array(&batch, &sample.edge_rows)),
            seed_time: sample.temporal.then(|| array(&batch, &sample.seed_times)),
            num_sampled_nodes: sample.num_nodes.clone(),
            num_sampled_edges: sample.num_edges.clone(),
            features: features.pop().flatten(),
            edge_features,
        }))
    }
}

/// A sample, as an object that arrays over it keep alive.
#[pyclass(frozen)]
struct Owned(Pooled<Sample>);

/// An array over some of its items.
fn array<T: Element>(owned: &Bound<'_, Owned>, items: &[T]) -> Py<PyArray1<T>> {
    // SAFETY: the items are of the object, which keeps them as they are, and nobody else has a reference to
    // it.
    unsafe { array_within(items.as_ptr(), items.len(), owned.clone().into_any()) }.unbind()
}

/// Arrays over items that begin at the bounds and end at the next ones.
fn divided<T: Element>(owned: &Bound<'_, Owned>, items: &[T], bounds: &[usize]) -> Vec<Py<PyArray1<T>>> {
    bounds.windows(2).map(|bounds| array(owned, &items[bounds[0]..bounds[1]])).collect()
}

/// Numbers in groups of the same size.
fn shares(numbers: &[u64], groups: usize) -> Vec<Vec<u64>> {
    let each = numbers.len() / groups.max(1);
    (0..groups).map(|group| numbers[group * each..][..each].to_vec()).collect()
}
