//! Graph partitioning for distributed GNN training on graphs larger than memory.
//!
//! Open a [`Graph`], take one of the [`partitioners`], and give it a [`Run`]: threads, a memory budget,
//! progress, cancellation.
//!
//! ```
//! use fastpart::partitioners::Multilevel;
//! use fastpart::{Graph, Run, cut};
//!
//! # fn main() -> fastpart::Result<()> {
//! // Two triangles and an edge between them.
//! let graph = Graph::from_edges(6, vec![[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [2, 3]])?;
//! let run = Run::new(None, None)?;
//! let outcome = graph.partition(&Multilevel::new(2), &run)?;
//! let partition = outcome.partition.vertices()?;
//! let cut = cut(graph.edges(), &partition.assignment, 2, &run)?;
//! assert_eq!(cut.cut, [1, 1]);
//! # Ok(())
//! # }
//! ```
//!
//! The result depends on the records, the parameters and the seed, and not on the number of threads. A run
//! that would exceed its memory budget is refused before it starts. `examples/` has four programs. Versions
//! follow semantic versioning for what this page shows; until 1.0 a minor version may change it, and the
//! changelog says how.
//!
//! # Inside
//!
//! The modules, lowest first. Each imports only modules above it in this list (`tests/test_layers.py` checks
//! it):
//!
//! - `base`: errors, a run (threads, budget, progress, cancellation), large arrays, randomness, atomic files.
//! - `sets`: bit sets and matrices, rating maps, entries sorted into buckets.
//! - `edges`: a graph as a stream of checked records, from files, arrays and temporary files, and their
//!   weights.
//! - `exec`: the few ways in which work is done in parallel.
//! - `graph`: the identity of a graph, its degrees, its adjacency.
//! - `capacity`: bounds of parts, the least loaded part with slack, repair.
//! - `partition`: the results, and the contract of a partitioner.
//! - `measure`: the integers behind every measure of a partition.
//! - `clustering`: clusters of vertices.
//! - `algorithms`: the partitioners.
//! - `parts`: the partition directory.
//! - `traffic`: the rows that training on mini-batches will fetch.
//! - `sampling`: neighbour samples of the vertices of a partition directory, for training.
//! - `convert`, `ingest` and `generate`: edge lists from other formats, tables with ids of any kind, and
//!   synthetic graphs.
//!
//! The `mod.rs` of a module exports what others use of it.
//!
//! Data flows like this: edge file or array → `edges::EdgeStream` → `graph::degrees` → an algorithm on the
//! threads of a `base::run::Run` → `partition` → `measure` → `parts` → `base::output` (atomic files).
//! The extension module for Python is a crate of its own, in `rust/python/`.

// Tests declare partitioners of their own.
#![cfg_attr(not(test), deny(unreachable_pub, clippy::disallowed_methods))]

#[cfg(not(all(any(unix, windows), target_endian = "little", target_pointer_width = "64")))]
compile_error!(
    "fastpart needs Linux, macOS or Windows, and a 64-bit processor that is little-endian, as its files are"
);

mod algorithms;
mod base;
mod capacity;
mod clustering;
mod convert;
mod edges;
mod exec;
mod generate;
mod graph;
mod ingest;
mod measure;
mod partition;
mod parts;
mod sampling;
mod sets;
mod traffic;

pub use algorithms::partitioners;
pub use base::{Error, Result, Run};
pub use edges::{Directedness, EdgeStream};
pub use measure::{Cut, Replicas, cut, replicas};
pub use partition::{
    Capacity, EdgePartition, EdgeParts, Graph, Input, Outcome, Partition, Partitioner, VertexPartition,
    partition,
};

/// The values of parameters of the [`partitioners`].
pub mod choices {
    pub use crate::algorithms::bytegnn::Rule;
    pub use crate::algorithms::grem::Order;
    pub use crate::algorithms::hep::Tau;
    pub use crate::algorithms::multilevel::{Bound, Effort, Goal, Objective, Path};
    pub use crate::algorithms::sigma::vertex::Objective as SigmaObjective;
    pub use crate::algorithms::two_phase::Scoring;
}

/// The `pub` items of the modules, for the extension module, the tests and the benchmarks. It may change with
/// any version.
#[doc(hidden)]
#[rustfmt::skip]
pub mod internals {
    pub mod algorithms { pub use crate::algorithms::*; }
    pub mod base { pub use crate::base::*; }
    pub mod capacity { pub use crate::capacity::*; }
    pub mod clustering { pub use crate::clustering::*; }
    pub mod convert { pub use crate::convert::*; }
    pub mod edges { pub use crate::edges::*; }
    pub mod exec { pub use crate::exec::*; }
    pub mod generate { pub use crate::generate::*; }
    pub mod graph { pub use crate::graph::*; }
    pub mod ingest { pub use crate::ingest::*; }
    pub mod measure { pub use crate::measure::*; }
    pub mod partition { pub use crate::partition::*; }
    pub mod parts { pub use crate::parts::*; }
    pub mod sampling { pub use crate::sampling::*; }
    pub mod sets { pub use crate::sets::*; }
    pub mod traffic { pub use crate::traffic::*; }
}
