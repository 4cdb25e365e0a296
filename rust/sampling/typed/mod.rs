//! Neighbour samples of typed graphs: a fanout for each relation, and batches by type and by relation.
//!
//! **Requirements.** A partition directory of a graph with types. A type of vertices is a range of ids, so
//! the inner vertices of a part also hold it as a range ([`Types`]). The in-edges of a vertex are ordered by
//! relation.
//!
//! **Algorithm.** A level is expanded run by run: the in-edges of a vertex of one relation are a list of
//! their own, with draws that are a function of (seed, epoch, step, hop, vertex, relation), and are picked by
//! the pickers of plain lists (`expansion`). LABOR's number of a source depends on no relation, so that lists
//! of several relations share sources. The batch is then ordered by type and by relation, each a CSR with the
//! names of PyG's `HeteroData` (`grouping`). Within a type, nodes keep the order of levels, so that layers
//! read prefixes.
//!
//! **Memory.** The relations of in-edges are mapped, 1 or 2 bytes each. A batch of s in-edges takes 8 bytes
//! for each beside those of its relations: 4, or 12 with ids, and 4 for each vertex and relation that leads
//! to its type.
//!
//! **Complexity.** That of plain samples for each relation, and O(log degree) to find the end of a run. Plain
//! graphs do not come here.

mod batch;
mod expansion;
mod grouping;
mod in_edges;
mod relations;
mod sampler;
mod types;

pub use batch::{TypedBatch, TypedMaker, TypedSamples};
pub use grouping::TypedSample;
pub use in_edges::TypedInEdges;
pub use sampler::TypedSampler;
pub use types::Types;
