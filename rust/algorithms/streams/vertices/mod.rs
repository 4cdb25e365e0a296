//! Linear deterministic greedy and Fennel. Vertices are streamed, each with all its neighbours, and go to the
//! part with the best score.
//!
//! **Requirements.** The adjacency ([`Csr`]). Vertices come in the order of their ids, including those
//! without neighbours. Other algorithms place these last, which costs Fennel up to a tenth of its cut on
//! Amazon Computers.
//!
//! **Memory.** Beside the adjacency 4 bytes per vertex: the result. With weights to balance on
//! ([`crate::capacity`]) 16, weights included.
//!
//! **Algorithm.** Let e(v, p) be the number of neighbours of v in part p. No part exceeds the cap
//! `C = ceil(balance * n / k)`. v goes to the part with the largest
//! - `e(v, p) * (1 - |p| / C)` ([`Rule::Ldg`]), or
//! - `e(v, p) - alpha * gamma * |p|^(gamma - 1)`, `gamma = 1.5`, `alpha = sqrt(k) * m / n^1.5`
//!   ([`Rule::Fennel`], n vertices, m edges without loops).
//!
//! Among equal scores the least loaded part is taken, then the lowest. Scores fall with the load. So of the
//! parts without neighbours of v only the least loaded one can win. With `passes` the vertices are streamed
//! again, into parts that are empty again. A neighbour not yet placed in this pass counts for the part of the
//! pass before. (The published programs differ: some let v leave its part and keep the other loads, some let
//! alpha grow from pass to pass. Emptied parts and a constant alpha were the best, or close to it, on most of
//! the graphs tried. No other variant was the best on all.)
//!
//! **Parallelism.** Vertices are decided in batches. All threads find the best parts in the state before the
//! batch. Then the vertices take them in order. A vertex decides again if its part has no slack any more, or
//! if, in the first pass, one of its neighbours came earlier in the same batch. A vertex that found no part
//! with neighbours takes the part that is the least loaded by then. `batch = 1` is the sequential rule.
//!
//! **Complexity.** O(passes * (n + m)) time, O(log k) more per vertex with weights to balance on.
//!
//! **Sources.** Stanton and Kliot, "Streaming Graph Partitioning for Large Distributed Graphs", KDD 2012.
//! Tsourakakis et al., "FENNEL: Streaming Graph Partitioning for Massive Scale Graphs", WSDM 2014. Nishimura
//! and Ugander, "Restreaming Graph Partitioning", KDD 2013.

mod named;
mod pass;
mod score;
mod slack;

use std::num::NonZeroU64;

use crate::base::{Buffer, NONE, Result, Run, bytes, reserved};
use crate::capacity::{BalanceOn, PartLoads, Placing, cap};
use crate::graph::Csr;
use crate::partition::{Need, VertexPartition};
pub(crate) use named::named;
use pass::Pass;
use score::Score;
use slack::{OneCap, Slack, TwoCaps};

/// Bytes per vertex at the peak, result included, adjacency not.
pub(crate) const BYTES_PER_VERTEX: u64 = 4;

/// Bytes per vertex that weights to balance on add: the weights, and in the last resort an order of the
/// vertices and a second result.
pub(crate) const BYTES_PER_WEIGHT: u64 = 12;

/// How a part is scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Linear deterministic greedy.
    Ldg,
    /// Fennel.
    Fennel,
}

/// Parameters of the vertex streams.
#[derive(Debug, Clone)]
pub struct VertexStream {
    /// The score.
    pub rule: Rule,
    /// Number of parts.
    pub k: u32,
    /// No part exceeds `ceil(balance * n / k)` vertices.
    pub balance: f64,
    /// Number of passes over the vertices.
    pub passes: u32,
    /// Vertices decided about in one frozen state. `None` chooses by the size of the graph, 1 is the
    /// sequential rule.
    pub batch: Option<NonZeroU64>,
    /// Weights that the parts also share evenly.
    pub balance_on: Option<BalanceOn>,
}

impl VertexStream {
    /// Vertices decided about in one frozen state.
    fn batch(&self, n: u64) -> usize {
        self.batch.map_or_else(|| default_batch(n), NonZeroU64::get).min(n) as usize
    }

