//! Every [`Error`] as the exception that `fastpart.errors` declares for it, or as the matching builtin.

use std::path::Path;

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use fastpart::internals::base::Error;

/// The exception for `error`.
pub fn raise(py: Python<'_>, error: Error) -> PyErr {
    let class = match &error {
        Error::Io { path, source } => return os_error(py, path, source),
        Error::Cancelled => return PyKeyboardInterrupt::new_err(()),
        Error::NotARegularFile { .. }
        | Error::Format { .. }
        | Error::Text { .. }
        | Error::IdOutOfRange { .. } => "GraphFormatError",
        Error::Name { .. } => "_NameFoundError",
        Error::Parameter { .. } => "ParameterError",
        Error::Capacity(_) => "CapacityError",
        Error::MemoryBudget { .. } | Error::MemoryRefused { .. } => "MemoryBudgetError",
        Error::FileChanged { .. } => "EdgeFileChangedError",
        Error::Internal(_) => "InternalError",
    };
    named(py, class, error.to_string())
}

/// The exception `class` of `fastpart.errors`.
pub fn named(py: Python<'_>, class: &str, message: String) -> PyErr {
    let exception = py.import("fastpart.errors").and_then(|errors| errors.getattr(class)?.call1((message,)));
    exception.map_or_else(|error| error, PyErr::from_value)
}

/// `OSError(errno, text, path)`, which Python turns into `FileNotFoundError` and its siblings.
fn os_error(py: Python<'_>, path: &Path, source: &std::io::Error) -> PyErr {
    let errno = source.raw_os_error().unwrap_or(match source.kind() {
        std::io::ErrorKind::NotFound => libc::ENOENT,
        std::io::ErrorKind::AlreadyExists => libc::EEXIST,
        std::io::ErrorKind::NotADirectory => libc::ENOTDIR,
        _ => libc::EIO,
    });
    let text = source.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    match decoded(py, path) {
        Ok(path) => PyOSError::new_err((errno, text, path.unbind())),
        Err(error) => error,
    }
}

/// The name that Python has for `path`: by the encoding of the locale, where pyo3 takes UTF-8 for granted.
pub fn decoded<'py>(py: Python<'py>, path: &Path) -> PyResult<Bound<'py, PyAny>> {
    py.import("os")?.call_method1("fsdecode", (PyBytes::new(py, path.as_os_str().as_encoded_bytes()),))
}
