//! Values of parameters, in both directions.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::results::{View, copied};
use fastpart::internals::partition::Value;

/// A value as Python has it. Arrays are not given back.
pub fn to_python(py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Value::Flag(flag) => PyBool::new(py, flag).to_owned().into_any().unbind(),
        Value::Integer(integer) => integer.into_pyobject(py)?.into_any().unbind(),
        Value::Number(number) => number.into_pyobject(py)?.into_any().unbind(),
        Value::Text(text) => PyString::new(py, &text).into_any().unbind(),
        Value::List(items) => {
            let items = items.into_iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any().unbind()
        }
        Value::None | Value::PerVertex(_) => py.None(),
    })
}

/// A value that Python checked.
pub fn from_python(item: &Bound<'_, PyAny>) -> PyResult<Value> {
    Ok(if item.is_none() {
        Value::None
    } else if let Ok(flag) = item.cast::<PyBool>() {
        Value::Flag(flag.is_true())
    } else if item.is_instance_of::<PyInt>() {
        Value::Integer(item.extract()?)
    } else if item.is_instance_of::<PyFloat>() {
        Value::Number(item.extract()?)
    } else if let Ok(text) = item.cast::<PyString>() {
        Value::Text(text.to_str()?.to_owned().into())
    } else if let Ok(list) = item.cast::<PyList>() {
        Value::List(list.iter().map(|item| from_python(&item)).collect::<PyResult<_>>()?)
    } else if let Ok(tuple) = item.cast::<PyTuple>() {
        Value::List(tuple.iter().map(|item| from_python(&item)).collect::<PyResult<_>>()?)
    } else {
        Value::PerVertex(copied(&item.extract::<View<'_, u32>>()?, "numbers per vertex")?)
    })
}
