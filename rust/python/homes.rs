//! Home parts for Python.

use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::edges::EdgeSource;
use super::partitions::vertex_partition;
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
) -> PyResult<Bound<'py, PyDict>> {
    with_parts(assignment, HomeParts { py, edges, k, options: &options })
}

struct HomeParts<'py, 'a> {
    py: Python<'py>,
    edges: &'a EdgeSource,
    k: u32,
    options: &'a Options,
}

impl<'py> WithParts for HomeParts<'py, '_> {
    type Output = Bound<'py, PyDict>;
    fn call<T: Part>(self, _: &str, parts: &[T]) -> PyResult<Bound<'py, PyDict>> {
        let stream = self.edges.stream();
        let partition = detached(self.py, self.options, |run| homes::home_parts(stream, parts, self.k, run))?;
        vertex_partition(self.py, partition)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(home_parts, module)?)
}