    /// Memory for `n` vertices beside the adjacency.
    pub(crate) fn memory(&self, n: u64, threads: usize) -> Need {
        let each = BYTES_PER_VERTEX + self.balance_on.as_ref().map_or(0, |_| BYTES_PER_WEIGHT);
        let balanced = self.balance_on.as_ref().map_or(0, |_| 2 * PartLoads::<2>::memory(self.k));
        let parts = u64::from(self.k) * (64 + 8 * (threads as u64 + 1));
        Need::new(
            n * each + parts + balanced + 20 * self.batch(n) as u64,
            format!("a stream of {n} vertices ({} each)", bytes(each)),
        )
    }

    /// Streams the vertices `passes` times.
    fn stream<S: Score>(&self, score: &S, csr: &Csr, run: &Run) -> Result<VertexPartition> {
        let (k, n) = (self.k, csr.num_vertices());
        let cap = cap(self.balance, n as u64, k);
        let mut part_of: Buffer<u32> = Buffer::zeroed(n, "part of each vertex")?;
        part_of.fill(NONE);
        run.begin("streaming", u64::from(self.passes) * (n as u64 + csr.num_entries()));
        let graph = csr.graph().clone();
        let Some(on) = &self.balance_on else {
            let new = || Ok(OneCap::new(k, cap));
            let (slack, _) = self.passes(score, new, csr, &mut part_of, run)?;
            let (assignment, loads) = (part_of.reinterpret(), slack.into_loads());
            return Ok(VertexPartition::new(assignment, k, loads, Some(cap), graph));
        };
        let new = || TwoCaps::new(k, cap, on);
        let (slack, left) = self.passes(score, new, csr, &mut part_of, run)?;
        let placing = Placing::resume(part_of, slack.into_parts(), left, on, run);
        Ok(VertexPartition::balanced(placing.finish()?, k, cap, on, graph))
    }

    /// All passes, each into empty parts. Returns the loads of the parts, and the number of vertices that
    /// fitted nowhere.
    fn passes<S: Score, R: Slack>(
        &self,
        score: &S,
        new: impl Fn() -> Result<R>,
        csr: &Csr,
        part_of: &mut Buffer<u32>,
        run: &Run,
    ) -> Result<(R, usize)> {
        let mut slack = new()?;
        for pass in 0..self.passes {
            let pass = Pass::new(csr, score, new()?, self.k, part_of, pass == 0)?;
            slack = pass.place_all(self.batch(csr.graph().n), run)?;
        }
        let mut left = 0;
        run.each(part_of.len(), |v| left += usize::from(part_of[v as usize] == NONE))?;
        Ok((slack, left))
    }

    /// Partitions the graph of `csr`.
    pub fn partition(&self, csr: &Csr, run: &Run) -> Result<VertexPartition> {
        let n = csr.graph().n;
        match self.rule {
            Rule::Ldg => self.stream(&score::Ldg { cap: cap(self.balance, n, self.k) }, csr, run),
            Rule::Fennel => {
                let edges = csr.num_entries() as f64 / 2.0;
                self.stream(&score::Fennel::new(self.k, n, edges), csr, run)
            }
        }
    }
}

/// Streams the vertices that have no part yet by LDG, into parts that have these `loads` and slack for all of
/// them under `cap`. Returns the loads of the parts. Takes 4 bytes for each of these vertices.
pub(crate) fn place_rest(
    csr: &Csr,
    part_of: &mut Buffer<u32>,
    loads: Vec<u64>,
    cap: u64,
    run: &Run,
) -> Result<Vec<u64>> {
    let placed: u64 = loads.iter().sum();
    let mut rest = reserved((part_of.len() as u64 - placed) as usize, "vertices to stream")?;
    let mut work = 0;
    run.each(part_of.len(), |v| {
        if part_of[v as usize] == NONE {
            rest.push(v);
            work += 1 + u64::from(csr.degree(v));
        }
    })?;
    run.begin("streaming", work);
    let (k, slack, score) = (loads.len() as u32, OneCap::of(loads, cap), score::Ldg { cap });
    let batch = default_batch(csr.graph().n) as usize;
    let pass = Pass::new(csr, &score, slack, k, part_of, false)?;
    Ok(pass.place(rest.into_iter(), batch, run)?.into_loads())
}

/// The sequential rule for few vertices, which would lose more by it than threads gain.
fn default_batch(n: u64) -> u64 {
    if n < 1 << 16 { 1 } else { 1024 }
}
