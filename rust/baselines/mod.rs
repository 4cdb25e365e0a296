//! What users partition with today, to compare with.

pub mod dbh;
pub mod greedy;
pub mod hdrf;
pub mod random;
pub mod two_phase;
pub mod vertex_streams;
