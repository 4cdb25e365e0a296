//! Home parts for Python.

use numpy::PyUntypedArray;
use pyo3::prelude::*;

use super::edges::EdgeSource;
use super::partitions::result;
use super::results::{Part, WithParts, with_parts};
use super::run::{Options, detached};
use crate::measure::homes;

/// See `fastpart.home_parts`.
#[pyfunction]
fn home_parts<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: &Bound<'py, PyUntypedArray>,
    k: u32,
    options: Options,
) -> PyResult<Bound<'py, PyAny>> {
    with_parts(assignment, HomeParts { py, edges, k, options: &options })
}

struct HomeParts<'py, 'a> {
    py: Python<'py>,
    edges: &'a EdgeSource,
    k: u32,
    options: &'a Options,
}

impl<'py> WithParts for HomeParts<'py, '_> {
    type Output = Bound<'py, PyAny>;
    fn call<T: Part>(self, _: &str, parts: &[T]) -> PyResult<Bound<'py, PyAny>> {
        let stream = self.edges.stream();
        let partition = detached(self.py, self.options, |run| homes::home_parts(stream, parts, self.k, run))?;
        result(self.py, partition.into())
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(home_parts, module)?)
}
