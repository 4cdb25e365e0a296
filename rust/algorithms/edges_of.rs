//! Edge partitions made of vertex partitions.
//!
//! **Requirements.** Any graph, as a stream, and a part for each vertex. Parts of even volume, the sum of
//! degrees + 1, make the fewest replicas: records within a part then fit there.
//!
//! **Memory.** For the parts given and the degrees 8 bytes per vertex, k bits for the parts that a vertex is
//! present in, 40 bytes per part, up to 9 MB of buffers, and the result. While records move, 4 bytes and 2 k
//! bits per vertex. Bits come in words of 64.
//!
//! **Disk.** With two bands or more, 16 bytes per record whose ends have different parts, in a temporary
//! file.
//!
//! **Algorithm.** SIGMA's edge partition ([`SigmaEdge::place`]), which begins with the given parts instead of
//! the parts that its clusters prefer:
//! 1. A record whose ends have the same part goes there, up to the cap of `ceil(balance * m / k)` records.
//! 2. The others follow, those of low degree first, each to the part with the best score of replicas and
//!    loads.
//! 3. Passes move records to where they make fewer replicas ([`refining`](super::streams::edges::refining)).
//!
//! **Parallelism.** SIGMA and the refinement run in parallel. The result is the same for any number of
//! threads.
//!
//! **Complexity.** Three passes over the records, and two for each pass of the refinement.
//!
//! **Figures.** From multilevel partitions under a volume bound of 1.10, the replication factor is 1.21 /
//! 1.34 / 1.69 in the geometric mean over 17 real graphs (4, 8, 32 parts), and 1.22 / 1.36 / 1.72 if vertices
//! are also bounded by 1.03. HEP has 1.22 / 1.35 / 1.70, SIGMA 1.33 / 1.53 / 1.95. The largest part has 1.26
//! / 1.33 / 1.44 and 1.10 / 1.14 / 1.23 of the mean of replicas; HEP's 1.31 / 1.43 / 1.58.
//!
//! **Source.** The score is SIGMA's, section 3.3.

use super::sigma::edge::{BandCount, SigmaEdge};
use super::streams::edges::refining::PASSES;
use crate::base::{Result, Run};
use crate::exec::shuffle::check_records;
use crate::graph::{Degrees, degrees};
use crate::partition::parameters::{NonNegative, Ratio, Seed, Start, Whole, parameters};
use crate::partition::{Need, Outcome, Parameters, Partitioner, Prepared, Shape, validate_start};

parameters! {
    /// Partition the edge records by any partition of the vertices.
    ///
    /// A record within a part goes there, and one between parts to where it makes the fewest replicas, under
    /// a cap on records. Then records move between the parts in passes, as long as that removes replicas.
    /// Given the parts of :func:`multilevel`, the result usually has the lowest replication factor of all
    /// edge partitions here. The adjacency is not needed, and the records are streamed from their file.
    ///
    /// Takes k bits (in words of 64) and 8 bytes per vertex, 2 k bits and 4 bytes while records move, and the
    /// result: 1 byte per record for k <= 255, 2 for k <= 32,767, else 4. A record between parts takes 16
    /// bytes in a temporary file.
    ///
    /// The records of a part are balanced best if the volumes of the vertex partition are:
    /// ``multilevel(graph, k, volume_balance=1.05)``. A bound as that on the records lets all records within
    /// a part stay there. With ``balance=k`` beside it, numbers of vertices are not bounded. Then there are 1
    /// to 2 % fewer replicas, and they are spread less evenly.
    ///
    /// See Also
    /// --------
    /// hep, sigma : Edge partitions without a partition of the vertices.
    /// home_parts : The way back: a part for each vertex of an edge partition.
    ///
    /// Notes
    /// -----
    /// Source: the score is that of SIGMA, section 3.3. The refinement moves a record only to parts that hold
    /// both of its ends already. So no part ever gets more replicas by it. Loops come last, each to the least
    /// loaded part that holds its vertex, and move as all others.
    ///
    /// ``parameters`` of the result hold ``origin``, the algorithm and the parameters of the vertex
    /// partition.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    /// >>> vertices = fp.multilevel(two_triangles, k=2)
    /// >>> p = fp.edges_of(two_triangles, vertices, balance=1.2)
    /// >>> p.loads, round(p.rf, 3)
    /// (array([4, 3]), 1.167)
    pub struct EdgesOf => "edges_of", [Edges];
    /// The partition of the vertices: a vertex partition, a path that :func:`open_partition` accepts, or the
    /// part of each vertex.
    partition: Start;
    /// A ratio >= 1: no part gets more than ``ceil(balance * m / k)`` records.
    balance: Ratio = 1.05;
    /// Weight of the balance of records and replicas in the score, >= 0.
    balance_weight: NonNegative = 1.0;
    /// 1 to 64. The number of bands in which records between parts are streamed, by the lower degree of their
    /// ends. 1 is the order of the file.
    bands: BandCount = 8;
    /// Most passes of the refinement. They end earlier after one that removes less than 0.1 % of the
    /// replicas.
    passes: Whole<0, { 1 << 20 }> = PASSES;
    /// Has no effect. Nothing here is random.
    seed: Seed;
}

impl EdgesOf {
    /// The stream of the records between parts.
    fn stream(&self) -> SigmaEdge {
        let EdgesOf { k, balance, balance_weight: lambda, bands, passes, .. } = *self;
        SigmaEdge { k, balance, lambda, bands, passes }
    }
}

impl Partitioner for EdgesOf {
    type Parameters = Self;
    type Reads = ();

    fn check(&self, shape: &Shape) -> Result<()> {
        check_records(shape.m)?;
        validate_start(&self.partition, self.k, shape.n)
    }

    fn memory(&self, shape: &Shape, run: &Run) -> Need {
        // The parts given, and the degrees while they are counted.
        let counting = 4 * shape.n + degrees::needed(shape.n, run.threads());
        self.stream().memory(Self::NAME, shape, counting, run)
    }

    fn solve(&self, graph: &Prepared<()>) -> Result<Outcome> {
        let (edges, run) = (graph.edges(), graph.run);
        let Degrees { degree, graph: identity } = degrees::scan(edges, run)?;
        Ok(self.stream().place(edges, &self.partition, degree, identity, graph.out(), run)?.into())
    }
}
