//! PowerGraph's greedy vertex cut: an edge partition from one look at each record.
//!
//! **Requirements.** Any graph. The records may come in any order. They are read twice (degrees, then the
//! stream).
//!
//! **Memory.** k bits and 4 bytes per vertex, 40 bytes per part, and the result.
//!
//! **Algorithm.** A record (u, v) goes to the least loaded part of the first of these sets that has a part
//! below the cap of `ceil(balance * m / k)` records. Ties go to the lowest part.
//! 1. The parts that both u and v are in.
//! 2. The parts of the end with more records still to come (u, if equal).
//! 3. The parts of the other end.
//! 4. All parts.
//!
//! These are PowerGraph's four cases. A case that has only full parts gives way to the next. Scored as 3, 2,
//! 1 and 0 plus `(max - load) / (1 + max - min)`, which is below 1, they are one sum with HDRF's. Sums of
//! equal f64 value tie.
//!
//! **Complexity.** See [`crate::algorithms::streams::edges`].
//!
//! **Source.** Gonzalez, Low, Gu, Bickson, Guestrin, "PowerGraph: Distributed Graph-Parallel Computation on
//! Natural Graphs", OSDI 2012, section 5.2.1.

use super::streams::edges::loads::Balance;
use super::streams::edges::partition::Rule;
use super::streams::edges::{Affinity, partition};
use crate::base::{Result, Run};
use crate::partition::parameters::{Ratio, Seed, parameters};
use crate::partition::{Need, Outcome, Parameters, Partitioner, Prepared, Shape};

parameters! {
    /// Partition the edge records with PowerGraph's greedy rule.
    ///
    /// A record goes to the least loaded part of the first of these sets that has a part below the cap: the
    /// parts that both ends are in, the parts of the end with more records still to come, the parts of the
    /// other end, all parts. Takes as much memory as :func:`~fastpart.algorithms.hdrf`.
    ///
    /// Notes
    /// -----
    /// Source: Gonzalez, Low, Gu, Bickson, Guestrin, "PowerGraph: Distributed Graph-Parallel Computation on
    /// Natural Graphs", OSDI 2012, section 5.2.1. If both ends have equally many records to come, u counts as
    /// the one with more. Equal loads go to the lowest part. Loops are placed after all other records, each
    /// in the least loaded part that holds its vertex.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [3, 4], [1, 2], [4, 5], [2, 0], [5, 3]])
    /// >>> fp.algorithms.greedy(two_triangles, k=2).assignment
    /// array([0, 1, 0, 1, 0, 1], dtype=uint8)
    pub struct Greedy => "greedy", [Edges];
    /// A ratio >= 1: no part gets more than ``ceil(balance * m / k)`` records. The rule alone does not bound
    /// loads.
    balance: Ratio = 1.10;
    /// Has no effect. The rule makes no random choices.
    seed: Seed;
}

impl Partitioner for Greedy {
    type Parameters = Self;
    type Reads = ();

    fn memory(&self, shape: &Shape, run: &Run) -> Need {
        partition::memory(Self::NAME, self.k, shape, run)
    }

    fn solve(&self, graph: &Prepared<()>) -> Result<Outcome> {
        let (affinity, terms) = (Affinity::Remaining, Balance::Records(1.0));
        Rule { k: self.k, balance: self.balance, affinity, terms }.partition(graph)
    }
}
