//! From the vertices of a level to their lists of in-edges, and from in-edges that were picked to places in the batch.
//!
//! Each file is a loop over many vertices or in-edges, which brings into the cache what the next loop reads.

pub(crate) mod node_places;
pub(crate) mod picked_edges;
pub(crate) mod sample;
pub(crate) mod targets;
