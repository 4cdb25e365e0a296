//! Records of a graph streamed into parts: all of them, which is what HDRF and the greedy rule are, or those
//! without one.

use super::loads::Balance;
use super::{Affinity, EdgeStreamer, Limit, by_degree, loops};
use crate::base::{Buffer, Result, Run};
use crate::capacity::cap;
use crate::edges::{EdgeStream, Record};
use crate::graph::{Degrees, degrees};
use crate::partition::{EdgePartition, EdgeParts, Need, Outcome, Prepared, Shape};
use crate::sets::Incidence;

/// The memory that the [`Rule`] of this name takes.
pub(crate) fn memory(name: &str, k: u32, &Shape { n, m, in_file, .. }: &Shape, run: &Run) -> Need {
    let streaming = EdgeStreamer::memory(n, m, k) + EdgeParts::memory(m, k, in_file);
    let bytes = streaming.max(degrees::needed(n, run.threads()));
    Need::new(bytes, format!("{name} on {n} vertices and {m} records, {k} parts"))
}

/// Streams the records without a part, but not the loops, at most `cap` records to a part.
/// Returns where the vertices are present, and the loads.
pub(crate) fn stream_open<V: Sync>(
    edges: &dyn EdgeStream,
    (vertices, degree): (&[V], impl Fn(&V) -> u32 + Sync),
    mut streamer: EdgeStreamer,
    cap: u64,
    parts: &mut EdgeParts,
    run: &Run,
) -> Result<(Incidence, Vec<u64>)> {
    // The limit never moves, so that the number of records to come does not matter.
    streamer.begin(edges.num_edges(), Limit::constant(cap));
    run.begin("streaming", edges.num_edges());
    let worth = |records: &[Record], gains: &mut _| by_degree(vertices, &degree, records, gains);
    streamer.stream_all(edges, parts, run, false, worth)?;
    let EdgeStreamer { present, loads, .. } = streamer;
    Ok((present, loads.records()))
}

/// A partition of all records by one rule of scoring.
pub(crate) struct Rule {
    /// Number of parts.
    pub k: u32,
    /// A part gets at most `ceil(balance * m / k)` records.
    pub balance: f64,
    /// The score of an end that is present in a part.
    pub affinity: Affinity,
    /// The term of the loads.
    pub terms: Balance,
}

impl Rule {
    /// Gives each record the part of the largest score.
    pub(crate) fn partition(&self, graph: &Prepared<()>) -> Result<Outcome> {
        let Rule { k, balance, affinity, terms } = *self;
        let (edges, run) = (graph.edges(), graph.run);
        let Degrees { mut degree, graph: identity } = degrees::scan(edges, run)?;
        let m = identity.m;
        let cap = cap(balance, m, k);
        let mut streamer = EdgeStreamer::new(degree.len(), k, cap, terms)?;
        if affinity == Affinity::Remaining {
            let degree = std::mem::replace(&mut degree, Buffer::zeroed(0, "")?);
            streamer = streamer.counting(degree);
        }
        let mut parts = EdgeParts::new(m, k, graph.out())?;
        streamer.begin(m - identity.loops, Limit::constant(cap));
        run.begin("streaming", m);
        let worth = |records: &[Record], gains: &mut _| {
            if affinity == Affinity::Degree {
                by_degree(&degree, |&degree| degree, records, gains);
            }
        };
        streamer.stream_all(edges, &mut parts, run, true, worth)?;
        let EdgeStreamer { present, loads, .. } = streamer;
        let (loads, cap) = (loads.records(), Some(cap));
        let partition = EdgePartition { parts, k, loads, cap, graph: identity };
        Ok(loops::place(edges, partition, Some(present), run)?.into())
    }
}
