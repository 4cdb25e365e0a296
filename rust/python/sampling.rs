//! Neighbour samples, for Python.

use std::path::PathBuf;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use numpy::{
    Element, PyArray1, PyArrayDescr, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray1, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::errors::raise;
use super::results::{array_within, copied, owner};
use super::run::{Options, POLL, detached, in_place};
use crate::base::run::MAX_THREADS;
use crate::base::{Error, Result, budget, named};
use crate::sampling::{
    self, Ahead, Batch, FeatureRows, Kind, Maker, Place, Pooled, Pools, RecordWeights, Sample, Settings,
    Steps, Workers,
};

/// The in-edges of all vertices of a partition directory. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Topology {
    inner: Arc<sampling::Topology>,
    workers: Arc<Workers>,
    pools: Arc<Pools>,
}

#[pymethods]
impl Topology {
    #[new]
    fn new(py: Python<'_>, folders: Vec<PathBuf>) -> PyResult<Self> {
        let inner =
            Arc::new(detached(py, &Options::default(), |run| sampling::Topology::open(&folders, run))?);
        let workers = Arc::new(Workers::new(Arc::clone(&inner)));
        Ok(Self { inner, workers, pools: Arc::default() })
    }

    #[getter]
    fn num_parts(&self) -> usize {
        self.inner.parts().len()
    }

    #[getter]
    fn num_vertices(&self) -> u32 {
        self.inner.num_vertices()
    }

    #[getter]
    fn starts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let starts: Vec<i64> = self.inner.starts().iter().map(|&start| i64::from(start)).collect();
        PyArray1::from_vec(py, starts)
    }

    /// Rows of vertices.
    fn rows_of<'py>(
        &self,
        py: Python<'py>,
        ids: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let ids = ids.as_slice()?.to_vec();
        let rows = in_place(py, |check| self.inner.rows_of(&ids, check))?;
        Ok(PyArray1::from_vec(py, rows))
    }

    /// Original ids of rows.
    fn ids_of<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, u32>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let rows = copied(&rows, "rows")?;
        let ids = in_place(py, |_| {
            self.inner.check_rows("rows", &rows)?;
            let mut ids = Vec::with_capacity(rows.len());
            sampling::append_ids(&self.inner, &rows, &mut ids).map(|()| ids)
        })?;
        Ok(PyArray1::from_vec(py, ids))
    }

    /// In-degrees of rows in the whole graph.
    fn degrees_of<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, u32>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let rows = copied(&rows, "rows")?;
        let degrees = in_place(py, |_| {
            self.inner.check_rows("rows", &rows)?;
            let mut degrees = Vec::with_capacity(rows.len());
            sampling::append_degrees(&self.inner, &rows, &mut degrees).map(|()| degrees)
        })?;
        Ok(PyArray1::from_vec(py, degrees))
    }

    /// The in-edges between vertices.
    #[pyo3(signature = (rows, *, edge_ids = false))]
    fn subgraph(
        &self,
        py: Python<'_>,
        rows: PyReadonlyArray1<'_, u32>,
        edge_ids: bool,
    ) -> PyResult<SampledBatch> {
        let rows = copied(&rows, "rows")?;
        let mut worker = self.workers.take().map_err(|error| raise(py, error))?;
        let mut sample = self.pools.sample();
        in_place(py, |check| {
            sampling::subgraph(&self.inner, &rows, edge_ids, &mut worker, check, &mut sample)
        })?;
        self.workers.put_back(worker);
        SampledBatch::new(py, Batch { sample, features: None }, edge_ids, None)
    }

    /// Random walks.
    #[pyo3(signature = (roots, length, *, seed, epoch = 0, step = 0))]
    fn walks<'py>(
        &self,
        py: Python<'py>,
        roots: PyReadonlyArray1<'py, u32>,
        length: usize,
        seed: u64,
        epoch: u64,
        step: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let roots = copied(&roots, "roots")?;
        let place = Place { epoch, step };
        let visited = in_place(py, |check| sampling::walks(&self.inner, &roots, length, seed, place, check))?;
        Ok(PyArray1::from_vec(py, visited).reshape([roots.len(), length + 1])?.into_any())
    }
}

/// Makes batches. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Sampler {
    inner: Arc<sampling::Sampler>,
    edge_ids: bool,
    topology: Py<Topology>,
    /// Keeps the weights.
    _weights: Option<Py<PyUntypedArray>>,
}

