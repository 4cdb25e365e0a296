//! A multilevel partitioner for graphs that fit into memory, under one bound on the parts or two.
//!
//! **Requirements.** The neighbours of every vertex; fewer than 2^32 entries. A symmetric stream must list both
//! directions of every edge.
//!
//! **Memory.** Beside the adjacency, [`Multilevel::needed`]: 16 bytes per entry, 96 per vertex, and 4 per vertex
//! and part for at most 64 parts at a time. Of the 16 bytes, the graph with weights takes 8, and all coarser graphs
//! as much. An entry takes 32 bytes for more than 64 parts, whose blocks are copied, and 40 for two bounds, under
//! which graphs shrink slowly.
//!
//! **Algorithm.** [`coarsening`] clusters the vertices and contracts the clusters, again and again, until the graph
//! is small. [`initial`](scheme::initial) partitions that graph by recursive bisection. On the way back to the
//! given graph every level is balanced ([`balancing`]) and searched for better states ([`refinement`]). [`scheme`]
//! says how often each is done. More than 64 parts are made in two steps or more: up to 64 blocks, then the parts
//! of each. With two bounds, loads that are still above a cap in the end are repaired as SIGMA does it. The caps on
//! vertices always hold.
//!
//! Where copies of vertices count instead of cut edges, the partition found is refined for that ([`halo`]).
//!
//! **Parallelism.** The attempts on the small graphs, each by itself.
//!
//! **Complexity.** O((n + m) log n) if coarsening halves the graph; at most `8 n` moves per level, O(degree + log
//! n) each.
//!
//! **Source.** Karypis and Kumar, "Multilevel k-way Partitioning Scheme for Irregular Graphs", 1998; Meyerhenke,
//! Sanders and Schulz, "Partitioning Complex Networks via Size-Constrained Clustering", SEA 2014.

pub mod assignment;
pub mod clustering;
pub mod contraction;
mod exchange;
pub mod fm;
pub mod gain_table;
pub mod graph;
pub mod halo;
pub mod jet;
mod objective;
pub mod rebalancing;
pub mod scheme;
pub mod spread;
mod topology;

use std::time::Duration;

use crate::base::{Buffer, Error, Result, Run};
use crate::capacity::{
    BalanceOn, Balanced, Load, Repaired, cap, fits, plus, repair, validate_balance, validate_parts,
};
use crate::graph::Csr;
use crate::partition::{Input, Of, Outcome, Partitioner, Shape, Value, Values, VertexPartition, describe};
pub use clustering::Rating;
use graph::Graph;
pub use objective::Objective;
use scheme::effort::ROUNDS;
pub use scheme::{Effort, Scheme};

/// TODO
pub const MOST_PARTS: usize = 64;

/// The second bound of a partition.
#[derive(Debug, Clone)]
pub enum Second {
    /// No volume, the sum of `d(v) + 1`, above this ratio to the mean.
    Volume(f64),
    /// Weights that the parts share evenly.
    Weights(BalanceOn),
}

/// Parameters of the multilevel partitioner.
#[derive(Debug, Clone)]
pub struct Multilevel {
    /// Number of parts.
    pub k: u32,
    /// No part exceeds `ceil(balance * n / k)` vertices.
    pub balance: f64,
    /// A second bound, if any.
    pub second: Option<Second>,
    /// What there should be few of.
    pub objective: Objective,
    /// Parts on each machine, if the cut between machines comes first.
    pub machines: Option<Vec<u32>>,
    /// How much work to do.
    pub effort: Effort,
    /// Seed of everything random.
    pub seed: u64,
}

impl Multilevel {
    /// Refuses parameters that cannot be, for a graph of `n` vertices.
    pub fn validate(&self, n: u64) -> Result<()> {
        validate_parts(self.k)?;
        validate_balance("balance", self.balance)?;
        if let Some(machines) = &self.machines {
            topology::validate(machines, self.k)?;
        }
        match &self.second {
            None => Ok(()),
            Some(Second::Volume(ratio)) => validate_balance("volume_balance", *ratio),
            Some(Second::Weights(on)) => on.validate(n),
        }
    }

