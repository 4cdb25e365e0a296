//! Streaming graph partitioning for distributed GNN training on graphs larger than memory.
//!
//! The modules, lowest first. Each imports only modules above it in this list (`tests/test_layers.py` checks it):
//!
//! - [`base`]: errors, a run (threads, budget, progress, cancellation), large arrays, randomness, atomic files.
//! - [`sets`]: bit sets and matrices, rating maps, entries sorted into buckets.
//! - [`edges`]: a graph as a stream of checked records, from files, arrays and temporary files, and their weights.
//! - [`exec`]: the few ways in which work is done in parallel.
//! - [`graph`]: what identifies a graph, its degrees, its adjacency.
//! - [`capacity`]: bounds of parts, the least loaded part with room, repair.
//! - [`partition`]: the results, and the contract of a partitioner.
//! - [`measure`]: the integers behind every measure of a partition.
//! - [`clustering`]: clusters of vertices.
//! - [`algorithms`]: the partitioners.
//! - [`parts`]: the partition directory.
//! - [`traffic`]: the rows that training on mini-batches will fetch.
//! - [`sampling`]: neighbour samples of the vertices of a partition directory, for training.
//! - [`convert`] and [`generate`]: edge lists from other formats, and synthetic graphs.
//!
//! A room shows at its door, its `mod.rs`, what others use of it.
//!
//! Data flows like this: edge file or array → [`edges::EdgeStream`] → [`graph::degrees`] → an algorithm on the
//! threads of a [`base::run::Run`] → [`partition`] → [`measure`] → [`parts`] → [`base::output`] (atomic files).
//! Only the module `python` depends on Python. It is built only with the feature of that name.

pub mod algorithms;
pub mod base;
pub mod capacity;
pub mod clustering;
pub mod convert;
pub mod edges;
pub mod exec;
pub mod generate;
pub mod graph;
pub mod measure;
pub mod partition;
pub mod parts;
#[cfg(feature = "python")]
mod python;
pub mod sampling;
pub mod sets;
pub mod traffic;