#[pymethods]
impl Sampler {
    #[new]
    #[pyo3(signature = (topology, fanouts, *, kind = "uniform", seed = 0, merged = false, edge_ids = false, weights = None))]
    #[expect(clippy::too_many_arguments, reason = "one per setting")]
    fn new(
        py: Python<'_>,
        topology: Py<Topology>,
        fanouts: Vec<i64>,
        kind: &str,
        seed: u64,
        merged: bool,
        edge_ids: bool,
        weights: Option<Bound<'_, PyUntypedArray>>,
    ) -> PyResult<Self> {
        let kind = kind_of(kind, weights.as_ref())?.map_err(|error| raise(py, error))?;
        let fanouts =
            fanouts.into_iter().map(fanout).collect::<Result<_>>().map_err(|error| raise(py, error))?;
        let settings = Settings { fanouts, kind, seed, merged, edge_ids };
        let inner = Arc::new(sampling::Sampler::new(Arc::clone(&topology.get().inner), settings));
        Ok(Self { inner, edge_ids, topology, _weights: weights.map(Bound::unbind) })
    }

    /// Samples one batch.
    #[pyo3(signature = (seeds, *, epoch = 0, step = 0, features = None))]
    fn sample(
        &self,
        py: Python<'_>,
        seeds: PyReadonlyArray1<'_, u32>,
        epoch: u64,
        step: u64,
        features: Option<Py<Features>>,
    ) -> PyResult<SampledBatch> {
        let seeds = copied(&seeds, "seeds")?;
        let (maker, workers) = (self.maker(&features), &self.topology.get().workers);
        let mut worker = workers.take().map_err(|error| raise(py, error))?;
        let place = Place { epoch, step };
        let batch = in_place(py, |check| maker.make(&seeds, place, &mut worker, check))?;
        workers.put_back(worker);
        SampledBatch::new(py, batch, self.edge_ids, features.as_ref())
    }

    /// Samples the batches of an epoch.
    #[pyo3(signature = (seeds, offsets, *, epoch = 0, features = None, ahead = 2, threads = 1))]
    #[expect(clippy::too_many_arguments, reason = "one per parameter")]
    fn batches(
        slf: Bound<'_, Self>,
        py: Python<'_>,
        seeds: PyReadonlyArray1<'_, u32>,
        offsets: PyReadonlyArray1<'_, i64>,
        epoch: u64,
        features: Option<Py<Features>>,
        ahead: usize,
        threads: usize,
    ) -> PyResult<Batches> {
        let this = slf.get();
        let (maker, workers) = (this.maker(&features), Arc::clone(&this.topology.get().workers));
        let seeds = copied(&seeds, "seeds")?;
        let steps = Steps::new(seeds, offsets.as_slice()?, epoch);
        let source = steps.and_then(|steps| Source::new(maker, steps, ahead, threads, workers));
        let source = source.map_err(|error| raise(py, error))?;
        let edge_ids = this.edge_ids;
        Ok(Batches { source: Mutex::new(Some(Arc::new(source))), edge_ids, features, _sampler: slf.unbind() })
    }
}

impl Sampler {
    fn maker(&self, features: &Option<Py<Features>>) -> Maker {
        Maker {
            sampler: Arc::clone(&self.inner),
            features: features.as_ref().map(|features| Arc::clone(&features.get().inner)),
            pools: Arc::clone(&self.topology.get().pools),
        }
    }
}

fn fanout(fanout: i64) -> Result<Option<usize>> {
    match fanout {
        -1 => Ok(None),
        0..=0x7fff_ffff => Ok(Some(fanout as usize)),
        _ => Err(Error::parameter("fanouts", format!("expected -1 (all) or at least 0, got {fanout}"))),
    }
}

fn kind_of(kind: &str, weights: Option<&Bound<'_, PyUntypedArray>>) -> PyResult<Result<Kind>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Name {
        Uniform,
        Weighted,
        Labor,
    }
    let known = [("uniform", Name::Uniform), ("weighted", Name::Weighted), ("labor", Name::Labor)];
    let name = match named("kind", "value", kind, &known) {
        Ok(name) => name,
        Err(error) => return Ok(Err(error)),
    };
    Ok(match (name, weights) {
        (Name::Weighted, Some(weights)) => record_weights(weights)?.map(Kind::Weighted),
        (Name::Weighted, None) => Err(Error::parameter("weights", "kind=\"weighted\" needs them")),
        (_, Some(_)) => {
            Err(Error::parameter("weights", format!("only kind=\"weighted\" takes them, not {kind:?}")))
        }
        (Name::Uniform, None) => Ok(Kind::Uniform),
        (Name::Labor, None) => Ok(Kind::Labor),
    })
}

