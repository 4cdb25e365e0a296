//! What the parts hold of given vertices.

use super::part::Part;
use super::targets::BLOCK;
use super::topology::Topology;
use crate::base::Result;

/// Appends the original ids of rows, which are all of vertices.
pub fn append_ids(topology: &Topology, rows: &[u32], ids: &mut Vec<i64>) -> Result<()> {
    append(topology, rows, ids, Part::prefetch_id, Part::id)
}

/// Appends the number of in-edges of each row, in the whole graph.
pub fn append_degrees(topology: &Topology, rows: &[u32], degrees: &mut Vec<i64>) -> Result<()> {
    let degree = |part: &Part, vertex| Ok(part.in_edges(vertex)?.1 as i64);
    append(topology, rows, degrees, Part::prefetch, degree)
}

/// Appends what `read` finds of each row, in blocks. It is brought into the cache before.
#[inline(always)]
fn append(
    topology: &Topology,
    rows: &[u32],
    values: &mut Vec<i64>,
    prefetch: impl Fn(&Part, u32),
    read: impl Fn(&Part, u32) -> Result<i64>,
) -> Result<()> {
    let mut targets = [(0, 0); BLOCK];
    for rows in rows.chunks(BLOCK) {
        for (target, &row) in targets.iter_mut().zip(rows) {
            let part = topology.part_of(row);
            let vertex = row - topology.parts()[part].start;
            prefetch(&topology.parts()[part], vertex);
            *target = (part, vertex);
        }
        for &(part, vertex) in &targets[..rows.len()] {
            values.push(read(&topology.parts()[part], vertex)?);
        }
    }
    Ok(())
}
