//! HDRF, "high degree replicated first": an edge partition from one look at each record.
//!
//! **Requirements.** Any graph. The records may come in any order. They are read twice (degrees, then the
//! stream).
//!
//! **Memory.** k bits and 4 bytes per vertex, 40 bytes per part, and the result.
//!
//! **Algorithm.** A record (u, v) goes to the part of the largest `C_rep + lambda * C_bal`. C_rep is the sum
//! of `1 + (1 - theta)` over the ends that are in the part already, with the end's share
//! `theta = d(u) / (d(u) + d(v))` of both degrees, so that the end of lower degree is worth more and hubs are
//! replicated first. C_bal is `(max - load) / (1 + max - min)` with the largest and the smallest load of all
//! parts. Parts of `ceil(balance * m / k)` records take no more. Degrees are exact, where the paper counts
//! those seen so far.
//!
//! **Complexity.** See [`crate::algorithms::streams::edges`].
//!
//! **Source.** Petroni, Querzoni, Daudjee, Kamali, Iacoboni, "HDRF: Stream-Based Partitioning for Power-Law
//! Graphs", CIKM 2015.

use super::streams::edges::loads::Balance;
use super::streams::edges::partition::Rule;
use super::streams::edges::{Affinity, partition};
use crate::base::{Result, Run};
use crate::partition::parameters::{NonNegative, Ratio, Seed, parameters};
use crate::partition::{Need, Outcome, Parameters, Partitioner, Prepared, Shape};

parameters! {
    /// Partition the edge records with HDRF, "high degree replicated first".
    ///
    /// A record (u, v) goes to the part with the largest ``C_rep + balance_weight * C_bal``. C_rep adds
    /// ``2 - d(u) / (d(u) + d(v))`` if u is in the part already, and the same for v. C_bal is
    /// ``(max - load) / (1 + max - min)`` over the loads of all parts. Takes k bits (words of 64) and 4 bytes
    /// per vertex, and the result: 1 byte per record for k <= 255, 2 for k <= 32,767, else 4.
    ///
    /// Notes
    /// -----
    /// Source: Petroni, Querzoni, Daudjee, Kamali, Iacoboni, "HDRF: Stream-Based Partitioning for Power-Law
    /// Graphs", CIKM 2015, section 3. Degrees are exact, from a pass before the stream. The paper counts
    /// those seen so far. Equal scores go to the lowest part. Loops are placed after all other records, each
    /// in the least loaded part that holds its vertex.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [3, 4], [1, 2], [4, 5], [2, 0], [5, 3]])
    /// >>> fp.algorithms.hdrf(two_triangles, k=2).assignment
    /// array([0, 1, 0, 1, 0, 1], dtype=uint8)
    pub struct Hdrf => "hdrf", [Edges];
    /// A ratio >= 1: no part gets more than ``ceil(balance * m / k)`` records. On most graphs the score keeps
    /// the loads nearly even without the cap.
    balance: Ratio = 1.10;
    /// ``lambda`` of the paper: weight of the balance in the score, >= 0.
    balance_weight: NonNegative = 1.0;
    /// Has no effect. HDRF makes no random choices.
    seed: Seed;
}

impl Partitioner for Hdrf {
    type Parameters = Self;
    type Reads = ();

    fn memory(&self, shape: &Shape, run: &Run) -> Need {
        partition::memory(Self::NAME, self.k, shape, run)
    }

    fn solve(&self, graph: &Prepared<()>) -> Result<Outcome> {
        let (affinity, terms) = (Affinity::Degree, Balance::Records(self.balance_weight));
        Rule { k: self.k, balance: self.balance, affinity, terms }.partition(graph)
    }
}