fn record_weights(weights: &Bound<'_, PyUntypedArray>) -> PyResult<Result<RecordWeights>> {
    let (py, dtype) = (weights.py(), weights.dtype());
    let wide = dtype.is_equiv_to(&numpy::dtype::<f64>(py));
    if !wide && !dtype.is_equiv_to(&numpy::dtype::<f32>(py))
        || weights.ndim() != 1
        || !weights.is_c_contiguous()
    {
        let text = format!("weights: expected contiguous float32 or float64 of shape (m,), got {dtype}");
        return Err(PyTypeError::new_err(text));
    }
    // SAFETY: numpy vouches for as many numbers, and the sampler keeps the array.
    Ok(unsafe { RecordWeights::new(data(weights), weights.len(), wide) })
}

/// Where the items of an array begin.
fn data(array: &Bound<'_, PyUntypedArray>) -> *mut u8 {
    // SAFETY: the pointer comes from a live array object. Only its fields are read here.
    unsafe { (*array.as_array_ptr()).fields.data }.cast()
}

/// Where batches come from.
enum Source {
    /// From threads that are ahead.
    Ahead(Ahead),
    /// From the caller's, one after the other.
    Calls { maker: Maker, steps: Steps, workers: Arc<Workers>, next: AtomicUsize },
}

impl Source {
    fn new(maker: Maker, steps: Steps, ahead: usize, threads: usize, workers: Arc<Workers>) -> Result<Self> {
        if ahead == 0 {
            return Ok(Source::Calls { maker, steps, workers, next: AtomicUsize::new(0) });
        }
        let threads = threads.clamp(1, ahead.min(MAX_THREADS)).min(steps.count());
        let needed = workers.memory(threads);
        if needed > 0 {
            let budget = budget::available();
            if needed > budget {
                let what = format!("{threads} threads that sample");
                return Err(Error::MemoryBudget { what, needed, budget });
            }
        }
        Ahead::start(maker, steps, ahead, threads, workers).map(Source::Ahead)
    }

    fn next(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        match self {
            Source::Ahead(ahead) => loop {
                if let Some(batch) = py.detach(|| ahead.next(POLL)) {
                    return batch.transpose().map_err(|error| raise(py, error));
                }
                py.check_signals()?;
            },
            Source::Calls { maker, steps, workers, next } => {
                let step = next.fetch_add(1, Relaxed);
                if step >= steps.count() {
                    return Ok(None);
                }
                let mut worker = workers.take().map_err(|error| raise(py, error))?;
                let make = |check: &dyn Fn() -> Result<()>| steps.make(step, maker, &mut worker, check);
                let batch = in_place(py, make)?;
                workers.put_back(worker);
                Ok(Some(batch))
            }
        }
    }

    fn stop(&self) {
        if let Source::Ahead(ahead) = self {
            ahead.stop();
        }
    }
}

/// The batches of an epoch. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Batches {
    /// Dropped first: its threads use the others.
    source: Mutex<Option<Arc<Source>>>,
    edge_ids: bool,
    features: Option<Py<Features>>,
    _sampler: Py<Sampler>,
}

impl Batches {
    fn source(&self) -> MutexGuard<'_, Option<Arc<Source>>> {
        self.source.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[pymethods]
impl Batches {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<SampledBatch>> {
        let Some(source) = self.source().clone() else { return Ok(None) };
        let batch = source.next(py);
        if !matches!(batch, Ok(Some(_))) {
            self.close();
        }
        let Some(batch) = batch? else { return Ok(None) };
        SampledBatch::new(py, batch, self.edge_ids, self.features.as_ref()).map(Some)
    }

    /// Ends the threads.
    fn close(&self) {
        let source = self.source().take();
        if let Some(source) = source {
            source.stop();
        }
    }
}

/// One batch, as arrays. See `_core.pyi`.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct SampledBatch {
    rows: Py<PyArray1<u32>>,
    n_id: Py<PyArray1<i64>>,
    indptr: Py<PyArray1<i32>>,
    indices: Py<PyArray1<i32>>,
    e_id: Option<Py<PyArray1<i64>>>,
    num_sampled_nodes: Vec<u64>,
    num_sampled_edges: Vec<u64>,
    features: Option<Py<PyAny>>,
}

