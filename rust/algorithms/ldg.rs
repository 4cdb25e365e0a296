//! LDG, linear deterministic greedy, in one pass and in several.
//!
//! Requirements, memory, the algorithm and its sources are those of [`crate::algorithms::streams::vertices`].

use std::sync::Arc;

use super::streams::vertices::{VertexStream, named};
use crate::base::{Result, Run};
use crate::graph::Csr;
use crate::partition::parameters::Passes;
use crate::partition::{Need, Outcome, Partitioner, Prepared, Shape};

named! {
    /// Partition the vertices with linear deterministic greedy (LDG).
    ///
    /// Vertices stream by in the order of their ids, each with all its neighbours, and go to the part with
    /// the largest ``e(v, p) * (1 - |p| / C)``. Here e(v, p) is the number of their neighbours in p, and C is
    /// the cap on vertices. Takes 4 bytes per vertex beside the adjacency.
    ///
    /// Notes
    /// -----
    /// Source: Stanton and Kliot, "Streaming Graph Partitioning for Large Distributed Graphs", KDD 2012.
    /// Among equal parts the one with the fewest vertices is taken, then the lowest. Vertices without
    /// neighbours come last, each to the part with the fewest vertices.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    /// >>> fp.algorithms.ldg(two_triangles, k=2).loads
    /// array([3, 3])
    Ldg => "ldg", Ldg, 1.03;
}

named! {
    /// Partition the vertices with LDG in several passes.
    ///
    /// Works as :func:`~fastpart.algorithms.ldg`. From the second pass on, the parts begin empty again, and a
    /// neighbour that this pass has not placed counts for the part that the pass before gave it.
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
    /// >>> fp.algorithms.reldg(two_triangles, k=2).loads
    /// array([3, 3])
    Reldg => "reldg", Ldg, 1.03;
    /// Number of passes over the vertices.
    passes: Passes = 10;
}
