//! The partitioners that others are compared with.

pub mod dbh;
pub mod random;
pub mod two_phase;
pub mod vertex_streams;
