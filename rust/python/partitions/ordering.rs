//! Orders of the vertices for Python.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::edges::EdgeSource;
use crate::edges::Identity;
use crate::results::{View, settled};
use crate::run::{Options, detached};
use fastpart::internals::algorithms::multilevel::order as ordering;
use fastpart::internals::convert::renumber;
use fastpart::internals::graph::packed_len;

/// A graph in another order of its vertices.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct Ordered {
    graph: Identity,
    /// Loops and checksum of the given graph.
    origin: Identity,
    /// Bytes per entry of a packed adjacency: of the given graph, and of this one.
    bytes_per_entry: (f64, f64),
}

/// See `fastpart.order`.
#[pyfunction]
#[pyo3(signature = (edges, target, *, assignment, k, seed, symmetric, options))]
pub fn order(
    py: Python<'_>,
    edges: &EdgeSource,
    target: PathBuf,
    assignment: Option<View<'_, u32>>,
    k: u32,
    seed: u64,
    symmetric: bool,
    options: Options,
) -> PyResult<Ordered> {
    let part_of = assignment.as_ref().map(|assignment| settled(assignment, "parts")).transpose()?;
    detached(py, &options, |run| {
        let csr = edges.csr(false, symmetric, run)?;
        let ids = ordering::order(&csr, part_of.as_deref().map(|part_of| (part_of, k)), seed, run)?;
        let places = ordering::places(&ids, run)?;
        run.begin("measure", 2 * csr.graph().n);
        let [given, ordered] = [None, Some(&places[..])].map(|places| packed_len(&csr, places, run));
        let per_entry = |bytes: u64| bytes as f64 / csr.num_entries().max(1) as f64;
        let bytes_per_entry = (per_entry(given?), per_entry(ordered?));
        let origin = csr.graph().clone().into();
        drop(csr);
        let written = renumber(edges.stream(), &ids, &places, &target, run)?;
        let graph = Identity { n: written.n, m: written.m, loops: written.loops, checksum: written.checksum };
        Ok(Ordered { graph, origin, bytes_per_entry })
    })
}
