//! 2PS: an edge partition from clusters of the vertices.
//!
//! **Requirements.** Any graph. The order of the stream matters. A sorted file is fine.
//!
//! **Memory.** 40 bytes per vertex while the clusters get their parts, or 16 and the parts of each vertex as
//! bits (`8 * ceil(k / 64)` bytes) if that is more, up to 9 MB of buffers, and the result.
//!
//! **Algorithm.**
//! 1. *Degrees*: one pass.
//! 2. *Clusters* ([`BoundedClustering`]) of volume at most `vol(V) / k`: one pass. In descending volume
//!    (ties: the lower id) each goes to the part with the least volume (ties: the lowest).
//! 3. *Pre-partitioning*: a record whose ends have clusters in the same part goes to that part. A part takes
//!    the first `cap = ceil(balance * m / k)` of these records.
//! 4. *Streaming* over the other records, in order. `Linear` (2PS-L) considers only the two parts of the
//!    clusters of the ends. The larger of `g_u + g_v + s_u + s_v` wins: `g_u = 2 - d(u) / (d(u) + d(v))` if
//!    `u` is in the part, and `s_u = vol(C_u) / (vol(C_u) + vol(C_v))` if it is that of u's cluster, each
//!    else 0. Full parts do not count. If both are full, the hash of the end of higher degree chooses the
//!    part (ties: the lower id). If that is also full, the part with the fewest records is taken. `Hdrf`
//!    (2PS-HDRF) takes the largest `g_u + g_v + (Lmax - L_p) / Lmax` of all parts below the cap. Ties: the
//!    lowest part.
//! 5. *Loops* last ([`loops`]).
//!
//! The published program differs in two details. It hashes as soon as one of the two parts is full, which
//! costs up to a tenth of the replication factor. It places the records that exceed a cap in step 3 at once.
//!
//! **Parallelism.** Step 2 in batches. Step 3 record by record. In step 4 the threads gather what records
//! need from their vertices, while one thread places the records gathered before. This is exact: the result
//! depends on no batch.
//!
//! **Complexity.** O(n log n + m), with `Hdrf` O(m · parts of a vertex): its largest score is that of a part
//! which holds an end, or of the least-loaded part.
//!
//! **Source.** Mayer, Orujzade, Jacobsen, "Out-of-Core Edge Partitioning at Linear Run-Time", ICDE 2022.
//! 2PS-HDRF: section V of the same.

mod prepartition;
mod scoring;
mod streaming;

use super::streams::edges::loads::Balance;
use super::streams::edges::partition::stream_open;
use super::streams::edges::{EdgeStreamer, loops};
use crate::base::{Buffer, Result, Run};
use crate::capacity::{cap, schedule};
use crate::clustering::bounded::BoundedClustering;
use crate::exec::for_each;
use crate::graph::{Degrees, degrees};
use crate::partition::parameters::{Batch, Ratio, Seed, parameters, words};
use crate::partition::{EdgePartition, EdgeParts, Need, Outcome, Partitioner, Prepared, Shape};
use crate::sets::Incidence;
use scoring::State;

words! {
    /// How the parts of records are scored that no cluster decides.
    pub enum Scoring {
        /// Two parts, by degrees, replicas and volumes: 2PS-L.
        Linear = "linear",
        /// All parts, by degrees, replicas and loads: 2PS-HDRF.
        Hdrf = "hdrf",
    }
}

/// The state of a vertex in the second phase, in a quarter of a cache line.
#[derive(Debug, Clone, Copy, bytemuck::Zeroable)]
#[repr(C, align(16))]
struct Vertex {
    degree: u32,
    /// Part of its cluster.
    part: u32,
    /// Volume of its cluster.
    volume: u64,
}

/// Gives each cluster a part, and each vertex the part and volume of its cluster.
fn place(clusters: BoundedClustering, k: u32, run: &Run) -> Result<Buffer<Vertex>> {
    let BoundedClustering { members, volumes, count, .. } = clusters;
    run.begin("clusters to parts", u64::from(count) + members.len() as u64);
    let parts = schedule(&volumes[..count as usize], k, run)?;
    run.advance(u64::from(count))?;
    let mut vertices: Buffer<Vertex> = Buffer::zeroed(members.len(), "vertices")?;
    for_each(&mut vertices, run, |v, vertex| {
        let member = &members[v];
        // A vertex without records has no cluster, and no record uses its part.
        if let Some(&part) = parts.get(member.cluster as usize) {
            *vertex = Vertex { degree: member.degree, part, volume: volumes[member.cluster as usize] };
        }
    })?;
    Ok(vertices)
}

