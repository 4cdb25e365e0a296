//! Graphs for Python: opened, converted, made from tables, generated.

pub mod convert;
pub mod edges;
pub mod generate;
pub mod ingest;
