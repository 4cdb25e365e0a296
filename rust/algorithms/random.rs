//! Random parts, and parts by hash: the baseline of every partitioner.
//!
//! **Requirements.** Any graph. The edges are read for the identity of the graph only.
//!
//! **Memory.** The result, and with a second cap what [`Placing`] takes.
//!
//! **Algorithm.** [`RandomVertices`] and [`RandomEdges`] number the items by a seeded [`Permutation`] and give item
//! number i the part `i mod k`, so that loads differ by at most 1. With weights to balance on, the vertices are
//! placed in that order, each in the least-loaded part. [`HashVertices`] gives vertex v the part
//! `splitmix64(v ^ seed) mod k`. It has no cap, but the part of a vertex is known without the partition.
//!
//! **Parallelism.** Over the items.
//!
//! **Complexity.** O(n + m).

use std::path::Path;

use super::edge_streams::loops;
use crate::base::{Buffer, NONE, Permutation, Result, Run, splitmix64};
use crate::capacity::{BalanceOn, Placing, cap, validate_parts};
use crate::edges::EdgeStream;
use crate::exec::for_each;
use crate::graph::{Graph, degrees};
use crate::partition::{
    EdgePartition, EdgeParts, Input, Of, Outcome, Partitioner, Shape, Values, VertexPartition, describe,
};

/// Vertices between two looks at the cancel flag.
const CHUNK: usize = 1 << 14;

/// Vertices in random order, dealt to the parts.
#[derive(Debug, Clone)]
pub struct RandomVertices {
    /// Number of parts.
    pub k: u32,
    /// Seed of the order.
    pub seed: u64,
    /// Weights that the parts share evenly, too.
    pub balance_on: Option<BalanceOn>,
}

/// Vertices by the hash of their id.
#[derive(Debug, Clone)]
pub struct HashVertices {
    /// Number of parts.
    pub k: u32,
    /// Seed of the hash.
    pub seed: u64,
}

/// Records in random order, dealt to the parts.
#[derive(Debug, Clone)]
pub struct RandomEdges {
    /// Number of parts.
    pub k: u32,
    /// Seed of the order.
    pub seed: u64,
}

/// Either of the two at random.
#[derive(Debug, Clone)]
pub enum Random {
    /// Vertices.
    Vertices(RandomVertices),
    /// Records.
    Edges(RandomEdges),
}

impl RandomVertices {
    fn needed(&self, n: u64) -> u64 {
        (if self.balance_on.is_some() { 16 } else { 4 }) * n + 64 * u64::from(self.k)
    }

    /// Partitions `edges`.
    pub fn partition(&self, edges: &dyn EdgeStream, run: &Run) -> Result<VertexPartition> {
        validate_parts(self.k)?;
        let n = edges.num_vertices();
        if let Some(on) = &self.balance_on {
            on.validate(n)?;
        }
        run.require(self.needed(n), format!("random on {n} vertices"))?;
        let graph = identify(edges, run)?;
        let (order, cap) = (Permutation::new(self.seed, n), cap(1.0, n, self.k));
        if let Some(on) = &self.balance_on {
            let mut placing = Placing::new(Buffer::zeroed(n as usize, "parts")?, self.k, cap, on, run)?;
            let mut vertices = Vec::new();
            for start in (0..n).step_by(CHUNK) {
                vertices.clear();
                vertices.extend((start..n.min(start + CHUNK as u64)).map(|index| order.of(index) as u32));
                placing.place_each(&vertices)?;
            }
            return Ok(VertexPartition::balanced(placing.finish()?, self.k, cap, on, graph));
        }
        let k = u64::from(self.k);
        let assignment = assign(n, run, |v| (order.of(v) % k) as i32)?;
        let loads = (0..k).map(|part| n / k + u64::from(part < n % k)).collect();
        Ok(VertexPartition::new(assignment, self.k, loads, Some(cap), graph))
    }
}

impl HashVertices {
    fn needed(&self, n: u64) -> u64 {
        4 * n + 8 * u64::from(self.k)
    }

    /// Partitions `edges`.
    pub fn partition(&self, edges: &dyn EdgeStream, run: &Run) -> Result<VertexPartition> {
        validate_parts(self.k)?;
        let n = edges.num_vertices();
        run.require(self.needed(n), format!("hash on {n} vertices"))?;
        let graph = identify(edges, run)?;
        let assignment = assign(n, run, |v| (splitmix64(v ^ self.seed) % u64::from(self.k)) as i32)?;
        let loads = crate::measure::part_sizes(&assignment, self.k, run)?;
        Ok(VertexPartition::new(assignment, self.k, loads, None, graph))
    }
}

impl RandomEdges {
    fn needed(&self, m: u64, out: Option<&Path>, threads: usize) -> u64 {
        EdgeParts::memory(m, self.k, out) + 8 * u64::from(self.k) * threads as u64
    }

