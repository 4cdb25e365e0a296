//! Measures of a partition for Python.

pub mod counts;
pub mod traffic;
