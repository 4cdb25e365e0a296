//! Ids of tables and records of ids for Python. See `_core.pyi`.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Mutex;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::raise;
use crate::run::{Options, detached, in_place};
use fastpart::internals::base::{Error, Result, locked};
use fastpart::internals::ingest::{
    self, ArrowStream, Bucket, Chunk, Declared, IdBatch, Joined, Kind, Side, Sorter, Table, Unit,
};

/// The name of the capsules of the Arrow C stream interface.
const STREAM: &CStr = c"arrow_array_stream";

/// The table that a frame hands over.
fn table_of(frame: &Bound<'_, PyAny>) -> PyResult<Table> {
    let capsule = frame.call_method0("__arrow_c_stream__")?;
    // SAFETY: a look at the name, which must be that of the interface, and at what is inside.
    let stream = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), STREAM.as_ptr()) };
    if stream.is_null() {
        return Err(PyErr::fetch(frame.py()));
    }
    // SAFETY: the interface says that a capsule of this name holds a stream. Its only user is this call.
    unsafe { Table::take(stream.cast()) }.map_err(|error| raise(frame.py(), error))
}

/// Hands the chunks of a frame to `push`, each with its first row, until one of its rows comes back. Returns
/// that row of the frame.
fn first_row(
    frame: &Bound<'_, PyAny>,
    mut push: impl FnMut(&Chunk<'_>, u64) -> Result<Option<u64>> + Send,
) -> PyResult<Option<u64>> {
    let mut table = table_of(frame)?;
    in_place(frame.py(), |check| {
        let mut at = 0;
        while let Some(chunk) = table.next_chunk()? {
            if let Some(row) = push(&chunk, at)? {
                return Ok(Some(at + row));
            }
            at += chunk.rows() as u64;
            check()?;
        }
        Ok(None)
    })
}

fn kind_of(py: Python<'_>, name: &str) -> PyResult<Kind> {
    Kind::named(name).map_err(|error| raise(py, error))
}

fn ended() -> Error {
    Error::Internal("it has ended".into())
}

/// Ids on their way into sorted runs.
#[pyclass(frozen, module = "fastpart._core")]
pub struct IdSorter {
    inner: Mutex<Option<Sorter>>,
}

#[pymethods]
impl IdSorter {
    #[new]
    #[pyo3(signature = (kind, folder, name, *, limit, distinct))]
    fn new(
        py: Python<'_>,
        kind: &str,
        folder: PathBuf,
        name: &str,
        limit: usize,
        distinct: bool,
    ) -> PyResult<Self> {
        let sorter = Sorter::new(kind_of(py, kind)?, &folder, name, limit, distinct);
        Ok(Self { inner: Mutex::new(Some(sorter.map_err(|error| raise(py, error))?)) })
    }

    /// Adds a column of a frame. Returns the first null row, which is left out as all others.
    fn push(&self, frame: &Bound<'_, PyAny>, column: usize, first: u64) -> PyResult<Option<u64>> {
        let mut null = None;
        first_row(frame, |chunk, at| {
            let ids = chunk.column(column)?;
            if ids.has_nulls() && null.is_none() {
                null = (0..chunk.rows()).find(|&row| ids.is_null(row)).map(|row| at + row as u64);
            }
            locked(&self.inner).as_mut().ok_or_else(ended)?.push(&ids, chunk.rows(), first + at)?;
            Ok(None)
        })?;
        Ok(null)
    }

    /// Writes the last run, and returns all with the number of their ids.
    fn finish(&self, py: Python<'_>) -> PyResult<Vec<(PathBuf, u64)>> {
        let sorter = locked(&self.inner).take().ok_or_else(|| raise(py, ended()))?;
        in_place(py, |_| sorter.finish())
    }
}

/// Ids for a library that reads Arrow.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Ids {
    batch: Mutex<Option<IdBatch>>,
}

unsafe extern "C" fn forget(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls it once with the capsule that was made below.
    unsafe {
        let stream = ffi::PyCapsule_GetPointer(capsule, STREAM.as_ptr());
        if !stream.is_null() {
            drop(Box::<ArrowStream>::from_raw(stream.cast()));
        }
    }
}

