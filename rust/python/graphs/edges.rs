//! Edge sources for Python: files and arrays.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::raise;
use crate::results::{Array, View, array};
use crate::run::{Options, detached};
use fastpart::internals::base::{Error, Result, Run, named, reserved, shown};
use fastpart::internals::edges::{Column, IdType};
use fastpart::internals::edges::{
    Directedness, EdgeFile, EdgeShards, EdgeStream, Io, Layout, MAX_VERTICES, MemoryEdges, Record, Weights,
};
use fastpart::internals::exec::blocks;
use fastpart::internals::graph::{self, Csr, degrees, extent, find_num_vertices};
use fastpart::internals::partition::{Graph, Input};

/// The identity of a graph.
#[pyclass(frozen, get_all, new = "from_fields", from_py_object, module = "fastpart._core")]
#[derive(Clone)]
pub struct Identity {
    pub n: u64,
    pub m: u64,
    pub loops: u64,
    pub checksum: String,
}

impl From<graph::Identity> for Identity {
    fn from(graph::Identity { n, m, loops, checksum }: graph::Identity) -> Identity {
        Identity { n, m, loops, checksum }
    }
}

/// Edges that every algorithm of the core reads.
#[pyclass(frozen, module = "fastpart._core")]
pub struct EdgeSource {
    graph: Graph,
    /// The type of the ids in a file.
    id_type: Option<&'static str>,
    /// The owners of the memory of arrays.
    _owners: Vec<Py<PyAny>>,
}

impl EdgeSource {
    pub fn stream(&self) -> &dyn EdgeStream {
        self.graph.edges()
    }

    pub fn weights(&self) -> Option<&Weights> {
        self.graph.weights()
    }

    /// The graph for one call.
    pub fn input(&self, weighted: bool, directedness: Directedness) -> Input<'_> {
        let input = self.graph.input();
        Input { weights: input.weights.filter(|_| weighted), directedness, ..input }
    }

    /// The adjacency, with or without the weights.
    pub fn csr(&self, weighted: bool, symmetric: bool, run: &Run) -> Result<Arc<Csr>> {
        let directedness = if symmetric { Directedness::Symmetric } else { Directedness::Undirected };
        self.input(weighted, directedness).adjacency(run)
    }
}

/// Takes `num_vertices`, or finds it.
fn num_vertices_of(
    py: Python<'_>,
    edges: &dyn EdgeStream,
    origin: &str,
    [num_vertices, max_vertices]: [Option<u64>; 2],
    options: &Options,
) -> PyResult<u64> {
    let find = || detached(py, options, |run| find_num_vertices(edges, run, max_vertices, origin));
    let n = num_vertices.map_or_else(find, Ok)?;
    if n <= MAX_VERTICES {
        return Ok(n);
    }
    Err(raise(py, Error::parameter("num_vertices", format!("{n}. Use at most {MAX_VERTICES}"))))
}

