//! The partitioners that others are compared with.

pub mod random;