#[pymethods]
impl Ids {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batch = locked(&self.batch).take().ok_or_else(|| raise(py, ended()))?;
        let stream = Box::into_raw(batch.into_stream());
        // SAFETY: a capsule over a stream that `forget` owns. The name lives for ever.
        unsafe {
            let capsule = ffi::PyCapsule_New(stream.cast(), STREAM.as_ptr(), Some(forget));
            if capsule.is_null() {
                drop(Box::from_raw(stream));
                return Err(PyErr::fetch(py));
            }
            Ok(Bound::from_owned_ptr(py, capsule).cast_into_unchecked())
        }
    }

    fn __len__(&self) -> usize {
        locked(&self.batch).as_ref().map_or(0, IdBatch::len)
    }
}

/// Runs on their way to numbers.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Numbering {
    inner: Mutex<Option<ingest::Numbering>>,
}

#[pymethods]
impl Numbering {
    #[new]
    #[pyo3(signature = (kind, runs, keys, *, rows, first, limit))]
    fn new(
        py: Python<'_>,
        kind: &str,
        runs: Vec<PathBuf>,
        keys: Vec<PathBuf>,
        rows: Option<(PathBuf, u64)>,
        first: bool,
        limit: usize,
    ) -> PyResult<Self> {
        let kind = kind_of(py, kind)?;
        let inner = in_place(py, |_| {
            let rows = rows.as_ref().map(|(path, count)| (path.as_path(), *count));
            ingest::Numbering::create(kind, runs, &keys, rows, first, limit)
        })?;
        Ok(Self { inner: Mutex::new(Some(inner)) })
    }

    /// The next ids, at most `count`.
    fn next(&self, py: Python<'_>, count: usize) -> PyResult<Option<Ids>> {
        let batch = in_place(py, |_| locked(&self.inner).as_mut().ok_or_else(ended)?.take(count))?;
        Ok(batch.map(|batch| Ids { batch: Mutex::new(Some(batch)) }))
    }

    /// An id that two rows declare, and the rows.
    #[getter]
    fn duplicate(&self) -> Option<(String, u32, u32)> {
        let inner = locked(&self.inner);
        let duplicate = inner.as_ref()?.duplicate()?;
        Some((duplicate.id.clone(), duplicate.rows[0], duplicate.rows[1]))
    }

    /// Number of ids that differ from the id before only by blanks.
    #[getter]
    fn blanks(&self) -> u64 {
        locked(&self.inner).as_ref().map_or(0, ingest::Numbering::blanks)
    }

    /// Forces all to the disk, and returns the number of vertices.
    fn finish(&self, py: Python<'_>) -> PyResult<u32> {
        let inner = locked(&self.inner).take().ok_or_else(|| raise(py, ended()))?;
        in_place(py, |_| inner.finish())
    }
}

/// One side of a relation: kind of its ids, number of its first bucket, number of its buckets.
type SideOf = (String, usize, usize);

fn sides_of(py: Python<'_>, [source, target]: [SideOf; 2]) -> PyResult<[Side; 2]> {
    let side = |(kind, first, buckets): SideOf| -> PyResult<Side> {
        Ok(Side { kind: kind_of(py, &kind)?, first, buckets })
    };
    Ok([side(source)?, side(target)?])
}

/// Ends of records on their way into buckets.
#[pyclass(frozen, module = "fastpart._core")]
pub struct EndSpill {
    inner: Mutex<ingest::Spill>,
}

#[pymethods]
impl EndSpill {
    #[new]
    fn new(py: Python<'_>, sides: [SideOf; 2], files: Vec<(PathBuf, u64)>) -> PyResult<Self> {
        let sides = sides_of(py, sides)?;
        Ok(Self { inner: Mutex::new(in_place(py, |_| ingest::Spill::open(sides, &files))?) })
    }

    /// Begins a unit.
    fn begin(&self, py: Python<'_>, order: PathBuf) -> PyResult<()> {
        in_place(py, |_| locked(&self.inner).begin(&order))
    }

