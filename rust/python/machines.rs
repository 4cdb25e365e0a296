//! Tasks and replicas of a cluster, for Python, which starts them and carries their messages.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::edges::EdgeSource;
use super::errors::raise;
use super::partitions::partitioners::bounded;
use super::partitions::results::result;
use super::run::{Options, detached};
use super::values::from_python;
use fastpart::internals::algorithms::multilevel::{self, Plan, replicate};
use fastpart::internals::base::{Error, Meter, Result, locked};
use fastpart::internals::exec::Peers;
use fastpart::internals::graph::shards::{self, Counts};
use fastpart::internals::graph::{Csr, Identity, Piece, entries};
use fastpart::internals::partition::{Given, Of};

/// Vertices, records, loops and checksum of a graph.
type Known = (u64, u64, u64, String);

/// At most `count` ranges of `m` records that may be read apart from each other.
#[pyfunction]
pub fn shards_of_records(m: u64, count: u64) -> Vec<(u64, u64)> {
    shards::records(m, count).into_iter().map(|range| (range.start, range.end)).collect()
}

/// Counts of a shard of the records, as bytes.
#[pyfunction]
pub fn count_shard<'py>(
    py: Python<'py>,
    edges: &EdgeSource,
    shard: (u64, u64),
    symmetric: bool,
    options: Options,
) -> PyResult<Bound<'py, PyBytes>> {
    let counts =
        detached(py, &options, |run| shards::count(edges.stream(), shard.0..shard.1, symmetric, run))?;
    Ok(PyBytes::new(py, &counts.to_bytes()))
}

/// The identity of the graph, and the first vertex of each of about `count` shards of the vertices, from the
/// counts of all shards of the records.
#[pyfunction]
pub fn cut_shards(
    py: Python<'_>,
    counts: Vec<Vec<u8>>,
    n: u64,
    m: u64,
    count: u64,
) -> PyResult<(Known, Vec<u32>)> {
    let all: Result<Vec<Counts>> = counts.iter().map(|bytes| Counts::from_bytes(bytes)).collect();
    let (identity, starts) = shards::cut(all.map_err(|error| raise(py, error))?, [n, m], count);
    let Identity { n, m, loops, checksum } = identity;
    Ok(((n, m, loops, checksum), starts))
}

/// Writes the entries of a shard of the records, by shard of the vertices.
#[pyfunction]
pub fn scatter_shard(
    py: Python<'_>,
    edges: &EdgeSource,
    shard: (u64, u64),
    symmetric: bool,
    starts: Vec<u32>,
    into: PathBuf,
    options: Options,
) -> PyResult<()> {
    let work = |run: &_| shards::scatter(edges.stream(), shard.0..shard.1, symmetric, &starts, &into, run);
    detached(py, &options, work)
}

/// Writes the lists of a shard of the vertices, from the scattered entries of all shards of the records.
/// Returns the number of entries.
#[pyfunction]
pub fn gather_shard(
    py: Python<'_>,
    sources: Vec<PathBuf>,
    shard: usize,
    vertices: (u32, u32),
    identity: Known,
    into: PathBuf,
    options: Options,
) -> PyResult<u64> {
    let work = |run: &_| {
        shards::gather(&sources, shard, vertices.0..vertices.1, shards::key(&identity.3), &into, run)
    };
    Ok(detached(py, &options, work)?.entries)
}

/// The number of entries of a file of lists.
#[pyfunction]
pub fn entries_of_piece(py: Python<'_>, path: PathBuf) -> PyResult<u64> {
    entries(&path).map_err(|error| raise(py, error))
}

/// The other replicas, by way of Python.
struct Messages {
    exchange: Py<PyAny>,
    folder: PathBuf,
    /// The exception of the exchange.
    raised: Mutex<Option<PyErr>>,
}

impl Peers for Messages {
    fn exchange(&self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        Python::attach(|py| {
            let sent = self.exchange.call1(py, (PyBytes::new(py, &mine),))?;
            sent.extract(py)
        })
        .map_err(|error: PyErr| {
            *locked(&self.raised) = Some(error);
            Error::Cancelled
        })
    }

    fn folder(&self) -> &Path {
        &self.folder
    }
}

/// A file of lists, its first vertex, the end of its vertices, and the number of its entries.
type PieceRow = (PathBuf, u32, u32, u64);

/// Replica `number` of `count` of a multilevel partition, and the number of vertices that have neighbours.
/// `exchange` gets the message of this replica and returns the messages of all replicas.
#[pyfunction]
#[pyo3(signature = (values, *, k, pieces, identity, symmetric, number, count, exchange, folder, options))]
pub fn partition_replica<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyDict>,
    k: u32,
    pieces: Vec<PieceRow>,
    identity: Known,
    symmetric: bool,
    number: usize,
    count: usize,
    exchange: Py<PyAny>,
    folder: PathBuf,
    options: Options,
) -> PyResult<(Bound<'py, PyAny>, usize)> {
    let values = values.iter().map(|(name, item)| Ok((name.extract()?, from_python(&item)?)));
    let given = Given { k, of: Of::Vertices, values: values.collect::<PyResult<_>>()? };
    let piece = |(path, first, end, entries): PieceRow| Piece { path, vertices: first..end, entries };
    let pieces: Vec<Piece> = pieces.into_iter().map(piece).collect();
    let peers = Arc::new(Messages { exchange, folder, raised: Mutex::default() });
    let (n, m, loops, checksum) = identity;
    let graph = Identity { n, m, loops, checksum };
    let meter = Meter::start();
    let outcome = detached(py, &options, |run| {
        let replica = (peers.clone() as Arc<dyn Peers>, number, count);
        let key = shards::key(&graph.checksum);
        let csr = Csr::divided(&pieces, key, graph, symmetric, replica, run)?;
        let connected = csr.offsets().windows(2).filter(|ends| ends[0] < ends[1]).count();
        replicate(given, &csr, run).map(|outcome| (outcome, connected))
    });
    if let Some(raised) = locked(&peers.raised).take() {
        return Err(raised);
    }
    let (outcome, connected) = outcome?;
    Ok((result(py, outcome, meter.usage())?, connected))
}

/// Bytes of memory that a replica of a multilevel partition into `k` parts needs, beside its lists. Its top
/// has the share `sample` of the entries.
#[pyfunction]
pub fn replica_memory(n: u64, entries: u64, k: u32, sample: f64, volume_balance: Option<f64>) -> u64 {
    let offsets = n.saturating_add(1).saturating_mul(8);
    Plan { path: multilevel::Path::TwoLevels, sample }
        .memory(&bounded(k, volume_balance), n, entries, 1)
        .saturating_add(offsets)
}
