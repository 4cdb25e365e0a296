//! The sampler of typed graphs, and its batches.

use std::sync::Arc;

use numpy::{Element, PyArray1, PyUntypedArray};
use pyo3::prelude::*;

use super::arguments::{copied_times, fanout, kind_of, temporal_of};
use super::batches::{Open, Source};
use super::features::Features;
use super::times::Times;
use super::types::Types;
use crate::errors::raise;
use crate::results::{View, array_within, copied};
use crate::run::in_place;
use fastpart::internals::base::Result;
use fastpart::internals::sampling::{
    self, BatchMaker, EdgeColumns, FeatureRows, Place, Pooled, Seeds, Settings, Spent, Steps, TypedBatch,
    TypedMaker, TypedSample,
};

/// Makes batches of a typed graph. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct TypedSampler {
    inner: Arc<sampling::TypedSampler>,
    edge_ids: bool,
    types: Py<Types>,
    spent: Arc<Spent>,
    /// Keeps the weights.
    _weights: Option<Py<PyUntypedArray>>,
}

type OfTypes = Vec<Option<Py<Features>>>;

#[pymethods]
impl TypedSampler {
    #[new]
    #[pyo3(signature = (types, fanouts, *, kind = "uniform", seed = 0, merged = false, edge_ids = false, weights = None, times = None, temporal = "uniform"))]
    fn new(
        py: Python<'_>,
        types: Py<Types>,
        fanouts: Vec<Vec<i64>>,
        kind: &str,
        seed: u64,
        merged: bool,
        edge_ids: bool,
        weights: Option<Bound<'_, PyUntypedArray>>,
        times: Option<&Bound<'_, Times>>,
        temporal: &str,
    ) -> PyResult<Self> {
        let temporal = temporal_of(times, temporal).map_err(|error| raise(py, error))?;
        let kind = kind_of(kind, weights.as_ref())?.map_err(|error| raise(py, error))?;
        let of_hop = |hop: Vec<i64>| hop.into_iter().map(fanout).collect::<Result<Vec<_>>>();
        let inner = fanouts.into_iter().map(of_hop).collect::<Result<_>>().and_then(|fanouts| {
            let edges = EdgeColumns { ids: edge_ids, rows: false };
            let settings = Settings { fanouts, kind, temporal, seed, merged, edges };
            let topology = Arc::clone(&types.get().topology.get().inner);
            sampling::TypedSampler::new(topology, Arc::clone(&types.get().inner), settings)
        });
        let inner = Arc::new(inner.map_err(|error| raise(py, error))?);
        Ok(Self { inner, edge_ids, types, spent: Arc::default(), _weights: weights.map(Bound::unbind) })
    }

    /// Seconds of sampling and of copying features since the last call, of all threads.
    fn read_seconds(&self) -> (f64, f64) {
        self.spent.read()
    }

    /// Samples one batch.
    #[pyo3(signature = (seeds, *, times = None, epoch = 0, step = 0, features = None))]
    fn sample(
        &self,
        py: Python<'_>,
        seeds: View<'_, u32>,
        times: Option<View<'_, i64>>,
        epoch: u64,
        step: u64,
        features: Option<OfTypes>,
    ) -> PyResult<TypedSampledBatch> {
        let (rows, times) = (copied(&seeds, "seeds")?, copied_times(times.as_ref())?);
        let seeds = Seeds { rows: &rows, times: &times };
        let features = features.unwrap_or_default();
        let (maker, workers) = (self.maker(&features), &self.types.get().topology.get().workers);
        let mut worker = workers.take().map_err(|error| raise(py, error))?;
        let place = Place { epoch, step };
        let batch = in_place(py, |check| maker.make(seeds, place, &mut worker, check));
        workers.put_back(worker);
        TypedSampledBatch::new(py, batch?, self.inner.types(), self.edge_ids, &features)
    }

    /// Samples the batches of an epoch.
    #[pyo3(signature = (seeds, offsets, *, times = None, epoch = 0, features = None, ahead = 2, max_bytes = None, threads = 1))]
    fn batches(
        slf: Bound<'_, Self>,
        py: Python<'_>,
        seeds: View<'_, u32>,
        offsets: View<'_, i64>,
        times: Option<View<'_, i64>>,
        epoch: u64,
        features: Option<OfTypes>,
        ahead: usize,
        max_bytes: Option<u64>,
        threads: usize,
    ) -> PyResult<TypedBatches> {
        let this = slf.get();
        let features = features.unwrap_or_default();
        let workers = Arc::clone(&this.types.get().topology.get().workers);
        let steps =
            Steps::new(copied(&seeds, "seeds")?, copied_times(times.as_ref())?, offsets.as_slice()?, epoch);
        let max_bytes = max_bytes.unwrap_or(u64::MAX);
        let maker = this.maker(&features);
        let source = steps.and_then(|steps| Source::new(maker, steps, ahead, max_bytes, threads, workers));
        let source = Open::new(source.map_err(|error| raise(py, error))?);
        Ok(TypedBatches { source, features, sampler: slf.unbind() })
    }
}