#[pymethods]
impl EdgeSource {
    /// Opens a file. See `fastpart.open_graph`.
    #[staticmethod]
    #[pyo3(signature = (path, *, dtype, layout, io, num_vertices, max_vertices, weights, options, by_relation = false, remedy = None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        dtype: Option<&str>,
        layout: Option<&str>,
        io: &str,
        num_vertices: Option<u64>,
        max_vertices: Option<u64>,
        weights: Option<&Bound<'_, PyAny>>,
        options: Options,
        by_relation: bool,
        remedy: Option<String>,
    ) -> PyResult<Self> {
        let io = if io == "read" { Io::Read } else { Io::Map };
        let opened = id_type(dtype)
            .and_then(|id_type| py.detach(|| EdgeFile::open(&path, id_type, layout_of(layout), io)));
        let mut file = opened.map_err(|error| raise(py, error))?;
        let mut _owners = vec![];
        let weights = weights_of(weights, &file, io, &mut _owners)?;
        let n = num_vertices_of(py, &file, &shown(file.path()), [num_vertices, max_vertices], &options)?;
        file.set_num_vertices(n);
        remedy.into_iter().for_each(|remedy| file.set_remedy(remedy));
        let id_type = Some(file.id_type().name());
        Ok(Self { graph: graph_of(Arc::new(file), weights, by_relation), id_type, _owners })
    }

    /// Opens files of raw u32 pairs as one graph.
    #[staticmethod]
    #[pyo3(signature = (paths, *, io, num_vertices, weights, by_relation = false))]
    fn open_shards(
        py: Python<'_>,
        paths: Vec<PathBuf>,
        io: &str,
        num_vertices: u64,
        weights: Option<&Bound<'_, PyAny>>,
        by_relation: bool,
    ) -> PyResult<Self> {
        let io = if io == "read" { Io::Read } else { Io::Map };
        let opened = py.detach(|| EdgeShards::open(&paths, num_vertices, io));
        let shards = opened.map_err(|error| raise(py, error))?;
        let mut _owners = vec![];
        let weights = weights_of(weights, &shards, io, &mut _owners)?;
        let graph = graph_of(Arc::new(shards), weights, by_relation);
        Ok(Self { graph, id_type: Some("u32"), _owners })
    }

    /// Edges in two one-dimensional arrays of equal length, of any stride and byte order.
    #[staticmethod]
    #[pyo3(signature = (sources, targets, *, num_vertices, max_vertices, weights, options, by_relation = false))]
    fn columns(
        py: Python<'_>,
        sources: &Bound<'_, PyUntypedArray>,
        targets: &Bound<'_, PyUntypedArray>,
        num_vertices: Option<u64>,
        max_vertices: Option<u64>,
        weights: Option<&Bound<'_, PyAny>>,
        options: Options,
        by_relation: bool,
    ) -> PyResult<Self> {
        if sources.ndim() != 1 || targets.ndim() != 1 || sources.len() != targets.len() {
            return Err(PyTypeError::new_err("edges need two one-dimensional arrays of the same length"));
        }
        let columns = [column(sources)?, column(targets)?];
        // SAFETY: numpy vouches for `len` items at these strides, and `_owners` keeps the arrays alive.
        // Should another thread write to them meanwhile, `decode` reads each id once and checks its copy.
        let mut memory = unsafe { MemoryEdges::new(columns, sources.len() as u64, MAX_VERTICES) };
        let mut _owners = [sources, targets].map(|array| array.clone().into_any().unbind()).into();
        let weights = weights_of(weights, &memory, Io::Map, &mut _owners)?;
        let n = num_vertices_of(py, &memory, "array", [num_vertices, max_vertices], &options)?;
        memory.set_num_vertices(n);
        Ok(Self { graph: graph_of(Arc::new(memory), weights, by_relation), id_type: None, _owners })
    }

    /// Its records with these weights instead of any others.
    fn with_weights(&self, py: Python<'_>, weights: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut owners = self._owners.iter().map(|owner| owner.clone_ref(py)).collect();
        let weights = weights_of(Some(weights), self.stream(), Io::Map, &mut owners)?;
        Ok(Self { graph: self.graph.with_weights(weights), id_type: self.id_type, _owners: owners })
    }

    /// The smallest and the largest weight, their sum, and their checksum. `None` without weights.
    fn extent(&self, py: Python<'_>, options: Options) -> PyResult<Option<(u32, u32, u64, String)>> {
        let Some(weights) = self.weights() else { return Ok(None) };
        let found = detached(py, &options, |run| {
            let found = extent(weights, run)?;
            weights.check_total(found.total)?;
            Ok(found)
        })?;
        Ok(Some((found.least, found.most, found.total, found.checksum)))
    }

    #[getter]
    fn num_vertices(&self) -> u64 {
        self.stream().num_vertices()
    }

    #[getter]
    fn num_edges(&self) -> u64 {
        self.stream().num_edges()
    }

    /// The type of the stored ids: "u32", "i32", "u64" or "i64". `None` for arrays.
    #[getter]
    fn dtype(&self) -> Option<&'static str> {
        self.id_type
    }

    /// Raises `EdgeFileChangedError` if the file changed since it was opened.
    fn check_unchanged(&self, py: Python<'_>) -> PyResult<()> {
        let weights = self.weights().map_or(Ok(()), Weights::check_unchanged);
        self.stream().check_unchanged().and(weights).map_err(|error| raise(py, error))
    }

    /// The records `first..end` as an array of shape (end - first, 2). At most a few blocks at a time.
    fn block<'py>(&self, py: Python<'py>, first: u64, end: u64) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let records = py.detach(|| {
            let mut records: Vec<Record> = reserved((end - first) as usize, "a block of records")?;
            let mut buf = Vec::new();
            for range in blocks(first..end) {
                records.extend_from_slice(self.stream().block(range, &mut buf)?);
            }
            Ok(records)
        });
        let records = records.map_err(|error| raise(py, error))?;
        let ids = PyArray1::from_vec(py, records.into_flattened());
        ids.reshape([(end - first) as usize, 2])
    }

    /// Frees the adjacency. The next call that needs it builds it again.
    fn forget_csr(&self) {
        self.graph.forget_adjacency();
    }

    /// Loops and checksum.
    fn identify(&self, py: Python<'_>, options: Options) -> PyResult<(u64, String)> {
        detached(py, &options, |run| {
            let identity = degrees::identify(self.stream(), run)?;
            Ok((identity.loops, identity.checksum))
        })
    }

    /// Degrees (uint32, length n), loops and checksum.
    fn degrees<'py>(&self, py: Python<'py>, options: Options) -> PyResult<(Array<'py, u32>, u64, String)> {
        let degrees = detached(py, &options, |run| {
            run.require(degrees::memory(self.stream(), run), "degrees")?;
            degrees::scan(self.stream(), run)
        })?;
        let degrees::Degrees { degree, graph } = degrees;
        Ok((array(py, degree)?, graph.loops, graph.checksum))
    }
}

