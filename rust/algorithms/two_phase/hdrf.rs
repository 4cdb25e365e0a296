//! The records that no cluster decides, placed in stream order by the score of HDRF, among all parts.

use super::Vertex;
use crate::algorithms::edge_streams::EdgeStreamer;
use crate::algorithms::edge_streams::loads::Balance;
use crate::algorithms::edge_streams::partition::stream_open;
use crate::base::{Result, Run};
use crate::edges::EdgeStream;
use crate::partition::EdgeParts;
use crate::sets::Incidence;

/// Places all records with the mark but loops. Returns where the vertices are present, and the loads.
pub(super) fn stream(
    edges: &dyn EdgeStream,
    vertices: &[Vertex],
    parts: &mut EdgeParts,
    (holds, loads, cap): (Incidence, &[u64], u64),
    run: &Run,
) -> Result<(Incidence, Vec<u64>)> {
    let streamer = EdgeStreamer::resume((holds, loads), cap, Balance::RecordsOfMost)?;
    stream_open(edges, (vertices, |vertex: &Vertex| vertex.degree), streamer, cap, parts, run)
}
