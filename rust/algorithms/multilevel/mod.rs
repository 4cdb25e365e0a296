//! A multilevel partitioner for graphs that fit into memory, under one bound on the parts or several.
//!
//! **Requirements.** The neighbours of every vertex; fewer than 2^32 entries. A symmetric stream must list both
//! directions of every edge.
//!
//! **Memory.** Beside the adjacency, [`Multilevel::needed`]: 16 bytes per entry, 96 per vertex, and 4 per vertex
//! and part for at most 64 parts at a time. Of the 16 bytes, the graph with weights takes 8, and all coarser graphs
//! as much. An entry takes 32 bytes for more than 64 parts, whose blocks are copied, and 40 for several bounds,
//! under which graphs shrink slowly. A vertex takes 16 bytes more for each bound beyond two, padding included.
//!
//! **Algorithm.** [`coarsening`] clusters the vertices and contracts the clusters, again and again, until the graph
//! is small. [`initial`](scheme::initial) partitions that graph by recursive bisection. On the way back to the
//! given graph every level is balanced ([`balancing`]) and searched for better states ([`refinement`]). [`scheme`]
//! says how often each is done. More than 64 parts are made in two steps or more: up to 64 blocks, then the parts
//! of each. The caps on vertices always hold. [`bounds`] says what becomes of other loads that are still above a cap in the
//! end, and how every part gets its least number of vertices.
//!
//! **Parallelism.** The attempts on the small graphs, each by itself.
//!
//! **Complexity.** O((n + m) log n) if coarsening halves the graph; at most `8 n` moves per level, O(degree + log
//! n) each.
//!
//! **Source.** Karypis and Kumar, "Multilevel k-way Partitioning Scheme for Irregular Graphs", 1998; Meyerhenke,
//! Sanders and Schulz, "Partitioning Complex Networks via Size-Constrained Clustering", SEA 2014.

pub mod assignment;
pub mod bounds;
pub mod clustering;
pub mod contraction;
mod exchange;
mod filling;
pub mod fm;
pub mod gain_table;
pub mod graph;
pub mod jet;
pub mod rebalancing;
pub mod scheme;

use crate::base::{Buffer, Error, Result, Run};
use crate::capacity::{validate_balance, validate_parts};
use crate::graph::Csr;
use crate::partition::{Input, Of, Outcome, Partitioner, Shape, Values, VertexPartition, describe};
pub use bounds::Bound;
pub use clustering::Rating;
pub use scheme::Scheme;

/// TODO
pub const MOST_PARTS: usize = 64;

