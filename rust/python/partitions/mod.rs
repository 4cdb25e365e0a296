//! Partitions of vertices and edges for Python, and what is made of one: clusters, orders, homes.

pub mod clustering;
pub mod homes;
pub mod ordering;
pub mod partitioners;
pub mod results;
