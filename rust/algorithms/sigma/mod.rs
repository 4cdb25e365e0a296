//! SIGMA: partitions of vertices or of records, balanced in both, from clusters and a stream.

pub mod edge;
pub mod preference;
pub mod vertex;

use self::edge::SigmaEdge;
use self::vertex::SigmaVertex;
use crate::algorithms::edge_streams::refining::PASSES;
use crate::algorithms::multilevel::refining;
use crate::base::{Result, Run};
use crate::partition::{Input, Of, Outcome, Partitioner, Shape, Value, Values, describe};

/// SIGMA of vertices or of edges.
#[derive(Debug, Clone)]
pub enum Sigma {
    /// Vertices get parts.
    Vertices(SigmaVertex),
    /// Records get parts.
    Edges(SigmaEdge),
}

describe! {
    /// Partition the vertices, or the edge records, with SIGMA: even in vertices and edges at once.
    ///
    /// Clusters the vertices by modularity, maps the clusters to parts, preassigns what they agree on, and streams the
    /// rest to the parts with the best scores. Builds an adjacency of 8 bytes per edge, which spills to a temporary
    /// file when memory is short and which ``graph`` keeps for later calls. Beside it, takes 24 bytes per vertex. With
    /// ``objective="multi"`` and k > 128, takes 8 bytes and k bits per vertex instead.
    ///
    /// Warns
    /// -----
    /// CapacityWarning
    ///     The cap on volume could not be kept. It is raised to what was reached, at most
    ///     ``ceil(V / k) + max(degree + 1)``. Where that is out of reach, all vertices are dealt by descending degree.
    ///
    /// Notes
    /// -----
    /// Source: SIGMA, section 3. A vertex is present in a part if it or a neighbour is a member. So it is present
    /// wherever a neighbour is placed, and the replicas that "multi" counts are its neighbours that would be new to the
    /// part. Each parallel edge counts. Ties go to the lowest part. Isolated vertices come last, to the parts with the
    /// fewest vertices.
    ///
    /// The repair first moves vertices out of parts above a cap, beginning with those that cut the fewest edges. Then
    /// it exchanges vertices for others of lower degree.
    ///
    /// With ``of="edges"``, a record whose ends prefer the same part (that of their cluster) goes there, up to the cap.
    /// The others follow in their ``bands``, each to the open part p with the largest
    /// ``g(u) + g(v) + balance_weight * (b_records / 2 + b_replicas / 2)``. Here ``g(u) = 2 - d(u) / (d(u) + d(v))`` if
    /// u is in p already, else 0, and ``b = (max - load) / max``. A part is open below a limit. It rises from 0.9 of
    /// the cap (or the largest load so far, if that is more) with the square root of the fraction that is placed. Loops
    /// come last, each to the least loaded part that holds its vertex. The result takes 1 byte per record for k <= 255,
    /// 2 for k <= 32,767, else 4. Beside it, a vertex takes k bits (in words of 64) and 8 bytes, or 20 bytes while
    /// clustering. A record that is not preassigned takes 16 bytes in a temporary file.
    ///
    /// There is no ``balance_on``, because vertices and volume are bounded already and a third bound could not be
    /// promised. :func:`spring` has it.
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
    Sigma => "sigma", &[Of::Vertices, Of::Edges];
    /// What the score counts. "cut": cut edges. "multi": also replicas of vertices.
    objective: only(Of::Vertices, choice(&["multi", "cut"]));
    /// A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices (default 1.03). With
    /// ``of="edges"``, no part gets more than ``ceil(balance * m / k)`` records (default 1.10).
    balance: optional_ratio();
    /// A ratio >= 1. The volume of a part is the sum of degree + 1 over its vertices. If V is that of all
    /// vertices, no part gets more than ``ceil(volume_balance * V / k)``.
    volume_balance: only(Of::Vertices, ratio(1.10));
    /// Weight of the replicas in the score of "multi", 0 or more.
    tau: only(Of::Vertices, number(0.5));
    /// Above 1.1. The penalty of a part is its relative load to the power of ``gamma - 1.1``.
    gamma: only(Of::Vertices, number(2.5));
    /// ``lambda`` of the paper: weight of the balance of records and replicas in the score, >= 0.
    balance_weight: only(Of::Edges, number(1.0));
    /// 1 to 64. Records that are not preassigned are streamed in so many bands, by the lower degree of their ends, from
    /// a temporary file. 1 is the order of the file, as in the paper. 8 makes 2 to 20 % fewer replicas.
    bands: only(Of::Edges, integer(8, 1, 64));
    /// Repair parts that the stream leaves above a cap. False is the paper's rule, which can exceed both caps.
    strict: only(Of::Vertices, flag(true));
    /// Refine the partition at the end. Of vertices, as :func:`refine` does, within both bounds. That needs 80 bytes per
    /// vertex beside the adjacency. Of records, as :func:`edges_of` does. That needs 4 bytes and 2 k bits per vertex.
    refine: flag(false);
    /// Number of vertices that are decided against the same state. 1 is the paper's sequential rule. Default: 1 below
    /// 2**16 vertices or 2**18 records, else n / 1,024, at most 1,024. The number of threads never changes the result.
    batch: only(Of::Vertices, batch());
    /// Has no effect. SIGMA makes no random choices.
    seed: seed();
}

impl Partitioner for Sigma {
    fn new(values: &mut Values) -> Result<Self> {
        if values.of == Some(Of::Edges) {
            let (k, lambda, bands) = (values.k, values.number("balance_weight"), values.small("bands"));
            let balance = values.ratio("balance").unwrap_or(SigmaEdge::new(k).balance);
            let passes = if values.flag("refine") { PASSES } else { 0 };
            return Ok(Sigma::Edges(SigmaEdge { k, balance, lambda, bands, passes }));
        }
        Ok(Sigma::Vertices(SigmaVertex::of_values(values)))
    }

    fn memory(&self, shape: &Shape, threads: usize) -> u64 {
        match self {
            Sigma::Vertices(sigma) => sigma
                .goal()
                .map_or(0, |goal| refining::memory(&goal, shape))
                .max(sigma.needed(shape.n, threads)),
            Sigma::Edges(sigma) => sigma.needed(shape.n, shape.m, None),
        }
    }

    fn solve(&self, input: &dyn Input, run: &Run) -> Result<Outcome> {
        let (outcome, balance): (Outcome, f64) = match self {
            Sigma::Vertices(sigma) => {
                sigma.validate()?;
                let make = || sigma.partition(&*input.adjacency(run)?, run);
                (refining::refined(sigma.goal(), input, run, make)?.into(), sigma.balance)
            }
            Sigma::Edges(sigma) => {
                sigma.validate()?;
                let csr = input.adjacency(run)?;
                (sigma.partition(input.edges(), &csr, input.out(), run)?.into(), sigma.balance)
            }
        };
        Ok(Outcome { chosen: vec![("balance", Value::Number(balance))], ..outcome })
    }
}
