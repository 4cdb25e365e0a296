//! Home parts for Python.

use numpy::PyUntypedArray;
use pyo3::prelude::*;

use crate::edges::EdgeSource;
use crate::partitions::results::result;
use crate::results::with_parts;
use crate::run::{Options, detached};
use fastpart::internals::base::Meter;
use fastpart::internals::measure;

/// See `fastpart.home_parts`.
#[pyfunction]
pub fn home_parts<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: &Bound<'py, PyUntypedArray>,
    k: u32,
    options: Options,
) -> PyResult<Bound<'py, PyAny>> {
    let (stream, meter) = (edges.stream(), Meter::start());
    let home = with_parts!(assignment, parts => {
        detached(py, &options, |run| measure::home_parts(stream, parts, k, run))?
    });
    result(py, home.into(), meter.usage())
}
