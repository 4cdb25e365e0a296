//! The parts of a partition as arrays in `.npy` files (docs/reference/partition-directory.md), written from
//! the edge stream.
//!
//! **Requirements.** A vertex or an edge partition, and which directed edges the records are
//! ([`Directions`]). The files go below a directory that appears as a whole or not at all. Its owner discards
//! it after an error.
//!
//! **Algorithm.** In-degrees are counted. A second pass sends each directed edge to the part of its
//! destination, through one temporary file (`spill`). Then every part is made from its own edges alone: its
//! halo is a ranked bit set (`local_set`), its rows are sorted in memory window by window (`layout`, `rows`).
//! The row of a vertex is its rank in its part. One pass over the assignment counts all ranks, which the
//! local ids need anyway, so that the rows of the halo in their own parts take no more memory and no search.
//! The content of a part depends only on the order of the records, not on threads or buffers.
//!
//! Where the records have relations, a row is ordered by the number of the edge's relation, then by record.
//! Records come by relation, so only the reverse edges of relations of their own have to be moved, behind the
//! others of the row.
//!
//! **Memory.** [`write_vertex_parts`]: 16 bytes per vertex (20 for `halo_hops` 0 and 2), and for each worker
//! 0.2 bytes per vertex (0.4 for `halo_hops=2`) and at most 85 MB (135 MB with relations).
//! [`write_edge_parts`]: 20 bytes per vertex, and for each worker 4.2 bytes per vertex and at most 170 MB.
//! Per part 128 bytes (512). Nothing grows with the edges but the directory of the temporary file, a
//! thousandth of it. If the budget is tight, fewer workers are used. The assignment belongs to the caller.
//!
//! **Disk.** Beside the output, for the time of the call, 16 bytes per directed edge (32 for `halo_hops=2`).
//! Edge partitions take another 16 bytes per copy of a vertex, and 16 bytes for each edge of a part at work
//! that exceeds a window.
//!
//! **Parallelism.** Passes over the edges run on all threads, then parts do, so that more than one part is
//! needed for more than one thread. Every thread may write at once.

pub(crate) mod coding;
mod edge_parts;
pub mod file_hash;
mod gather;
mod layout;
mod relation_file;
mod roots;
mod rows;
mod vertex_parts;

use std::path::{Path, PathBuf};

use crate::base::{Buffer, Error, Result, Run};
use crate::edges::{Directions, EdgeStream, Record};
use crate::exec::spill;
use crate::graph::degrees;

pub use coding::Coding;
pub use edge_parts::write_edge_parts;
pub use gather::{Gather, RowGatherer, Rows};
pub use vertex_parts::{Portion, write_vertex_parts};

/// The folder of a part.
fn part_folder(into: &Path, part: usize) -> PathBuf {
    into.join(format!("part-{part:05}"))
}

/// The sizes of a part in `part.json`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartSizes {
    /// Inner vertices. In an edge partition, all local vertices.
    pub num_inner: u64,
    /// Halo vertices at distance 1 and 2.
    pub num_halo: [u64; 2],
    /// Vertices whose in-edges are here.
    pub num_rows: u64,
    /// Edges here.
    pub num_edges: u64,
    /// Root copies (edge partitions only).
    pub num_roots: u64,
    /// Leaves: copies whose root is elsewhere (edge partitions only).
    pub num_send: u64,
}

/// Refuses more records than ids have bits for.
fn check_records(edges: &dyn EdgeStream) -> Result<()> {
    let m = edges.num_edges();
    if m < 1 << (spill::ID_BITS - 1) {
        return Ok(());
    }
    Err(Error::Capacity(format!("{m} records. The parts of at most 2^{} can be written", spill::ID_BITS - 1)))
}

/// In-degree of every vertex, over the records that are `counted`. Takes 4 bytes per vertex, and one more for
/// each thread where `available` bytes allow it.
pub(crate) fn in_degrees(
    edges: &dyn EdgeStream,
    directions: &Directions,
    available: u64,
    run: &Run,
    counted: impl Fn(Record) -> bool + Sync,
) -> Result<Buffer<u32>> {
    run.begin("degrees", edges.num_edges());
    let private = run.threads() <= degrees::PRIVATE && degrees::memory(edges, run) <= available;
    let counts = |id, record| {
        let counts = counted(record);
        [counts & directions.reverses(id, record), counts]
    };
    Ok(degrees::count(edges, private, run, counts, |(): &mut (), _, _| ())?.degree)
}
