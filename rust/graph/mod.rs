//! What is known of a whole graph: its identity, its degrees, its adjacency.

pub mod checksum;
pub mod csr;
pub mod degrees;
pub mod identity;
pub mod weights;

pub use checksum::Hasher;
pub use csr::Csr;
pub use degrees::Degrees;
pub use identity::Graph;
pub use weights::Extent;