impl SampledBatch {
    /// The arrays of a batch lie in its memory, which is used again when the last of them is gone.
    fn new(py: Python<'_>, batch: Batch, edge_ids: bool, features: Option<&Py<Features>>) -> PyResult<Self> {
        let Batch { sample, features: memory } = batch;
        let num_rows = sample.rows.len();
        let features = match (features, memory) {
            (Some(features), Some(memory)) => Some(features.get().array(py, memory, num_rows)?.unbind()),
            _ => None,
        };
        let (num_sampled_nodes, num_sampled_edges) = (sample.num_nodes.clone(), sample.num_edges.clone());
        let sample = Bound::new(py, Owned(sample))?;
        Ok(Self {
            rows: within(&sample, |sample| &sample.rows),
            n_id: within(&sample, |sample| &sample.ids),
            indptr: within(&sample, |sample| &sample.indptr),
            indices: within(&sample, |sample| &sample.indices),
            e_id: edge_ids.then(|| within(&sample, |sample| &sample.edge_ids)),
            num_sampled_nodes,
            num_sampled_edges,
            features,
        })
    }
}

/// What was sampled, as an object that arrays over it keep.
#[pyclass(frozen)]
struct Owned(Pooled<Sample>);

/// An array over a part of it.
fn within<T: Element>(owned: &Bound<'_, Owned>, items: impl FnOnce(&Sample) -> &Vec<T>) -> Py<PyArray1<T>> {
    let items = items(&owned.get().0);
    // SAFETY: the object keeps the vectors as they are, and nobody else has a reference to it.
    unsafe { array_within(items.as_ptr(), items.len(), owned.clone().into_any()) }.unbind()
}

/// Features of parts. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Features {
    inner: Arc<sampling::Features>,
    dtype: Py<PyArrayDescr>,
    pools: Arc<Pools>,
}

#[pymethods]
impl Features {
    #[new]
    fn new(py: Python<'_>, files: Vec<Option<PathBuf>>, topology: &Topology) -> PyResult<Self> {
        let inner = sampling::Features::open(&files, Arc::clone(&topology.inner));
        let inner = Arc::new(inner.map_err(|error| raise(py, error))?);
        let dtype = PyArrayDescr::new(py, &inner.descr)?.unbind();
        Ok(Self { inner, dtype, pools: Arc::clone(&topology.pools) })
    }

    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        self.dtype.bind(py).clone()
    }

    #[getter]
    fn row_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.inner.row_shape)
    }

    /// Copies the features of `rows`.
    #[pyo3(signature = (rows, out = None))]
    fn gather<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, u32>,
        out: Option<Bound<'py, PyUntypedArray>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rows = copied(&rows, "rows")?;
        if let Some(out) = out {
            self.check(py, &out, rows.len())?;
            let start = data(&out).expose_provenance();
            // SAFETY: numpy vouches for the room, which `out` keeps. Its owner asked for the bytes to be overwritten.
            let gather = |check: &dyn Fn() -> Result<()>| unsafe {
                self.inner.gather(&rows, with_exposed_provenance_mut(start), check)
            };
            in_place(py, gather)?;
            return Ok(out.into_any());
        }
        let mut memory = self.pools.features();
        in_place(py, |check| self.inner.fill(&rows, &mut memory, check))?;
        self.array(py, memory, rows.len())
    }
}

impl Features {
    /// Refuses an array that does not fit.
    fn check(&self, py: Python<'_>, out: &Bound<'_, PyUntypedArray>, count: usize) -> PyResult<()> {
        let shape = out.shape().split_first();
        let fits = shape.is_some_and(|(&rows, rest)| rows == count && rest == self.inner.row_shape);
        let writeable: bool = out.getattr("flags")?.getattr("writeable")?.extract()?;
        if fits && writeable && out.is_c_contiguous() && out.dtype().is_equiv_to(self.dtype.bind(py)) {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "out: expected a writeable C-contiguous array of {} and shape ({count}, *{:?}), got {} of shape {:?}",
            self.dtype.bind(py),
            self.inner.row_shape,
            out.dtype(),
            out.shape()
        )))
    }

    /// The array over `count` rows of features.
    fn array<'py>(
        &self,
        py: Python<'py>,
        mut memory: Pooled<FeatureRows>,
        count: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let start = memory.as_mut_ptr();
        let owner = owner(py, memory)?;
        // SAFETY: the rows were filled, the owner keeps them, and nobody else uses them until it is gone.
        let bytes = unsafe { array_within::<u8>(start, count * self.inner.row_bytes, owner) };
        let shape: Vec<usize> = std::iter::once(count).chain(self.inner.row_shape.iter().copied()).collect();
        let shape = PyTuple::new(py, shape)?;
        bytes.call_method1("view", (self.dtype.bind(py),))?.call_method1("reshape", (shape,))
    }
}
