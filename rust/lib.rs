//! Streaming graph partitioning for distributed GNN training on graphs larger than memory.
//!
//! The way of the data, one module each:
//! edge file or array → [`edges`] (a stream of checked records) → [`degrees`] → an algorithm ([`spring`]) on the
//! threads of a [`run::Run`] → [`partition`] → [`counts`] (what measures need), [`store`] (the parts, each with its
//! edges and halo) → [`output`] (atomic files).
//! [`homes`] makes an edge partition a vertex partition; [`balance`] is the second cap of vertex partitions;
//! [`generate`] makes graphs to try it on, [`reorder`] shuffles and thins records out of core. Nothing here knows
//! Python except `python`, which is only built with the feature of that name.

pub mod balance;
pub mod baselines;
pub mod budget;
pub mod buffer;
pub mod checksum;
pub mod clustering;
pub mod counts;
pub mod csr;
pub mod degrees;
pub mod edge_streaming;
pub mod edges;
pub mod error;
pub mod generate;
pub mod grem;
pub mod homes;
pub mod incidence;
pub mod multilevel;
pub mod output;
pub mod partition;
mod prefetch;
#[cfg(feature = "python")]
mod python;
pub mod random;
pub mod reorder;
pub mod run;
pub mod schedule;
pub mod sigma;
pub mod spring;
pub mod store;
pub mod streaming;
