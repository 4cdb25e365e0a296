//! SIGMA: partitions of vertices or of records, balanced in both, from clusters and a stream.

pub mod edge;
pub mod preference;
pub mod vertex;

use self::edge::SigmaEdge;
use self::vertex::{Objective, SigmaVertex};
use crate::base::error::Result;
use crate::base::run::Run;
use crate::partition::Of;
use crate::partition::contract::{Input, Outcome, Partitioner, Shape, describe};
use crate::partition::parameters::Value;
use crate::partition::parameters::Values;

/// SIGMA in either mode.
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
    /// rest to the parts of the best scores. Needs the neighbours of all vertices: 8 bytes per edge, in memory, or in a
    /// temporary file where the budget is too small; kept by ``graph`` for further calls. Beside them, 24 bytes per vertex;
    /// with ``objective="multi"`` and k > 128, 8 and one bit per part.
    ///
    /// Warns
    /// -----
    /// CapacityWarning
    ///     The cap on volume could not be kept. It is raised to what was reached, at most
    ///     ``ceil(V / k) + max(degree + 1)``; where that was out of reach, all vertices are dealt by descending degree.
    ///
    /// Notes
    /// -----
    /// Source: SIGMA, section 3. A vertex is present in a part if it or a neighbour is a member. So it is present wherever
    /// a neighbour is placed, and the replicas that "multi" counts are its neighbours that would be new to the part.
    /// Parallel edges count as often as there are. Ties go to the lowest part. Isolated vertices come last, to the parts
    /// with the fewest vertices.
    ///
    /// The repair moves vertices out of parts above a cap, those first that cut the fewest edges; then it exchanges
    /// vertices for others of lower degree.
    ///
    /// With ``of="edges"``, a record whose ends prefer the same part (that of their cluster) goes there, up to the cap. The others
    /// follow in their ``bands``, each to the open part p of the largest
    /// ``g(u) + g(v) + balance_weight * (b_records / 2 + b_replicas / 2)``:
    /// ``g(u) = 2 - d(u) / (d(u) + d(v))`` if u is in p already, else 0; ``b = (max - load) / max``. A part is open below
    /// a limit that rises with the fraction t of them that is placed, from 0.9 of the cap (or the largest load so far,
    /// if that is more) as the square root of t. Loops come last, each to the least loaded part that holds its
    /// vertex. The result takes 1 byte per record for k <= 255, 2 for k <= 32,767, else 4; beside it k bits (in words of
    /// 64) and 8 bytes per vertex, or 20 bytes while clustering.
    ///
    /// ``balance_on`` is not among the parameters: with vertices and volume bounded already, a third bound could not be
    /// promised. :func:`spring` takes it.
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
    /// What a part is chosen for. "cut": few cut edges. "multi": also few replicas of vertices.
    objective: only(Of::Vertices, choice(&["multi", "cut"]));
    /// A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices (default 1.03), of edges more than
    /// ``ceil(balance * m / k)`` records (default 1.10).
    balance: optional_ratio();
    /// A ratio >= 1. The volume of a part is the sum of degree + 1 over its vertices; with V that of all
    /// vertices, no part gets more than ``ceil(volume_balance * V / k)``.
    volume_balance: only(Of::Vertices, ratio(1.10));
    /// With "multi", weight of the replicas, 0 or more.
    tau: only(Of::Vertices, number(0.5));
    /// A part's penalty is its relative load to the power of ``gamma - 1.1``; above 1.1.
    gamma: only(Of::Vertices, number(2.5));
    /// ``lambda`` of the paper: weight of the balance of records and replicas in the score, >= 0.
    balance_weight: only(Of::Edges, number(1.0));
    /// Records that no cluster places are streamed in so many bands of ascending lower degree, 1 to 64, each
    /// a pass. 1 is the order of the file, as in the paper; 8 make 2 to 20 % fewer replicas.
    bands: only(Of::Edges, integer(8, 1, 64));
    /// Repair what the stream leaves above a cap. False is the paper's rule, which can exceed both caps.
    strict: only(Of::Vertices, flag(true));
    /// Vertices decided against one frozen state; 1 is the paper's sequential rule. By default 1 below
    /// 2**16 vertices or 2**18 records, else n / 1,024, at most 1,024. The number of threads never changes the result.
    batch: only(Of::Vertices, batch());
    /// For uniformity with the other partitioners; SIGMA has no random choice.
    seed: seed();
}

impl Partitioner for Sigma {
    fn new(values: &mut Values) -> Result<Self> {
        let (k, balance) = (values.k, values.ratio("balance"));
        if values.of == Some(Of::Edges) {
            let (lambda, bands) = (values.number("balance_weight"), values.small("bands"));
            let balance = balance.unwrap_or(SigmaEdge::new(k).balance);
            return Ok(Sigma::Edges(SigmaEdge { k, balance, lambda, bands }));
        }
        Ok(Sigma::Vertices(SigmaVertex {
            k,
            balance: balance.unwrap_or(SigmaVertex::new(k).balance),
            volume_balance: values.number("volume_balance"),
            objective: if values.is("objective", "cut") { Objective::Cut } else { Objective::Multi },
            tau: values.number("tau"),
            gamma: values.number("gamma"),
            batch: values.integer("batch"),
            repair: values.flag("strict"),
        }))
    }

    fn memory(&self, shape: &Shape, threads: usize) -> u64 {
        match self {
            Sigma::Vertices(sigma) => sigma.needed(shape.n, threads),
            Sigma::Edges(sigma) => sigma.needed(shape.n, shape.m, None),
        }
    }

    fn solve(&self, input: &dyn Input, run: &Run) -> Result<Outcome> {
        let (outcome, balance): (Outcome, f64) = match self {
            Sigma::Vertices(sigma) => {
                sigma.validate()?;
                (sigma.partition(&*input.adjacency(run)?, run)?.into(), sigma.balance)
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
