//! The sampler and its settings.

use std::sync::Arc;

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::batch::{Arrays, Columns};
use super::batches::{Batches, Source};
use super::features::{Features, Pack};
use super::times::Times;
use super::topology::Topology;
use super::types::Types;
use crate::errors::raise;
use crate::results::{View, copied, data};
use crate::run::in_place;
use fastpart::internals::base::{Error, Result, named};
use fastpart::internals::sampling::{
    self, EdgeColumns, Maker, Method, Place, RecordWeights, Seeds, Settings, Spent, Steps, Strategy, Temporal,
};

/// In-edges per vertex in each hop: a number, or one for each relation.
#[derive(FromPyObject)]
pub enum Fanouts {
    Plain(Vec<i64>),
    ByRelation(Vec<Vec<i64>>),
}

impl Fanouts {
    /// A number for each relation.
    pub(super) fn by_relation(self) -> Vec<Vec<i64>> {
        match self {
            Fanouts::Plain(fanouts) => fanouts.into_iter().map(|fanout| vec![fanout]).collect(),
            Fanouts::ByRelation(fanouts) => fanouts,
        }
    }
}

/// Features of all vertices, or features of each type of vertices.
#[derive(FromPyObject)]
pub enum OfTypes {
    One(Py<Features>),
    Each(Vec<Option<Py<Features>>>),
}

/// A pack, or one for each type.
#[derive(FromPyObject)]
pub enum PacksOfTypes {
    One(Py<Pack>),
    Each(Vec<Option<Py<Pack>>>),
}

/// Makes batches. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Sampler {
    inner: Arc<sampling::Sampler>,
    topology: Py<Topology>,
    typed: bool,
    spent: Arc<Spent>,
    /// Keeps the weights.
    _weights: Option<Py<PyUntypedArray>>,
}

#[pymethods]
impl Sampler {
    #[new]
    #[pyo3(signature = (topology, fanouts, *, types = None, kind = "uniform", seed = 0, merged = false, edge_ids = false, edge_rows = false, weights = None, times = None, temporal = "uniform"))]
    fn new(
        py: Python<'_>,
        topology: Py<Topology>,
        fanouts: Fanouts,
        types: Option<&Bound<'_, Types>>,
        kind: &str,
        seed: u64,
        merged: bool,
        edge_ids: bool,
        edge_rows: bool,
        weights: Option<Bound<'_, PyUntypedArray>>,
        times: Option<&Bound<'_, Times>>,
        temporal: &str,
    ) -> PyResult<Self> {
        let method = named("kind", "value", kind, Method::NAMED).map_err(|error| raise(py, error))?;
        let of_records = weights.as_ref().map(record_weights).transpose()?;
        let types = types.map(|types| Arc::clone(&types.get().inner));
        let (typed, parts) = (types.is_some(), Arc::clone(&topology.get().inner));
        let sampler = || {
            let fanout = |hop: Vec<i64>| hop.into_iter().map(fanout).collect();
            let fanouts = fanouts.by_relation().into_iter().map(fanout).collect::<Result<_>>()?;
            let (weights, temporal) = (of_records.transpose()?, temporal_of(times, temporal)?);
            let edges = EdgeColumns { ids: edge_ids, rows: edge_rows };
            let settings = Settings { fanouts, method, weights, temporal, seed, merged, edges };
            sampling::Sampler::new(parts, types, settings)
        };
        let inner = Arc::new(sampler().map_err(|error| raise(py, error))?);
        Ok(Self { inner, topology, typed, spent: Arc::default(), _weights: weights.map(Bound::unbind) })
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
        features: Option<OfTypes>,
        edge_features: Option<Py<Features>>,
    ) -> PyResult<Arrays> {
        let (rows, times) = (copied(&seeds, "seeds")?, copied_times(times.as_ref())?);
        let seeds = Seeds { rows: &rows, times: &times };
        let columns = self.columns(py, features, edge_features)?;
        let (maker, workers) = (self.maker(&columns, &[]), &self.topology.get().workers);
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
        features: Option<OfTypes>,
        edge_features: Option<Py<Features>>,
        pack: Option<PacksOfTypes>,
        ahead: usize,
        max_bytes: Option<u64>,
        threads: usize,
    ) -> PyResult<Batches> {
        let this = slf.get();
        let columns = this.columns(py, features, edge_features)?;
        let packs = match pack {
            None => Vec::new(),
            Some(PacksOfTypes::One(pack)) => vec![Some(pack)],
            Some(PacksOfTypes::Each(packs)) => packs,
        };
        let (maker, workers) = (this.maker(&columns, &packs), Arc::clone(&this.topology.get().workers));
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
        features: Option<OfTypes>,
        edge_features: Option<Py<Features>>,
    ) -> PyResult<Columns> {
        let edges = self.inner.edges();
        if edge_features.is_some() && !edges.rows {
            let error = Error::parameter("edge_features", "the sampler needs edge_rows=True for them");
            return Err(raise(py, error));
        }
        let features = match features {
            None => Vec::new(),
            Some(OfTypes::One(features)) => vec![Some(features)],
            Some(OfTypes::Each(features)) => features,
        };
        Ok(Columns { typed: self.typed, edges, features, edge_features })
    }

    fn maker(&self, columns: &Columns, packs: &[Option<Py<Pack>>]) -> Maker {
        let files = |of: &Option<Py<Features>>| of.as_ref().map(|of| Arc::clone(&of.get().inner));
        Maker {
            sampler: Arc::clone(&self.inner),
            features: columns.features.iter().map(files).collect(),
            edge_features: files(&columns.edge_features),
            packs: packs.iter().map(|of| of.as_ref().map(|of| Arc::clone(&of.get().inner))).collect(),
            pools: Arc::clone(&self.topology.get().pools),
            spent: Arc::clone(&self.spent),
        }
    }
}

/// How samples with times are picked. None: there are no times.
fn temporal_of(times: Option<&Bound<'_, Times>>, strategy: &str) -> Result<Option<Temporal>> {
    let strategies = [("uniform", Strategy::Uniform), ("last", Strategy::Last)];
    let strategy = named("temporal", "value", strategy, &strategies)?;
    Ok(times.map(|times| Temporal { times: Arc::clone(&times.get().inner), strategy }))
}

/// The times of seeds, none if they have none.
fn copied_times(times: Option<&View<'_, i64>>) -> PyResult<Vec<i64>> {
    times.map_or(Ok(Vec::new()), |times| copied(times, "times"))
}

fn fanout(fanout: i64) -> Result<Option<usize>> {
    match fanout {
        -1 => Ok(None),
        0..=0x7fff_ffff => Ok(Some(fanout as usize)),
        _ => Err(Error::parameter("fanouts", format!("expected -1 (all) or at least 0, got {fanout}"))),
    }
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
    // SAFETY: numpy vouches for `len` numbers, and the sampler keeps the array.
    Ok(unsafe { RecordWeights::new(data(weights), weights.len(), wide) })
}
