//! PowerGraph's greedy vertex cut: an edge partition from one look at each record.
//!
//! **Requirements.** Any graph; the records in any order, read twice (degrees, then the stream).
//!
//! **Memory.** k bits and 4 bytes per vertex, 40 bytes per part, and the result.
//!
//! **Algorithm.** A record (u, v) goes to the least loaded part among the first of these that hold one below its cap of
//! `ceil(balance * m / k)` records; ties go to the lowest part:
//! 1. the parts that both u and v are in;
//! 2. those of the end with more records still to come (u, if equal);
//! 3. those of the other end;
//! 4. all parts.
//!
//! These are PowerGraph's four cases, and what to do where a case meets full parts only. Scored as 3, 2, 1 and 0 plus
//! `(max - load) / (1 + max - min)`, which is below 1, they are one sum with HDRF's; sums of equal f64 value tie.
//!
//! **Complexity.** See [`crate::algorithms::edge_streams`].
//!
//! **Source.** Gonzalez, Low, Gu, Bickson, Guestrin, "PowerGraph: Distributed Graph-Parallel Computation on Natural
//! Graphs", OSDI 2012, section 5.2.1.

use std::path::Path;

use super::loads::Balance;
use super::{Affinity, partition};
use crate::base::error::Result;
use crate::base::run::Run;
use crate::capacity::{validate_balance, validate_parts};
use crate::edges::EdgeStream;
use crate::partition::{EdgePartition, EdgePartitioner};

/// Parameters of the greedy rule.
#[derive(Debug, Clone)]
pub struct Greedy {
    /// Number of parts.
    pub k: u32,
    /// A part gets at most `ceil(balance * m / k)` records.
    pub balance: f64,
}

impl Greedy {
    /// The defaults.
    pub fn new(k: u32) -> Self {
        Self { k, balance: 1.10 }
    }

    /// Bytes that a graph of `n` vertices and `m` records takes.
    pub fn memory(&self, n: u64, m: u64, out: Option<&Path>) -> u64 {
        partition::memory(n, m, self.k, out)
    }

    fn validate(&self) -> Result<()> {
        validate_parts(self.k)?;
        validate_balance("balance", self.balance)
    }
}

impl EdgePartitioner for Greedy {
    fn partition(&self, edges: &dyn EdgeStream, out: Option<&Path>, run: &Run) -> Result<EdgePartition> {
        self.validate()?;
        let rule = (Affinity::Remaining, Balance::Records(1.0));
        partition::stream_all("greedy", edges, (self.k, self.balance), rule, out, run)
    }
}
