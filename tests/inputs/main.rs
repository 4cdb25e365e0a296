//! What graphs are read from, made into and measured by.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod convert;
mod csr;
mod edges;
mod edges_of;
mod first_error;
mod gather;
mod generate;
mod graph;
mod measure;
mod metis;
mod ordering;
mod parts;
mod reorder;
mod text;
mod text_properties;
mod weights;
