//! The sampler and its settings.

use std::sync::Arc;

use numpy::PyUntypedArray;
use pyo3::prelude::*;

use super::arguments::{copied_times, fanout, kind_of, temporal_of};
use super::batch::SampledBatch;
use super::batches::{Batches, Columns, Source};
use super::features::Features;
use super::pack::Pack;
use super::times::Times;
use super::topology::Topology;
use crate::errors::raise;
use crate::results::{View, copied};
use crate::run::in_place;
use fastpart::internals::base::{Error, Result};
use fastpart::internals::sampling::{
    self, BatchMaker, EdgeColumns, Maker, Place, Seeds, Settings, Spent, Steps,
};

/// Makes batches. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Sampler {
    inner: Arc<sampling::Sampler>,
    edges: EdgeColumns,
    topology: Py<Topology>,
    spent: Arc<Spent>,
    /// Keeps the weights.
    _weights: Option<Py<PyUntypedArray>>,
}

#[pymethods]
impl Sampler {
    #[new]
    #[pyo3(signature = (topology, fanouts, *, kind = "uniform", seed = 0, merged = false, edge_ids = false, edge_rows = false, weights = None, times = None, temporal = "uniform"))]
    fn new(
        py: Python<'_>,
        topology: Py<Topology>,
        fanouts: Vec<i64>,
        kind: &str,
        seed: u64,
        merged: bool,
        edge_ids: bool,
        edge_rows: bool,
        weights: Option<Bound<'_, PyUntypedArray>>,
        times: Option<&Bound<'_, Times>>,
        temporal: &str,
    ) -> PyResult<Self> {
        let kind = kind_of(kind, weights.as_ref())?.map_err(|error| raise(py, error))?;
        let fanouts =
            fanouts.into_iter().map(fanout).collect::<Result<_>>().map_err(|error| raise(py, error))?;
        let edges = EdgeColumns { ids: edge_ids, rows: edge_rows };
        let temporal = temporal_of(times, temporal).map_err(|error| raise(py, error))?;
        let settings = Settings { fanouts, kind, temporal, seed, merged, edges };
        let inner = Arc::new(sampling::Sampler::new(Arc::clone(&topology.get().inner), settings));
        Ok(Self { inner, edges, topology, spent: Arc::default(), _weights: weights.map(Bound::unbind) })
    }

    /// Seconds of sampling and of copying features since the last call, of all threads.
    fn read_seconds(&self) -> (f64, f64) {
        self.spent.read()
    }

    /// Samples one batch.
    #[pyo3(signature = (seeds, *, times = None, epoch = 0, step = 0, features = None, edge_features = None))]
    fn sample(
        &self,
        py: Python<'_>,
        seeds: View<'_, u32>,
        times: Option<View<'_, i64>>,
        epoch: u64,
        step: u64,
        features: Option<Py<Features>>,
        edge_features: Option<Py<Features>>,
    ) -> PyResult<SampledBatch> {
        let (rows, times) = (copied(&seeds, "seeds")?, copied_times(times.as_ref())?);
        let seeds = Seeds { rows: &rows, times: &times };
        let columns = self.columns(py, features, edge_features)?;
        let (maker, workers) = (self.maker(&columns, None), &self.topology.get().workers);
        let mut worker = workers.take().map_err(|error| raise(py, error))?;
        let place = Place { epoch, step };
        let batch = in_place(py, |check| maker.make(seeds, place, &mut worker, check));
        workers.put_back(worker);
        columns.of(py, batch?)
    }

    /// Samples the batches of an epoch.
    #[pyo3(signature = (seeds, offsets, *, times = None, epoch = 0, features = None, edge_features = None, pack = None, ahead = 2, max_bytes = None, threads = 1))]
    fn batches(
        slf: Bound<'_, Self>,
        py: Python<'_>,
        seeds: View<'_, u32>,
        offsets: View<'_, i64>,
        times: Option<View<'_, i64>>,
        epoch: u64,
        features: Option<Py<Features>>,
        edge_features: Option<Py<Features>>,
        pack: Option<Py<Pack>>,
        ahead: usize,
        max_bytes: Option<u64>,
        threads: usize,
    ) -> PyResult<Batches> {
        let this = slf.get();
        let columns = this.columns(py, features, edge_features)?;
        let (maker, workers) =
            (this.maker(&columns, pack.as_ref()), Arc::clone(&this.topology.get().workers));
        let (seeds, times) = (copied(&seeds, "seeds")?, copied_times(times.as_ref())?);
        let steps = Steps::new(seeds, times, offsets.as_slice()?, epoch);
        let max_bytes = max_bytes.unwrap_or(u64::MAX);
        let source = steps.and_then(|steps| Source::new(maker, steps, ahead, max_bytes, threads, workers));
        let source = source.map_err(|error| raise(py, error))?;
        Ok(Batches::new(source, columns, slf.into_any().unbind()))
    }
}

impl Sampler {
    /// The arrays that batches are to have.
    fn columns(
        &self,
        py: Python<'_>,
        features: Option<Py<Features>>,
        edge_features: Option<Py<Features>>,
    ) -> PyResult<Columns> {
        if edge_features.is_some() && !self.edges.rows {
            let error = Error::parameter("edge_features", "the sampler needs edge_rows=True for them");
            return Err(raise(py, error));
        }
        Ok(Columns { edges: self.edges, features, edge_features })
    }

    fn maker(&self, columns: &Columns, pack: Option<&Py<Pack>>) -> Maker {
        let files = |of: &Option<Py<Features>>| of.as_ref().map(|of| Arc::clone(&of.get().inner));
        Maker {
            sampler: Arc::clone(&self.inner),
            features: files(&columns.features),
            edge_features: files(&columns.edge_features),
            pack: pack.map(|pack| Arc::clone(&pack.get().inner)),
            pools: Arc::clone(&self.topology.get().pools),
            spent: Arc::clone(&self.spent),
        }
    }
}
