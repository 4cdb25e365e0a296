//! Hollocou's clustering of a stream of edges, which looks at each record once, in stream order.
//!
//! **Requirements.** The degrees. The records in any order.
//!
//! **Memory.** 25 bytes per vertex and buffers of a few MB. 32 bytes per vertex if it is turned into
//! [`Clusters`].
//!
//! **Algorithm.** A vertex gets its own cluster when it first appears. Cluster ids count these events. If the
//! ends of a record are in two clusters, both of a volume of at most `max_volume`, the end in the cluster of
//! smaller volume (tie: the first) moves to the other cluster. A cluster whose volume exceeds the bound is
//! *closed*: nothing joins or leaves it again. So the volume test of the filter is one bit per cluster, which
//! the cache holds, instead of 8 bytes. (A cluster exceeds the bound by at most the volume of its last
//! vertex.) The pass also finds the richest neighbour of each vertex, the one of largest degree, which SPRING
//! uses.
//!
//! **Parallelism.** Batches of records are filtered in parallel against a frozen state. Records that may move
//! something are committed in stream order. Batch bounds depend on the number of records only.
//!
//! **Complexity.** O(m) time per pass.
//!
//! **Source.** Hollocou, Maudet, Bonald, Lelarge, "A Streaming Algorithm for Graph Clustering", 2017.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Clusters;
use crate::base::{Buffer, Result, Run, ahead, prefetch, prefetch_ends};
use crate::edges::{EdgeStream, Record};
use crate::exec::{Follower, follow, for_each};
use crate::sets::Bits;

/// Bytes per vertex at the peak, result and degrees included.
pub(crate) const BYTES_PER_VERTEX: u64 = 32;
/// Buffers that do not depend on the graph.
const FIXED_BYTES: u64 = 8 << 20;

/// The state of a vertex that a record reads, in a quarter of a cache line.
#[derive(Debug, bytemuck::Zeroable)]
#[repr(C, align(16))]
pub(crate) struct Vertex {
    pub(crate) degree: u32,
    /// Cluster id, or the number of vertices while it has none.
    pub(crate) cluster: u32,
    /// Richest neighbour as [`richness`]. 0 while there is none. Atomic, since the filter's threads raise it:
    /// a maximum does not depend on the order.
    richest: AtomicU64,
}

impl Vertex {
    /// Richness of the richest neighbour seen.
    pub(crate) fn richest(&self) -> u64 {
        self.richest.load(Relaxed)
    }

    #[inline(always)]
    fn meet(&self, neighbour: u64) {
        // Most meetings change nothing. Only the others pay for a locked instruction.
        if self.richest() < neighbour {
            self.richest.fetch_max(neighbour, Relaxed);
        }
    }
}

/// Orders neighbours by degree, then by descending id, so that the larger value is the richer neighbour.
fn richness(degree: u32, id: u32) -> u64 {
    u64::from(degree) << 32 | u64::from(!id)
}

/// The degree in a [`richness`].
pub(crate) fn degree_of(richness: u64) -> u32 {
    (richness >> 32) as u32
}

/// The vertex in a [`richness`].
pub(crate) fn vertex_of(richness: u64) -> u32 {
    !(richness as u32)
}

/// Clusters of the vertices, and each vertex's richest neighbour.
#[derive(Debug)]
pub struct Clustering {
    pub(crate) vertices: Buffer<Vertex>,
    volume: Buffer<u64>,
    /// One bit per cluster, and one for "no cluster".
    closed: Bits,
    /// Clusters made so far.
    pub(crate) count: u32,
    max_volume: u64,
}

/// Parameters of Hollocou's clustering.
#[derive(Debug, Clone)]
pub struct Hollocou {
    /// Clusters of a larger volume change no more.
    pub max_volume: u64,
    /// Rounds over the records.
    pub passes: u32,
    /// Records decided against one frozen state. `None` chooses by the number of records, 1 is the sequential
    /// rule.
    pub batch: Option<NonZeroU64>,
}

impl Hollocou {
    /// One pass with this bound on volumes.
    pub fn new(max_volume: u64) -> Self {
        Self { max_volume, passes: 1, batch: None }
    }

    /// The default bound on volumes: 1/32 of all volume, in small graphs 1/sqrt(n) of it.
    pub fn usual_volume(n: u64, edges: u64) -> u64 {
        (2.0 * edges as f64 / (n as f64).sqrt().clamp(1.0, 32.0)) as u64
    }

    /// Bytes needed for `n` vertices, result and degrees included.
    pub fn memory(n: u64) -> u64 {
        n * BYTES_PER_VERTEX + FIXED_BYTES
    }

    /// Clusters `edges`, whose degrees are known. Each vertex without an edge becomes a cluster of its own.
    pub fn cluster(&self, edges: &dyn EdgeStream, degree: Buffer<u32>, run: &Run) -> Result<Clusters> {
        let n = degree.len();
        run.require(Self::memory(n as u64), format!("hollocou clustering of {n} vertices"))?;
        let Clustering { vertices, volume, .. } = self.follow(edges, degree, run)?;
        drop(volume);
        let mut cluster_of: Buffer<u32> = Buffer::zeroed(n, "clusters of vertices")?;
        // Ids of clusters count the vertices that appeared. The other vertices get the ids after them.
        let mut alone = n as u32;
        run.each(n, |v| {
            let own = vertices[v as usize].cluster;
            if own == n as u32 {
                alone -= 1;
            }
            cluster_of[v as usize] = if own == n as u32 { alone } else { own };
        })?;
        let spare = Buffer::zeroed(n, "numbers of clusters")?;
        Clusters::numbered(cluster_of, spare, |v| vertices[v as usize].degree, run)
    }

