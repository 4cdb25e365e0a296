//! Arguments that both samplers take.

use std::sync::Arc;

use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::times::Times;
use crate::results::{View, copied, data};
use fastpart::internals::base::{Error, Result, named};
use fastpart::internals::sampling::{Kind, RecordWeights, Strategy, Temporal};

/// How samples with times are picked. None: there are no times.
pub(super) fn temporal_of(times: Option<&Bound<'_, Times>>, strategy: &str) -> Result<Option<Temporal>> {
    let strategies = [("uniform", Strategy::Uniform), ("last", Strategy::Last)];
    let strategy = named("temporal", "value", strategy, &strategies)?;
    Ok(times.map(|times| Temporal { times: Arc::clone(&times.get().inner), strategy }))
}

/// The times of seeds, none if they have none.
pub(super) fn copied_times(times: Option<&View<'_, i64>>) -> PyResult<Vec<i64>> {
    times.map_or(Ok(Vec::new()), |times| copied(times, "times"))
}

pub(super) fn fanout(fanout: i64) -> Result<Option<usize>> {
    match fanout {
        -1 => Ok(None),
        0..=0x7fff_ffff => Ok(Some(fanout as usize)),
        _ => Err(Error::parameter("fanouts", format!("expected -1 (all) or at least 0, got {fanout}"))),
    }
}

pub(super) fn kind_of(kind: &str, weights: Option<&Bound<'_, PyUntypedArray>>) -> PyResult<Result<Kind>> {
    #[derive(Clone, Copy)]
    enum Name {
        Uniform,
        Weighted,
        Labor,
    }
    let known = [("uniform", Name::Uniform), ("weighted", Name::Weighted), ("labor", Name::Labor)];
    Ok(match (named("kind", "value", kind, &known), weights) {
        (Err(error), _) => Err(error),
        (Ok(Name::Weighted), Some(weights)) => record_weights(weights)?.map(Kind::Weighted),
        (Ok(Name::Weighted), None) => Err(Error::parameter("weights", "kind=\"weighted\" needs them")),
        (Ok(_), Some(_)) => {
            Err(Error::parameter("weights", format!("only kind=\"weighted\" takes them, not {kind:?}")))
        }
        (Ok(Name::Uniform), None) => Ok(Kind::Uniform),
        (Ok(Name::Labor), None) => Ok(Kind::Labor),
    })
}

fn record_weights(weights: &Bound<'_, PyUntypedArray>) -> PyResult<Result<RecordWeights>> {
    let (py, dtype) = (weights.py(), weights.dtype());
    let wide = dtype.is_equiv_to(&numpy::dtype::<f64>(py));
    if !wide && !dtype.is_equiv_to(&numpy::dtype::<f32>(py))
        || weights.ndim() != 1
        || !weights.is_c_contiguous()
    {
        let text = format!("weights: expected contiguous float32 or float64 of shape (m,), got {dtype}");
        return Err(PyTypeError::new_err(text));
    }
    // SAFETY: numpy vouches for `len` numbers, and the sampler keeps the array.
    Ok(unsafe { RecordWeights::new(data(weights), weights.len(), wide) })
}
