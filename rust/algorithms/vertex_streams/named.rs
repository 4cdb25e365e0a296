//! The four vertex streams by their names.

use std::sync::Arc;

use super::{Rule, VertexStream};
use crate::base::{Result, Run};
use crate::capacity::BalanceOn;
use crate::graph::Csr;
use crate::partition::parameters::{Batch, Passes, Ratio, Seed, Weighing, parameters};
use crate::partition::{Need, Outcome, Partitioner, Prepared, Shape};

/// A partitioner that is a [`VertexStream`] of this rule and balance, in one pass unless it has a parameter
/// for that.
macro_rules! named {
    (
        $(#[doc = $doc:literal])* $name:ident => $named:literal, $rule:expr, $balance:literal;
        $($(#[doc = $about:literal])* $passes:ident: $domain:ty = $default:literal;)?
    ) => {
        parameters! {
            $(#[doc = $doc])*
            pub struct $name => $named, [Vertices];
            /// A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
            balance: Ratio = $balance;
            /// A second cap, as in :func:`spring`: a vertex must fit under both. Takes 12 bytes more per
            /// vertex.
            balance_on: Option<Weighing>;
            /// A ratio >= 1, as in :func:`spring`: the cap on the weight of a part, relative to the mean.
            balance_on_ratio: Ratio = 1.05;
            $($(#[doc = $about])* $passes: $domain = $default;)?
            /// Number of vertices that are decided against the same state. 1 is the sequential rule of the
            /// paper. Default: 1 below 2**16 vertices, else 1,024. It changes the result slightly. The number
            /// of threads never does.
            batch: Option<Batch>;
            /// Has no effect. There is no random choice.
            seed: Seed;
        }

        impl $name {
            /// The stream.
            pub fn stream(&self) -> VertexStream {
                let one = VertexStream {
                    rule: $rule,
                    k: self.k,
                    balance: self.balance,
                    passes: 1,
                    batch: self.batch,
                    balance_on: BalanceOn::of(self.balance_on.as_ref(), self.balance_on_ratio),
                };
                VertexStream { $($passes: self.$passes,)? ..one }
            }
        }

        impl Partitioner for $name {
            type Parameters = Self;
            type Reads = Arc<Csr>;

            fn check(&self, shape: &Shape) -> Result<()> {
                self.stream().balance_on.map_or(Ok(()), |on| on.validate(shape.n))
            }

            fn memory(&self, shape: &Shape, run: &Run) -> Need {
                self.stream().memory(shape.n, run.threads())
            }

            fn solve(&self, graph: &Prepared<Arc<Csr>>) -> Result<Outcome> {
                Ok(self.stream().partition(&graph.csr, graph.run)?.into())
            }
        }
    };
}

named! {
    /// Partition the vertices with linear deterministic greedy (LDG).
    ///
    /// Vertices stream by in the order of their ids, each with all its neighbours, and go to the part with
    /// the largest ``e(v, p) * (1 - |p| / C)``. Here e(v, p) is the number of their neighbours in p, and C is
    /// the cap on vertices. Takes 4 bytes per vertex beside the adjacency.
    ///
    /// Notes
    /// -----
    /// Source: Stanton and Kliot, "Streaming Graph Partitioning for Large Distributed Graphs", KDD 2012. Ties
    /// go to the part with the fewest vertices, then the lowest number. Vertices without neighbours come
    /// last, each to the part with the fewest vertices.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    /// >>> fp.ldg(two_triangles, k=2).loads
    /// array([3, 3])
    Ldg => "ldg", Rule::Ldg, 1.03;
}

named! {
    /// Partition the vertices with Fennel.
    ///
    /// Vertices stream by in the order of their ids, each with all its neighbours, and go to the part with
    /// the largest ``e(v, p) - alpha * gamma * |p| ** (gamma - 1)``. Here e(v, p) is the number of their
    /// neighbours in p, ``gamma = 1.5`` and ``alpha = sqrt(k) * m / n ** 1.5``, where m counts edges without
    /// loops. Takes 4 bytes per vertex beside the adjacency.
    ///
    /// Notes
    /// -----
    /// Source: Tsourakakis et al., "FENNEL: Streaming Graph Partitioning for Massive Scale Graphs",
    /// WSDM 2014. Ties and vertices without neighbours are handled as in :func:`ldg`.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    /// >>> fp.fennel(two_triangles, k=2).loads
    /// array([3, 3])
    Fennel => "fennel", Rule::Fennel, 1.1;
}

named! {
    /// Partition the vertices with LDG in several passes.
    ///
    /// Works as :func:`ldg`. From the second pass on, the parts begin empty again, and a neighbour that this
    /// pass has not placed counts for the part that the pass before gave it.
    ///
    /// Notes
    /// -----
    /// Source: Nishimura and Ugander, "Restreaming Graph Partitioning: Simple Versatile Algorithms for
    /// Advanced Balancing", KDD 2013. The cap holds after every pass. The last pass is the result, even if an
    /// earlier one was better.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    /// >>> fp.reldg(two_triangles, k=2).loads
    /// array([3, 3])
    Reldg => "reldg", Rule::Ldg, 1.03;
    /// Number of passes over the vertices.
    passes: Passes = 10;
}

named! {
    /// Partition the vertices with Fennel in several passes.
    ///
    /// Works as :func:`fennel`. From the second pass on, the parts begin empty again, and a neighbour that
    /// this pass has not placed counts for the part that the pass before gave it.
    ///
    /// Notes
    /// -----
    /// Source: Nishimura and Ugander, "Restreaming Graph Partitioning: Simple Versatile Algorithms for
    /// Advanced Balancing", KDD 2013. In the paper alpha may grow from pass to pass. Here it is constant,
    /// which was as good on most of the graphs tried. The last pass is the result, even if an earlier one was
    /// better.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    /// >>> fp.refennel(two_triangles, k=2).loads
    /// array([3, 3])
    Refennel => "refennel", Rule::Fennel, 1.1;
    /// Number of passes over the vertices.
    passes: Passes = 10;
}
