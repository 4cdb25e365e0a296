//! One batch, as arrays.

use numpy::{Element, PyArray1};
use pyo3::prelude::*;

use crate::results::array_within;
use fastpart::internals::sampling::{EdgeColumns, Pooled, Sample};

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

impl SampledBatch {
    /// The arrays of a batch lie in its memory, which is used again when the last of them is gone.
    pub(super) fn new(
        py: Python<'_>,
        sample: Pooled<Sample>,
        edges: EdgeColumns,
        [features, edge_features]: [Option<Py<PyAny>>; 2],
    ) -> PyResult<Self> {
        let (num_sampled_nodes, num_sampled_edges) = (sample.num_nodes.clone(), sample.num_edges.clone());
        let temporal = sample.temporal;
        let sample = Bound::new(py, Owned(sample))?;
        Ok(Self {
            rows: within(&sample, |sample| &sample.rows),
            n_id: within(&sample, |sample| &sample.ids),
            indptr: within(&sample, |sample| &sample.indptr),
            indices: within(&sample, |sample| &sample.indices),
            e_id: edges.ids.then(|| within(&sample, |sample| &sample.edge_ids)),
            edge_rows: edges.rows.then(|| within(&sample, |sample| &sample.edge_rows)),
            seed_time: temporal.then(|| within(&sample, |sample| &sample.seed_times)),
            num_sampled_nodes,
            num_sampled_edges,
            features,
            edge_features,
        })
    }
}

/// A sample, as an object that arrays over it keep alive.
#[pyclass(frozen)]
struct Owned(Pooled<Sample>);

/// An array over a part of it.
fn within<T: Element>(owned: &Bound<'_, Owned>, items: impl FnOnce(&Sample) -> &Vec<T>) -> Py<PyArray1<T>> {
    let items = items(&owned.get().0);
    // SAFETY: the object keeps the vectors as they are, and nobody else has a reference to it.
    unsafe { array_within(items.as_ptr(), items.len(), owned.clone().into_any()) }.unbind()
}
