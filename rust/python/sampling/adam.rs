//! Steps of Adam over learned rows.

use numpy::{Element, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::raise;
use crate::results::View;
use fastpart::internals::sampling::{AdamStep, LearnedRows, Number};

/// Changes rows of a table by their gradients. See `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (tables, rows, bounds, gradients, *, first, size, betas, eps))]
pub fn sparse_adam(
    py: Python<'_>,
    tables: [Bound<'_, PyAny>; 3],
    rows: View<'_, u32>,
    bounds: View<'_, i64>,
    gradients: &Bound<'_, PyAny>,
    first: u32,
    size: f64,
    betas: (f64, f64),
    eps: f64,
) -> PyResult<()> {
    let bounds: Vec<_> =
        bounds.as_slice()?.iter().map(|&bound| usize::try_from(bound)).collect::<Result<_, _>>()?;
    let lists = Lists { rows: rows.as_slice()?, bounds: &bounds, first, step: AdamStep { size, betas, eps } };
    if let Ok(gradients) = gradients.extract::<PyReadonlyArray2<'_, f32>>() {
        return lists.step(py, &tables, &gradients);
    }
    lists.step::<f64>(py, &tables, &gradients.extract()?)
}

struct Lists<'a> {
    rows: &'a [u32],
    bounds: &'a [usize],
    first: u32,
    step: AdamStep,
}

impl Lists<'_> {
    fn step<T: Number + Element>(
        &self,
        py: Python<'_>,
        tables: &[Bound<'_, PyAny>; 3],
        gradients: &PyReadonlyArray2<'_, T>,
    ) -> PyResult<()> {
        let [values, mean, square] = tables;
        let mut values = values.cast::<PyArray2<T>>()?.try_readwrite()?;
        let mut mean = mean.cast::<PyArray2<T>>()?.try_readwrite()?;
        let mut square = square.cast::<PyArray2<T>>()?.try_readwrite()?;
        let width = values.shape()[1];
        let gradients = gradients.as_slice()?;
        let mut table = LearnedRows {
            values: values.as_slice_mut()?,
            mean: mean.as_slice_mut()?,
            square: square.as_slice_mut()?,
            width,
        };
        py.detach(|| table.step(self.rows, self.bounds, self.first, gradients, self.step))
            .map_err(|error| raise(py, error))
    }
}
