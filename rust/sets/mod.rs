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
