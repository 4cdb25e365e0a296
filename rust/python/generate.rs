//! Generators for Python.

use std::path::PathBuf;

use numpy::PyArray1;
use pyo3::prelude::*;

use super::errors::raise;
use super::run::{Options, detached};
use crate::generate;
use crate::generate::{BarabasiAlbert, Generator, Grid, Planted as Model, Rmat};

/// Writes an R-MAT graph and returns its checksum.
#[pyfunction]
#[pyo3(signature = (target, *, n, m, seed, options))]
fn generate_rmat(
    py: Python<'_>,
    target: PathBuf,
    n: u64,
    m: u64,
    seed: u64,
    options: Options,
) -> PyResult<String> {
    detached(py, &options, |run| generate::write(&Rmat::new(n, m, seed)?, &target, run))
}

/// Writes a Barabási-Albert graph and returns its checksum.
#[pyfunction]
#[pyo3(signature = (target, *, n, m, seed, options))]
fn generate_ba(
    py: Python<'_>,
    target: PathBuf,
    n: u64,
    m: u64,
    seed: u64,
    options: Options,
) -> PyResult<String> {
    detached(py, &options, |run| generate::write(&BarabasiAlbert::new(n, m, seed)?, &target, run))
}

/// Writes a grid and returns its number of records and checksum.
#[pyfunction]
#[pyo3(signature = (target, *, rows, columns, options))]
fn generate_grid(
    py: Python<'_>,
    target: PathBuf,
    rows: u64,
    columns: u64,
    options: Options,
) -> PyResult<(u64, String)> {
    detached(py, &options, |run| {
        let grid = Grid::new(rows, columns)?;
        Ok((grid.num_edges(), generate::write(&grid, &target, run)?))
    })
}

/// A planted partition graph.
#[pyclass(frozen, module = "fastpart._core")]
struct Planted {
    model: Model,
}

type Ids<'py> = Bound<'py, PyArray1<i64>>;

#[pymethods]
impl Planted {
    #[new]
    #[pyo3(signature = (*, n, m, classes, features, seed))]
    fn new(py: Python<'_>, n: u64, m: u64, classes: u64, features: u32, seed: u64) -> PyResult<Self> {
        let model = Model::new(n, m, classes, features, seed).map_err(|error| raise(py, error))?;
        Ok(Self { model })
    }

    /// Class of each vertex.
    fn labels<'py>(&self, py: Python<'py>, options: Options) -> PyResult<Ids<'py>> {
        Ok(PyArray1::from_vec(py, detached(py, &options, |run| self.model.labels(run))?))
    }

    /// Vertices for training, validation and test.
    fn split<'py>(&self, py: Python<'py>, options: Options) -> PyResult<(Ids<'py>, Ids<'py>, Ids<'py>)> {
        let [train, val, test] = detached(py, &options, |run| self.model.split(run))?;
        Ok((PyArray1::from_vec(py, train), PyArray1::from_vec(py, val), PyArray1::from_vec(py, test)))
    }

    /// Writes the features as `.npy`.
    fn write_features(&self, py: Python<'_>, target: PathBuf, options: Options) -> PyResult<()> {
        detached(py, &options, |run| self.model.write_features(&target, run))
    }

    /// Writes the edges and returns their checksum.
    fn write(&self, py: Python<'_>, target: PathBuf, options: Options) -> PyResult<String> {
        detached(py, &options, |run| generate::write(&self.model, &target, run))
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Planted>()?;
    module.add_function(wrap_pyfunction!(generate_rmat, module)?)?;
    module.add_function(wrap_pyfunction!(generate_ba, module)?)?;
    module.add_function(wrap_pyfunction!(generate_grid, module)?)
}
