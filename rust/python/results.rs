//! Arrays of parts, in both directions: results as numpy arrays over memory that Rust owns, and assignments
//! of any of the three widths that partitions have.

use std::borrow::Cow;

use bytemuck::Pod;
use numpy::ndarray::ArrayView1;
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::errors::raise;
use fastpart::internals::base::{Buffer, reserved};

/// A one-dimensional array.
pub type Array<'py, T> = Bound<'py, PyArray1<T>>;

/// A one-dimensional array that is read.
pub type View<'py, T> = PyReadonlyArray1<'py, T>;

/// Keeps the memory of an array alive. The array holds it as its base.
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
    let owner = owner(py, buffer)?;
    // SAFETY: the owner keeps these `len` values alive and in place, and nobody else writes to them.
    let array = unsafe { array_within(start, len, owner) };
    array.try_readwrite()?.make_nonwriteable();
    Ok(array)
}

/// An object that keeps `memory` until Python drops it.
pub fn owner<M: Send + Sync + 'static>(py: Python<'_>, memory: M) -> PyResult<Bound<'_, PyAny>> {
    Ok(Bound::new(py, Owner { _memory: Box::new(memory) })?.into_any())
}

/// An array over memory that `owner` keeps. It may be written to.
///
/// # Safety
/// There are `len` values at `start`, which stay in place, and nobody but the arrays of Python uses them.
pub unsafe fn array_within<T: Element>(
    start: *const T,
    len: usize,
    owner: Bound<'_, PyAny>,
) -> Bound<'_, PyArray1<T>> {
    // SAFETY: as the caller vouches. The owner becomes the array's base.
    unsafe { PyArray1::borrow_from_array(&ArrayView1::from_shape_ptr(len, start), owner) }
}

/// Where the items of an array begin.
pub fn data(array: &Bound<'_, PyUntypedArray>) -> *mut u8 {
    // SAFETY: the pointer comes from a live array object. Only its fields are read here.
    unsafe { (*array.as_array_ptr()).fields.data }.cast()
}

/// A copy of an array that Python may change while the GIL is free.
pub fn copied<T: Element + Copy>(array: &View<'_, T>, what: &str) -> PyResult<Vec<T>> {
    let values = array.as_slice()?;
    let mut copy = reserved(values.len(), what).map_err(|error| raise(array.py(), error))?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// The values of an array, for work while the GIL is free. Python may write to an array, or to one that it is
/// a view of, meanwhile: then they are copied.
pub fn settled<'a, T: Element + Copy>(array: &'a View<'_, T>, what: &str) -> PyResult<Cow<'a, [T]>> {
    let values = array.as_slice()?;
    if !is_writable(array.as_any())? {
        return Ok(Cow::Borrowed(values));
    }
    let mut copy = reserved(values.len(), what).map_err(|error| raise(array.py(), error))?;
    copy.extend_from_slice(values);
    Ok(Cow::Owned(copy))
}

/// Whether an array, or any that it is a view of, can be written to.
fn is_writable(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let mut array = array.clone();
    while array.cast::<PyUntypedArray>().is_ok() {
        if array.getattr("flags")?.getattr("writeable")?.is_truthy()? {
            return Ok(true);
        }
        array = array.getattr("base")?;
    }
    Ok(false)
}

/// Parts of any width, in a contiguous array.
pub enum Parts<'py> {
    U8(View<'py, u8>),
    I16(View<'py, i16>),
    I32(View<'py, i32>),
}

impl<'py> Parts<'py> {
    pub fn of(array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        if let Ok(parts) = array.extract() {
            Ok(Parts::I32(parts))
        } else if let Ok(parts) = array.extract() {
            Ok(Parts::I16(parts))
        } else if let Ok(parts) = array.extract() {
            Ok(Parts::U8(parts))
        } else {
            Err(PyTypeError::new_err(format!("parts are int32, int16 or uint8, got {}", array.dtype())))
        }
    }
}

/// Does the same with parts of any width.
macro_rules! with_parts {
    ($array:expr, $parts:ident => $work:expr) => {{
        use $crate::results::{Parts, settled};
        match &Parts::of($array)? {
            Parts::U8(parts) => {
                let $parts = &*settled(parts, "parts")?;
                $work
            }
            Parts::I16(parts) => {
                let $parts = &*settled(parts, "parts")?;
                $work
            }
            Parts::I32(parts) => {
                let $parts = &*settled(parts, "parts")?;
                $work
            }
        }
    }};
}
pub(super) use with_parts;
