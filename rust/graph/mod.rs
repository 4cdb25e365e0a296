//! Facts of a whole graph: its identity, its degrees, its adjacency.

pub mod checksum;
pub(crate) mod csr;
pub mod degrees;
pub(crate) mod identity;
pub(crate) mod pieces;
pub mod shards;
pub(crate) mod weights;

pub(crate) use checksum::Hasher;
pub use csr::{AdjacencyCache, Csr, Packed, packed_len};
pub use degrees::Degrees;
pub use identity::{Identity, find_num_vertices, largest_id};
pub use pieces::{Piece, entries};
pub(crate) use weights::Extent;
pub use weights::extent;
