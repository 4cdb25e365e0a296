//! Sets and maps of small integers: bit sets and matrices, counts and sums by part or cluster, items by group, a
//! tournament, a queue of ascending numbers, entries in buckets on disk.

pub mod bits;
pub mod groups;
pub mod incidence;
pub mod monotone;
pub mod part_counts;
pub mod ranked;
pub mod rating_map;
pub mod spill;
pub mod tournament;

pub use bits::{Bits, ones};
pub use groups::{Groups, to_starts};
pub use incidence::Incidence;
pub use part_counts::PartCounts;
pub use ranked::LocalSet;
pub use rating_map::RatingMap;
pub use spill::{Entry, Pieces, Spill, SpillReader, Writer};