    /// The clustering, with the richest neighbours.
    pub fn follow(&self, edges: &dyn EdgeStream, degree: Buffer<u32>, run: &Run) -> Result<Clustering> {
        run.begin("clustering", degree.len() as u64 + edges.num_edges() * u64::from(self.passes));
        let mut clustering = Clustering::new(degree, self.max_volume, run)?;
        for _ in 0..self.passes {
            follow(&mut clustering, edges, self.batch, run)?;
        }
        Ok(clustering)
    }
}

impl Clustering {
    fn new(degree: Buffer<u32>, max_volume: u64, run: &Run) -> Result<Self> {
        let n = degree.len();
        let mut vertices: Buffer<Vertex> = Buffer::zeroed(n, "spring: vertices")?;
        for_each(&mut vertices, run, |v, vertex| {
            *vertex = Vertex { degree: degree[v], cluster: n as u32, richest: AtomicU64::new(0) };
        })?;
        drop(degree);
        Ok(Self {
            vertices,
            volume: Buffer::zeroed(n, "spring: volumes")?,
            closed: Bits::new(n as u64, "spring: closed clusters")?,
            count: 0,
            max_volume,
        })
    }

    /// The vertices and the number of clusters. The volumes are freed.
    pub(crate) fn into_vertices(self) -> (Buffer<Vertex>, u32) {
        (self.vertices, self.count)
    }

    /// Whether `record` would make a cluster, or move an end, in the current state.
    #[inline(always)]
    fn may_move(&self, [u, v]: Record) -> bool {
        let (a, b) = (self.vertices[u as usize].cluster, self.vertices[v as usize].cluster);
        let none = self.vertices.len() as u32;
        let open = !(self.closed.contains(a) | self.closed.contains(b));
        (u != v) & ((a == none) | (b == none) | ((a != b) & open))
    }

    /// Each end of the record may be the other's richest neighbour.
    #[inline(always)]
    fn meet(&self, [u, v]: Record) {
        if u != v {
            let (a, b) = (&self.vertices[u as usize], &self.vertices[v as usize]);
            a.meet(richness(b.degree, v));
            b.meet(richness(a.degree, u));
        }
    }

    #[inline(always)]
    fn commit_one(&mut self, [u, v]: Record) {
        if u == v {
            return;
        }
        let none = self.vertices.len() as u32;
        for id in [u, v] {
            let vertex = &mut self.vertices[id as usize];
            if vertex.cluster == none {
                vertex.cluster = self.count;
                self.count += 1;
                let (cluster, degree) = (vertex.cluster, vertex.degree);
                self.set_volume(cluster, u64::from(degree));
            }
        }
        let [(degree_u, a), (degree_v, b)] = [u, v].map(|id| {
            let vertex = &self.vertices[id as usize];
            (u64::from(vertex.degree), vertex.cluster)
        });
        let (volume_a, volume_b) = (self.volume[a as usize], self.volume[b as usize]);
        if a == b || volume_a > self.max_volume || volume_b > self.max_volume {
            return;
        }
        if volume_a <= volume_b {
            self.vertices[u as usize].cluster = b;
            self.volume[a as usize] = volume_a - degree_u;
            self.set_volume(b, volume_b + degree_u);
        } else {
            self.vertices[v as usize].cluster = a;
            self.volume[b as usize] = volume_b - degree_v;
            self.set_volume(a, volume_a + degree_v);
        }
    }

    #[inline(always)]
    fn set_volume(&mut self, cluster: u32, volume: u64) {
        self.volume[cluster as usize] = volume;
        if volume > self.max_volume {
            self.closed.insert(cluster);
        }
    }
}

impl Follower for Clustering {
    /// Lets the ends of each record meet, and keeps the records that may move something. Has no branches
    /// except the rare ones, since it cannot be predicted which records are kept.
    fn filter(&self, records: &[Record], survivors: &mut Vec<Record>) {
        survivors.resize(records.len(), [0; 2]);
        let mut kept = 0;
        for (index, &record) in records.iter().enumerate() {
            prefetch_ends(&self.vertices, records, index + ahead::RECORDS);
            self.meet(record);
            survivors[kept] = record;
            kept += usize::from(self.may_move(record));
        }
        survivors.truncate(kept);
    }

    fn commit(&mut self, records: &[Record]) {
        for (index, &record) in records.iter().enumerate() {
            prefetch_ends(&self.vertices, records, index + ahead::RECORDS);
            if let Some(&[u, v]) = records.get(index + ahead::RECORDS / 2) {
                prefetch(&self.volume, self.vertices[u as usize].cluster as usize);
                prefetch(&self.volume, self.vertices[v as usize].cluster as usize);
            }
            self.commit_one(record);
        }
    }

    fn follow(&mut self, records: &[Record]) {
        records.iter().for_each(|&record| self.meet(record));
        self.commit(records);
    }
}
