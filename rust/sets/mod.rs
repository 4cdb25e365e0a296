//! Sets and maps of small integers: bit sets and matrices, disjoint sets, counts and sums by part or cluster,
//! items by group, a tournament, a queue of ascending numbers, entries in buckets on disk.

pub(crate) mod bits;
pub(crate) mod disjoint;
pub(crate) mod groups;
pub(crate) mod incidence;
pub(crate) mod monotone;
pub(crate) mod ranked;
pub(crate) mod rating_map;
pub(crate) mod shared_sums;
pub(crate) mod sparse_sums;
pub(crate) mod tournament;

pub(crate) use bits::{Bits, ones};
pub(crate) use disjoint::DisjointSets;
pub(crate) use groups::{Groups, to_starts};
pub(crate) use incidence::Incidence;
pub(crate) use ranked::LocalSet;
pub(crate) use rating_map::RatingMap;
pub(crate) use shared_sums::SharedSums;
pub use sparse_sums::SparseSums;
