//! Fennel, in one pass and in several.
//!
//! Requirements, memory, the algorithm and its sources are those of [`crate::algorithms::streams::vertices`].

use std::sync::Arc;

use super::streams::vertices::{VertexStream, named};
use crate::base::{Result, Run};
use crate::graph::Csr;
use crate::partition::parameters::Passes;
use crate::partition::{Need, Outcome, Partitioner, Prepared, Shape};

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
    /// WSDM 2014. Ties and vertices without neighbours are handled as in :func:`~fastpart.algorithms.ldg`.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    /// >>> fp.algorithms.fennel(two_triangles, k=2).loads
    /// array([3, 3])
    Fennel => "fennel", Fennel, 1.1;
}

named! {
    /// Partition the vertices with Fennel in several passes.
    ///
    /// Works as :func:`~fastpart.algorithms.fennel`. From the second pass on, the parts begin empty again,
    /// and a neighbour that this pass has not placed counts for the part that the pass before gave it.
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
    /// >>> fp.algorithms.refennel(two_triangles, k=2).loads
    /// array([3, 3])
    Refennel => "refennel", Fennel, 1.1;
    /// Number of passes over the vertices.
    passes: Passes = 10;
}