fn graph_of(edges: Arc<dyn EdgeStream + Send>, weights: Option<Weights>, by_relation: bool) -> Graph {
    let graph = Graph::new(edges, weights);
    if by_relation { graph.by_relation() } else { graph }
}

/// The id type of that name.
pub fn id_type(name: Option<&str>) -> Result<Option<IdType>> {
    let known = [IdType::U32, IdType::U64, IdType::I32, IdType::I64].map(|known| (known.name(), known));
    name.map(|name| named("dtype", "type", name, &known)).transpose()
}

pub fn layout_of(name: Option<&str>) -> Option<Layout> {
    name.map(|name| if name == "edge_index" { Layout::EdgeIndex } else { Layout::Rows })
}

/// Weights of as many records as the source has, from a path or a contiguous array of uint32.
fn weights_of(
    given: Option<&Bound<'_, PyAny>>,
    edges: &dyn EdgeStream,
    io: Io,
    owners: &mut Vec<Py<PyAny>>,
) -> PyResult<Option<Weights>> {
    let Some(given) = given else { return Ok(None) };
    let py = given.py();
    let weights = if let Ok(array) = given.extract::<View<'_, u32>>() {
        let values = array.as_slice()?;
        let (start, len) = (values.as_ptr().cast::<u8>(), values.len() as u64);
        owners.push(given.clone().unbind());
        // SAFETY: the array is contiguous, and `owners` keeps it alive.
        unsafe { Weights::in_memory(start, len) }
    } else {
        let path: PathBuf = given.extract()?;
        py.detach(|| Weights::open(&path, io)).map_err(|error| raise(py, error))?
    };
    weights.check_len(edges.num_edges()).map_err(|error| raise(py, error))?;
    Ok(Some(weights))
}

fn column(array: &Bound<'_, PyUntypedArray>) -> PyResult<Column> {
    let dtype = array.dtype();
    let id_type = match (dtype.kind(), dtype.itemsize()) {
        (b'u', 4) => IdType::U32,
        (b'i', 4) => IdType::I32,
        (b'u', 8) => IdType::U64,
        (b'i', 8) => IdType::I64,
        _ => {
            let text = format!(
                "edges of dtype {dtype}. Ids are uint32, int32, uint64 or int64. Convert with .astype(np.uint32)"
            );
            return Err(PyTypeError::new_err(text));
        }
    };
    // SAFETY: the pointer comes from a live array object. Only its fields are read here.
    let start = unsafe { (*array.as_array_ptr()).fields.data }.cast::<u8>().cast_const();
    let stride = array.strides().first().copied().unwrap_or(0);
    Ok(Column { start, stride, id_type, swapped: dtype.is_native_byteorder() == Some(false) })
}
