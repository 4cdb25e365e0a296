//! How coded rows are decoded.

use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use std::slice::from_raw_parts_mut;

use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods, dtype};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::features::data;
use crate::errors::raise;
use crate::results::View;
use crate::run::in_place;
use fastpart::internals::sampling;

/// Rows decoded between two looks at the cancel flag.
const STRIDE: usize = 1024;

/// Rows of 8 bits per number. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Coding {
    pub(super) inner: sampling::Coding,
}

#[pymethods]
impl Coding {
    #[new]
    #[pyo3(signature = (width, columns = None))]
    fn new(py: Python<'_>, width: usize, columns: Option<View<'_, f32>>) -> PyResult<Self> {
        let columns = columns.as_ref().map(|columns| columns.as_slice()).transpose()?;
        let inner = sampling::Coding::new(width, columns).map_err(|error| raise(py, error))?;
        Ok(Self { inner })
    }

    /// Decodes `rows` to `out`.
    fn decode(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, PyUntypedArray>,
        out: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<()> {
        let count = rows.shape().first().copied().unwrap_or(0);
        let (coded, decoded) = (self.inner.coded_bytes(), self.inner.decoded_bytes());
        let writeable: bool = out.getattr("flags")?.getattr("writeable")?.extract()?;
        let fits = |array: &Bound<'_, PyUntypedArray>, width: usize, of: Bound<'_, PyArrayDescr>| {
            array.shape() == [count, width] && array.is_c_contiguous() && array.dtype().is_equiv_to(&of)
        };
        let types = (dtype::<u8>(py), dtype::<f32>(py));
        if !writeable || !fits(rows, coded, types.0) || !fits(out, self.inner.width(), types.1) {
            return Err(PyTypeError::new_err(format!(
                "expected C-contiguous rows of {coded} uint8 and as many of {} float32",
                self.inner.width()
            )));
        }
        let (from, to) = (data(rows).expose_provenance(), data(out).expose_provenance());
        in_place(py, |check| {
            for index in 0..count {
                let from = with_exposed_provenance(from + index * coded);
                let to = with_exposed_provenance_mut(to + index * decoded);
                // SAFETY: numpy vouches for the memory, which both arrays keep. The caller lets nobody else change `out`.
                unsafe { self.inner.decode(from, from_raw_parts_mut(to, self.inner.width())) };
                if index.is_multiple_of(STRIDE) {
                    check()?;
                }
            }
            Ok(())
        })
    }
}
