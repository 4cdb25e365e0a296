//! The types of a topology.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;

use super::topology::Topology;
use crate::errors::raise;
use crate::results::{Array, View, copied};
use crate::run::in_place;
use fastpart::internals::sampling;

/// Types of vertices and of edges. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Types {
    pub(super) inner: Arc<sampling::Types>,
    pub(super) topology: Py<Topology>,
}

#[pymethods]
impl Types {
    #[new]
    fn new(
        py: Python<'_>,
        topology: Py<Topology>,
        folders: Vec<PathBuf>,
        firsts: Vec<i64>,
        ends: Vec<[u16; 2]>,
    ) -> PyResult<Self> {
        let opened = sampling::Types::open(&topology.get().inner, &folders, &firsts, ends);
        let inner = Arc::new(opened.map_err(|error| raise(py, error))?);
        Ok(Self { inner, topology })
    }

    #[getter]
    fn topology(&self, py: Python<'_>) -> Py<Topology> {
        self.topology.clone_ref(py)
    }

    /// The type of each row of the topology, and the row among those of the type.
    fn locate<'py>(
        &self,
        py: Python<'py>,
        rows: View<'py, u32>,
    ) -> PyResult<(Array<'py, u16>, Array<'py, u32>)> {
        let rows = copied(&rows, "rows")?;
        let (types, rows) = in_place(py, |_| {
            self.topology.get().inner.rows().check("rows", &rows)?;
            Ok(rows.iter().map(|&row| self.inner.locate(row)).collect::<(Vec<_>, Vec<_>)>())
        })?;
        Ok((PyArray1::from_vec(py, types), PyArray1::from_vec(py, rows)))
    }

    /// For each type the first row of each part, and the number of rows.
    #[getter]
    fn starts<'py>(&self, py: Python<'py>) -> Vec<Array<'py, i64>> {
        let of = |number| self.inner.starts(number).iter().map(|&start| i64::from(start)).collect();
        (0..self.inner.num_types()).map(|number| PyArray1::from_vec(py, of(number))).collect()
    }
}
