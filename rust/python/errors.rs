//! Every [`Error`] as the exception that `fastpart.errors` declares for it, or as the matching builtin.

use std::path::Path;

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;

use crate::error::Error;

/// The exception for `error`.
pub fn raise(py: Python<'_>, error: Error) -> PyErr {
    let class = match &error {
        Error::Io { path, source } => return os_error(path, source),
        Error::Cancelled => return PyKeyboardInterrupt::new_err(()),
        Error::NotARegularFile { .. }
        | Error::Format { .. }
        | Error::Text { .. }
        | Error::IdOutOfRange { .. } => "GraphFormatError",
        Error::Parameter { .. } => "ParameterError",
        Error::Capacity(_) => "CapacityError",
        Error::MemoryBudget { .. } => "MemoryBudgetError",
        Error::FileChanged { .. } => "EdgeFileChangedError",
        Error::Internal(_) => "InternalError",
    };
    named(py, class, error.to_string())
}

/// The exception `class` of `fastpart.errors`.
pub fn named(py: Python<'_>, class: &str, message: String) -> PyErr {
    let made = py.import("fastpart.errors").and_then(|errors| errors.getattr(class)?.call1((message,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// `OSError(errno, text, path)`, of which Python makes `FileNotFoundError` and its kin.
fn os_error(path: &Path, source: &std::io::Error) -> PyErr {
    let errno = source.raw_os_error().unwrap_or(match source.kind() {
        std::io::ErrorKind::NotFound => libc::ENOENT,
        std::io::ErrorKind::AlreadyExists => libc::EEXIST,
        _ => libc::EIO,
    });
    let text = source.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    PyOSError::new_err((errno, text, path.as_os_str().to_owned()))
}
