//! What is known of a whole graph: its identity, its degrees, its adjacency.

pub mod checksum;
pub mod csr;
pub mod degrees;
pub mod identity;
