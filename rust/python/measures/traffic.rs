//! Predicted traffic, for Python.

use pyo3::prelude::*;

use crate::edges::EdgeSource;
use crate::results::{Array, View, array, copied, settled};
use crate::run::{Options, detached};
use crate::store::directions;
use fastpart::internals::edges::Directions;
use fastpart::internals::traffic::{self, Epoch, GraphEdges, TypedEdges};

/// Rows per epoch of a part. See `_core.pyi`.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct PartTraffic {
    seeds: u64,
    rows: Vec<f64>,
    remote: Vec<f64>,
    cached: Vec<Vec<u64>>,
    saved: Vec<Vec<f64>>,
}

impl From<traffic::PartTraffic> for PartTraffic {
    fn from(part: traffic::PartTraffic) -> Self {
        let traffic::PartTraffic { seeds, rows, remote, cached, saved } = part;
        Self { seeds, rows, remote, cached, saved }
    }
}

/// The size of a cache: an integer is bytes, a float is a share.
#[derive(FromPyObject)]
pub enum Cache {
    Bytes(u64),
    Share(f64),
}

/// The sizes of caches, as the core takes them.
pub fn cache_sizes(caches: &[Cache]) -> Vec<traffic::Cache> {
    let size = |cache: &Cache| match *cache {
        Cache::Bytes(bytes) => traffic::Cache::Bytes(bytes),
        Cache::Share(share) => traffic::Cache::Share(share),
    };
    caches.iter().map(size).collect()
}

/// The rows that each part of a graph fetches in an epoch.
#[pyfunction]
#[pyo3(signature = (
    edges, assignment, k, seeds, fanouts, *, directedness, relations, types, batch_size, caches, row_bytes, options
))]
pub fn predict_traffic<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: View<'py, i32>,
    k: u32,
    seeds: View<'py, u32>,
    fanouts: Vec<Vec<i64>>,
    directedness: &str,
    relations: Option<Vec<(u64, Option<u16>)>>,
    types: Vec<u64>,
    batch_size: u64,
    caches: Vec<Cache>,
    row_bytes: Vec<f64>,
    options: Options,
) -> PyResult<Vec<PartTraffic>> {
    let (parts, seeds) = (settled(&assignment, "parts")?, copied(&seeds, "seeds")?);
    detached(py, &options, |run| {
        let epoch = Epoch::by_relation(seeds.len() as u64, batch_size, &fanouts)?;
        let records = edges.stream();
        let directions = directions(records, directedness, relations.as_deref())?;
        let (sizes, parts) = (cache_sizes(&caches), (&*parts, k));
        let caches = (&*sizes, &*row_bytes);
        match &directions {
            Directions::All(_) => {
                let edges = GraphEdges { records, directions: &directions };
                traffic::traffic(&edges, parts, &seeds, &epoch, caches, run)
            }
            Directions::ByRelation(relations) => {
                let edges = TypedEdges { records, relations, types: &types };
                traffic::traffic(&edges, parts, &seeds, &epoch, caches, run)
            }
        }
    })
    .map(|parts| parts.into_iter().map(PartTraffic::from).collect())
}

/// A weight for each record: how often training samples it.
#[pyfunction]
#[pyo3(signature = (edges, k, seeds, fanouts, *, directedness, relations, batch_size, options))]
pub fn sampling_weights<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    seeds: View<'py, u32>,
    fanouts: Vec<i64>,
    directedness: &str,
    relations: Option<Vec<(u64, Option<u16>)>>,
    batch_size: u64,
    options: Options,
) -> PyResult<Array<'py, u32>> {
    let seeds = copied(&seeds, "seeds")?;
    let weights = detached(py, &options, |run| {
        let directions = directions(edges.stream(), directedness, relations.as_deref())?;
        let edges = GraphEdges { records: edges.stream(), directions: &directions };
        traffic::sampling_weights(&edges, &seeds, k, batch_size, &fanouts, run)
    })?;
    array(py, weights)
}
