//! SIGMA: partitions of vertices or of records, balanced in both, from clusters and a stream.

pub mod edge;
pub mod preference;
pub mod vertex;

use std::sync::Arc;

use self::edge::{BandCount, SigmaEdge};
use self::vertex::Objective;
use crate::algorithms::multilevel::refine::{self, Refine};
use crate::algorithms::streams::edges::refining::PASSES;
use crate::base::{Error, Result, Run};
use crate::exec::shuffle::check_records;
use crate::graph::Csr;
use crate::partition::parameters::{Batch, Flag, NonNegative, Number, Ratio, Seed, parameters};
use crate::partition::{Need, Of, Outcome, Partitioner, Prepared, Shape, Value};

parameters! {
    /// Partition the vertices, or the edge records, with SIGMA: even in vertices and edges at once.
    ///
    /// Clusters the vertices by modularity, maps the clusters to parts, preassigns what they agree on, and
    /// streams the rest to the parts with the best scores. Builds an adjacency of 8 bytes per edge, which
    /// spills to a temporary file when memory is short and which ``graph`` keeps for later calls. Beside it,
    /// takes 24 bytes per vertex. With ``objective="multi"`` and k > 128, takes 8 bytes and k bits per vertex
    /// instead.
    ///
    /// Warns
    /// -----
    /// CapacityWarning
    ///     The cap on volume could not be kept. It is raised to what was reached, at most
    ///     ``ceil(V / k) + max(degree + 1)``. Where that is out of reach, all vertices are dealt by
    ///     descending degree.
    ///
    /// Notes
    /// -----
    /// Source: SIGMA, section 3. A vertex is present in a part if it or a neighbour is a member. So it is
    /// present wherever a neighbour is placed, and the replicas that "multi" counts are its neighbours that
    /// would be new to the part. Each parallel edge counts. Ties go to the lowest part. Isolated vertices
    /// come last, to the parts with the fewest vertices.
    ///
    /// The repair first moves vertices out of parts above a cap, beginning with those that cut the fewest
    /// edges. Then it exchanges vertices for others of lower degree.
    ///
    /// With ``of="edges"``, a record whose ends prefer the same part (that of their cluster) goes there, up
    /// to the cap. The others follow in their ``bands``, each to the open part p with the largest
    /// ``g(u) + g(v) + balance_weight * (b_records / 2 + b_replicas / 2)``. Here
    /// ``g(u) = 2 - d(u) / (d(u) + d(v))`` if u is in p already, else 0, and ``b = (max - load) / max``. A
    /// part is open below a limit. It rises from 0.9 of the cap (or the largest load so far, if that is more)
    /// with the square root of the fraction that is placed. Loops come last, each to the least loaded part
    /// that holds its vertex. The result takes 1 byte per record for k <= 255, 2 for k <= 32,767, else 4.
    /// Beside it, a vertex takes k bits (in words of 64) and 8 bytes, or 20 bytes while clustering. A record
    /// that is not preassigned takes 16 bytes in a temporary file.
    ///
    /// There is no ``balance_on``, because vertices and volume are bounded already and a third bound could
    /// not be promised. :func:`spring` has it.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
    /// >>> part = fp.sigma(two_triangles, k=2)
    /// >>> part.assignment
    /// array([0, 0, 0, 1, 1, 1], dtype=int32)
    /// >>> part.volume_loads, part.volume_cap
    /// (array([9, 9]), 10)
    pub struct Sigma => "sigma", [Vertices, Edges] of;
    /// "cut" scores parts by cut edges, "multi" also by replicas of vertices.
    objective: Objective, only Vertices;
    /// A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices (default 1.03). With
    /// ``of="edges"``, no part gets more than ``ceil(balance * m / k)`` records (default 1.10).
    balance: Option<Ratio>;
    /// A ratio >= 1. The volume of a part is the sum of degree + 1 over its vertices. If V is that of all
    /// vertices, no part gets more than ``ceil(volume_balance * V / k)``.
    volume_balance: Ratio = 1.10, only Vertices;
    /// Weight of the replicas in the score of "multi", 0 or more.
    tau: NonNegative = 0.5, only Vertices;
    /// Above 1.1. The penalty of a part is its relative load to the power of ``gamma - 1.1``.
    gamma: Number = 2.5, only Vertices;
    /// ``lambda`` of the paper: weight of the balance of records and replicas in the score, >= 0.
    balance_weight: NonNegative = 1.0, only Edges;
    /// 1 to 64. The number of bands in which records that are not preassigned are streamed, by the lower
    /// degree of their ends, from a temporary file. 1 is the order of the file, as in the paper. 8 makes 2 to
    /// 20 % fewer replicas.
    bands: BandCount = 8, only Edges;
    /// Repair parts that the stream leaves above a cap. False is the paper's rule, which can exceed both
    /// caps.
    strict: Flag = true, only Vertices;
    /// Refine the partition at the end. A vertex partition is refined as by :func:`refine`, within both
    /// bounds. That needs 80 bytes per vertex beside the adjacency. An edge partition is refined as by
    /// :func:`edges_of`. That needs 4 bytes and 2 k bits per vertex.
    refine: Flag = false;
    /// Number of vertices that are decided against the same state. 1 is the paper's sequential rule. Default:
    /// 1 below 2**16 vertices or 2**18 records, else n / 1,024, at most 1,024. The number of threads never
    /// changes the result.
    batch: Option<Batch>, only Vertices;
    /// Has no effect. SIGMA makes no random choices.
    seed: Seed;
}

impl Sigma {
    /// SIGMA of records with these parameters.
    pub fn edges(&self) -> SigmaEdge {
        let Sigma { k, balance_weight: lambda, bands, .. } = *self;
        let (balance, passes) = (self.balance.unwrap_or(1.10), if self.refine { PASSES } else { 0 });
        SigmaEdge { k, balance, lambda, bands, passes }
    }
}

impl Partitioner for Sigma {
    type Parameters = Self;
    type Reads = Arc<Csr>;

    fn check(&self, shape: &Shape) -> Result<()> {
        if self.of == Of::Edges {
            return check_records(shape.m);
        }
        if self.gamma.is_finite() && self.gamma > 1.1 {
            return Ok(());
        }
        let what = format!("{}. Use more than 1.1, so that fuller parts have a larger penalty", self.gamma);
        Err(Error::parameter("gamma", what))
    }

    fn memory(&self, shape: &Shape, run: &Run) -> Need {
        match self.of {
            Of::Vertices => {
                let need = self.memory_of_vertices(shape.n, run.threads());
                self.refinement().map_or(need.clone(), |refine| Refine::memory(&refine, shape, run).or(need))
            }
            Of::Edges => self.edges().memory("sigma", shape, preference::BYTES_PER_VERTEX * shape.n, run),
        }
    }

    fn solve(&self, graph: &Prepared<Arc<Csr>>) -> Result<Outcome> {
        let (outcome, balance): (Outcome, f64) = match self.of {
            Of::Vertices => {
                let partition = self.partition_vertices(&graph.csr, graph.run)?;
                (refine::refined(partition, self.refinement(), graph)?.into(), self.vertex_balance())
            }
            Of::Edges => {
                let sigma = self.edges();
                let partition = sigma.partition(graph.edges(), &graph.csr, graph.out(), graph.run)?;
                (partition.into(), sigma.balance)
            }
        };
        Ok(Outcome { chosen: vec![("balance", Value::Number(balance))], ..outcome })
    }
}
