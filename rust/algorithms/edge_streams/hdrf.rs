//! HDRF, "high degree replicated first": an edge partition from one look at each record.
//!
//! **Requirements.** Any graph; the records in any order, read twice (degrees, then the stream).
//!
//! **Memory.** k bits and 4 bytes per vertex, 40 bytes per part, and the result.
//!
//! **Algorithm.** A record (u, v) goes to the part of the largest `C_rep + lambda * C_bal`. C_rep is the sum of
//! `1 + (1 - theta)` over the ends that are in the part already, with the end's share `theta = d(u) / (d(u) + d(v))` of
//! both degrees, so that the end of lower degree is worth more and hubs are replicated first; C_bal is
//! `(max - load) / (1 + max - min)` with the largest and the smallest load of all parts. Parts of `ceil(balance * m / k)`
//! records take no more. Degrees are exact, where the paper counts those seen so far.
//!
//! **Complexity.** See [`crate::algorithms::edge_streams`].
//!
//! **Source.** Petroni, Querzoni, Daudjee, Kamali, Iacoboni, "HDRF: Stream-Based Partitioning for Power-Law Graphs",
//! CIKM 2015.

use std::path::Path;

use super::loads::Balance;
use super::{Affinity, partition, validate_lambda};
use crate::base::error::Result;
use crate::base::run::Run;
use crate::capacity::{validate_balance, validate_parts};
use crate::edges::EdgeStream;
use crate::partition::{EdgePartition, EdgePartitioner};

/// Parameters of HDRF.
#[derive(Debug, Clone)]
pub struct Hdrf {
    /// Number of parts.
    pub k: u32,
    /// A part gets at most `ceil(balance * m / k)` records.
    pub balance: f64,
    /// Weight of the balance of loads in the score.
    pub lambda: f64,
}

impl Hdrf {
    /// The defaults.
    pub fn new(k: u32) -> Self {
        Self { k, balance: 1.10, lambda: 1.0 }
    }

    /// Bytes that a graph of `n` vertices and `m` records takes.
    pub fn memory(&self, n: u64, m: u64, out: Option<&Path>) -> u64 {
        partition::memory(n, m, self.k, out)
    }

    fn validate(&self) -> Result<()> {
        validate_parts(self.k)?;
        validate_balance("balance", self.balance)?;
        validate_lambda(self.lambda)
    }
}

impl EdgePartitioner for Hdrf {
    fn partition(&self, edges: &dyn EdgeStream, out: Option<&Path>, run: &Run) -> Result<EdgePartition> {
        self.validate()?;
        let terms = Balance::Records(self.lambda);
        partition::stream_all("HDRF", edges, (self.k, self.balance), (Affinity::Degree, terms), out, run)
    }
}
