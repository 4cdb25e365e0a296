//! Arrays of parts, in both directions: results as numpy arrays over memory that Rust owns, and assignments of any
//! of the three widths that partitions have.

use bytemuck::Pod;
use numpy::ndarray::ArrayView1;
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::errors::raise;
use crate::base::buffer::{Buffer, reserved};

/// Keeps the memory of an array alive; the array holds it as its base.
#[pyclass(frozen)]
struct Owner {
    _memory: Box<dyn std::any::Any + Send + Sync>,
}

/// A read-only array over `buffer`, without a copy.
pub fn array<T: Pod + Element + Send + Sync>(
    py: Python<'_>,
    buffer: Buffer<T>,
) -> PyResult<Bound<'_, PyArray1<T>>> {
    let (start, len) = (buffer.as_ptr(), buffer.len());
    let owner = Bound::new(py, Owner { _memory: Box::new(buffer) })?;
    // SAFETY: the owner, which becomes the array's base, keeps these `len` values alive and in place.
    let view = unsafe { ArrayView1::from_shape_ptr(len, start) };
    // SAFETY: as above, and nobody else writes to them.
    let array = unsafe { PyArray1::borrow_from_array(&view, owner.into_any()) };
    array.try_readwrite()?.make_nonwriteable();
    Ok(array)
}

/// A copy of an array that Python may change while the GIL is free.
pub fn copied(array: &PyReadonlyArray1<'_, u32>, what: &str) -> PyResult<Vec<u32>> {
    let values = array.as_slice()?;
    let mut copy = reserved(values.len(), what).map_err(|error| raise(array.py(), error))?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// An integer that parts are stored as.
pub trait Part: Pod + Element + Into<i32> + Sync {}

impl<T: Pod + Element + Into<i32> + Sync> Part for T {}

/// Something to do with parts of any width; `descr` is the type's name in a `.npy` header.
pub trait WithParts {
    type Output;
    fn call<T: Part>(self, descr: &str, parts: &[T]) -> PyResult<Self::Output>;
}

/// Does it with a contiguous array.
pub fn with_parts<W: WithParts>(array: &Bound<'_, PyUntypedArray>, work: W) -> PyResult<W::Output> {
    if let Ok(parts) = array.extract::<PyReadonlyArray1<'_, i32>>() {
        work.call("<i4", parts.as_slice()?)
    } else if let Ok(parts) = array.extract::<PyReadonlyArray1<'_, i16>>() {
        work.call("<i2", parts.as_slice()?)
    } else if let Ok(parts) = array.extract::<PyReadonlyArray1<'_, u8>>() {
        work.call("|u1", parts.as_slice()?)
    } else {
        Err(PyTypeError::new_err(format!("parts are int32, int16 or uint8, got {}", array.dtype())))
    }
}
