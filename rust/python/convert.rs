//! Conversion for Python.

use std::path::PathBuf;

use pyo3::prelude::*;

use super::edges::{EdgeSource, id_type, layout_of};
use super::errors::raise;
use super::partitions::Identity;
use super::run::{Options, detached};
use fastpart::internals::base::Result;
use fastpart::internals::convert::{Convert, Format, WeightsFrom, convert as run_convert, write};

/// What a conversion wrote.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct Converted {
    graph: Identity,
    notes: Vec<String>,
}

/// See `fastpart.convert`. `shuffle` is the seed. `weights` is "file" for those in a file
/// beside the target, and another word for those of the source itself.
#[pyfunction]
#[pyo3(signature = (
    source, target, *, format, relabel, swap, dtype, layout, num_vertices, drop_loops, dedup, shuffle, weights, column,
    unsure, options
))]
pub fn convert(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    format: Option<&str>,
    relabel: bool,
    swap: bool,
    dtype: Option<&str>,
    layout: Option<&str>,
    num_vertices: Option<u64>,
    drop_loops: bool,
    dedup: bool,
    shuffle: Option<u64>,
    weights: Option<&str>,
    column: Option<usize>,
    unsure: bool,
    options: Options,
) -> PyResult<Converted> {
    let how = || -> Result<Convert> {
        let (format, id_type) = (format.map(Format::named).transpose()?, id_type(dtype)?);
        let layout = layout_of(layout);
        let weights = match (weights, column) {
            (None, _) => WeightsFrom::Nowhere,
            (Some(_), Some(column)) => WeightsFrom::Column(column),
            (Some("file"), None) => WeightsFrom::File,
            (Some(_), None) => WeightsFrom::Metis,
        };
        Ok(Convert {
            format,
            relabel,
            swap,
            id_type,
            layout,
            num_vertices,
            drop_loops,
            dedup,
            shuffle,
            weights,
            unsure,
        })
    };
    let how = how().map_err(|error| raise(py, error))?;
    let written = detached(py, &options, |run| run_convert(&source, &target, &how, run))?;
    let graph = Identity { n: written.n, m: written.m, loops: written.loops, checksum: written.checksum };
    Ok(Converted { graph, notes: written.notes })
}

/// Writes edges in another format than raw pairs ("text", "metis" or "binedgelist"). `scale` is that of their weights.
/// Returns notes.
#[pyfunction]
#[pyo3(signature = (edges, target, *, format, scale, options))]
pub fn write_edges(
    py: Python<'_>,
    edges: &EdgeSource,
    target: PathBuf,
    format: &str,
    scale: f64,
    options: Options,
) -> PyResult<Vec<String>> {
    let weights = edges.weights().map(|weights| (weights, scale));
    let format = Format::named(format).map_err(|error| raise(py, error))?;
    detached(py, &options, |run| write(format, edges.stream(), weights, &target, run))
}
