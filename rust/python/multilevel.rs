//! The multilevel partitioner for Python.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::edges::EdgeSource;
use super::partitions::vertex_partition;
use super::results::copied;
use super::run::{Options, detached};
use crate::algorithms::multilevel::{Multilevel, Second};
use crate::capacity::BalanceOn;
use crate::partition::AdjacencyPartitioner;

/// See `fastpart.multilevel`; not both of `volume_balance` and `balance_on`.
#[pyfunction]
#[pyo3(signature = (edges, *, symmetric, k, balance, volume_balance, balance_on, balance_on_ratio, seed, options))]
#[expect(clippy::too_many_arguments, reason = "one per parameter of the algorithm")]
fn multilevel<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    symmetric: bool,
    k: u32,
    balance: f64,
    volume_balance: Option<f64>,
    balance_on: Option<PyReadonlyArray1<'py, u32>>,
    balance_on_ratio: f64,
    seed: u64,
    options: Options,
) -> PyResult<Bound<'py, PyDict>> {
    let weights = balance_on.map(|weights| copied(&weights, "balance_on")).transpose()?;
    let partition = detached(py, &options, |run| {
        let second = match weights {
            Some(weights) => Some(Second::Weights(BalanceOn::new(weights, balance_on_ratio)?)),
            None => volume_balance.map(Second::Volume),
        };
        let multilevel = Multilevel { k, balance, second, seed };
        multilevel.validate(edges.stream().num_vertices())?;
        multilevel.partition(&*edges.csr(symmetric, run)?, run)
    })?;
    vertex_partition(py, partition)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(multilevel, module)?)
}
