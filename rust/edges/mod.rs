//! Edges as a stream of records, from files and from arrays.
//!
//! All code reads edges through [`EdgeStream::block`]. It copies records into a private, cache-sized buffer,
//! widens them to u32 and checks their range. Hot loops read only that buffer. So no reference ever points to
//! memory that another process or thread can change, and an id from a block is always below
//! [`EdgeStream::num_vertices`].

mod by_relation;
pub(crate) mod decode;
mod directedness;
mod directions;
pub(crate) mod file;
pub(crate) mod memory;
pub(crate) mod open_file;
pub(crate) mod plausible;
mod shards;
pub(crate) mod temporary;
pub(crate) mod weights;

use std::ops::Range;

use crate::base::Result;
pub(crate) use by_relation::ByRelation;
pub use decode::{Column, IdType, WideRecord};
pub use directedness::Directedness;
pub use directions::{Directions, Relations};
pub use file::{EdgeFile, Layout};
pub use memory::MemoryEdges;
pub(crate) use memory::OwnedEdges;
pub use open_file::{Io, MappedFile};
pub use shards::EdgeShards;
pub use temporary::TempRecords;
pub use weights::Weights;

/// One edge record: two vertex ids.
pub type Record = [u32; 2];

/// Records per I/O block: 512 KiB, which the second-level cache holds. Never changes a result.
pub const BLOCK: u64 = 1 << 16;

/// The largest number of vertices: ids go up to 2^32 - 2, since 2^32 - 1 marks "none".
pub const MAX_VERTICES: u64 = u32::MAX as u64;

/// A graph as a sequence of edge records that can be read again and again, from any thread.
///
/// # Safety
/// Every id that [`EdgeStream::block`] returns must be below [`EdgeStream::num_vertices`], which must give
/// the same number as long as the value is borrowed: hot loops index by these ids without a check.
pub unsafe trait EdgeStream: Sync {
    /// Number of vertices. Every id is below it.
    fn num_vertices(&self) -> u64;

    /// Number of records, loops included.
    fn num_edges(&self) -> u64;

    /// Reads the records `range` into `buf` (its old content is lost) and returns them.
    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]>;

    /// Whether the records may change without notice. Data derived from them is compared with them before it
    /// is used again.
    fn may_change(&self) -> bool {
        false
    }

    /// Whether records are stored grouped by relation. Streaming algorithms should then read them in
    /// scattered order.
    fn by_relation(&self) -> bool {
        false
    }

    /// An error when the source changed since it was opened. Asked before and after every pass.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
    }
}
