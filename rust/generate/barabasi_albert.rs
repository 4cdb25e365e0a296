//! Barabási-Albert: preferential attachment, with power-law degrees that grow with the age of a vertex.
//!
//! Source: Barabási, Albert, "Emergence of Scaling in Random Networks", Science 286, 1999. The form without
//! state: Sanders, Schulz, "Scalable Generation of Scale-free Graphs", Information Processing Letters
//! 116, 2016.
//!
//! **Model.** Vertices 1, 2, ... come one after the other. The records are shared among them as evenly as
//! integers allow, m / (n - 1) each. Each record leads from its vertex to an older one, which is drawn by the
//! degrees of the older ones so far. Vertex 1 has only vertex 0 to choose. Parallel records occur and stay.
//! Loops do not occur, unless vertex 0 is alone.
//!
//! **No state.** Write all records in a row. Drawing a vertex by degree is drawing an endpoint uniformly
//! among the endpoints before. If that endpoint is a source, its vertex follows from its place. If it is a
//! target, it was drawn in the same way. The draw is a function of (seed, record), so it is repeated instead
//! of looked up. Half of the places are sources, so a record costs two draws on average, and O(log m) with
//! high probability.

use super::{Generator, below_max_vertices};
use crate::base::{Random, Result};
use crate::edges::Record;

/// A Barabási-Albert graph.
#[derive(Debug, Clone)]
pub struct BarabasiAlbert {
    n: u64,
    m: u64,
    seed: u64,
}

impl BarabasiAlbert {
    /// `m` records over `n` vertices. With fewer records than vertices, some have none.
    pub fn new(n: u64, m: u64, seed: u64) -> Result<Self> {
        below_max_vertices(n, m)?;
        Ok(Self { n, m, seed })
    }

    /// The younger vertex of record `index`. There are two vertices or more.
    fn source(&self, index: u64) -> u64 {
        1 + scaled(index, self.n - 1, self.m)
    }

    /// The number of records before those of the vertices `source` and younger.
    fn records_before(&self, source: u64) -> u64 {
        // The least index whose quotient is at least source - 1.
        let (index, exact) = (scaled(source - 1, self.m, self.n - 1), self.n - 1);
        let whole = u128::from(source - 1) * u128::from(self.m) == u128::from(index) * u128::from(exact);
        index + u64::from(!whole)
    }
}

/// `factor * value / divisor`, rounded down.
fn scaled(value: u64, factor: u64, divisor: u64) -> u64 {
    match value.checked_mul(factor) {
        Some(product) => product / divisor,
        None => (u128::from(value) * u128::from(factor) / u128::from(divisor)) as u64,
    }
}

impl Generator for BarabasiAlbert {
    fn size(&self) -> (u64, u64) {
        (self.n, self.m)
    }

    fn record(&self, index: u64) -> Record {
        if self.n == 1 {
            return [0, 0];
        }
        let source = self.source(index);
        let (mut record, mut vertex) = (index, source);
        let target = loop {
            let before = self.records_before(vertex);
            if before == 0 {
                break 0;
            }
            // Endpoint 2i is the source of record i, 2i + 1 its target.
            let endpoint = Random::new(self.seed, record).below(2 * before);
            record = endpoint / 2;
            vertex = self.source(record);
            if endpoint.is_multiple_of(2) {
                break vertex;
            }
        };
        [source as u32, target as u32]
    }
}
