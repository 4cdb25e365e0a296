//! The features of the vertices.

use std::path::PathBuf;
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;

use numpy::{PyArray1, PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::coding::Coding;
use super::topology::Topology;
use crate::errors::raise;
use crate::results::{Array, View, array_within, copied, data, owner};
use crate::run::{Options, detached, in_place};
use fastpart::internals::base::{Buffer, Result};
use fastpart::internals::sampling::{
    self, FeatureRows, Io, PackStep, Pooled, Pools, RowId, RowSpace, Target,
};

/// The packed rows of an epoch. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Pack {
    pub(super) inner: Arc<sampling::Pack>,
}

/// Features of parts. See `_core.pyi`.
#[pyclass(frozen, module = "fastpart._core")]
pub struct Features {
    pub(super) inner: Arc<sampling::Features>,
    dtype: Py<PyArrayDescr>,
    pools: Arc<Pools>,
}

#[pymethods]
impl Features {
    #[new]
    #[pyo3(signature = (files, topology, *, starts = None, direct = None))]
    fn new(
        py: Python<'_>,
        files: Vec<Option<PathBuf>>,
        topology: &Topology,
        starts: Option<View<'_, i64>>,
        direct: Option<bool>,
    ) -> PyResult<Self> {
        let io = direct.map(|direct| if direct { Io::Direct } else { Io::Mmap });
        let space = starts.map(|starts| space_of(&topology.inner, starts.as_slice()?)).transpose()?;
        let opened = space
            .transpose()
            .and_then(|space| sampling::Features::open(&files, Arc::clone(&topology.inner), space, io));
        Self::of(py, opened, &topology.pools)
    }

    /// These features, decoded.
    fn decoded(&self, py: Python<'_>, coding: &Coding) -> PyResult<Self> {
        Self::of(py, self.inner.decoded(coding.inner.clone()), &self.pools)
    }

    /// These features, with the rows `ids` from `file` kept in memory.
    fn with_cache(&self, py: Python<'_>, ids: View<'_, u32>, file: PathBuf, checksum: u64) -> PyResult<Self> {
        Self::of(py, self.inner.with_cache(&copied(&ids, "ids")?, &file, checksum), &self.pools)
    }

    /// Writes rows of batches behind each other.
    fn pack<'py>(
        &self,
        py: Python<'py>,
        targets: Vec<(PathBuf, View<'py, i64>, View<'py, u32>)>,
        options: Options,
    ) -> PyResult<Vec<Array<'py, u64>>> {
        let mut lists = Vec::with_capacity(targets.len());
        for (path, offsets, rows) in &targets {
            lists.push(Target { path, offsets: offsets.as_slice()?, rows: rows.as_slice()? });
        }
        let checksums = detached(py, &options, |run| self.inner.pack(&lists, run))?;
        Ok(checksums.into_iter().map(|each| PyArray1::from_vec(py, each)).collect())
    }

    /// Opens what [`Self::pack`] wrote.
    fn open_pack(
        &self,
        py: Python<'_>,
        file: PathBuf,
        offsets: View<'_, i64>,
        checksums: View<'_, u64>,
    ) -> PyResult<Pack> {
        let checksums = checksums.as_slice()?.to_vec();
        let opened = sampling::Pack::open(&file, self.inner.stored_bytes(), offsets.as_slice()?, checksums);
        Ok(Pack { inner: Arc::new(opened.map_err(|error| raise(py, error))?) })
    }

    /// These features, copied into memory.
    fn loaded(&self, py: Python<'_>) -> PyResult<Self> {
        let loaded = in_place(py, |_| self.inner.loaded())?;
        Self::of(py, Ok(loaded), &self.pools)
    }

    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDescr> {
        self.dtype.bind(py).clone()
    }

    #[getter]
    fn row_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.inner.row_shape)
    }

    /// An array for `count` rows of features, in memory that is used again once it is gone.
    fn empty<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyAny>> {
        let mut memory = self.pools.features();
        self.inner.reserve(count, &mut memory).map_err(|error| raise(py, error))?;
        self.array(py, memory, count)
    }

    /// Whether [`Self::means`] can be asked for.
    #[getter]
    fn has_means(&self) -> bool {
        self.inner.has_means()
    }

    #[getter]
    fn is_on_disk(&self) -> bool {
        self.inner.is_on_disk()
    }

    /// Bytes that were read since the last call.
    fn read_bytes(&self) -> u64 {
        self.inner.read_bytes()
    }

    /// Bytes that a batch of these rows reads.
    fn bytes_of(&self, py: Python<'_>, rows: Bound<'_, PyUntypedArray>) -> PyResult<u64> {
        match Rows::of(&rows)? {
            Rows::U32(rows) => in_place(py, |_| self.inner.bytes_of(&rows)),
            Rows::I64(rows) => in_place(py, |_| self.inner.bytes_of(&rows)),
        }
    }

    /// The mean of the rows, times their weights, over the in-edges of each target.
    #[pyo3(signature = (targets, threads, weights = None))]
    fn means<'py>(
        &self,
        py: Python<'py>,
        targets: View<'py, u32>,
        threads: usize,
        weights: Option<View<'py, f32>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let targets = copied(&targets, "targets")?;
        let weights = weights.map(|weights| copied(&weights, "weights")).transpose()?;
        let width = self.inner.row_bytes / size_of::<f32>();
        let mut means = Buffer::<f32>::zeroed(targets.len() * width, "means of rows")
            .map_err(|error| raise(py, error))?;
        let weights = weights.as_deref();
        in_place(py, |check| self.inner.means(&targets, weights, &mut means, threads, check))?;
        let start = means.as_mut_ptr();
        let owner = owner(py, means)?;
        // SAFETY: the owner keeps the numbers. Nobody else uses them until it is gone.
        let numbers = unsafe { array_within::<f32>(start, targets.len() * width, owner) };
        numbers.call_method1("reshape", ((targets.len(), width),))
    }

    /// Copies the features of `rows`.
    #[pyo3(signature = (rows, out = None, *, pack = None, step = 0))]
    fn gather<'py>(
        &self,
        py: Python<'py>,
        rows: Bound<'py, PyUntypedArray>,
        out: Option<Bound<'py, PyUntypedArray>>,
        pack: Option<Py<Pack>>,
        step: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let planned = pack.as_ref().map(|pack| (&*pack.get().inner, step));
        match Rows::of(&rows)? {
            Rows::U32(rows) => self.gathered(py, &rows, planned, out),
            Rows::I64(rows) => self.gathered(py, &rows, planned, out),
        }
    }
}

