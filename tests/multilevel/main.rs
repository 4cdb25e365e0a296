//! The multilevel partitioner.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod bounds;
mod checkpoints;
mod hubs;
mod memory;
mod objectives;
mod packed;
mod partitions;
mod rebalancing;
mod refining;
mod requirements;
mod semi_external;