parameters! {
    /// Partition the edge records by the clusters of their ends (2PS-L, 2PS-HDRF).
    ///
    /// Clusters the vertices in one pass over the stream, deals the clusters to the parts, gives the records
    /// within a part to it, and scores the others. Takes 40 bytes per vertex, or 16 and ``8 * ceil(k / 64)``
    /// if that is more, up to 9 MB of buffers, and the result.
    ///
    /// Notes
    /// -----
    /// Source: Mayer, Orujzade, Jacobsen, "Out-of-Core Edge Partitioning at Linear Run-Time", ICDE 2022.
    /// Degrees are exact. Clusters have a volume of at most ``vol(V) / k`` unless a single vertex has more.
    /// With ``g_u = 2 - d(u) / (d(u) + d(v))`` where u is in the part already, else 0, and
    /// ``s_u = vol(C_u) / (vol(C_u) + vol(C_v))`` in the part of u's cluster, else 0:
    ///
    /// - "linear" takes the part with the larger ``g_u + g_v + s_u + s_v`` of two parts. If one is full, it
    ///   takes the other. (The published program hashes then, which makes more replicas.) If both are full,
    ///   it takes ``splitmix64(w ^ seed) % k`` of the end w of higher degree (of equal ones, the lower id).
    ///   If that is also full, it takes the part with the fewest records.
    /// - "hdrf" takes the part with the largest ``g_u + g_v + (Lmax - L) / Lmax`` of all parts below the cap.
    ///
    /// Ties go to the lowest part. Records within a part that is full are placed with the others. Loops are
    /// placed after all other records, each in the least loaded part that holds its vertex.
    ///
    /// Examples
    /// --------
    /// >>> import numpy as np, fastpart as fp
    /// >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
    /// >>> fp.algorithms.two_phase(two_triangles, k=2, balance=1.1).assignment
    /// array([0, 0, 0, 1, 1, 1, 0], dtype=uint8)
    pub struct TwoPhase => "two_phase", [Edges];
    /// How a record between two parts is placed. "linear" (2PS-L) scores the parts of its ends' clusters, in
    /// a time that does not grow with k. "hdrf" (2PS-HDRF) scores all parts and makes fewer replicas.
    scoring: Scoring;
    /// A ratio >= 1: no part gets more than ``ceil(balance * m / k)`` records.
    balance: Ratio = 1.05;
    /// Seed of the hash that places records whose two parts are full.
    seed: Seed;
    /// Number of records that are clustered against the same state. 1 is the rule as published. Default: 1
    /// below 2**18 records, else 1,024 growing to 65,536. It changes the result slightly. The number of
    /// threads never does.
    batch: Option<Batch>;
}

impl Partitioner for TwoPhase {
    type Parameters = Self;
    type Reads = ();
    const VARIANTS: &'static [(&'static str, &'static str)] = &[("scoring", "hdrf")];

    fn memory(&self, &Shape { n, m, in_file, .. }: &Shape, run: &Run) -> Need {
        let (k, threads) = (u64::from(self.k), run.threads());
        let clusters = (40 * n).max(16 * n + Incidence::memory(n, self.k)) + 40 * k;
        let buffers = streaming::memory(m) + 8 * k * threads as u64;
        Need::new(
            (clusters + buffers + EdgeParts::memory(m, self.k, in_file)).max(degrees::needed(n, threads)),
            format!("two_phase on {n} vertices and {m} records (write the parts to a file with out=)"),
        )
    }

    fn solve(&self, graph: &Prepared<()>) -> Result<Outcome> {
        let (edges, run, k) = (graph.edges(), graph.run, self.k);
        let Degrees { degree, graph: identity } = degrees::scan(edges, run)?;
        let m = identity.m;
        let bound = 2 * (m - identity.loops) / u64::from(k);
        let clusters = BoundedClustering::of(edges, degree, bound, self.batch, run)?;
        let vertices = place(clusters, k, run)?;
        let mut parts = EdgeParts::new(m, k, graph.out())?;
        let cap = cap(self.balance, m, k);
        let (loads, holds) = prepartition::agreeing(edges, &vertices, &mut parts, k, cap, run)?;
        let (holds, loads) = match self.scoring {
            Scoring::Linear => {
                let mut state = State::new(holds, loads, cap, self.seed);
                streaming::stream(edges, &vertices, &mut parts, &mut state, run)?;
                (state.holds, state.parts.into_loads())
            }
            Scoring::Hdrf => {
                let streamer = EdgeStreamer::resume((holds, &loads), cap, Balance::RecordsOfMost)?;
                let known = (&vertices[..], |vertex: &Vertex| vertex.degree);
                stream_open(edges, known, streamer, cap, &mut parts, run)?
            }
        };
        let partition = EdgePartition { parts, k, loads, cap: Some(cap), graph: identity };
        Ok(loops::place(edges, partition, Some(holds), run)?.into())
    }
}
