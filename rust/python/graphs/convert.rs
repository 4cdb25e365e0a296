//! Conversion for Python.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::edges::Identity;
use crate::edges::{EdgeSource, id_type, layout_of};
use crate::errors::raise;
use crate::run::{Options, detached};
use fastpart::internals::base::Result;
use fastpart::internals::convert::{self as core, Column, Convert, Format, WeightsFrom, convert_all, write};

/// The result of a conversion.
#[pyclass(frozen, get_all, module = "fastpart._core")]
pub struct Converted {
    graph: Identity,
    notes: Vec<String>,
    both: Option<bool>,
}

/// A column by its number, from 1, or by its name.
#[derive(FromPyObject)]
pub enum ColumnOf {
    Number(usize),
    Name(String),
}

impl From<ColumnOf> for Column {
    fn from(column: ColumnOf) -> Column {
        match column {
            ColumnOf::Number(number) => Column::Number(number),
            ColumnOf::Name(name) => Column::Name(name),
        }
    }
}

/// The format of a file: "text", "metis", "matrix", "npy", "binedgelist" or "raw".
#[pyfunction]
pub fn format_of(py: Python<'_>, file: PathBuf) -> PyResult<&'static str> {
    fastpart::internals::convert::format_of(&file).map_err(|error| raise(py, error))
}

/// See `fastpart.convert`. `sources` are files whose records come in this order. `shuffle` is the seed.
/// `weights` is "file" for weights in a file beside the target, and another word for weights in the source
/// itself.
#[pyfunction]
#[pyo3(signature = (
    sources, target, *, format, relabel, swap, dtype, layout, num_vertices, max_vertices, drop_loops, dedup, shuffle,
    weights, column, columns, unsure, comments, names, options
))]
pub fn convert(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    target: PathBuf,
    format: Option<&str>,
    relabel: bool,
    swap: bool,
    dtype: Option<&str>,
    layout: Option<&str>,
    num_vertices: Option<u64>,
    max_vertices: Option<u64>,
    drop_loops: bool,
    dedup: bool,
    shuffle: Option<u64>,
    weights: Option<&str>,
    column: Option<ColumnOf>,
    columns: Option<[ColumnOf; 2]>,
    unsure: bool,
    comments: Option<String>,
    names: bool,
    options: Options,
) -> PyResult<Converted> {
    let how = || -> Result<Convert> {
        let (format, id_type) = (format.map(Format::named).transpose()?, id_type(dtype)?);
        let layout = layout_of(layout);
        let weights = match (weights, column) {
            (None, _) => WeightsFrom::Nowhere,
            (Some(_), Some(column)) => WeightsFrom::Column(column.into()),
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
            max_vertices,
            drop_loops,
            dedup,
            shuffle,
            weights,
            unsure,
            columns: columns.map(|columns| columns.map(Column::from)),
            comments,
            names,
        })
    };
    let how = how().map_err(|error| raise(py, error))?;
    let written = detached(py, &options, |run| convert_all(&sources, &target, &how, run))?;
    let graph = Identity { n: written.n, m: written.m, loops: written.loops, checksum: written.checksum };
    Ok(Converted { graph, notes: written.notes, both: written.both })
}

/// Whether the first lines of a file of text say that its ids are names.
#[pyfunction]
#[pyo3(signature = (source, *, columns, column, unsure, comments, options))]
pub fn text_holds_names(
    py: Python<'_>,
    source: PathBuf,
    columns: Option<[ColumnOf; 2]>,
    column: Option<ColumnOf>,
    unsure: bool,
    comments: Option<String>,
    options: Options,
) -> PyResult<bool> {
    let how = of_text(columns, column, unsure, comments);
    detached(py, &options, |run| core::holds_names(&source, &how, run))
}

/// Writes the records of text as CSV with the columns `source`, `target` and, if `column` has them, `weight`.
/// `names`: the ids are names. Returns notes.
#[pyfunction]
#[pyo3(signature = (sources, target, *, names, columns, column, unsure, comments, options))]
pub fn tabulate(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    target: PathBuf,
    names: bool,
    columns: Option<[ColumnOf; 2]>,
    column: Option<ColumnOf>,
    unsure: bool,
    comments: Option<String>,
    options: Options,
) -> PyResult<Vec<String>> {
    let how = of_text(columns, column, unsure, comments);
    detached(py, &options, |run| core::tabulate(&sources, &target, names, &how, run))
}

/// How text is read whose ids may be names.
fn of_text(
    columns: Option<[ColumnOf; 2]>,
    column: Option<ColumnOf>,
    unsure: bool,
    comments: Option<String>,
) -> Convert {
    let weights = column.map_or(WeightsFrom::Nowhere, |column| WeightsFrom::Column(column.into()));
    let columns = columns.map(|columns| columns.map(Column::from));
    Convert { weights, columns, unsure, comments, names: true, ..Convert::default() }
}

/// Writes edges in another format than raw pairs ("text", "metis" or "binedgelist"). `scale` is that of their
/// weights. Returns notes.
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
