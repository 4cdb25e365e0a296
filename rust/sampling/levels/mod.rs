//! From a level of nodes to the next one: their lists of in-edges, what is picked of these, and its places in the batch.
//!
//! Each step is a loop over many vertices or in-edges, which brings into the cache what the next loop reads.

pub(crate) mod expansion;
pub(crate) mod node_places;
pub(crate) mod picked_edges;
pub(crate) mod relation_runs;
pub(crate) mod sample;
pub(crate) mod targets;