impl TypedSampler {
    fn maker(&self, features: &OfTypes) -> TypedMaker {
        let inner = |features: &Py<Features>| Arc::clone(&features.get().inner);
        TypedMaker {
            sampler: Arc::clone(&self.inner),
            features: features.iter().map(|features| features.as_ref().map(inner)).collect(),
            samples: Arc::clone(&self.types.get().samples),
            pools: Arc::clone(&self.types.get().topology.get().pools),
            spent: Arc::clone(&self.spent),
        }
    }
}

/// The batches of an epoch of a typed graph. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct TypedBatches {
    /// Dropped first: its threads use the others.
    source: Open<TypedMaker>,
    features: OfTypes,
    sampler: Py<TypedSampler>,
}

#[pymethods]
impl TypedBatches {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<TypedSampledBatch>> {
        let Some(batch) = self.source.next(py)? else { return Ok(None) };
        let sampler = self.sampler.get();
        let types = sampler.inner.types();
        TypedSampledBatch::new(py, batch, types, sampler.edge_ids, &self.features).map(Some)
    }

    /// Ends the threads.
    fn close(&self) {
        self.source.close();
    }
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

impl TypedSampledBatch {
    /// The arrays of a batch lie in its memory, which is used again when the last of them is gone.
    fn new(
        py: Python<'_>,
        batch: TypedBatch,
        types: &sampling::Types,
        edge_ids: bool,
        features: &OfTypes,
    ) -> PyResult<Self> {
        let TypedBatch { sample, features: memory } = batch;
        let array = |(number, (features, memory)): (usize, (&Option<Py<Features>>, Option<_>))| {
            let rows = sample.nodes[number + 1] - sample.nodes[number];
            of_type(py, features, memory, rows)
        };
        let features = features.iter().zip(memory).enumerate().map(array).collect::<PyResult<_>>()?;
        let by = |counts: &[u64], groups: usize| match groups {
            0 => Vec::new(),
            _ => counts.chunks(counts.len() / groups).map(<[u64]>::to_vec).collect(),
        };
        let num_sampled_nodes = by(&sample.num_nodes, types.num_types());
        let num_sampled_edges = match sample.num_edges.is_empty() {
            true => vec![Vec::new(); types.num_relations()],
            false => by(&sample.num_edges, types.num_relations()),
        };
        let temporal = sample.temporal;
        let owned = Bound::new(py, Owned(sample))?;
        Ok(Self {
            rows: within(&owned, |sample| (&sample.rows, &sample.nodes)),
            n_id: within(&owned, |sample| (&sample.ids, &sample.nodes)),
            seed_time: temporal.then(|| within(&owned, |sample| (&sample.seed_times, &sample.nodes))),
            indptr: within(&owned, |sample| (&sample.indptr, &sample.targets)),
            indices: within(&owned, |sample| (&sample.indices, &sample.edges)),
            e_id: edge_ids.then(|| within(&owned, |sample| (&sample.edge_ids, &sample.edges))),
            num_sampled_nodes,
            num_sampled_edges,
            features,
        })
    }
}

/// The features of a type, if there are any.
fn of_type(
    py: Python<'_>,
    features: &Option<Py<Features>>,
    memory: Option<Pooled<FeatureRows>>,
    rows: usize,
) -> PyResult<Option<Py<PyAny>>> {
    match (features, memory) {
        (Some(features), Some(memory)) => Ok(Some(features.get().array(py, memory, rows)?.unbind())),
        _ => Ok(None),
    }
}

/// A sample, as an object that arrays over it keep alive.
#[pyclass(frozen)]
struct Owned(Pooled<TypedSample>);

/// Arrays over parts of it, which begin at the bounds and end at the next ones.
fn within<T: Element>(
    owned: &Bound<'_, Owned>,
    items: impl FnOnce(&TypedSample) -> (&Vec<T>, &Vec<usize>),
) -> Vec<Py<PyArray1<T>>> {
    let (items, bounds) = items(&owned.get().0);
    let array = |bounds: &[usize]| {
        let items = &items[bounds[0]..bounds[1]];
        // SAFETY: the object keeps the vectors as they are, and nobody else has a reference to it.
        unsafe { array_within(items.as_ptr(), items.len(), owned.clone().into_any()) }.unbind()
    };
    bounds.windows(2).map(array).collect()
}
