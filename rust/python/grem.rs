//! GREM for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::edges::EdgeSource;
use super::partitions::vertex_partition;
use super::run::{Options, detached};
use crate::algorithms::grem::{Chunk, Grem};
use crate::partition::VertexPartitioner;

/// See `fastpart.grem`; `records` is the size of a chunk if that is no share.
#[pyfunction]
#[pyo3(signature = (edges, *, k, share, records, passes, refine, faithful, balance, shuffle, seed, options))]
#[expect(clippy::too_many_arguments, reason = "one per parameter of the algorithm")]
fn grem<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    share: f64,
    records: Option<u64>,
    passes: u32,
    refine: bool,
    faithful: bool,
    balance: f64,
    shuffle: bool,
    seed: u64,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let chunk = records.map_or(Chunk::Share(share), Chunk::Records);
    let grem = Grem { k, chunk, passes, refine, faithful, balance, shuffle, seed };
    vertex_partition(py, detached(py, &options, |run| grem.partition(edges.stream(), run))?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(grem, module)?)
}
