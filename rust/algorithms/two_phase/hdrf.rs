//! The records that no cluster decides, placed in stream order by the score of HDRF, among all parts.

use super::Vertex;
use crate::algorithms::edge_streams::loads::Balance;
use crate::algorithms::edge_streams::{EdgeStreamer, Limit, by_degree, choose};
use crate::base::NONE;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::edges::{EdgeStream, Record};
use crate::partition::EdgeParts;
use crate::sets::incidence::Incidence;

/// Places all records with the mark but loops. Returns where the vertices are present, and the loads.
pub(super) fn stream(
    edges: &dyn EdgeStream,
    vertices: &[Vertex],
    parts: &mut EdgeParts,
    (holds, loads, cap): (Incidence, &[u64], u64),
    run: &Run,
) -> Result<(Incidence, Vec<u64>)> {
    let mut streamer = EdgeStreamer::resume((holds, loads), cap, Balance::RecordsOfMost)?;
    // The limit never moves, so that the number of records to come does not matter.
    streamer.begin(edges.num_edges(), Limit::constant(cap));
    run.begin("streaming", edges.num_edges());
    let open = |records: &[Record], parts: &[u32], chosen: &mut Vec<u32>| {
        choose(records.len(), chosen, |index| parts[index] == NONE && records[index][0] != records[index][1]);
    };
    let worth = |records: &[Record], gains: &mut _| {
        by_degree(vertices, |vertex| vertex.degree, records, gains);
    };
    streamer.stream_all(edges, parts, run, Some(&open), worth)?;
    let EdgeStreamer { present, loads, .. } = streamer;
    Ok((present, loads.records()))
}
