//! The partitioners, one room each.

pub mod dbh;
pub mod edge_streams;
pub mod grem;
pub mod multilevel;
pub mod random;
pub mod sigma;
pub mod spring;
pub mod two_phase;
pub mod vertex_streams;
