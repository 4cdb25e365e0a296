//! When in-edges and vertices came to be.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;

use super::topology::Topology;
use super::types::Types;
use crate::errors::raise;
use crate::results::{Array, View, copied};
use crate::run::in_place;
use fastpart::internals::sampling;

/// The times of a topology. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Times {
    pub(super) inner: Arc<sampling::Times>,
}

#[pymethods]
impl Times {
    #[new]
    #[pyo3(signature = (topology, vertices, edges, types = None))]
    fn new(
        py: Python<'_>,
        topology: Py<Topology>,
        vertices: Vec<Option<PathBuf>>,
        edges: Vec<Option<PathBuf>>,
        types: Option<&Bound<'_, Types>>,
    ) -> PyResult<Self> {
        let types = types.map(|types| Arc::clone(&types.get().inner));
        let times = sampling::Times::open(&topology.get().inner, types, &vertices, &edges);
        Ok(Self { inner: Arc::new(times.map_err(|error| raise(py, error))?) })
    }

    /// Times of vertices.
    fn of_rows<'py>(&self, py: Python<'py>, rows: View<'py, u32>) -> PyResult<Array<'py, i64>> {
        let rows = copied(&rows, "rows")?;
        let times = in_place(py, |_| self.inner.of_rows(&rows))?;
        Ok(PyArray1::from_vec(py, times))
    }
}
