//! Sets and maps of small integers: bit sets and matrices, counts and sums by part or cluster, items by group, a
//! tournament, entries in buckets on disk.

pub mod bits;
pub mod groups;
pub mod incidence;
pub mod part_counts;
pub mod ranked;
pub mod rating_map;
pub mod spill;
pub mod tournament;