    /// Bytes that it takes beside the adjacency, for `n` vertices and `entries` of it.
    pub fn needed(&self, n: u64, entries: u64) -> u64 {
        let at_once = u64::from(self.k).min(MOST_PARTS as u64);
        let per_entry = match &self.second {
            Some(_) => 40,
            None if u64::from(self.k) > at_once => 32,
            None => 16,
        };
        entries
            .saturating_mul(per_entry)
            .saturating_add(n * (96 + 4 * at_once))
            .saturating_add(96 * u64::from(self.k))
            .max(self.objective.memory(n, entries, self.k.into()))
            .saturating_add(self.machines.as_ref().map_or(0, |_| topology::memory(n, entries)))
    }

    /// The caps on vertices and on the second weight.
    fn caps(&self, csr: &Csr) -> Load {
        let n = csr.num_vertices() as u64;
        let second = match &self.second {
            None => u64::MAX,
            Some(Second::Volume(ratio)) => cap(*ratio, n + csr.num_entries(), self.k),
            Some(Second::Weights(on)) => on.cap(self.k),
        };
        [cap(self.balance, n, self.k), second]
    }

    /// The second weight of a vertex.
    fn weight(&self, csr: &Csr, v: u32) -> Load {
        match &self.second {
            None => [1, 0],
            Some(Second::Volume(_)) => [1, u64::from(csr.degree(v)) + 1],
            Some(Second::Weights(on)) => [1, on.weight(v)],
        }
    }

    /// The partition that the parts found make, with its caps kept.
    fn finish(&self, csr: &Csr, mut parts: Buffer<u32>, caps: Load, run: &Run) -> Result<VertexPartition> {
        let mut loads = vec![[0; 2]; self.k as usize];
        run.each(parts.len(), |v| {
            let load = &mut loads[parts[v as usize] as usize];
            *load = plus(*load, self.weight(csr, v));
        })?;
        let (graph, exceeded) = (csr.graph().clone(), loads.iter().any(|&load| !fits(load, caps)));
        match &self.second {
            None => {
                let loads = loads.into_iter().map(|[vertices, _]| vertices).collect();
                Ok(VertexPartition::new(parts.reinterpret(), self.k, loads, Some(caps[0]), graph))
            }
            Some(Second::Volume(_)) => {
                let repaired = if exceeded {
                    repair(csr, &mut parts, &loads, caps, run)?
                } else {
                    Repaired { loads, cap: caps[1], dealt: false }
                };
                Ok(VertexPartition::repaired(parts, repaired, caps, graph))
            }
            Some(Second::Weights(on)) => {
                let balanced = if exceeded {
                    on.deal(self.k, run)?
                } else {
                    Balanced { assignment: parts.reinterpret(), loads, dealt: false }
                };
                Ok(VertexPartition::balanced(balanced, self.k, caps[0], on, graph))
            }
        }
    }

    /// Partitions the graph of `csr`.
    pub fn partition(&self, csr: &Csr, run: &Run) -> Result<VertexPartition> {
        self.partition_in_rounds(csr, run).map(|(partition, _)| partition)
    }

