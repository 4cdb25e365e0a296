//! The speed of the disk of some files.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::raise;
use crate::run::in_place;
use fastpart::internals::base::Error;
use fastpart::internals::sampling;

/// Reads of 4 KiB at random places, and bytes of consecutive reads, per second. See `_core.pyi`.
#[pyfunction]
pub fn disk_rates(py: Python<'_>, files: Vec<PathBuf>, seconds: f64) -> PyResult<Option<(f64, f64)>> {
    let time = Duration::try_from_secs_f64(seconds)
        .map_err(|_| raise(py, Error::parameter("seconds", format!("{seconds} is no time"))))?;
    let rates = in_place(py, |check| sampling::disk_rates(&files, time, check))?;
    Ok(rates.map(|rates| (rates.reads, rates.bytes)))
}
