//! The rows that training on mini-batches will fetch, before anybody trains.
//!
//! **Requirements.** Directed edges that can be read again and again, from a graph or from the parts of a
//! directory ([`InEdges`]), the seeds of each part, and the fanouts of uniform, layered sampling ([`Epoch`]).
//!
//! **Algorithm.** Two methods that read the edges once for each hop. `access` follows for each part the
//! probability that a vertex is in a level of its batches. A vertex of in-degree d that is in level h with
//! probability p samples each in-edge with q = min(1, f/d) p. A source is missed by all of its out-edges with
//! the product of 1 - q, as if these were independent, and is in no level with the product over the levels.
//! `samples` samples up to 64 batches at once. The rows that they fetch are the prediction. The mean of both
//! ranks the vertices for a cache. The savings of a cache are counted in the half of the batches that did not
//! rank it.
//!
//! **Memory.** 16 bytes per vertex, and 28 per vertex and part. Up to eight parts are followed together, as
//! many as fit.
//!
//! **Relations.** A typed graph is read relation by relation ([`TypedEdges`] has its records, and parts know
//! their own). Each relation has a fanout of its own. Results are given by type.
//!
//! **Parallelism.** Over the edges. Sums are kept in fixed point, so that their order does not matter, and
//! masks are united.
//!
//! **Complexity.** A pass over the edges for the degrees, and two for each hop and group of parts. With
//! relations, the degrees of each relation are counted again for each hop, so that only the degrees of one
//! relation are in memory.
//!
//! Source: Kaler et al., "Communication-Efficient Graph Neural Networks with Probabilistic Neighborhood
//! Expansion Analysis and Caching" (SALIENT++), MLSys 2023.

mod access;
mod edges;
mod epoch;
mod samples;
mod totals;
mod weights;

pub(crate) use edges::{BLOCK, DirectedEdge};
pub use edges::{GraphEdges, InEdges, TypedEdges};
pub use epoch::Epoch;
pub use totals::{Cache, PartTraffic, expected_steps, traffic};
pub use weights::sampling_weights;
