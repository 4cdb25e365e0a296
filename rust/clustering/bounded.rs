//! Clusters of bounded volume from one pass over the records, in stream order: the first phase of 2PS.
//!
//! **Memory.** 16 bytes per vertex.
//!
//! **Algorithm.** A vertex gets its own cluster when it first appears. Cluster ids count these events. For
//! each record, take the end whose cluster has less volume without it (ties: the first). It moves into the
//! cluster of the other end if that stays within the bound. So a cluster exceeds the bound only if it is a
//! single vertex of larger degree, and nothing joins it. Loops are skipped. (SPRING's rule compares whole
//! volumes, and lets a cluster exceed its bound once.)
//!
//! **Parallelism.** Per batch, threads drop the records that would move nothing in the state before the
//! batch. The others are committed in stream order. A batch of 1 is the published rule.
//!
//! **Complexity.** O(n + m).
//!
//! **Source.** Mayer, Orujzade, Jacobsen, "Out-of-Core Edge Partitioning at Linear Run-Time", ICDE 2022,
//! section III-A. After Hollocou, Maudet, Bonald, Lelarge, "A linear streaming algorithm for community
//! detection in very large networks", 2017.

use std::num::NonZeroU64;

use crate::base::{Buffer, Result, Run, ahead, prefetch, prefetch_ends};
use crate::edges::{EdgeStream, Record};
use crate::exec::{Follower, follow, for_each};

/// The state of a vertex that a record reads.
#[derive(Debug, Clone, Copy, bytemuck::Zeroable)]
#[repr(C, align(8))]
pub struct Member {
    /// Number of its non-loop records.
    pub degree: u32,
    /// Its cluster, or the number of vertices if it has no records.
    pub cluster: u32,
}

/// Clusters of bounded volume.
#[derive(Debug)]
pub struct BoundedClustering {
    /// All vertices.
    pub members: Buffer<Member>,
    /// Volume of each cluster `0..count`. 0 if all members left.
    pub volumes: Buffer<u64>,
    /// Number of clusters.
    pub count: u32,
    bound: u64,
}

/// A record's move: the end, and the clusters it leaves and joins.
struct Move {
    vertex: u32,
    from: u32,
    to: u32,
}

impl BoundedClustering {
    /// Clusters `edges`, whose degrees are known. `batch` is the number of records decided against one frozen
    /// state.
    pub fn of(
        edges: &dyn EdgeStream,
        degree: Buffer<u32>,
        bound: u64,
        batch: Option<NonZeroU64>,
        run: &Run,
    ) -> Result<Self> {
        run.begin("clustering", degree.len() as u64 + edges.num_edges());
        let mut clusters = Self::new(degree, bound, run)?;
        follow(&mut clusters, edges, batch, run)?;
        Ok(clusters)
    }

    fn new(degree: Buffer<u32>, bound: u64, run: &Run) -> Result<Self> {
        let n = degree.len();
        let mut members: Buffer<Member> = Buffer::zeroed(n, "clusters of the vertices")?;
        for_each(&mut members, run, |v, member| *member = Member { degree: degree[v], cluster: n as u32 })?;
        drop(degree);
        Ok(Self { members, volumes: Buffer::zeroed(n, "volumes of the clusters")?, count: 0, bound })
    }

    #[inline(always)]
    fn look_ahead(&self, records: &[Record], index: usize) {
        prefetch_ends(&self.members, records, index + ahead::RECORDS);
        if let Some(&[u, v]) = records.get(index + ahead::RECORDS / 2) {
            prefetch(&self.volumes, self.members[u as usize].cluster as usize);
            prefetch(&self.volumes, self.members[v as usize].cluster as usize);
        }
    }

    /// The move that a record causes. Both ends have clusters.
    #[inline(always)]
    fn decide(&self, [u, v]: Record) -> Option<Move> {
        let (a, b) = (self.members[u as usize], self.members[v as usize]);
        if a.cluster == b.cluster {
            return None;
        }
        let (volume_a, volume_b) = (self.volumes[a.cluster as usize], self.volumes[b.cluster as usize]);
        let (degree_a, degree_b) = (u64::from(a.degree), u64::from(b.degree));
        if volume_a - degree_a <= volume_b - degree_b {
            (volume_b + degree_a <= self.bound).then_some(Move { vertex: u, from: a.cluster, to: b.cluster })
        } else {
            (volume_a + degree_b <= self.bound).then_some(Move { vertex: v, from: b.cluster, to: a.cluster })
        }
    }
}

impl Follower for BoundedClustering {
    /// Keeps the records that change something in the current state.
    fn filter(&self, records: &[Record], survivors: &mut Vec<Record>) {
        let none = self.members.len() as u32;
        survivors.clear();
        for (index, &record) in records.iter().enumerate() {
            self.look_ahead(records, index);
            let [a, b] = record.map(|id| self.members[id as usize].cluster);
            if record[0] != record[1] && (a == none || b == none || self.decide(record).is_some()) {
                survivors.push(record);
            }
        }
    }

    fn commit(&mut self, records: &[Record]) {
        let none = self.members.len() as u32;
        for (index, &record) in records.iter().enumerate() {
            self.look_ahead(records, index);
            if record[0] == record[1] {
                continue;
            }
            for id in record {
                let member = &mut self.members[id as usize];
                if member.cluster == none {
                    member.cluster = self.count;
                    self.volumes[self.count as usize] = u64::from(member.degree);
                    self.count += 1;
                }
            }
            if let Some(Move { vertex, from, to }) = self.decide(record) {
                let member = &mut self.members[vertex as usize];
                member.cluster = to;
                let degree = u64::from(member.degree);
                self.volumes[from as usize] -= degree;
                self.volumes[to as usize] += degree;
            }
        }
    }
}
