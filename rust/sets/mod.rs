//! Sets and maps of small integers: bit sets and matrices, rating maps, a tournament, entries in buckets on disk.

pub mod bits;
pub mod counter;
pub mod incidence;
pub mod neighbours;
pub mod ranked;
pub mod spill;
pub mod tally;
pub mod tournament;
