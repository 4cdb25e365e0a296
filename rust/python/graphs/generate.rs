//! Generators for Python.

use std::path::PathBuf;

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::results::Array;
use crate::run::{Options, detached};
use fastpart::internals::generate;
use fastpart::internals::generate::{BarabasiAlbert, FeatureDtype, Generator, Grid, Planted as Model, Rmat};

/// A function that writes a graph of a model of `n`, `m` and a seed, and returns its checksum.
macro_rules! writer {
    ($name:ident, $model:ty) => {
        #[pyfunction]
        #[pyo3(signature = (target, *, n, m, seed, options))]
        pub fn $name(
            py: Python<'_>,
            target: PathBuf,
            n: u64,
            m: u64,
            seed: u64,
            options: Options,
        ) -> PyResult<String> {
            detached(py, &options, |run| generate::write(&<$model>::new(n, m, seed)?, &target, run))
        }
    };
}
writer!(generate_rmat, Rmat);
writer!(generate_ba, BarabasiAlbert);

/// Writes a grid and returns its number of records and checksum.
#[pyfunction]
#[pyo3(signature = (target, *, rows, columns, options))]
pub fn generate_grid(
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
pub struct Planted {
    model: Model,
}

type Ids<'py> = Array<'py, i64>;

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
    fn write_features(&self, py: Python<'_>, target: PathBuf, dtype: &str, options: Options) -> PyResult<()> {
        let dtype = match dtype {
            "float32" => FeatureDtype::Float32,
            "float16" => FeatureDtype::Float16,
            "int8" => FeatureDtype::Int8,
            _ => return Err(PyValueError::new_err(format!("dtype: unknown {dtype:?}"))),
        };
        detached(py, &options, |run| self.model.write_features(&target, dtype, run))
    }

    /// Writes the edges and returns their checksum.
    fn write(&self, py: Python<'_>, target: PathBuf, options: Options) -> PyResult<String> {
        detached(py, &options, |run| generate::write(&self.model, &target, run))
    }
}
