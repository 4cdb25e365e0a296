//! The packed rows of an epoch.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;

use super::features::Features;
use crate::errors::raise;
use crate::results::View;
use fastpart::internals::sampling;

/// A pack. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Pack {
    pub(super) inner: Arc<sampling::Pack>,
}

#[pymethods]
impl Pack {
    #[new]
    fn new(
        py: Python<'_>,
        file: PathBuf,
        features: &Features,
        offsets: View<'_, i64>,
        checksums: View<'_, u64>,
    ) -> PyResult<Self> {
        let checksums = checksums.as_slice()?.to_vec();
        let opened =
            sampling::Pack::open(&file, features.inner.stored_bytes(), offsets.as_slice()?, checksums);
        Ok(Self { inner: Arc::new(opened.map_err(|error| raise(py, error))?) })
    }
}
