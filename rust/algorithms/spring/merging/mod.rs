//! The merging step: small clusters join the cluster of their representative's richest neighbour.

mod by_size;

pub(super) use self::by_size::BySize;
use super::Spring;
use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::capacity::{BalanceOn, share};
use crate::clustering::hollocou::{Clustering, degree_of, vertex_of};
use crate::sets::monotone::MonotoneQueue;

/// Items between two polls of the cancel flag.
pub(super) const CHECK_EVERY: usize = 1 << 16;

/// The link of a cluster without vertices.
const VOID: u64 = u64::MAX;

/// Clusters as sets that can be united. A cluster of size 0 was merged, and `link` then names the one it
/// joined.
pub(super) struct Clusters {
    /// Cluster of each vertex before merging, or the number of vertices if it is isolated.
    pub(super) of: Buffer<u32>,
    /// Vertices of each cluster.
    pub(super) size: Buffer<u32>,
    /// Weight of each cluster. Empty without weights.
    pub(super) weight: Buffer<u64>,
    /// Richness of the representative's richest neighbour, or the cluster joined.
    pub(super) link: Buffer<u64>,
}

impl Clusters {
    fn of(clustering: Clustering, run: &Run) -> Result<Self> {
        let (vertices, count) = clustering.into_vertices();
        let mut size: Buffer<u32> = Buffer::zeroed(count as usize, "spring: cluster sizes")?;
        let mut link: Buffer<u64> = Buffer::zeroed(count as usize, "spring: representatives")?;
        let mut of: Buffer<u32> = Buffer::zeroed(vertices.len(), "spring: clusters")?;
        for (of, vertices) in of.chunks_mut(CHECK_EVERY).zip(vertices.chunks(CHECK_EVERY)) {
            for (of, vertex) in of.iter_mut().zip(vertices) {
                *of = vertex.cluster;
                let Some(size) = size.get_mut(vertex.cluster as usize) else { continue };
                *size += 1;
                let link = &mut link[vertex.cluster as usize];
                // Vertices come in id order: only a larger degree replaces a representative.
                if *link == 0 || degree_of(vertex.richest()) > degree_of(*link) {
                    *link = vertex.richest();
                }
            }
            run.advance(of.len() as u64)?;
        }
        link.iter_mut().filter(|link| **link == 0).for_each(|link| *link = VOID);
        Ok(Self { of, size, weight: Buffer::zeroed(0, "")?, link })
    }

    fn weigh(&mut self, balance_on: &BalanceOn, run: &Run) -> Result<()> {
        self.weight = Buffer::zeroed(self.size.len(), "spring: cluster weights")?;
        for (of, weights) in self.of.chunks(CHECK_EVERY).zip(balance_on.weights().chunks(CHECK_EVERY)) {
            for (&of, &weight) in of.iter().zip(weights) {
                if let Some(sum) = self.weight.get_mut(of as usize) {
                    *sum += u64::from(weight);
                }
            }
            run.advance(of.len() as u64)?;
        }
        Ok(())
    }

    fn weight_of(&self, cluster: u32) -> u64 {
        self.weight.get(cluster as usize).copied().unwrap_or(0)
    }

    /// Gives away the clusters before merging.
    pub(super) fn take_of(&mut self) -> Result<Buffer<u32>> {
        Ok(std::mem::replace(&mut self.of, Buffer::zeroed(0, "")?))
    }

    /// Whether all vertices of the cluster had left before merging.
    pub(super) fn is_void(&self, cluster: u32) -> bool {
        self.size[cluster as usize] == 0 && self.link[cluster as usize] == VOID
    }

    /// Makes [`of`](Self::of) the clusters after merging. They cannot be united any more.
    pub(super) fn resolve(&mut self, run: &Run) -> Result<()> {
        for start in (0..self.of.len()).step_by(CHECK_EVERY) {
            let end = self.of.len().min(start + CHECK_EVERY);
            for vertex in start..end {
                let cluster = self.of[vertex];
                if (cluster as usize) < self.size.len() {
                    self.of[vertex] = self.find(cluster);
                }
            }
            run.advance((end - start) as u64)?;
        }
        self.link = Buffer::zeroed(0, "")?;
        Ok(())
    }

    /// The cluster that `cluster`, which must not be void, is part of by now.
    pub(super) fn find(&mut self, mut cluster: u32) -> u32 {
        while self.size[cluster as usize] == 0 {
            let joined = self.link[cluster as usize] as u32;
            if self.size[joined as usize] == 0 {
                // Halve the path for those who come after.
                self.link[cluster as usize] = self.link[joined as usize];
            }
            cluster = joined;
        }
        cluster
    }
}

/// Merges clusters in ascending size (then id) while the result has at most its share of vertices, and of the
/// weight. A merged cluster is queued again under its new size, even if it had failed before. One that failed
/// and did not grow is not.
pub(super) fn merge(
    clustering: Clustering,
    spring: &Spring,
    balance_on: Option<&BalanceOn>,
    run: &Run,
) -> Result<Clusters> {
    let limit = share(spring.balance, clustering.vertices.len() as u64, spring.k) as u64;
    let weight_limit = balance_on.map_or(0, |balance_on| balance_on.limit(spring.k));
    run.begin("merging", clustering.vertices.len() as u64 + 3 * u64::from(clustering.count));
    let mut clusters = Clusters::of(clustering, run)?;
    if let Some(balance_on) = balance_on {
        clusters.weigh(balance_on, run)?;
    }
    let in_order = BySize::of(&clusters.size, run)?;
    let mut first = in_order.ascending().peekable();
    // Merged clusters alone. A cluster that grew is larger than the one just taken, so that both queues stay
    // in order.
    let mut grown = MonotoneQueue::default();
    let mut taken = 0_usize;
    loop {
        let key = |(size, id): (u32, u32)| u64::from(size) << 32 | u64::from(id);
        let is_grown = match (first.peek(), grown.first()) {
            (Some(&small), Some(large)) => large < key(small),
            (small, _) => small.is_none(),
        };
        let next = if is_grown { grown.pop() } else { first.next().map(key) };
        let Some(next) = next else { break };
        let (size, id) = ((next >> 32) as u32, next as u32);
        in_order.look_ahead(taken, &clusters);
        taken += 1;
        if taken.is_multiple_of(CHECK_EVERY) {
            run.advance(CHECK_EVERY as u64)?;
        }
        if clusters.size[id as usize] != size {
            continue; // it merged or grew since
        }
        let richest = vertex_of(clusters.link[id as usize]);
        let target = clusters.of[richest as usize];
        let target = clusters.find(target);
        let merged = u64::from(size) + u64::from(clusters.size[target as usize]);
        let merged_weight = clusters.weight_of(id) + clusters.weight_of(target);
        if target == id || merged > limit || merged_weight > weight_limit {
            continue;
        }
        let link = clusters.link[id as usize];
        if degree_of(link) > degree_of(clusters.link[target as usize]) {
            clusters.link[target as usize] = link;
        }
        clusters.size[id as usize] = 0;
        clusters.link[id as usize] = u64::from(target);
        clusters.size[target as usize] = merged as u32;
        if let Some(weight) = clusters.weight.get_mut(target as usize) {
            *weight = merged_weight;
        }
        grown.push(merged << 32 | u64::from(target));
    }
    Ok(clusters)
}
