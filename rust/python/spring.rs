//! SPRING for Python.

use numpy::{PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::edges::EdgeSource;
use super::results::array;
use super::run::{Options, detached};
use crate::partition::{VertexPartition, VertexPartitioner};
use crate::spring::Spring;

/// See `fastpart.spring`.
#[pyfunction]
#[pyo3(signature = (edges, *, k, balance, passes, batch, strict, degrees, options))]
#[expect(clippy::too_many_arguments, reason = "one per parameter of the algorithm")]
fn spring<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    balance: f64,
    passes: u32,
    batch: Option<u64>,
    strict: bool,
    degrees: Option<PyReadonlyArray1<'py, u32>>,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let degrees = degrees.map(|degrees| degrees.to_vec()).transpose()?;
    let spring = Spring { k, balance, passes, batch, strict, degrees };
    let partition = detached(py, &options, |run| spring.partition(edges.stream(), run))?;
    vertex_partition(py, partition)
}

/// The fields of a vertex partition.
pub fn vertex_partition(py: Python<'_>, partition: VertexPartition) -> PyResult<Bound<'_, PyDict>> {
    let VertexPartition { assignment, loads, cap, graph, .. } = partition;
    let fields = PyDict::new(py);
    fields.set_item("assignment", array(py, assignment)?)?;
    fields.set_item("loads", loads)?;
    fields.set_item("cap", cap)?;
    fields.set_item("n", graph.n)?;
    fields.set_item("m", graph.m)?;
    fields.set_item("loops", graph.loops)?;
    fields.set_item("checksum", graph.checksum)?;
    Ok(fields)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(spring, module)?)
}
