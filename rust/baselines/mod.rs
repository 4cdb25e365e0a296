//! What users partition with today, to compare with.

pub mod greedy;
pub mod hdrf;
pub mod random;
pub mod vertex_streams;
