//! All records of a graph streamed into parts, and nothing else: what HDRF and the greedy rule are.

use std::path::Path;

use super::loads::Balance;
use super::{Affinity, EdgeStreamer, Limit, loops};
use crate::base::error::Result;
use crate::base::run::Run;
use crate::capacity;
use crate::edges::EdgeStream;
use crate::exec::pass::blocks;
use crate::graph::degrees;
use crate::graph::degrees::Degrees;
use crate::graph::identity::Graph;
use crate::partition::{EdgePartition, EdgeParts};

/// Bytes that [`stream_all`] takes, for `n` vertices and `m` records.
pub fn memory(n: u64, m: u64, k: u32, out: Option<&Path>) -> u64 {
    EdgeStreamer::memory(n, k) + EdgeParts::memory(m, k, out)
}

/// Gives each record the part of the largest score, at most `ceil(balance * m / k)` records to a part.
pub fn stream_all(
    name: &str,
    edges: &dyn EdgeStream,
    (k, balance): (u32, f64),
    (affinity, terms): (Affinity, Balance),
    out: Option<&Path>,
    run: &Run,
) -> Result<EdgePartition> {
    let (n, m) = (edges.num_vertices(), edges.num_edges());
    let needed = memory(n, m, k, out).max(degrees::memory(edges, run));
    run.require(needed, format!("{name}, {n} vertices, {m} records, {k} parts"))?;
    let Degrees { degree, loops: num_loops, checksum } = degrees::scan(edges, run)?;
    let cap = capacity::cap(balance, m, k);
    let mut streamer = EdgeStreamer::new(degree, k, cap, affinity, terms)?;
    let mut parts = EdgeParts::new(m, k, out)?;
    streamer.begin(m - num_loops, Limit::constant(cap));
    edges.check_unchanged()?;
    run.begin("streaming", m);
    let (mut buf, mut placed) = (Vec::new(), Vec::new());
    for range in blocks(0..m) {
        let first = range.start;
        let records = edges.block(range, &mut buf)?;
        placed.clear();
        placed.resize(records.len(), 0);
        streamer.stream(records, &mut placed, run)?;
        parts.write(first, &placed);
    }
    edges.check_unchanged()?;
    let EdgeStreamer { mut present, loads, .. } = streamer;
    let mut loads = loads.records();
    if num_loops > 0 {
        loops::place(edges, &mut parts, &mut loads, Some(cap), Some(&mut present), run)?;
    }
    Ok(EdgePartition { parts, k, loads, cap: Some(cap), graph: Graph { n, m, loops: num_loops, checksum } })
}
