//! The packed rows of an epoch.

use std::sync::Arc;

use pyo3::prelude::*;

use fastpart::internals::sampling;

/// A pack. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Pack {
    pub(super) inner: Arc<sampling::Pack>,
}
