//! The parts of a partition directory, for Python.

use std::path::PathBuf;
use std::sync::Mutex;

use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::edges::EdgeSource;
use super::errors::raise;
use super::results::{View, settled, with_parts};
use super::run::{Options, detached};
use fastpart::internals::base::{Error, Result, locked};
use fastpart::internals::edges::{Directedness, Directions, EdgeStream, Relations};
use fastpart::internals::parts;
use fastpart::internals::parts::{Gather, PartSizes, Portion, Rows};

/// Writes parts of a vertex partition below `into`. Returns the sizes of each, as in `part.json`. By default
/// all parts are written, and the temporary file lies beside them. For a range of parts it lies in the
/// directory of temporary files.
#[pyfunction]
#[pyo3(signature = (edges, assignment, k, *, directedness, relations, halo_hops, into, options, parts = None))]
pub fn write_vertex_parts<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: View<'py, i32>,
    k: u32,
    directedness: &str,
    relations: Option<Vec<(u64, Option<u16>)>>,
    halo_hops: u32,
    into: PathBuf,
    options: Options,
    parts: Option<(u32, u32)>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let assignment = &*settled(&assignment, "parts")?;
    let whole = Portion::whole(k, halo_hops, &into);
    let first = parts.map_or(0, |(first, _)| first as usize);
    let sizes = detached(py, &options, |run| {
        let directions = directions(edges.stream(), directedness, relations.as_deref())?;
        let portion = parts.map(|(first, end)| Portion {
            parts: first..end,
            temporary: run.tmp_dir(),
            ..whole.clone()
        });
        let portion = portion.as_ref().unwrap_or(&whole);
        parts::write_vertex_parts(edges.stream(), assignment, k, &directions, portion, run)
    })?;
    let dicts = sizes.iter().zip(first..).map(|(sizes, part)| common(py, part, sizes));
    dicts.collect()
}

/// The directed edges that the records stand for. `relations` has the number of records of each relation, and
/// the number of their reverse edges. Without it all records are read alike.
pub fn directions(
    edges: &dyn EdgeStream,
    directedness: &str,
    relations: Option<&[(u64, Option<u16>)]>,
) -> Result<Directions> {
    Ok(match relations {
        None => Directedness::named(directedness)?.into(),
        Some(relations) => Directions::ByRelation(Relations::new(relations, edges.num_edges())?),
    })
}

/// Writes the parts of an edge partition below `into`. Returns what `part.json` says of each.
#[pyfunction]
#[pyo3(signature = (edges, assignment, k, *, directedness, into, options))]
pub fn write_edge_parts<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    assignment: &Bound<'py, PyUntypedArray>,
    k: u32,
    directedness: &str,
    into: PathBuf,
    options: Options,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let directedness = Directedness::named(directedness).map_err(|error| raise(py, error))?;
    let sizes = with_parts!(assignment, parts => detached(py, &options, |run| {
        parts::write_edge_parts(edges.stream(), parts, k, directedness, &into, run)
    })?);
    let dict = |(part, sizes): (usize, &PartSizes)| {
        let fields = common(py, part, sizes)?;
        fields.set_item("num_roots", sizes.num_roots)?;
        fields.set_item("num_send", sizes.num_send)?;
        Ok(fields)
    };
    sizes.iter().enumerate().map(dict).collect()
}

fn common<'py>(py: Python<'py>, part: usize, sizes: &PartSizes) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("part", part)?;
    fields.set_item("num_inner", sizes.num_inner)?;
    fields.set_item("num_halo", sizes.num_halo)?;
    fields.set_item("num_rows", sizes.num_rows)?;
    fields.set_item("num_edges", sizes.num_edges)?;
    Ok(fields)
}

/// Sends the rows of an array to the parts that hold them. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct RowGatherer {
    inner: Mutex<Option<parts::RowGatherer>>,
    dtype: Py<PyArrayDescr>,
    row_shape: Vec<usize>,
}

impl RowGatherer {
    fn take(&self) -> PyResult<parts::RowGatherer> {
        let taken = locked(&self.inner).take();
        taken.ok_or_else(|| PyValueError::new_err("the gatherer is finished, at work, or has failed"))
    }
}

#[pymethods]
impl RowGatherer {
    #[new]
    #[pyo3(signature = (into, name, *, ids, ranges, first, num_rows, dtype, row_shape, options))]
    fn new(
        py: Python<'_>,
        into: PathBuf,
        name: String,
        ids: String,
        ranges: Vec<(u64, u64)>,
        first: u64,
        num_rows: u64,
        dtype: Bound<'_, PyArrayDescr>,
        row_shape: Vec<usize>,
        options: Options,
    ) -> PyResult<Self> {
        if dtype.has_object() {
            return Err(PyTypeError::new_err(format!(
                "{name}: rows of dtype {dtype} hold Python objects, not data"
            )));
        }
        let row_bytes = row_shape.iter().try_fold(dtype.itemsize(), |bytes, &size| bytes.checked_mul(size));
        let too_large =
            || raise(py, Error::Capacity(format!("{name}: rows of shape {row_shape:?} exceed the memory")));
        let row_bytes = row_bytes.filter(|&bytes| bytes <= isize::MAX as usize).ok_or_else(too_large)?;
        let descr = dtype.getattr("str")?.extract()?;
        let shape = row_shape.iter().map(|&size| size as u64).collect();
        let gather = Gather { into, name, ids, ranges, first, num_rows, descr, row_shape: shape, row_bytes };
        let inner = detached(py, &options, |run| parts::RowGatherer::new(gather, run))?;
        Ok(Self { inner: Mutex::new(Some(inner)), dtype: dtype.unbind(), row_shape })
    }

    /// Takes the next rows.
    fn push(&self, py: Python<'_>, rows: &Bound<'_, PyUntypedArray>, options: Options) -> PyResult<()> {
        let shape = rows.shape();
        let fits = shape.split_first().is_some_and(|(_, rest)| rest == self.row_shape);
        if !fits || !rows.is_c_contiguous() || !rows.dtype().is_equiv_to(self.dtype.bind(py)) {
            let text = format!(
                "rows need to be C-contiguous, of dtype {} and shape (rows, *{:?}). These are {} {shape:?}",
                self.dtype.bind(py),
                self.row_shape,
                rows.dtype()
            );
            return Err(PyTypeError::new_err(text));
        }
        let row_bytes = rows.dtype().itemsize() * self.row_shape.iter().product::<usize>();
        // SAFETY: the pointer comes from a live array object. Only its fields are read here.
        let start = unsafe { (*rows.as_array_ptr()).fields.data }.cast::<u8>().cast_const();
        // SAFETY: numpy vouches for `shape[0]` contiguous rows, and the caller's reference keeps them during
        // the call.
        let rows = unsafe { Rows::new(start, shape[0] as u64, row_bytes) };
        let mut inner = self.take()?;
        detached(py, &options, |run| inner.push(rows, run))?;
        *locked(&self.inner) = Some(inner);
        Ok(())
    }

    /// Ends the work.
    fn finish(&self, py: Python<'_>, options: Options) -> PyResult<()> {
        let inner = self.take()?;
        detached(py, &options, |run| inner.finish(run))
    }
}
