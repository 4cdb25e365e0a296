//! SIGMA: partitions of vertices or edges whose parts share vertices and edges evenly, from clusters and one stream.
//!
//! Either mode maps clusters to parts, preassigns what these agree on, and streams the rest under caps that widen as
//! it goes: see [`vertex`].

pub mod vertex;

/// The least share of a cap that the stream may use from its beginning on.
const LEAST_SCALE: f64 = 0.9;

/// The share of a cap that may be used while the stream goes on: `s + (1 - s) * sqrt(t)`, where `t` is the fraction
/// that has been streamed. Parts that filled up early in one dimension would leave too little choice in the end.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    least: f64,
    total: u64,
}

impl Scale {
    /// For `total` items to stream, after the fullest part has the relative load `fullest` already.
    pub fn new(fullest: f64, total: u64) -> Self {
        Self { least: fullest.max(LEAST_SCALE), total }
    }

    /// The share once `streamed` items have been.
    #[inline(always)]
    pub fn at(&self, streamed: u64) -> f64 {
        self.least + (1.0 - self.least) * (streamed as f64 / self.total.max(1) as f64).sqrt()
    }
}
