//! Every partitioner but the multilevel one, and what all of them share.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod balance_on;
mod bytegnn;
mod clustering;
mod edge_streams;
mod grem;
mod hep;
mod sigma_vertex;
mod spring;
mod two_phase;
mod vertex_streams;
