//! HEP, the hybrid edge partitioner: neighbourhood expansion in memory, and a stream for the records of hubs.
//!
//! **Requirements.** Any graph. The records may come in any order. They are read five times. Memory for the
//! records between vertices of low degree. `tau` says which degree is low.
//!
//! **Memory.** A record between low ends takes 8 bytes, 12 while the lists are built. A vertex takes 49 bytes
//! and k bits, a part 48 bytes. The result is written after the lists are freed. The need is computed from
//! the degrees before anything of that size is allocated. If it exceeds the budget, the error names the
//! largest tau that does not. [`Tau::Fit`] takes that tau.
//!
//! **Algorithm.** With `cap = ceil(balance * m / k)`, a vertex is *high* if `d(v) > min(tau * 2m' / n, cap)`,
//! else *low*.
//! 1. *Lists.* Each low vertex has a list of its low neighbours. High vertices have no list and are in none.
//! 2. *Expansion* of one part after the other, over the lists. The part is a growing set S of low vertices.
//!    In each step the vertex of S with the fewest neighbours outside S is expanded, among those not expanded
//!    yet (ties: the one for which that number has changed last). Its neighbours outside *join* S, in
//!    ascending order. If there is no such vertex, the next vertex with a list begins, in random order, first
//!    those with at most `2m' / n` neighbours left, then any. A record between low ends belongs to the first
//!    part that both ends have joined, so its load is counted when the second one joins. A record between a
//!    low end and a high one belongs to the part in which the low end has given up its last neighbour. A part
//!    is complete when it has its share `ceil(left / parts left)` of what expansion can place, or when the
//!    next vertex would exceed the cap. Then the entries inside S are removed from the lists of its vertices,
//!    which is all that later parts need to know of S. The last part takes what is left, if that fits.
//! 3. *Placing.* One pass finds the part of each record from the parts of its ends: the lowest that both
//!    have, or the last of the low end. So no entry stores its record, and no record is placed twice.
//! 4. *Streaming.* The other records, mostly those between two high ends, are streamed by HDRF
//!    ([`EdgeStreamer`]) from the current degrees, replicas and loads. Loops come last ([`loops`]).
//! 5. *Refinement*, where it is asked for ([`refining`]).
//!
//! It differs from the paper where that costs nothing and gains something. In the paper the lists of low
//! vertices hold their high neighbours, and such a record is placed when its low end first joins. This
//! spreads hubs over the parts that the boundary touches, and takes memory. Here the low end decides once,
//! where it is inside. Vertices begin in random order as in NE, not by id. The parts share evenly what the
//! expansion places, so that the last one is no smaller. A vertex with more records than a part holds is
//! high, which bounds the work by O(k m).
//!
//! **Parallelism.** Degrees, lists and placing run in parallel over the records. Expansion and streaming are
//! sequential, so the result is that of the sequential rule for any number of threads.
//!
//! **Complexity.** O(n + m) for the passes. A list is scanned twice for every part that its vertex has
//! joined: O(RF · m') in the expansion, where RF is the replication factor. Streaming is O(k) per record that
//! is left.
//!
//! **Source.** Mayer, Jacobsen, "Hybrid Edge Partitioner: Partitioning Large Power-Law Graphs under Memory
//! Constraints", SIGMOD 2021. Expansion: Zhang, Wei, Liu, Tang, Li, "Graph Edge Partitioning via Neighborhood
//! Heuristic", KDD 2017.

mod expansion;
mod placing;
mod pruning;
mod queue;

use crate::algorithms::streams::edges::loads::Balance;
use crate::algorithms::streams::edges::partition::stream_open;
use crate::algorithms::streams::edges::refining::{self, Refining};
use crate::algorithms::streams::edges::{EdgeStreamer, loops};
use crate::base::{Error, Result, Run};
use crate::capacity::cap;
use crate::graph::{Degrees, csr, degrees};
use crate::partition::parameters::{Domain, Flag, Number, Ratio, Seed, parameters};
use crate::partition::{EdgePartition, EdgeParts, Need, Outcome, Partitioner, Prepared, Shape, Value};
use expansion::{Rule, expand};
use pruning::{LowGraph, largest_tau, memory_of_largest_tau, most_and_sum};

/// The largest degree of a low vertex, in mean degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tau {
    /// A multiple of the mean degree. 0 streams all records, infinity none.
    Value(f64),
    /// The largest multiple that the memory budget allows.
    Fit,
}

impl Domain for Tau {
    type Value = Self;
    const KIND: &'static str = "number_or";
    const WORDS: &'static [&'static str] = &["fit"];

    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Text(word) => (word == "fit").then_some(Tau::Fit),
            number => Number::read(number).map(Tau::Value),
        }
    }

    fn shown(value: &Self) -> Value {
        match *value {
            Tau::Value(tau) => Value::Number(tau),
            Tau::Fit => Value::Text("fit".into()),
        }
    }

    fn check(name: &'static str, value: &Self) -> Result<()> {
        match value {
            Tau::Value(tau) if tau.is_nan() || *tau < 0.0 => {
                Err(Error::parameter(name, format!("{tau}. Use a number of at least 0, as 10")))
            }
            _ => Ok(()),
        }
    }
}

