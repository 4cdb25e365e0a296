//! Degree-based hashing: a record goes where the hash of its end of lower degree says.
//!
//! **Requirements.** Any graph.
//!
//! **Memory.** 4 bytes per vertex and the result. While the degrees are counted, 1 more byte for each of up
//! to 20 threads.
//!
//! **Algorithm.** Hubs have to be replicated, so a record is hashed by its other end: part
//! `splitmix64(v ^ seed) mod k`, where v is the end of lower degree. The paper leaves ties open. Here the
//! lower id wins, so that reversed and parallel records stay together. It is the part that
//! [`HashVertices`](super::random::HashVertices) gives v. There is no cap: the published rule keeps no state,
//! and its loads come out even when no vertex of low degree is large. Loops are placed last ([`loops`]).
//!
//! **Parallelism.** Over the records.
//!
//! **Complexity.** O(n + m): a pass for the degrees, and one for the parts.
//!
//! **Source.** Xie, Yan, Li, Zhang, "Distributed Power-law Graph Computing: Theoretical and Empirical
//! Analysis", NIPS 2014, section 3.

use super::streams::edges::loops;
use crate::base::{NONE, Result, Run, ahead, prefetch_ends, splitmix64};
use crate::edges::Record;
use crate::graph::{Degrees, degrees};
use crate::partition::parameters::{Seed, parameters};
use crate::partition::{EdgePartition, EdgeParts, Need, Outcome, Partitioner, Prepared, Shape};

parameters! {
    /// Partition the edge records by the hash of their end of lower degree (DBH).
    ///
    /// The fastest edge partitioner that uses the graph. It replicates hubs, but not the many vertices of low
    /// degree. Takes 4 bytes per vertex, 1 more for each of up to 20 threads, and the result.
    ///
    /// Notes
    /// -----
    /// Source: Xie, Yan, Li, Zhang, "Distributed Power-law Graph Computing: Theoretical and Empirical
    /// Analysis", NIPS 2014, section 3. The part is ``splitmix64(v ^ seed) % k`` for the end v of lower
    /// degree, as :func:`~fastpart.algorithms.hash` gives it. The paper leaves open which of two ends of the
    /// same degree is v. Here it is the one with the lower id. Loops are placed after all other records, each
    /// in the least loaded part that holds its vertex.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> star = np.array([[0, v] for v in range(1, 9)])
    /// >>> part = fp.algorithms.dbh(star, k=3)
    /// >>> part.assignment
    /// array([2, 1, 0, 1, 2, 2, 0, 1], dtype=uint8)
    /// >>> bool((part.assignment == fp.algorithms.hash(star, k=3).assignment[1:]).all())
    /// True
    pub struct Dbh => "dbh", [Edges];
    /// Seed of the hash.
    seed: Seed;
}

impl Dbh {
    /// The part of the record at a place among some.
    #[inline(always)]
    fn part(&self, degree: &[u32], records: &[Record], place: usize) -> u32 {
        prefetch_ends(degree, records, place + ahead::RECORDS);
        let [u, v] = records[place];
        if u == v {
            return NONE;
        }
        // The smaller pair of degree and id. Its low half is the id.
        let key = |id: u32| u64::from(degree[id as usize]) << 32 | u64::from(id);
        let end = u64::from(key(u).min(key(v)) as u32);
        (splitmix64(end ^ self.seed) % u64::from(self.k)) as u32
    }
}

impl Partitioner for Dbh {
    type Parameters = Self;
    type Reads = ();

    fn memory(&self, &Shape { n, m, in_file, .. }: &Shape, run: &Run) -> Need {
        let counters = 8 * u64::from(self.k) * run.threads() as u64;
        Need::new(
            degrees::needed(n, run.threads()) + counters + EdgeParts::memory(m, self.k, in_file),
            format!("dbh on {n} vertices and {m} records (write the parts to a file with out=)"),
        )
    }

    fn solve(&self, graph: &Prepared<()>) -> Result<Outcome> {
        let (edges, run) = (graph.edges(), graph.run);
        let Degrees { degree, graph: identity } = degrees::scan(edges, run)?;
        let mut parts = EdgeParts::new(identity.m, self.k, graph.out())?;
        run.begin("hashing", identity.m);
        let part = |records: &[Record], place, _| self.part(&degree, records, place);
        let loads = parts.fill(edges, self.k, run, part)?;
        let partition = EdgePartition { parts, k: self.k, loads, cap: None, graph: identity };
        Ok(loops::place(edges, partition, None, run)?.into())
    }
}
