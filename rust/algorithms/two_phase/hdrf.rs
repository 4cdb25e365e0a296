//! The records that no cluster decides, placed in stream order by the score of HDRF, among all parts.

use super::Vertex;
use crate::algorithms::edge_streams::loads::Balance;
use crate::algorithms::edge_streams::{Affinity, EdgeStreamer, Limit};
use crate::base::NONE;
use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::edges::{BLOCK, EdgeStream, Record};
use crate::exec::pass::blocks;
use crate::partition::EdgeParts;
use crate::sets::incidence::Incidence;

/// Places all records with the mark but loops. Returns where the vertices are present, and the loads.
pub(super) fn stream(
    edges: &dyn EdgeStream,
    vertices: Buffer<Vertex>,
    parts: &mut EdgeParts,
    (holds, loads, cap): (Incidence, &[u64], u64),
    run: &Run,
) -> Result<(Incidence, Vec<u64>)> {
    let mut degrees: Buffer<u32> = Buffer::zeroed(vertices.len(), "degrees")?;
    for (degrees, vertices) in degrees.chunks_mut(BLOCK as usize).zip(vertices.chunks(BLOCK as usize)) {
        degrees.iter_mut().zip(vertices).for_each(|(degree, vertex)| *degree = vertex.degree);
        run.advance(0)?;
    }
    drop(vertices);
    let mut streamer =
        EdgeStreamer::resume(degrees, (holds, loads), cap, Affinity::Degree, Balance::RecordsOfMost)?;
    // The limit never moves, so that the number of records to come does not matter.
    streamer.begin(edges.num_edges(), Limit::constant(cap));
    run.begin("streaming", edges.num_edges());
    edges.check_unchanged()?;
    let (mut buf, mut marks) = (Vec::new(), Vec::new());
    let (mut open, mut places, mut found): (Vec<Record>, Vec<u64>, Vec<u32>) = Default::default();
    for range in blocks(0..edges.num_edges()) {
        let records = edges.block(range.clone(), &mut buf)?;
        let marks = parts.read(range.clone(), &mut marks);
        open.clear();
        places.clear();
        for ((&record, &mark), place) in records.iter().zip(marks).zip(range.start..) {
            if mark == NONE && record[0] != record[1] {
                open.push(record);
                places.push(place);
            }
        }
        run.advance((records.len() - open.len()) as u64)?;
        found.clear();
        found.resize(open.len(), 0);
        streamer.stream(&open, &mut found, run)?;
        places.iter().zip(&found).for_each(|(&place, &part)| parts.write(place, &[part]));
    }
    edges.check_unchanged()?;
    let EdgeStreamer { present, loads, .. } = streamer;
    Ok((present, loads.records()))
}