parameters! {
    /// Partition the edge records with HEP: in memory where degrees are low, in a stream where they are high.
    ///
    /// Parts grow one after the other over the records between vertices of low degree. A part takes the
    /// vertex that brings the fewest new neighbours. Then the records of hubs are streamed to where their
    /// ends are. Usually HEP makes the fewest replicas of the edge partitioners here, but spreads them less
    /// evenly. Takes 12 bytes for each record between vertices of low degree, 49 bytes and k bits per vertex,
    /// and the result.
    ///
    /// Notes
    /// -----
    /// Source: Mayer and Jacobsen, "Hybrid Edge Partitioner: Partitioning Large Power-Law Graphs under Memory
    /// Constraints", SIGMOD 2021. Every record has one part, and no part exceeds the cap. Unlike the
    /// published program, a record between a vertex of low degree and a hub goes to the part in which the
    /// former has given up its last neighbour. Vertices begin in random order. A vertex with more records
    /// than a part may hold counts as a hub.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
    /// >>> part = fp.algorithms.hep(two_triangles, k=2)
    /// >>> fp.evaluate(two_triangles, part).summary["rf"][0]
    /// 1.0
    pub struct Hep => "hep", [Edges];
    /// A ratio >= 1: no part gets more than ``ceil(balance * m / k)`` records.
    balance: Ratio = 1.05;
    /// A vertex is of low degree if its degree is at most ``tau`` times the mean. 0 or more. A larger tau
    /// takes more memory and makes fewer replicas. If it exceeds the memory limit, the error names the
    /// largest that fits. "fit" chooses that one. It needs ``memory_limit`` and stores the number in
    /// ``parameters``.
    tau: Tau = Tau::Value(10.0);
    /// Move records in the end where that makes fewer replicas, as :func:`edges_of` does. That needs 2 k bits
    /// per vertex beside the result.
    refine: Flag = false;
    /// Seed of the order in which vertices begin.
    seed: Seed;
}

impl Hep {
    /// Most bytes at one time with lists of `entries` entries, up to `longest` to a list.
    fn needed(
        &self,
        &Shape { n, m, in_file, .. }: &Shape,
        entries: u64,
        longest: u64,
        threads: usize,
    ) -> u64 {
        let scan = degrees::needed(n, threads).max(memory_of_largest_tau(m, threads));
        let building = csr::lists_memory(n, entries, threads);
        let expanding = 8 * n + 8 + 4 * entries + expansion::memory(n, longest, self.k);
        let placing = EdgeStreamer::memory(n, m, self.k) + 8 * u64::from(self.k);
        let placing = placing + EdgeParts::memory(m, self.k, in_file);
        let refining = if self.refine { refining::memory(n, m, self.k, in_file) } else { 0 };
        (4 * n + LowGraph::memory(n) + scan.max(building).max(expanding).max(placing)).max(refining)
    }
}

impl Partitioner for Hep {
    type Parameters = Self;
    type Reads = ();

    fn memory(&self, shape: &Shape, run: &Run) -> Need {
        let Shape { n, m, .. } = *shape;
        let what = format!(
            "hep on {n} vertices and {m} records, even with tau = 0 (write the parts to a file with out=)"
        );
        Need {
            // As if all records were between vertices of low degree.
            beside: self.needed(shape, 2 * m, n, run.threads()),
            least: self.needed(shape, 0, 0, run.threads()),
            what,
        }
    }

    fn solve(&self, graph: &Prepared<()>) -> Result<Outcome> {
        let (edges, out, run) = (graph.edges(), graph.out(), graph.run);
        if self.tau == Tau::Fit && !run.is_limited() {
            let what = "\"fit\" needs memory_limit, or the partition would depend on the memory that happens to be free";
            return Err(Error::parameter("tau", what));
        }
        let (shape, k) = (graph.shape(), self.k);
        let Shape { n, m, .. } = shape;
        let needed = |longest, entries| self.needed(&shape, entries, longest, run.threads());
        let Degrees { degree: degrees, graph: identity } = degrees::scan(edges, run)?;
        let cap = cap(self.balance, m, k);
        let mean = 2.0 * (m - identity.loops) as f64 / n.max(1) as f64;
        let fits = |longest, entries| needed(longest, entries) <= run.budget();
        let largest = || largest_tau(edges, &degrees, mean, cap, fits, run);
        let tau = match self.tau {
            Tau::Value(tau) => tau,
            Tau::Fit => largest()?,
        };
        let threshold = ((tau * mean) as u64).min(cap).min(u32::MAX.into()) as u32;
        let pruned = LowGraph::new(edges, &degrees, threshold, run)?;
        let lengths = degrees::scan(&pruned, run)?.degree;
        let (longest, entries) = most_and_sum(&lengths, run)?;
        if !fits(longest, entries) {
            let what = format!("hep with tau = {tau} on {n} vertices and {} of {m} records", entries / 2);
            run.require(needed(longest, entries), format!("{what} (tau = {} fits)", largest()?))?;
        }
        let lists = csr::lists_in_memory(&pruned, lengths, run)?;
        drop(pruned);
        let rule = Rule { degrees: &degrees, threshold, mean, k, cap, seed: self.seed };
        let mut grown = expand(lists, rule, run)?;
        let mut parts = EdgeParts::new(m, k, out)?;
        placing::place(edges, &mut grown, &mut parts, run)?;
        let state = (grown.present, &grown.loads[..]);
        let streamer = EdgeStreamer::resume(state, cap, Balance::Records(1.0))?;
        drop(grown.home);
        let known = (&degrees[..], |&degree: &u32| degree);
        let (present, loads) = stream_open(edges, known, streamer, cap, &mut parts, run)?;
        let partition = EdgePartition { parts, k, loads, cap: Some(cap), graph: identity };
        let mut partition = loops::place(edges, partition, Some(present), run)?;
        if self.refine {
            drop(degrees);
            Refining::DEFAULT.refine(edges, &mut partition, run)?;
        }
        Ok(Outcome { chosen: vec![("tau", Value::Number(tau))], ..partition.into() })
    }
}
