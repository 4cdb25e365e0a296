//! Ids of any kind to vertices 0..n-1, and records of ids to records of vertices, out of core.
//!
//! A vertex is the rank of its id within its type, whatever the files, their order and the number of threads.
//! The steps are units that can be done again: the caller keeps a journal of those that are done.
//!
//! 1. [`runs`]: the ids of a table are sorted in runs, and merged.
//! 2. [`numbering`]: the merge gives each id its rank, and writes keys by bucket, the vertex of each row, and
//!    the ids.
//! 3. [`spill`]: the ends of records go to the buckets of their keys. [`joining`]: one small table at a time
//!    resolves a bucket, and a byte per end leads the vertices back into the order of the records. It is a
//!    radix join (Manegold, Boncz, Kersten: Optimizing main-memory join on modern hardware, 2002) in which
//!    the second shuffle is a merge. [`lookup`] does it at once where the tables are small.
//!
//! **Requirements.** Ids arrive as Arrow streams of i64, u64, text or bytes ([`arrow`]). **Memory.** Given by
//! the caller for runs; 21.3 bytes per id of the largest bucket and thread; 64 kB per bucket. **Disk.** 12 or
//! 16 bytes per id, 18 or 26 per record of a group. **Complexity.** O(n log n + m). **Parallelism.** Buckets
//! and units are independent.

mod appended;
mod arrow;
mod joining;
mod key;
mod lookup;
mod numbering;
mod runs;
mod spill;
mod table;

pub use arrow::{ArrowStream, Chunk, IdBatch, Table};
pub use joining::{Bucket, Joined, Unit, join_all, resolve_all};
pub use key::Kind;
pub use lookup::{Declared, Lookup};
pub use numbering::Numbering;
pub use runs::Sorter;
pub use spill::{Side, Spill};
