//! Random parts, and parts by hash: the baseline of every partitioner.
//!
//! **Requirements.** Any graph. The edges are read for the identity of the graph only.
//!
//! **Memory.** The result, and with a second cap what [`Placing`] takes.
//!
//! **Algorithm.** [`Random`] numbers the items by a seeded [`Permutation`] and gives item number i the part
//! `i mod k`, so that loads differ by at most 1. With weights to balance on, the vertices are placed in that
//! order, each in the least-loaded part. [`HashVertices`] gives vertex v the part
//! `splitmix64(v ^ seed) mod k`. It has no cap, but the part of a vertex is known without the partition.
//!
//! **Parallelism.** Over the items.
//!
//! **Complexity.** O(n + m).

use std::path::Path;

use super::streams::edges::loops;
use crate::base::{Buffer, NONE, Permutation, Result, Run, splitmix64};
use crate::capacity::{BalanceOn, Placing, cap};
use crate::edges::EdgeStream;
use crate::exec::for_each;
use crate::graph::degrees;
use crate::partition::parameters::{Ratio, Seed, Weighing, parameters};
use crate::partition::{
    EdgePartition, EdgeParts, Need, Of, Outcome, Partitioner, Prepared, Shape, VertexPartition,
};

/// Vertices between two polls of the cancel flag.
const CHUNK: usize = 1 << 14;

fn assign(n: u64, run: &Run, part: impl Fn(u64) -> i32 + Sync) -> Result<Buffer<i32>> {
    let mut assignment: Buffer<i32> = Buffer::zeroed(n as usize, "parts")?;
    run.begin("assign", n);
    for_each(&mut assignment, run, |v, place| *place = part(v as u64))?;
    Ok(assignment)
}

parameters! {
    /// Deal the vertices, or the edge records, to the parts in random order.
    ///
    /// Takes 4 bytes per vertex (16 with ``balance_on``), or the result alone: 1 byte per record for k <=
    /// 255, 2 for k <= 32,767, else 4.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> ring = np.array([[v, (v + 1) % 9] for v in range(9)])
    /// >>> fp.algorithms.random(ring, k=3).loads
    /// array([3, 3, 3])
    /// >>> fp.algorithms.random(ring, k=3, of="edges").assignment
    /// array([2, 0, 2, 1, 0, 2, 0, 1, 1], dtype=uint8)
    pub struct Random => "random", [Vertices, Edges] of;
    /// A second cap for vertices, as in :func:`spring`. The vertices come in random order. Each goes to the
    /// part with capacity left whose larger relative load is smallest.
    balance_on: Option<Weighing>, only Vertices;
    /// A ratio >= 1, as in :func:`spring`: the cap on the weight of a part, relative to the mean.
    balance_on_ratio: Ratio = 1.05, only Vertices;
    /// Seed of the order.
    seed: Seed;
}

impl Random {
    fn balance_on(&self) -> Option<BalanceOn> {
        BalanceOn::of(self.balance_on.as_ref(), self.balance_on_ratio)
    }

    fn of_vertices(&self, edges: &dyn EdgeStream, run: &Run) -> Result<VertexPartition> {
        let (n, k) = (edges.num_vertices(), u64::from(self.k));
        let graph = degrees::identify(edges, run)?;
        let (order, cap) = (Permutation::new(self.seed, n), cap(1.0, n, self.k));
        if let Some(on) = &self.balance_on() {
            let mut placing = Placing::new(Buffer::zeroed(n as usize, "parts")?, self.k, cap, on, run)?;
            let mut vertices = Vec::new();
            for start in (0..n).step_by(CHUNK) {
                vertices.clear();
                vertices.extend((start..n.min(start + CHUNK as u64)).map(|index| order.of(index) as u32));
                placing.place_each(&vertices)?;
            }
            return Ok(VertexPartition::balanced(placing.finish()?, self.k, cap, on, graph));
        }
        let assignment = assign(n, run, |v| (order.of(v) % k) as i32)?;
        let loads = (0..k).map(|part| n / k + u64::from(part < n % k)).collect();
        Ok(VertexPartition::new(assignment, self.k, loads, Some(cap), graph))
    }

    fn of_edges(&self, edges: &dyn EdgeStream, out: Option<&Path>, run: &Run) -> Result<EdgePartition> {
        let m = edges.num_edges();
        let graph = degrees::identify(edges, run)?;
        let (order, k) = (Permutation::new(self.seed, m), u64::from(self.k));
        let mut parts = EdgeParts::new(m, self.k, out)?;
        run.begin("random", m);
        let loads = parts.fill(edges, self.k, run, |records, place, record| {
            let [u, v] = records[place];
            if u == v { NONE } else { (order.of(record) % k) as u32 }
        })?;
        let cap = Some(cap(1.0, m, self.k));
        loops::place(edges, EdgePartition { parts, k: self.k, loads, cap, graph }, None, run)
    }
}

impl Partitioner for Random {
    type Parameters = Self;
    type Reads = ();

    fn check(&self, shape: &Shape) -> Result<()> {
        self.balance_on().map_or(Ok(()), |on| on.validate(shape.n))
    }

    fn memory(&self, &Shape { n, m, in_file, .. }: &Shape, run: &Run) -> Need {
        let k = u64::from(self.k);
        match self.of {
            Of::Vertices => {
                let each = if self.balance_on.is_some() { 16 } else { 4 };
                Need::new(each * n + 64 * k, format!("random on {n} vertices"))
            }
            Of::Edges => Need::new(
                EdgeParts::memory(m, self.k, in_file) + 8 * k * run.threads() as u64,
                format!("parts of {m} records (write them to a file with out=)"),
            ),
        }
    }

    fn solve(&self, graph: &Prepared<()>) -> Result<Outcome> {
        Ok(match self.of {
            Of::Vertices => self.of_vertices(graph.edges(), graph.run)?.into(),
            Of::Edges => self.of_edges(graph.edges(), graph.out(), graph.run)?.into(),
        })
    }
}

parameters! {
    /// Give vertex v the part ``splitmix64(v ^ seed) % k``.
    ///
    /// The part of a vertex is known without the partition. There is no cap. The sizes vary like those of
    /// random draws. Takes 4 bytes per vertex.
    ///
    /// Notes
    /// -----
    /// Source of the hash: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> ring = np.array([[v, (v + 1) % 9] for v in range(9)])
    /// >>> fp.algorithms.hash(ring, k=3).assignment
    /// array([1, 2, 1, 0, 1, 2, 2, 0, 1], dtype=int32)
    pub struct HashVertices => "hash", [Vertices];
    /// Seed of the hash.
    seed: Seed;
}

impl Partitioner for HashVertices {
    type Parameters = Self;
    type Reads = ();

    fn memory(&self, &Shape { n, .. }: &Shape, _run: &Run) -> Need {
        Need::new(4 * n + 8 * u64::from(self.k), format!("hash on {n} vertices"))
    }

    fn solve(&self, graph: &Prepared<()>) -> Result<Outcome> {
        let (edges, run) = (graph.edges(), graph.run);
        let identity = degrees::identify(edges, run)?;
        let part = |v| (splitmix64(v ^ self.seed) % u64::from(self.k)) as i32;
        let assignment = assign(identity.n, run, part)?;
        let loads = crate::measure::part_sizes(&assignment, self.k, run)?;
        Ok(VertexPartition::new(assignment, self.k, loads, None, identity).into())
    }
}
