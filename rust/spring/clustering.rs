//! The clustering step: one look at each record, in stream order.
//!
//! A vertex gets its own cluster when it first appears; cluster ids count these events. A cluster whose volume passes
//! `tau` is *closed*: nothing joins or leaves it again, since both volumes of a move must be at most `tau`. So the
//! volume test of the filter is one bit per cluster, which the cache holds, instead of 8 bytes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use super::Spring;
use crate::buffer::Buffer;
use crate::edges::{BLOCK, EdgeStream, Record, pass::blocks};
use crate::error::Result;
use crate::prefetch::prefetch;
use crate::run::Run;

/// Fewer records than this are clustered by the sequential rule.
const SEQUENTIAL_BELOW: u64 = 1 << 18;
/// The first batch; batches double until [`LARGEST_BATCH`].
const FIRST_BATCH: u64 = 1 << 10;
const LARGEST_BATCH: u64 = 1 << 16;
/// Records that one thread filters at a time.
const SLICE: u64 = 1 << 13;
/// How many records ahead memory is asked for.
const AHEAD: usize = 24;

/// What a record needs to know of a vertex, in a quarter of a cache line.
#[derive(Debug, bytemuck::Zeroable)]
#[repr(C, align(16))]
pub(super) struct Vertex {
    pub(super) degree: u32,
    /// Cluster id; the number of vertices while it has none.
    pub(super) cluster: u32,
    /// Richest neighbour as [`richness`]; 0 while there is none. Atomic, since the filter's threads raise it: a
    /// maximum does not depend on the order.
    richest: AtomicU64,
}

impl Vertex {
    /// Richness of the richest neighbour seen.
    pub(super) fn richest(&self) -> u64 {
        self.richest.load(Relaxed)
    }

