//! Clusterings for Python.

use std::num::{NonZeroU64, NonZeroUsize};

use numpy::PyArray1;
use pyo3::prelude::*;

use crate::edges::EdgeSource;
use crate::edges::Identity;
use crate::results::array;
use crate::run::{Options, detached};
use fastpart::internals::base::{Error, Result};
use fastpart::internals::clustering;
use fastpart::internals::clustering::{Clusters, Hollocou, Modularity};
use fastpart::internals::graph::{self, Degrees, degrees};

/// A clustering of the core.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct ClusterResult {
    assignment: Py<PyArray1<i32>>,
    sizes: Py<PyArray1<u32>>,
    volumes: Py<PyArray1<i64>>,
    modularity: f64,
    max_volume: Option<u64>,
    graph: Identity,
}

/// See `fastpart.cluster`.
#[pyfunction]
#[pyo3(signature = (edges, *, max_vertices, max_volume, batch, symmetric, options))]
pub fn cluster_modularity(
    py: Python<'_>,
    edges: &EdgeSource,
    max_vertices: Option<u64>,
    max_volume: Option<u64>,
    batch: Option<NonZeroUsize>,
    symmetric: bool,
    options: Options,
) -> PyResult<ClusterResult> {
    let (clusters, modularity, graph) = detached(py, &options, |run| {
        let csr = edges.csr(false, symmetric, run)?;
        let clusters = Modularity { max_vertices, max_volume, batch }.cluster(&csr, run)?;
        let modularity = clustering::modularity(&csr, &clusters, run)?;
        Ok((clusters, modularity, csr.graph().clone()))
    })?;
    result(py, clusters, modularity, max_volume, graph)
}

/// See `fastpart.cluster`.
#[pyfunction]
#[pyo3(signature = (edges, *, max_volume, batch, options))]
pub fn cluster_hollocou(
    py: Python<'_>,
    edges: &EdgeSource,
    max_volume: Option<u64>,
    batch: Option<NonZeroU64>,
    options: Options,
) -> PyResult<ClusterResult> {
    let (clusters, modularity, max_volume, graph) = detached(py, &options, |run| {
        let stream = edges.stream();
        let n = stream.num_vertices();
        run.require(Hollocou::memory(n), format!("hollocou clustering of {n} vertices"))?;
        let Degrees { degree, graph } = degrees::scan(stream, run)?;
        let max_volume = max_volume.unwrap_or_else(|| Hollocou::usual_volume(n, graph.m - graph.loops));
        let clusters = Hollocou { batch, ..Hollocou::new(max_volume) }.cluster(stream, degree, run)?;
        let modularity = clustering::modularity_of_stream(stream, &clusters, run)?;
        Ok((clusters, modularity, max_volume, graph))
    })?;
    result(py, clusters, modularity, Some(max_volume), graph)
}

fn result(
    py: Python<'_>,
    clusters: Clusters,
    modularity: f64,
    max_volume: Option<u64>,
    graph: graph::Identity,
) -> PyResult<ClusterResult> {
    in_int32(&clusters).map_err(|error| crate::errors::raise(py, error))?;
    Ok(ClusterResult {
        assignment: array(py, clusters.cluster_of.reinterpret::<i32>())?.unbind(),
        sizes: array(py, clusters.sizes)?.unbind(),
        volumes: array(py, clusters.volumes.reinterpret::<i64>())?.unbind(),
        modularity,
        max_volume,
        graph: graph.into(),
    })
}

/// Arrays of clusters are int32, as those of parts are.
fn in_int32(clusters: &Clusters) -> Result<()> {
    if clusters.count() <= i32::MAX as u32 {
        return Ok(());
    }
    let count = clusters.count();
    Err(Error::Capacity(format!(
        "{count} clusters are too many. At most 2^31 - 1 can be numbered. Most vertices are alone"
    )))
}
