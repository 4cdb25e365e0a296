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
use super::partition::Rule;
use super::{Affinity, partition};
use crate::base::{Result, Run};
use crate::edges::EdgeStream;
use crate::partition::{EdgePartition, Input, Of, Outcome, Partitioner, Shape, Values, describe};

/// Parameters of the greedy rule.
#[derive(Debug, Clone)]
pub struct Greedy {
    /// Number of parts.
    pub k: u32,
    /// A part gets at most `ceil(balance * m / k)` records.
    pub balance: f64,
}

impl Greedy {
    /// Partitions `edges`; the parts go to the `.npy` file `out`, or into memory.
    pub fn partition(&self, edges: &dyn EdgeStream, out: Option<&Path>, run: &Run) -> Result<EdgePartition> {
        let Self { k, balance } = *self;
        let (affinity, terms) = (Affinity::Remaining, Balance::Records(1.0));
        Rule { name: "greedy", k, balance, affinity, terms }.partition(edges, out, run)
    }
}

describe! {
    /// Partition the edge records with PowerGraph's greedy rule.
    ///
    /// A record goes to the least loaded part among the first of these that hold one below the cap: the parts that both
    /// ends are in; those of the end with more records still to come; those of the other end; all parts. Takes what
    /// :func:`hdrf` takes.
    ///
    /// Notes
    /// -----
    /// Source: Gonzalez, Low, Gu, Bickson, Guestrin, "PowerGraph: Distributed Graph-Parallel Computation on Natural
    /// Graphs", OSDI 2012, section 5.2.1. Ends with equally many records to come: u. Equal loads go to the lowest part.
    /// Loops follow all other records, each to the least loaded part that holds its vertex.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [3, 4], [1, 2], [4, 5], [2, 0], [5, 3]])
    /// >>> fp.greedy(two_triangles, k=2).assignment
    /// array([0, 1, 0, 1, 0, 1], dtype=uint8)
    Greedy => "greedy", &[Of::Edges];
    /// A ratio >= 1: no part gets more than ``ceil(balance * m / k)`` records. The rule alone does not bound loads.
    balance: ratio(1.10);
    /// For uniformity with the other partitioners; the rule has no random choice.
    seed: seed();
}

impl Partitioner for Greedy {
    fn new(values: &mut Values) -> Result<Self> {
        Ok(Greedy { k: values.k, balance: values.number("balance") })
    }

    fn memory(&self, shape: &Shape, _threads: usize) -> u64 {
        partition::memory(shape.n, shape.m, self.k, None)
    }

    fn solve(&self, input: &dyn Input, run: &Run) -> Result<Outcome> {
        Ok(self.partition(input.edges(), input.out(), run)?.into())
    }
}