    #[inline(always)]
    fn meet(&self, neighbour: u64) {
        // Most meetings change nothing; only the others pay for a locked instruction.
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
pub(super) fn degree_of(richness: u64) -> u32 {
    (richness >> 32) as u32
}

/// The vertex in a [`richness`].
pub(super) fn vertex_of(richness: u64) -> u32 {
    !(richness as u32)
}

/// Clusters of the vertices, and each vertex's richest neighbour.
#[derive(Debug)]
pub struct Clustering {
    pub(super) vertices: Buffer<Vertex>,
    volume: Buffer<u64>,
    /// One bit per cluster, and one for "no cluster".
    closed: Buffer<u64>,
    /// Clusters made so far.
    pub(super) count: u32,
    tau: u64,
}

/// The largest batch that `batch` means for `m` records.
pub(super) fn largest_batch(batch: Option<u64>, m: u64) -> u64 {
    batch.unwrap_or(if m < SEQUENTIAL_BELOW { 1 } else { LARGEST_BATCH }).min(m)
}

impl Clustering {
    /// Clusters `edges`, whose degrees are known and sum to `volume`.
    pub fn of(
        edges: &dyn EdgeStream,
        degree: Buffer<u32>,
        volume: u64,
        spring: &Spring,
        run: &Run,
    ) -> Result<Self> {
        let mut clustering = Self::new(degree, (0.1 * volume as f64 / f64::from(spring.k)) as u64, run)?;
        run.begin("clustering", edges.num_edges() * u64::from(spring.passes));
        for _ in 0..spring.passes {
            edges.check_unchanged()?;
            if largest_batch(spring.batch, edges.num_edges()) <= 1 {
                clustering.sequential_pass(edges, run)?;
            } else {
                run.install(|| clustering.batched_pass(edges, spring.batch, run))?;
            }
            edges.check_unchanged()?;
        }
        Ok(clustering)
    }

    fn new(degree: Buffer<u32>, tau: u64, run: &Run) -> Result<Self> {
        let n = degree.len();
        let mut vertices: Buffer<Vertex> = Buffer::zeroed(n, "spring: vertices")?;
        run.install(|| {
            let chunks = vertices.par_chunks_mut(BLOCK as usize).zip(degree.par_chunks(BLOCK as usize));
            chunks.try_for_each(|(vertices, degrees)| {
                for (vertex, &degree) in vertices.iter_mut().zip(degrees) {
                    *vertex = Vertex { degree, cluster: n as u32, richest: AtomicU64::new(0) };
                }
                run.advance(0)
            })
        })?;
        drop(degree);
        Ok(Self {
            vertices,
            volume: Buffer::zeroed(n, "spring: volumes")?,
            closed: Buffer::zeroed(n / 64 + 1, "spring: closed clusters")?,
            count: 0,
            tau,
        })
    }

    /// The vertices and the number of clusters; the volumes are freed.
    pub(super) fn into_vertices(self) -> (Buffer<Vertex>, u32) {
        (self.vertices, self.count)
    }

    /// The paper's rule: every record meets the state that the one before left.
    fn sequential_pass(&mut self, edges: &dyn EdgeStream, run: &Run) -> Result<()> {
        let mut buf = Vec::new();
        for range in blocks(0..edges.num_edges()) {
            let records = edges.block(range, &mut buf)?;
            records.iter().for_each(|&record| self.meet(record));
            self.commit_all(records);
            run.advance(records.len() as u64)?;
        }
        Ok(())
    }

    /// Batches filtered in parallel against a frozen state, survivors committed in order against the live one.
    fn batched_pass(&mut self, edges: &dyn EdgeStream, batch: Option<u64>, run: &Run) -> Result<()> {
        let m = edges.num_edges();
        let mut slices: Vec<Slice> = Vec::new();
        let mut size = batch.unwrap_or(FIRST_BATCH).min(m);
        let mut start = 0;
        while start < m {
            let end = m.min(start + size);
            let count = (end - start).div_ceil(SLICE) as usize;
            if slices.len() < count {
                slices.resize_with(count, Slice::default);
            }
            let filter = |(index, slice): (usize, &mut Slice)| {
                let first = start + index as u64 * SLICE;
                let records = edges.block(first..end.min(first + SLICE), &mut slice.buf)?;
                self.filter(records, &mut slice.survivors);
                run.advance(records.len() as u64)
            };
            if count == 1 {
                filter((0, &mut slices[0]))?;
            } else {
                slices[..count].par_iter_mut().enumerate().try_for_each(filter)?;
            }
            for slice in &slices[..count] {
                self.commit_all(&slice.survivors);
            }
            start = end;
            if batch.is_none() {
                size = (2 * size).min(LARGEST_BATCH);
            }
        }
        Ok(())
    }

    /// Lets the ends of each record meet, and keeps the records that may move something. Free of branches but for
    /// the rare ones, since what survives cannot be predicted.
    fn filter(&self, records: &[Record], survivors: &mut Vec<Record>) {
        survivors.resize(records.len(), [0; 2]);
        let mut kept = 0;
        for (index, &record) in records.iter().enumerate() {
            if let Some(&[u, v]) = records.get(index + AHEAD) {
                prefetch(&self.vertices, u as usize);
                prefetch(&self.vertices, v as usize);
            }
            self.meet(record);
            survivors[kept] = record;
            kept += usize::from(self.may_move(record));
        }
        survivors.truncate(kept);
    }

    /// Whether `record` would make a cluster, or move an end, in the state as it is.
    #[inline(always)]
    fn may_move(&self, [u, v]: Record) -> bool {
        let (a, b) = (self.vertices[u as usize].cluster, self.vertices[v as usize].cluster);
        let none = self.vertices.len() as u32;
        let open = (self.closed_bit(a) | self.closed_bit(b)) & 1 == 0;
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
    fn closed_bit(&self, cluster: u32) -> u64 {
        self.closed[cluster as usize / 64] >> (cluster % 64)
    }

    fn commit_all(&mut self, records: &[Record]) {
        for (index, &record) in records.iter().enumerate() {
            if let Some(&[u, v]) = records.get(index + AHEAD) {
                prefetch(&self.vertices, u as usize);
                prefetch(&self.vertices, v as usize);
            }
            if let Some(&[u, v]) = records.get(index + AHEAD / 2) {
                prefetch(&self.volume, self.vertices[u as usize].cluster as usize);
                prefetch(&self.volume, self.vertices[v as usize].cluster as usize);
            }
            self.commit(record);
        }
    }

    #[inline(always)]
    fn commit(&mut self, [u, v]: Record) {
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
        if a == b || volume_a > self.tau || volume_b > self.tau {
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
        if volume > self.tau {
            self.closed[cluster as usize / 64] |= 1 << (cluster % 64);
        }
    }
}

/// What one thread filters at a time.
#[derive(Default)]
struct Slice {
    buf: Vec<Record>,
    survivors: Vec<Record>,
}

const _: () = assert!(SLICE <= BLOCK);
