//! How rows are coded and decoded.

use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::slice::{from_raw_parts, from_raw_parts_mut};

use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods, dtype};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::results::{View, data};
use crate::run::in_place;
use fastpart::internals::parts;

type Array<'py> = Bound<'py, PyUntypedArray>;

/// Rows coded or decoded between two polls of the cancel flag.
const STRIDE: usize = 1024;

/// Rows of 8 bits per number. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Coding {
    pub(super) inner: parts::Coding,
}

#[pymethods]
impl Coding {
    #[new]
    #[pyo3(signature = (width, columns = None))]
    fn new(py: Python<'_>, width: usize, columns: Option<View<'_, f32>>) -> PyResult<Self> {
        let columns = columns.as_ref().map(|columns| columns.as_slice()).transpose()?;
        let inner = parts::Coding::new(width, columns).map_err(|error| raise(py, error))?;
        Ok(Self { inner })
    }

    /// Codes `numbers` to `out`.
    fn encode(&self, py: Python<'_>, numbers: &Array<'_>, out: &Array<'_>) -> PyResult<()> {
        let count = self.check(py, out, numbers, out)?;
        let (coded, width) = (self.inner.coded_bytes(), self.inner.width());
        let (from, to) = (data(numbers).expose_provenance(), data(out).expose_provenance());
        each(py, count, |index| {
            let from = with_exposed_provenance(from + index * self.inner.decoded_bytes());
            let to = with_exposed_provenance_mut(to + index * coded);
            // SAFETY: as in `decode`. Nobody changes `numbers` either.
            unsafe { self.inner.encode(from_raw_parts(from, width), from_raw_parts_mut(to, coded)) };
        })
    }

    /// Decodes `rows` to `out`.
    fn decode(&self, py: Python<'_>, rows: &Array<'_>, out: &Array<'_>) -> PyResult<()> {
        let count = self.check(py, rows, out, out)?;
        let (from, to) = (data(rows).expose_provenance(), data(out).expose_provenance());
        each(py, count, |index| {
            let from = with_exposed_provenance(from + index * self.inner.coded_bytes());
            let to = with_exposed_provenance_mut(to + index * self.inner.decoded_bytes());
            // SAFETY: numpy vouches for the memory, which both arrays keep. The caller lets nobody else
            // change `out`.
            unsafe { self.inner.decode(from, from_raw_parts_mut(to, self.inner.width())) };
        })
    }
}

impl Coding {
    /// Refuses arrays other than coded rows and their numbers, of which `out` is written to. Returns how many
    /// there are.
    fn check(
        &self,
        py: Python<'_>,
        rows: &Array<'_>,
        numbers: &Array<'_>,
        out: &Array<'_>,
    ) -> PyResult<usize> {
        let count = rows.shape().first().copied().unwrap_or(0);
        let (coded, width) = (self.inner.coded_bytes(), self.inner.width());
        let writeable: bool = out.getattr("flags")?.getattr("writeable")?.extract()?;
        let fits = |array: &Array<'_>, width: usize, of: Bound<'_, PyArrayDescr>| {
            array.shape() == [count, width] && array.is_c_contiguous() && array.dtype().is_equiv_to(&of)
        };
        let aligned = data(numbers).cast::<f32>().is_aligned();
        let both = fits(rows, coded, dtype::<u8>(py)) && fits(numbers, width, dtype::<f32>(py));
        if writeable && aligned && both {
            return Ok(count);
        }
        Err(PyTypeError::new_err(format!(
            "expected the same number of C-contiguous rows of {coded} uint8 and of {width} float32"
        )))
    }
}

/// Calls `work` with every index below `count`.
fn each(py: Python<'_>, count: usize, work: impl Fn(usize) + Sync) -> PyResult<()> {
    in_place(py, |check| {
        for index in 0..count {
            work(index);
            if index.is_multiple_of(STRIDE) {
                check()?;
            }
        }
        Ok(())
    })
}