    /// Adds the first two columns of a frame. Returns the first row with a null end, unless these are to be
    /// dropped.
    fn push(&self, frame: &Bound<'_, PyAny>, keep_nulls: bool) -> PyResult<Option<u64>> {
        first_row(frame, |chunk, _| locked(&self.inner).push(chunk, keep_nulls))
    }

    /// Ends a unit. Returns the number of its records, and the length of the file of each bucket.
    fn end(&self, py: Python<'_>) -> PyResult<(u64, Vec<u64>)> {
        in_place(py, |_| locked(&self.inner).end())
    }
}

/// Resolves the ends in buckets: the files of keys, of ends and of their vertices, and the kind. Returns how
/// many are missing in each.
#[pyfunction]
pub fn resolve_ends(
    py: Python<'_>,
    buckets: Vec<(Vec<PathBuf>, PathBuf, PathBuf, String)>,
    options: Options,
) -> PyResult<Vec<u64>> {
    let buckets = buckets
        .into_iter()
        .map(|(keys, ends, vertices, kind)| Ok(Bucket { keys, ends, vertices, kind: kind_of(py, &kind)? }))
        .collect::<PyResult<Vec<_>>>()?;
    detached(py, &options, |run| ingest::resolve_all(&buckets, run))
}

/// A unit to join: its order, the vertices of each bucket and how many come before, where its records go, and
/// where it is written which are kept.
type UnitOf = (PathBuf, Vec<(PathBuf, u64)>, Option<(PathBuf, u64)>, Option<PathBuf>);

/// Numbers of a unit: records kept, records with a null end, records with a missing end, and the first record
/// with a missing end.
type JoinedOf = (u64, u64, u64, Option<(u64, bool)>);

/// Joins units. `first` holds the numbers of the first vertex of the sources' and the targets' type.
#[pyfunction]
pub fn join_ends(
    py: Python<'_>,
    units: Vec<UnitOf>,
    sides: [SideOf; 2],
    first: [u32; 2],
    options: Options,
) -> PyResult<Vec<JoinedOf>> {
    let sides = sides_of(py, sides)?;
    let units: Vec<Unit> =
        units.into_iter().map(|(order, vertices, out, kept)| Unit { order, vertices, out, kept }).collect();
    let joined = detached(py, &options, |run| ingest::join_all(&units, sides, first, run))?;
    Ok(joined.into_iter().map(joined_of).collect())
}

fn joined_of(unit: Joined) -> JoinedOf {
    (unit.records, unit.nulls, unit.missing, unit.first_missing)
}

/// Records whose ends are looked up at once.
#[pyclass(frozen, module = "fastpart._core")]
pub struct EndLookup {
    inner: Mutex<ingest::Lookup>,
}

/// The files of the keys of a side, the kind of its ids and the number of its first vertex.
type DeclaredOf = (Vec<PathBuf>, String, u32);

#[pymethods]
impl EndLookup {
    #[new]
    fn new(py: Python<'_>, source: DeclaredOf, target: DeclaredOf) -> PyResult<Self> {
        let same = source == target;
        let kinds = [kind_of(py, &source.1)?, kind_of(py, &target.1)?];
        let inner = in_place(py, |_| -> Result<_> {
            let one = Declared::load(&source.0, kinds[0], source.2)?;
            let other = if same { one.clone() } else { Declared::load(&target.0, kinds[1], target.2)? };
            Ok(ingest::Lookup::new([one, other]))
        })?;
        Ok(Self { inner: Mutex::new(inner) })
    }

    /// Begins a unit, whose records go to a file from record number `first` on.
    fn begin(&self, py: Python<'_>, out: PathBuf, first: u64) -> PyResult<()> {
        in_place(py, |_| locked(&self.inner).begin(&out, first))
    }

    /// Adds the first two columns of a frame. Returns the first row with a null end.
    fn push(&self, frame: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        first_row(frame, |chunk, _| locked(&self.inner).push(chunk))
    }

    /// Ends a unit.
    fn end(&self, py: Python<'_>) -> PyResult<JoinedOf> {
        in_place(py, |_| locked(&self.inner).end()).map(joined_of)
    }
}