/// Numbers of rows of vertices or of in-edges.
enum Rows {
    U32(Vec<u32>),
    I64(Vec<i64>),
}

impl Rows {
    /// A copy of an array of numbers.
    fn of(rows: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        if let Ok(rows) = rows.extract() {
            Ok(Self::U32(copied(&rows, "rows")?))
        } else if let Ok(rows) = rows.extract() {
            Ok(Self::I64(copied(&rows, "rows")?))
        } else {
            let text = format!("rows: expected uint32 or int64 of one dimension, got {}", rows.dtype());
            Err(PyTypeError::new_err(text))
        }
    }
}

/// Parts whose rows begin at `starts`. If the rows of the topology's vertices or in-edges begin there, its
/// own object is returned.
fn space_of(topology: &sampling::Topology, starts: &[i64]) -> PyResult<Result<Arc<RowSpace>>> {
    let starts: Vec<u64> = starts.iter().map(|&start| start as u64).collect();
    let known = [topology.rows(), topology.edge_rows()].into_iter().find(|space| space.starts() == starts);
    Ok(known.map_or_else(|| RowSpace::new(starts).map(Arc::new), |space| Ok(Arc::clone(space))))
}

impl Features {
    /// Copies the features of `rows` to `out`, or to memory that is used again.
    fn gathered<'py>(
        &self,
        py: Python<'py>,
        rows: &[impl RowId + Sync],
        planned: Option<PackStep<'_>>,
        out: Option<Bound<'py, PyUntypedArray>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(out) = out {
            self.check(py, &out, rows.len())?;
            let start = data(&out).expose_provenance();
            // SAFETY: numpy vouches for the memory, which `out` keeps. Its owner asked for the bytes to be
            // overwritten.
            let gather = |check: &dyn Fn() -> Result<()>| unsafe {
                self.inner.gather(rows, planned, with_exposed_provenance_mut(start), check)
            };
            in_place(py, gather)?;
            return Ok(out.into_any());
        }
        let mut memory = self.pools.features();
        in_place(py, |check| self.inner.fill(rows, planned, &mut memory, check))?;
        self.array(py, memory, rows.len())
    }

    fn of(py: Python<'_>, opened: Result<sampling::Features>, pools: &Arc<Pools>) -> PyResult<Self> {
        let inner = Arc::new(opened.map_err(|error| raise(py, error))?);
        let dtype = PyArrayDescr::new(py, &inner.descr)?.unbind();
        Ok(Self { inner, dtype, pools: Arc::clone(pools) })
    }

    /// Refuses an array that does not fit.
    fn check(&self, py: Python<'_>, out: &Bound<'_, PyUntypedArray>, count: usize) -> PyResult<()> {
        let shape = out.shape().split_first();
        let fits = shape.is_some_and(|(&rows, rest)| rows == count && rest == self.inner.row_shape);
        let writeable: bool = out.getattr("flags")?.getattr("writeable")?.extract()?;
        if fits && writeable && out.is_c_contiguous() && out.dtype().is_equiv_to(self.dtype.bind(py)) {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "out: expected a writeable C-contiguous array of {} and shape ({count}, *{:?}), got {} of shape {:?}",
            self.dtype.bind(py),
            self.inner.row_shape,
            out.dtype(),
            out.shape()
        )))
    }

    /// The array over `count` rows of features.
    pub(super) fn array<'py>(
        &self,
        py: Python<'py>,
        mut memory: Pooled<FeatureRows>,
        count: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let start = memory.as_mut_ptr();
        let owner = owner(py, memory)?;
        // SAFETY: the rows have memory, zeros or what was filled, which the owner keeps. Nobody else uses it
        // until it is gone.
        let bytes = unsafe { array_within::<u8>(start, count * self.inner.row_bytes, owner) };
        let shape: Vec<usize> = std::iter::once(count).chain(self.inner.row_shape.iter().copied()).collect();
        let shape = PyTuple::new(py, shape)?;
        bytes.call_method1("view", (self.dtype.bind(py),))?.call_method1("reshape", (shape,))
    }
}
