//! The parts that are sampled.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;

use super::batch::{Arrays, Columns};
use super::sampler::Fanouts;
use super::types::Types;
use crate::errors::raise;
use crate::results::{Array, View, array, copied};
use crate::run::{Options, detached, in_place};
use crate::traffic::{Cache, PartTraffic, cache_sizes};
use fastpart::internals::base::Result;
use fastpart::internals::sampling::{
    self, Batch, EdgeColumns, Part, Place, Pools, RowSpace, TopologyEdges, Workers,
};
use fastpart::internals::traffic::{self, Epoch};

/// The in-edges of all vertices of a partition directory. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Topology {
    pub(super) inner: Arc<sampling::Topology>,
    pub(super) workers: Arc<Workers>,
    pub(super) pools: Arc<Pools>,
}

impl Topology {
    fn of(topology: sampling::Topology) -> Self {
        let inner = Arc::new(topology);
        let workers = Arc::new(Workers::new(Arc::clone(&inner)));
        Self { inner, workers, pools: Arc::default() }
    }

    /// The numbers that `append` finds for rows.
    fn of_rows<'py>(
        &self,
        py: Python<'py>,
        rows: View<'py, u32>,
        append: fn(&sampling::Topology, &[u32], &mut Vec<i64>) -> Result<()>,
    ) -> PyResult<Array<'py, i64>> {
        let rows = copied(&rows, "rows")?;
        let found = in_place(py, |_| {
            self.inner.check_rows("rows", &rows)?;
            let mut found = Vec::with_capacity(rows.len());
            append(&self.inner, &rows, &mut found).map(|()| found)
        })?;
        Ok(PyArray1::from_vec(py, found))
    }
}

#[pymethods]
impl Topology {
    #[new]
    fn new(py: Python<'_>, folders: Vec<PathBuf>) -> PyResult<Self> {
        let options = Options::default();
        detached(py, &options, |run| sampling::Topology::open(&folders, run)).map(Self::of)
    }

