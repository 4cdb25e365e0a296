//! SIGMA: partitions of vertices or of records, balanced in both, from clusters and a stream.

pub mod edge;
pub mod preference;
pub mod vertex;
