//! The identity of a graph.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::base::{Error, Result, Run, bytes};
use crate::edges::{EdgeStream, MAX_VERTICES, decode};
use crate::exec::each_block;

/// The least memory per vertex of any computation.
const BYTES_PER_VERTEX: u64 = 32;

/// Below this many vertices gaps between ids are cheap, and nothing is refused for them.
const CHEAP: u64 = 1 << 24;

/// More unused ids per used one than any sensible numbering has.
const SPARSE: u64 = 1024;

/// The identity of a graph, by which results know it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Number of vertices.
    pub n: u64,
    /// Number of records.
    pub m: u64,
    /// Number of loops.
    pub loops: u64,
    /// See [`super::checksum`].
    pub checksum: String,
}

/// `n` = largest id + 1, from one pass, unless that is more than `max_vertices` or, without it, implausibly
/// large.
pub fn find_num_vertices(
    edges: &dyn EdgeStream,
    run: &Run,
    max_vertices: Option<u64>,
    origin: &str,
) -> Result<u64> {
    let Some(largest) = largest_id(edges, run)? else { return Ok(0) };
    let n = u64::from(largest) + 1;
    check_plausible(n, edges.num_edges(), max_vertices, origin, || {
        format!(
            "Relabel with `fastpart convert --relabel` or pass max_vertices={n}. Or the file is of another kind: \
             dtype=\"u64\", or big-endian (`fastpart convert --swap`)"
        )
    })?;
    Ok(n)
}

/// Refuses an `n`, from the largest id of `m` records, above `max_vertices` or, without it, implausibly
/// large.
pub(crate) fn check_plausible(
    n: u64,
    m: u64,
    max_vertices: Option<u64>,
    origin: &str,
    remedy: impl FnOnce() -> String,
) -> Result<()> {
    let limit = max_vertices.unwrap_or_else(|| CHEAP.max(m.saturating_mul(2 * SPARSE))).min(MAX_VERTICES);
    if n <= limit {
        return Ok(());
    }
    let remedy = match max_vertices {
        Some(limit) => format!("That exceeds max_vertices={limit}. Raise it"),
        None => format!("For {m} records that is implausible. {}", remedy()),
    };
    let state = bytes(n * BYTES_PER_VERTEX);
    Err(Error::format(
        origin,
        format!("max id {} implies {n} vertices and {state} of state. {remedy}", n - 1),
    ))
}

/// The largest id of any record. `None` without records.
pub fn largest_id(edges: &dyn EdgeStream, run: &Run) -> Result<Option<u32>> {
    run.begin("scan", edges.num_edges());
    let largest = AtomicU32::new(0);
    each_block(edges, run, |_, records| {
        largest.fetch_max(decode::largest(records), Relaxed);
        Ok(())
    })?;
    Ok((edges.num_edges() > 0).then_some(largest.into_inner()))
}
