//! SPRING for Python.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::edges::EdgeSource;
use super::partitions::vertex_partition;
use super::results::copied;
use super::run::{Options, detached};
use crate::algorithms::spring::Spring;
use crate::capacity::BalanceOn;
use crate::partition::VertexPartitioner;

/// See `fastpart.spring`.
#[pyfunction]
#[pyo3(signature = (edges, *, k, balance, balance_on, balance_on_ratio, passes, batch, strict, degrees, options))]
#[expect(clippy::too_many_arguments, reason = "one per parameter of the algorithm")]
fn spring<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    k: u32,
    balance: f64,
    balance_on: Option<PyReadonlyArray1<'py, u32>>,
    balance_on_ratio: f64,
    passes: u32,
    batch: Option<u64>,
    strict: bool,
    degrees: Option<PyReadonlyArray1<'py, u32>>,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let degrees = degrees.map(|degrees| copied(&degrees, "degrees")).transpose()?;
    let weights = balance_on.map(|weights| copied(&weights, "balance_on")).transpose()?;
    let partition = detached(py, &options, |run| {
        let balance_on = weights.map(|weights| BalanceOn::new(weights, balance_on_ratio)).transpose()?;
        Spring { k, balance, passes, batch, strict, degrees, balance_on }.partition(edges.stream(), run)
    })?;
    vertex_partition(py, partition)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(spring, module)?)
}
