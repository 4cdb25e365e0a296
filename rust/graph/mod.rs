//! Facts of a whole graph: its identity, its degrees, its adjacency.

pub(crate) mod checksum;
pub(crate) mod csr;
pub(crate) mod degrees;
pub(crate) mod identity;
pub(crate) mod pieces;
pub(crate) mod shards;
pub(crate) mod weights;

pub(crate) use checksum::Hasher;
pub use csr::Csr;
pub use degrees::Degrees;
pub use identity::Identity;
pub(crate) use weights::Extent;