    /// Partitions `edges`. The parts go to the `.npy` file `out` or stay in memory.
    pub fn partition(&self, edges: &dyn EdgeStream, out: Option<&Path>, run: &Run) -> Result<EdgePartition> {
        validate_parts(self.k)?;
        let m = edges.num_edges();
        run.require(
            self.needed(m, out, run.threads()),
            format!("parts of {m} records (write them to a file with out=)"),
        )?;
        let graph = identify(edges, run)?;
        let (order, k) = (Permutation::new(self.seed, m), self.k as usize);
        let mut parts = EdgeParts::new(m, self.k, out)?;
        run.begin("random", m);
        let counts = parts.update(
            edges,
            run,
            || Ok(vec![0_u64; k]),
            |loads, first, records, parts| {
                for ((part, &[u, v]), record) in parts.iter_mut().zip(records).zip(first..) {
                    *part = NONE;
                    if u != v {
                        *part = (order.of(record) % k as u64) as u32;
                        loads[*part as usize] += 1;
                    }
                }
                Ok(())
            },
        )?;
        let mut loads = vec![0; k];
        counts
            .iter()
            .for_each(|counts| loads.iter_mut().zip(counts).for_each(|(load, count)| *load += count));
        let cap = cap(1.0, m, self.k);
        if graph.loops > 0 {
            loops::place(edges, &mut parts, &mut loads, Some(cap), None, run)?;
        }
        Ok(EdgePartition { parts, k: self.k, loads, cap: Some(cap), graph })
    }
}

fn identify(edges: &dyn EdgeStream, run: &Run) -> Result<Graph> {
    let identity = degrees::identify(edges, run)?;
    let (n, m) = (edges.num_vertices(), edges.num_edges());
    Ok(Graph { n, m, loops: identity.loops, checksum: identity.checksum })
}

fn assign(n: u64, run: &Run, part: impl Fn(u64) -> i32 + Sync) -> Result<Buffer<i32>> {
    let mut assignment: Buffer<i32> = Buffer::zeroed(n as usize, "parts")?;
    run.begin("assign", n);
    for_each(&mut assignment, run, |v, place| *place = part(v as u64))?;
    Ok(assignment)
}

describe! {
    /// Deal the vertices, or the edge records, to the parts in random order.
    ///
    /// Takes 4 bytes per vertex (16 with ``balance_on``), or the result alone: 1 byte per record for k <= 255, 2 for
    /// k <= 32,767, else 4.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> ring = np.array([[v, (v + 1) % 9] for v in range(9)])
    /// >>> fp.random(ring, k=3).loads
    /// array([3, 3, 3])
    /// >>> fp.random(ring, k=3, of="edges").assignment
    /// array([2, 0, 2, 1, 0, 2, 0, 1, 1], dtype=uint8)
    Random => "random", &[Of::Vertices, Of::Edges];
    /// A second cap for vertices, as in :func:`spring`. The vertices come in random order. Each goes to the part with
    /// room whose larger relative load is smallest.
    balance_on: only(Of::Vertices, weights());
    /// A second cap for vertices, as in :func:`spring`. The vertices come in random order. Each goes to the part with
    /// room whose larger relative load is smallest.
    balance_on_ratio: only(Of::Vertices, ratio(1.05));
    /// Seed of the order. None is 0.
    seed: seed();
}

impl Partitioner for Random {
    fn new(values: &mut Values) -> Result<Self> {
        let (k, seed) = (values.k, values.seed());
        Ok(match values.of {
            Some(Of::Edges) => Random::Edges(RandomEdges { k, seed }),
            _ => Random::Vertices(RandomVertices { k, seed, balance_on: values.take_balance_on()? }),
        })
    }

    fn memory(&self, shape: &Shape, threads: usize) -> u64 {
        match self {
            Random::Vertices(vertices) => vertices.needed(shape.n),
            Random::Edges(edges) => edges.needed(shape.m, None, threads),
        }
    }

    fn solve(&self, input: &dyn Input, run: &Run) -> Result<Outcome> {
        Ok(match self {
            Random::Vertices(vertices) => vertices.partition(input.edges(), run)?.into(),
            Random::Edges(edges) => edges.partition(input.edges(), input.out(), run)?.into(),
        })
    }
}

describe! {
    /// Give vertex v the part ``splitmix64(v ^ seed) % k``.
    ///
    /// The part of a vertex is known without the partition. There is no cap. The sizes vary like those of random draws.
    /// Takes 4 bytes per vertex.
    ///
    /// Notes
    /// -----
    /// Source of the hash: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> ring = np.array([[v, (v + 1) % 9] for v in range(9)])
    /// >>> fp.hash(ring, k=3).assignment
    /// array([1, 2, 1, 0, 1, 2, 2, 0, 1], dtype=int32)
    HashVertices => "hash", &[Of::Vertices];
    /// Seed of the hash. None is 0.
    seed: seed();
}

impl Partitioner for HashVertices {
    fn new(values: &mut Values) -> Result<Self> {
        Ok(HashVertices { k: values.k, seed: values.seed() })
    }

    fn memory(&self, shape: &Shape, _threads: usize) -> u64 {
        self.needed(shape.n)
    }

    fn solve(&self, input: &dyn Input, run: &Run) -> Result<Outcome> {
        Ok(self.partition(input.edges(), run)?.into())
    }
}
