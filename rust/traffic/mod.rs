//! The rows that training on mini-batches will fetch, before anybody trains.
//!
//! **Requirements.** Directed edges that can be read again and again, from a graph or from the parts of a directory
//! ([`InEdges`]), the seeds of each part, and the fanouts of uniform, layered sampling ([`Epoch`]).
//!
//! **Algorithm.** [`accesses()`] follows for each part the probability that a vertex is in a level of its batches. A
//! vertex of in-degree d that is in level h with probability p samples each in-edge with q = min(1, f/d) p. A source is
//! missed by all of its out-edges with the product of 1 - q, as if these were independent. It is in no level with the
//! product over the levels.
//!
//! **Memory.** 4 bytes per vertex, and 16 per vertex and part. Parts that do not fit together are followed one group after
//! the other.
//!
//! **Parallelism.** Over the edges. Sums are kept in fixed point, so that their order does not matter.
//!
//! **Complexity.** A pass over the edges for the degrees, and one for each hop and group.
//!
//! Source: Kaler et al., "Communication-Efficient Graph Neural Networks with Probabilistic Neighborhood Expansion Analysis
//! and Caching" (SALIENT++), MLSys 2023.

mod access;
mod edges;
mod epoch;

pub use access::accesses;
pub use edges::{BLOCK, DirectedEdge, GraphEdges, InEdges};
pub use epoch::Epoch;