    /// The partition, and the number of rounds of improvement that it took.
    pub fn partition_in_rounds(&self, csr: &Csr, run: &Run) -> Result<(VertexPartition, u64)> {
        let n = csr.graph().n;
        self.validate(n)?;
        let needed = self.needed(n, csr.num_entries());
        run.require(needed, format!("multilevel on {n} vertices, {} entries", csr.num_entries()))?;
        check_symmetry(csr, run)?;
        let caps = self.caps(csr);
        let bounds = if self.second.is_some() { 2 } else { 1 };
        let scheme = Scheme { units: n + csr.num_entries(), ..Scheme::new(bounds, self.effort, self.seed) };
        run.begin("partition", scheme.units);
        let (part_of, rounds) = if self.second.is_some() {
            let weight = |v| self.weight(csr, v);
            let graph = Graph::finest(csr, &weight, run)?;
            self.solution(&scheme, &graph, caps, run)?
        } else {
            let graph = Graph::finest(csr, &|_| [1], run)?;
            self.solution(&scheme, &graph, [caps[0]], run)?
        };
        Ok((self.finish(csr, part_of, caps, run)?, rounds))
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
    /// A ratio >= 1: no part gets a volume, the sum of its degrees + 1, above ``ceil(volume_balance * (2 m + n) / k)``,
    /// where m counts edges without loops. By default volumes are not bounded.
    volume_balance: optional_ratio();
    /// A second cap, as in :func:`spring`; not together with ``volume_balance``.
    balance_on: weights();
    /// A second cap, as in :func:`spring`; not together with ``volume_balance``.
    balance_on_ratio: ratio(1.05);
    /// What there should be few of. "cut": edges between parts. "halo": copies of vertices in the parts of their
    /// neighbours, which is what workers store and send. That takes longer, and cuts more edges.
    objective: choice(&["cut", "halo"]);
    /// How many parts each machine has, as ``[8, 8]``: parts 0 to 7 are on the first, 8 to 15 on the second. The sum is k.
    /// Few edges between machines then come first, and few between the parts of a machine second. Not together with
    /// ``time_limit``.
    machines: integers();
    /// "quick": a single attempt with little refinement. "default": several attempts. "best": the same, then rounds of
    /// improvement as long as they gain, in each of which another partition is made or the best is coarsened again.
    effort: choice(&["default", "quick", "best"]);
    /// Seconds after which no further round begins. Only with ``effort="best"``. By default time does not matter. The
    /// number of rounds stands in ``parameters`` of the result. With that as ``rounds`` the result is the same anywhere.
    time_limit: optional_number();
    /// Most rounds of improvement. Only with ``effort="best"``, which makes at most 16 by default.
    rounds: optional_integer(1, 1 << 20);
    /// Seed of the orders, the attempts and the ties: 0 to 2**64 - 1. None is 0.
    seed: seed();
}

impl Partitioner for Multilevel {
    fn new(values: &mut Values) -> Result<Self> {
        let (weights, volume) = (values.take_balance_on()?, values.ratio("volume_balance"));
        if weights.is_some() && volume.is_some() {
            let what = "not together with balance_on; there is one second cap";
            return Err(Error::parameter("volume_balance", what));
        }
        let second = weights.map(Second::Weights).or(volume.map(Second::Volume));
        let (balance, effort) = (values.number("balance"), effort(values)?);
        let (objective, machines) = (Objective::of(values), values.take_integers("machines"));
        if machines.is_some() && values.ratio("time_limit").is_some() {
            let what = "not together with machines, whose partitions take several runs; use rounds";
            return Err(Error::parameter("time_limit", what));
        }
        Ok(Multilevel { k: values.k, balance, second, objective, machines, effort, seed: values.seed() })
    }

    fn memory(&self, shape: &Shape, _threads: usize) -> u64 {
        self.needed(shape.n, shape.entries())
    }

    fn solve(&self, input: &dyn Input, run: &Run) -> Result<Outcome> {
        self.validate(input.shape().n)?;
        let (partition, rounds) = self.partition_in_rounds(&*input.adjacency(run)?, run)?;
        let chosen = match self.effort {
            // With none it is what "default" makes.
            Effort::Best { .. } if rounds > 0 => vec![("rounds", Value::Integer(rounds))],
            _ => Vec::new(),
        };
        Ok(Outcome { chosen, ..partition.into() })
    }
}

/// How much work the values ask for.
fn effort(values: &Values) -> Result<Effort> {
    let (limit, rounds) = (values.ratio("time_limit"), values.integer("rounds"));
    if values.is("effort", "best") {
        let time_limit = limit.map(Duration::try_from_secs_f64).transpose().map_err(|_| {
            let given = limit.unwrap_or_default();
            Error::parameter("time_limit", format!("{given} seconds. Use a number of seconds of at least 0"))
        })?;
        return Ok(Effort::Best { rounds: rounds.unwrap_or(ROUNDS), time_limit });
    }
    for (name, given) in [("time_limit", limit.is_some()), ("rounds", rounds.is_some())] {
        if given {
            return Err(Error::parameter(name, "it needs effort=\"best\", which works in rounds"));
        }
    }
    Ok(if values.is("effort", "quick") { Effort::Quick } else { Effort::Default })
}
