//! The data of given vertices in the parts.

use super::Topology;
use super::part::Part;
use crate::base::Result;

/// Rows that are on their way into the cache.
const AHEAD: usize = 48;

/// Appends the original ids of rows, which are all of vertices.
pub fn append_ids(topology: &Topology, rows: &[u32], ids: &mut Vec<i64>) -> Result<()> {
    append(topology, rows, ids, Part::prefetch_id, Part::id)
}

/// Appends the number of in-edges of each row, in the whole graph.
pub fn append_degrees(topology: &Topology, rows: &[u32], degrees: &mut Vec<i64>) -> Result<()> {
    let degree = |part: &Part, vertex| Ok(part.in_edges(vertex)?.1 as i64);
    append(topology, rows, degrees, Part::prefetch, degree)
}

/// Appends what `read` finds of each row. It is brought into the cache before.
#[inline(always)]
fn append(
    topology: &Topology,
    rows: &[u32],
    values: &mut Vec<i64>,
    prefetch: impl Fn(&Part, u32),
    read: impl Fn(&Part, u32) -> Result<i64>,
) -> Result<()> {
    let locate = |row: u32| {
        let part = &topology.parts()[topology.part_of(row)];
        (part, row - part.start)
    };
    values.reserve(rows.len());
    for (index, &row) in rows.iter().enumerate() {
        if let Some(&later) = rows.get(index + AHEAD) {
            let (part, vertex) = locate(later);
            prefetch(part, vertex);
        }
        let (part, vertex) = locate(row);
        values.push(read(part, vertex)?);
    }
    Ok(())
}
