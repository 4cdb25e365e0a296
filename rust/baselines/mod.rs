//! The partitioners that others are compared with.

pub mod random;
pub mod vertex_streams;