    /// A graph in memory.
    #[staticmethod]
    fn in_memory(
        py: Python<'_>,
        vertices: View<'_, i64>,
        indptr: View<'_, i64>,
        indices: View<'_, i32>,
    ) -> PyResult<Self> {
        let arrays =
            [vertices.as_any(), indptr.as_any(), indices.as_any()].map(|array| array.clone().unbind());
        let (vertices, indptr, indices) = (vertices.as_slice()?, indptr.as_slice()?, indices.as_slice()?);
        // SAFETY: the arrays own these items or keep what does.
        let part = unsafe { Part::in_memory(vertices, indptr, indices, Box::new(arrays)) };
        let topology = part.and_then(|part| sampling::Topology::of(vec![part]));
        topology.map(Self::of).map_err(|error| raise(py, error))
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
    fn starts<'py>(&self, py: Python<'py>) -> Array<'py, i64> {
        starts_of(py, self.inner.rows())
    }

    #[getter]
    fn edge_starts<'py>(&self, py: Python<'py>) -> Array<'py, i64> {
        starts_of(py, self.inner.edge_rows())
    }

    /// Bounds the memory of batches that waits to be used again.
    fn keep_at_most(&self, most: u64) {
        self.pools.keep_at_most(most);
    }

    /// Rows of vertices.
    fn rows_of<'py>(&self, py: Python<'py>, ids: View<'py, i64>) -> PyResult<Array<'py, u32>> {
        let ids = ids.as_slice()?.to_vec();
        let rows = in_place(py, |check| self.inner.rows_of(&ids, check))?;
        Ok(PyArray1::from_vec(py, rows))
    }

    /// Rows of in-edges.
    fn edge_rows_of<'py>(
        &self,
        py: Python<'py>,
        targets: View<'py, u32>,
        ids: View<'py, i64>,
        num_records: i64,
    ) -> PyResult<Array<'py, i64>> {
        let (targets, ids) = (copied(&targets, "targets")?, copied(&ids, "ids")?);
        let rows = in_place(py, |_| self.inner.edge_rows_of(&targets, &ids, num_records))?;
        Ok(PyArray1::from_vec(py, rows))
    }

    /// Original ids of rows.
    fn ids_of<'py>(&self, py: Python<'py>, rows: View<'py, u32>) -> PyResult<Array<'py, i64>> {
        self.of_rows(py, rows, sampling::append_ids)
    }

    /// In-degrees of rows in the whole graph.
    fn degrees_of<'py>(&self, py: Python<'py>, rows: View<'py, u32>) -> PyResult<Array<'py, i64>> {
        self.of_rows(py, rows, sampling::append_degrees)
    }

    /// Expected number of steps of an epoch whose batch has each row.
    #[pyo3(signature = (seeds, fanouts, *, num_seeds, batch_size, types = None, options = None))]
    fn accesses<'py>(
        &self,
        py: Python<'py>,
        seeds: View<'py, u32>,
        fanouts: Fanouts,
        num_seeds: u64,
        batch_size: u64,
        types: Option<&Bound<'py, Types>>,
        options: Option<Options>,
    ) -> PyResult<Array<'py, f32>> {
        let (seeds, types) = (copied(&seeds, "seeds")?, types.map(|types| &*types.get().inner));
        let accesses = detached(py, &options.unwrap_or_default(), |run| {
            let epoch = Epoch::by_relation(num_seeds, batch_size, &fanouts.by_relation())?;
            self.inner.check_rows("seeds", &seeds)?;
            let edges = TopologyEdges { topology: &self.inner, types };
            traffic::expected_steps(&edges, seeds, &epoch, run)
        })?;
        array(py, accesses)
    }

    /// The rows that each part fetches in an epoch.
    #[pyo3(signature = (seeds, fanouts, *, batch_size, caches, row_bytes, types = None, options))]
    fn traffic<'py>(
        &self,
        py: Python<'py>,
        seeds: View<'py, u32>,
        fanouts: Vec<Vec<i64>>,
        batch_size: u64,
        caches: Vec<Cache>,
        row_bytes: Vec<f64>,
        types: Option<&Bound<'py, Types>>,
        options: Options,
    ) -> PyResult<Vec<PartTraffic>> {
        let (seeds, types) = (copied(&seeds, "seeds")?, types.map(|types| &*types.get().inner));
        let found = detached(py, &options, |run| {
            let epoch = Epoch::by_relation(seeds.len() as u64, batch_size, &fanouts)?;
            self.inner.check_rows("seeds", &seeds)?;
            let starts = self.inner.rows().starts().windows(2).zip(0..);
            let parts = starts.flat_map(|(rows, part)| (rows[0]..rows[1]).map(move |_| part));
            let (assignment, k): (Vec<i32>, _) = (parts.collect(), self.inner.parts().len() as u32);
            let edges = TopologyEdges { topology: &self.inner, types };
            let caches = (&*cache_sizes(&caches), &*row_bytes);
            traffic::traffic(&edges, (&assignment, k), &seeds, &epoch, caches, run)
        })?;
        Ok(found.into_iter().map(PartTraffic::from).collect())
    }

    /// The in-edges between vertices.
    #[pyo3(signature = (rows, *, edge_ids = false, edge_rows = false))]
    fn subgraph(
        &self,
        py: Python<'_>,
        rows: View<'_, u32>,
        edge_ids: bool,
        edge_rows: bool,
    ) -> PyResult<Arrays> {
        let edges = EdgeColumns { ids: edge_ids, rows: edge_rows };
        let rows = copied(&rows, "rows")?;
        let mut worker = self.workers.take().map_err(|error| raise(py, error))?;
        let mut sample = self.pools.sample();
        let made = in_place(py, |check| {
            sampling::subgraph(&self.inner, &rows, edges, &mut worker, check, &mut sample)
        });
        self.workers.put_back(worker);
        made?;
        let columns = Columns { typed: false, edges, features: Vec::new(), edge_features: None };
        columns.of(py, Batch { sample, features: Vec::new(), edge_features: None })
    }

    /// Random walks.
    #[pyo3(signature = (roots, length, *, seed, epoch = 0, step = 0))]
    fn walks<'py>(
        &self,
        py: Python<'py>,
        roots: View<'py, u32>,
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

fn starts_of<'py>(py: Python<'py>, rows: &RowSpace) -> Array<'py, i64> {
    PyArray1::from_vec(py, rows.starts().iter().map(|&start| start as i64).collect())
}