/// Parameters of the multilevel partitioner.
#[derive(Debug, Clone)]
pub struct Multilevel {
    /// Number of parts.
    pub k: u32,
    /// No part exceeds `ceil(balance * n / k)` vertices.
    pub balance: f64,
    /// Every part gets at least `floor(min_balance * n / k)` vertices, and one if that is 0 but the ratio is not.
    pub min_balance: Option<f64>,
    /// Further bounds, in the order in which they are met.
    pub bounds: Vec<Bound>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Multilevel {
    /// Refuses parameters that cannot be, for a graph of `n` vertices.
    pub fn validate(&self, n: u64) -> Result<()> {
        validate_parts(self.k)?;
        validate_balance("balance", self.balance)?;
        bounds::validate(&self.bounds, n)?;
        bounds::least(self.min_balance, n, self.k).map(|_| ())
    }

    /// Bytes that it takes beside the adjacency, for `n` vertices and `entries` of it.
    pub fn needed(&self, n: u64, entries: u64) -> u64 {
        let at_once = u64::from(self.k).min(MOST_PARTS as u64);
        let per_entry = match self.bounds.len() {
            0 if u64::from(self.k) > at_once => 32,
            0 => 16,
            _ => 40,
        };
        // Each of them is stored for the vertices of coarse graphs and for clusters.
        let weights = 16 * bounds::padded(self.bounds.len()).saturating_sub(2) as u64;
        entries
            .saturating_mul(per_entry)
            .saturating_add(n * (96 + weights + 4 * at_once))
            .saturating_add(96 * u64::from(self.k))
    }

    /// Partitions the graph of `csr`.
    pub fn partition(&self, csr: &Csr, run: &Run) -> Result<VertexPartition> {
        let n = csr.graph().n;
        self.validate(n)?;
        let needed = self.needed(n, csr.num_entries());
        run.require(needed, format!("multilevel on {n} vertices, {} entries", csr.num_entries()))?;
        check_symmetry(csr, run)?;
        let scheme = Scheme { units: n + csr.num_entries(), ..Scheme::new(1 + self.bounds.len(), self.seed) };
        run.begin("partition", scheme.units);
        bounds::partition(self, &scheme, csr, run)
    }
}

/// Refuses a stream that was opened as symmetric and is not: gains would go wrong.
fn check_symmetry(csr: &Csr, run: &Run) -> Result<()> {
    if !csr.is_symmetric() {
        return Ok(());
    }
    let n = csr.num_vertices();
    let mut seen: Buffer<u32> = Buffer::zeroed(n, "directions of edges")?;
    for v in 0..n as u32 {
        // Sources come in ascending order, so the next target of u that has not been met must be v.
        for &u in csr.neighbours(v) {
            let next = csr.neighbours(u).get(seen[u as usize] as usize);
            if next != Some(&v) {
                let what = format!(
                    "\"symmetric\", but the records list {v} to {u} more often than {u} to {v}; open \
                     them as undirected or directed"
                );
                return Err(Error::parameter("directedness", what));
            }
            seen[u as usize] += 1;
        }
        if v % 1024 == 0 {
            run.check()?;
        }
    }
    Ok(())
}

describe! {
    /// Partition the vertices with a multilevel scheme: few cut edges, for graphs that fit into memory.
    ///
    /// Contracts clusters of vertices until the graph is small, partitions that, and improves the parts on the way back.
    /// Takes, beside the adjacency (8 bytes per edge), 32 bytes per edge (80 with a second bound, 64 for more than 64
    /// parts), 96 per vertex and 4 per vertex and part, for at most 64 parts; for larger graphs there are :func:`spring`
    /// and the other streaming partitioners.
    ///
    /// Notes
    /// -----
    /// Sources: Karypis and Kumar, "Multilevel k-way Partitioning Scheme for Irregular Graphs", 1998; Meyerhenke, Sanders
    /// and Schulz, "Partitioning Complex Networks via Size-Constrained Clustering", SEA 2014. The result is the same for
    /// any number of threads.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    /// >>> fp.evaluate(two_triangles, fp.multilevel(two_triangles, k=2)).cut_matrix
    /// array([[3, 1],
    ///        [1, 3]])
    Multilevel => "multilevel", &[Of::Vertices];
    /// A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    balance: ratio(1.03);
    /// A ratio from 0 to 1: every part gets at least ``floor(min_balance * n / k)`` vertices. Above 0 it is at least one,
    /// which more parts than vertices cannot have (``CapacityError``). By default parts may be empty.
    min_balance: optional_number();
    /// A ratio >= 1: no part gets a volume, the sum of its degrees + 1, above ``ceil(volume_balance * (2 m + n) / k)``,
    /// where m counts edges without loops. By default volumes are not bounded.
    volume_balance: optional_ratio();
    /// Weights, or masks, that the parts share evenly, too, as in :func:`spring`. A list of arrays bounds each of them,
    /// such as the training, validation and test masks. Up to 8 bounds in all are met in this order: vertices, volume,
    /// then the arrays. If nothing found meets one of them, only its cap is raised.
    balance_on: several_weights();
    /// A ratio >= 1: no part gets more than ``ceil(balance_on_ratio * W / k)`` of a total weight W, as in
    /// :func:`spring`.
    balance_on_ratio: ratio(1.05);
    /// 0 to 2**64 - 1; None is 0.
    seed: seed();
}

impl Partitioner for Multilevel {
    fn new(values: &mut Values) -> Result<Self> {
        let volume = values.ratio("volume_balance").map(Bound::Volume);
        let weights = values.take_several_balance_on()?.into_iter().map(Bound::Weights);
        Ok(Multilevel {
            k: values.k,
            balance: values.number("balance"),
            min_balance: values.ratio("min_balance"),
            bounds: volume.into_iter().chain(weights).collect(),
            seed: values.seed(),
        })
    }

    fn memory(&self, shape: &Shape, _threads: usize) -> u64 {
        self.needed(shape.n, shape.entries())
    }

    fn solve(&self, input: &dyn Input, run: &Run) -> Result<Outcome> {
        self.validate(input.shape().n)?;
        Ok(self.partition(&*input.adjacency(run)?, run)?.into())
    }
}
