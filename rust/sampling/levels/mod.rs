//! From a level of nodes to the next one: the lists of in-edges of the nodes, picks of these lists, and the
//! places of picks in the batch.
//!
//! Each step is a loop over many vertices or in-edges, which brings into the cache what the next loop reads.

pub(crate) mod expansion;
pub(crate) mod node_places;
pub(crate) mod picked_edges;
pub(crate) mod relation_runs;
pub(crate) mod sample;
pub(crate) mod targets;
