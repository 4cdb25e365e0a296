//! Atomic files and directories for Python.

use std::ffi::{c_int, c_void};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use numpy::PyUntypedArray;
use pyo3::ffi;
use pyo3::prelude::*;

use super::errors::{decoded, raise};
use super::results::with_parts;
use super::run::{Options, detached};
use fastpart::internals::base::output::{AtomicDir, AtomicFile, Entries, write_file as write_whole};
use fastpart::internals::base::{Result, Run, locked, npy};
use fastpart::internals::edges::MappedFile;
use fastpart::internals::parts::file_hash;

/// Items written between two polls of the cancel flag.
const CHUNK: usize = 1 << 20;

/// Writes `content` to `target`, atomically.
#[pyfunction]
pub fn write_file(py: Python<'_>, target: PathBuf, content: &[u8]) -> PyResult<()> {
    py.detach(|| write_whole(&target, content)).map_err(|error| raise(py, error))
}

/// Refuses a directory that holds more than the files `owned`, and names it.
#[pyfunction]
pub fn refuse_foreign(py: Python<'_>, directory: PathBuf, owned: Vec<PathBuf>) -> PyResult<()> {
    py.detach(|| Entries::new(owned).cover(&directory)).map_err(|error| raise(py, error))
}

/// Size and XXH3-128 of each file.
#[pyfunction]
pub fn hash_files(py: Python<'_>, files: Vec<PathBuf>, options: Options) -> PyResult<Vec<(u64, String)>> {
    let hashes = detached(py, &options, |run| file_hash::of_files(&files, run))?;
    Ok(hashes.into_iter().map(|hash| (hash.size, hash.xxh3)).collect())
}

/// XXH3-128 of bytes.
#[pyfunction]
pub fn hash_bytes(content: &[u8]) -> String {
    file_hash::of_bytes(content)
}

/// The bytes of a file, mapped read-only: Python's `mmap` keeps a descriptor for each map.
#[pyclass(frozen, name = "MappedFile", module = "fastpart._core")]
pub struct PyMappedFile(MappedFile);

#[pymethods]
impl PyMappedFile {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| MappedFile::open(&path)).map(Self).map_err(|error| raise(py, error))
    }

    /// The bytes, for numpy and `memoryview`.
    ///
    /// # Safety
    /// Python calls it with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (start, len) = slf.get().0.bytes();
        // SAFETY: Python vouches for the view, which gets a reference to the map, so the bytes live as long
        // as it does. They are announced as read-only.
        let filled = unsafe {
            ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                start.cast_mut().cast::<c_void>(),
                len as ffi::Py_ssize_t,
                1,
                flags,
            )
        };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// Writes a one-dimensional array of parts as `.npy`, atomically.
#[pyfunction]
pub fn write_npy(
    py: Python<'_>,
    target: PathBuf,
    array: &Bound<'_, PyUntypedArray>,
    options: Options,
) -> PyResult<()> {
    with_parts!(array, parts => {
        let head = npy::header_of(parts);
        detached(py, &options, |run| {
            write_chunks(target, head, parts, run, |chunk, bytes| bytes.extend(bytemuck::cast_slice(chunk)))
        })
    })
}

/// Writes a one-dimensional array of parts as text, one part per line, atomically.
#[pyfunction]
pub fn write_lines(
    py: Python<'_>,
    target: PathBuf,
    array: &Bound<'_, PyUntypedArray>,
    options: Options,
) -> PyResult<()> {
    with_parts!(array, parts => detached(py, &options, |run| {
        write_chunks(target, vec![], parts, run, |chunk, bytes| {
            for &part in chunk {
                // Writing to memory cannot fail.
                let _ = writeln!(bytes, "{part}");
            }
        })
    }))
}

fn write_chunks<T: Copy>(
    target: PathBuf,
    head: Vec<u8>,
    items: &[T],
    run: &Run,
    mut encode: impl FnMut(&[T], &mut Vec<u8>),
) -> Result<()> {
    run.begin("save", items.len() as u64);
    let mut file = AtomicFile::create(&target)?;
    let mut bytes = head;
    for chunk in items.chunks(CHUNK) {
        encode(chunk, &mut bytes);
        file.append(&bytes)?;
        bytes.clear();
        run.advance(chunk.len() as u64)?;
    }
    file.append(&bytes)?;
    file.commit()
}

/// A directory that appears whole or not at all: fill `path`, then `commit`.
#[pyclass(frozen, name = "AtomicDir", module = "fastpart._core")]
pub struct PyAtomicDir {
    inner: Mutex<Option<AtomicDir>>,
    path: PathBuf,
}

impl PyAtomicDir {
    fn take(&self) -> Option<AtomicDir> {
        locked(&self.inner).take()
    }
}

#[pymethods]
impl PyAtomicDir {
    /// Begins to replace `target`, which must be absent, or hold none but the files `owned`.
    #[new]
    #[pyo3(signature = (target, owned=vec![]))]
    fn new(py: Python<'_>, target: PathBuf, owned: Vec<PathBuf>) -> PyResult<Self> {
        let create = || AtomicDir::create(&target, Entries::new(owned));
        let dir = py.detach(create).map_err(|error| raise(py, error))?;
        let path = dir.path().to_path_buf();
        Ok(Self { inner: Mutex::new(Some(dir)), path })
    }

    /// The directory to fill.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        decoded(py, &self.path)
    }

    /// Puts the directory in its place.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let Some(dir) = self.take() else { return Ok(()) };
        py.detach(|| dir.commit()).map_err(|error| raise(py, error))
    }

    /// Removes what was written, unless it was committed.
    fn discard(&self, py: Python<'_>) {
        py.detach(|| drop(self.take()));
    }
}
