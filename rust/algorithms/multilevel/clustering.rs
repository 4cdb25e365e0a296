//! Clusters to contract, by label propagation under a size constraint.
//!
//! Every vertex starts alone. In rounds, each moves to the neighbouring cluster with the best [`Rating`] that
//! has slack. Vertices without any neighbour are packed. Some others stay alone, since all clusters around
//! them are full. They are paired if they prefer the same cluster (*two-hop*). Without that the many leaves
//! of hubs would never become fewer.
//!
//! **Parallelism.** Blocks of vertices are dealt to groups by a seed. The vertices of a group *propose* where
//! to go against the clusters that the group before left. Then the proposals are *approved* in order of the
//! ids, as long as the clusters have slack. A vertex that wants to join one that has just left for another
//! cluster follows it there.
//!
//! **Fixed vertices.** The *label* of a cluster is that of the vertex that it began with, and stays. Free vertices
//! may join any cluster, and fixed ones only clusters with their label. So a cluster never holds vertices that
//! are fixed to different parts, and it takes no memory to know that.
//!
//! **Memory.** 8 bytes per vertex and 8 per vertex and bound.
//!
//! **Source.** Meyerhenke, Sanders and Schulz, "Partitioning Complex Networks via Size-Constrained
//! Clustering", SEA 2014; two-hop: LaSalle et al., "Improving Graph Partitioning for Modern Graphs and
//! Architectures", IA3 2015; groups: Gottesbüren and Hamann, "Deterministic Parallel Hypergraph
//! Partitioning", Euro-Par 2022.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::graph::Graph;
use crate::base::{Buffer, NONE, Result, Run, prefetch, splitmix64};
use crate::capacity::{Load, fits, minus, plus};
use crate::exec::scratches;
use crate::sets::RatingMap;

/// Groups of the vertices of a large graph: with fewer, clusters are worse.
const GROUPS: u32 = 64;
/// Vertices of a group, at least.
const GROUP: u32 = 32;
/// Most vertices of a block. Their lists are read one after the other.
const BLOCK: u32 = 256;
/// A round in which fewer than one vertex in `LEAST_MOVED` moves is the last.
const LEAST_MOVED: usize = 20;

/// How many vertices ahead clusters are prefetched, and of how many neighbours.
const AHEAD: u32 = 2;
const MOST_AHEAD: usize = 64;

/// How a vertex rates a cluster. No rating is the best for all graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rating {
    /// The weight of the edges to it.
    Weight,
    /// The weight of the edges to it, per vertex of the cluster.
    Density,
}

impl Rating {
    /// Weight for density, and the other way round.
    pub fn opposite(self) -> Self {
        match self {
            Self::Weight => Self::Density,
            Self::Density => Self::Weight,
        }
    }
}

/// How to cluster.
#[derive(Debug, Clone, Copy)]
pub struct Clusterer<const D: usize> {
    /// How vertices rate clusters.
    pub rating: Rating,
    /// What a cluster may weigh.
    pub cap: Load<D>,
    /// Rounds over all vertices.
    pub rounds: u32,
    /// Seed of the groups and of the tie-breaks.
    pub seed: u64,
}

/// Clusters `0..count` of the vertices.
pub struct Clustering {
    /// Cluster of each vertex.
    pub cluster_of: Buffer<u32>,
    /// Number of clusters.
    pub count: usize,
}

impl Clustering {
    /// Each of `n` vertices by itself.
    pub fn singletons(n: usize, run: &Run) -> Result<Self> {
        let mut cluster_of: Buffer<u32> = Buffer::zeroed(n, "groups")?;
        run.each(n, |v| cluster_of[v as usize] = v)?;
        Ok(Self { cluster_of, count: n })
    }

    /// Labels of the clusters, given labels of the vertices. All vertices of a cluster must have the same
    /// label.
    pub fn labels(&self, of_vertices: &[u32], run: &Run) -> Result<Buffer<u32>> {
        let mut labels: Buffer<u32> = Buffer::zeroed(self.count, "labels of clusters")?;
        run.each(of_vertices.len(), |v| {
            labels[self.cluster_of[v as usize] as usize] = of_vertices[v as usize]
        })?;
        Ok(labels)
    }

    /// Labels of the vertices, given labels of the clusters.
    pub fn projected(&self, of_clusters: &[u32], run: &Run) -> Result<Buffer<u32>> {
        let n = self.cluster_of.len();
        let mut labels: Buffer<u32> = Buffer::zeroed(n, "labels of vertices")?;
        run.each(n, |v| labels[v as usize] = of_clusters[self.cluster_of[v as usize] as usize])?;
        Ok(labels)
    }

    /// The clustering of the vertices by the clusters of their clusters.
    pub fn coarsened(mut self, of_clusters: &Clustering, run: &Run) -> Result<Clustering> {
        run.each(self.cluster_of.len(), |v| {
            let cluster = &mut self.cluster_of[v as usize];
            *cluster = of_clusters.cluster_of[*cluster as usize];
        })?;
        Ok(Clustering { cluster_of: self.cluster_of, count: of_clusters.count })
    }
}

impl<const D: usize> Clusterer<D> {
    /// Clusters `graph`. With `communities` each cluster lies within one of them.
    pub fn cluster(&self, graph: &Graph<D>, communities: Option<&[u32]>, run: &Run) -> Result<Clustering> {
        let n = graph.len();
        let mut state = State {
            graph,
            how: *self,
            communities,
            cluster_of: Buffer::zeroed(n, "clusters")?,
            loads: Buffer::zeroed(n, "weights of clusters")?,
        };
        run.each(n, |v| {
            state.cluster_of[v as usize] = v;
            state.loads[v as usize] = graph.weight(v);
        })?;
        let mut targets: Buffer<u32> = Buffer::zeroed(n, "targets of vertices")?;
        let mut maps = scratches(run, graph.num_entries(), || Ok(RatingMap::default()))?;
        for round in 0..self.rounds {
            let mut moved = 0;
            for group in groups(n as u32, self.seed ^ u64::from(round)) {
                graph.propose(&mut maps, group.iter().cloned(), &mut targets, run, |map, v, target| {
                    *target = state.target(map, v)
                })?;
                for v in group.iter().flat_map(|block| block.clone()) {
                    moved += usize::from(state.approve(v, targets[v as usize]));
                }
                run.check()?;
            }
            if moved * LEAST_MOVED < n {
                break;
            }
        }
        let all = std::iter::once(0..n as u32);
        graph.propose(&mut maps, all, &mut targets, run, |map, v, target| {
            *target = state.target_of_single(map, v)
        })?;
        state.pair_singles(&targets, run)?;
        drop(targets);
        state.number(run)
    }
}

/// Blocks of the vertices `0..n`, dealt to groups.
fn groups(n: u32, seed: u64) -> Vec<Vec<Range<u32>>> {
    let count = (n / GROUP).clamp(1, GROUPS);
    let block = (n / (8 * count)).clamp(1, BLOCK);
    let mut groups = vec![Vec::new(); count as usize];
    for start in (0..n).step_by(block as usize) {
        let group = splitmix64(seed ^ splitmix64(u64::from(start))) % u64::from(count);
        groups[group as usize].push(start..n.min(start.saturating_add(block)));
    }
    groups
}

struct State<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    how: Clusterer<D>,
    communities: Option<&'a [u32]>,
    cluster_of: Buffer<u32>,
    /// What each cluster weighs.
    loads: Buffer<Load<D>>,
}

impl<const D: usize> State<'_, D> {
    /// Whether `v` has its cluster for itself.
    fn is_alone(&self, v: u32) -> bool {
        self.cluster_of[v as usize] == v && self.loads[v as usize] == self.graph.weight(v)
    }

    /// Whether no fixed vertex keeps `v` out of a cluster. Clusters have the numbers of the vertices that they
    /// began with.
    #[inline(always)]
    fn may_join(&self, v: u32, cluster: u32) -> bool {
        self.graph.may_move(v) || self.graph.fixed(v) == self.graph.fixed(cluster)
    }

    /// The cluster that `v` would join, perhaps its own.
    fn target(&self, map: &mut RatingMap, v: u32) -> u32 {
        let own = self.cluster_of[v as usize];
        let (weight, cap) = (self.graph.weight(v), self.how.cap);
        let has_slack =
            |cluster: u32, load| cluster == own || fits(plus(load, weight), cap) && self.may_join(v, cluster);
        self.favourite(map, v, has_slack).unwrap_or(own)
    }

    /// The neighbouring cluster that `v`, which is alone, would join if caps did not count.
    fn target_of_single(&self, map: &mut RatingMap, v: u32) -> u32 {
        if !self.is_alone(v) {
            return NONE;
        }
        self.favourite(map, v, |cluster, _| cluster != v && self.may_join(v, cluster)).unwrap_or(NONE)
    }

    /// The cluster with the best rating among the neighbouring clusters that are `allowed`.
    #[inline(always)]
    fn favourite(&self, map: &mut RatingMap, v: u32, allowed: impl Fn(u32, Load<D>) -> bool) -> Option<u32> {
        let own = self.cluster_of[v as usize];
        map.begin(self.graph.degree(v), self.cluster_of.len());
        // Lookups in arrays of all vertices wait for memory: those of a vertex to come are begun now.
        self.graph.prefetch_neighbours(v.saturating_add(AHEAD), MOST_AHEAD, &self.cluster_of);
        self.graph.each(v, |u, w| {
            let cluster = self.cluster_of[u as usize];
            if map.add(cluster, w) {
                prefetch(&self.loads, cluster as usize);
            }
        });
        let own_size = self.graph.weight(v)[0];
        // Ties are broken at random, else low ids would attract everything.
        let salt = splitmix64(self.how.seed ^ u64::from(v));
        let tie_break = |cluster: u32| (salt ^ u64::from(cluster)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let community = self.communities.map(|communities| (communities, communities[v as usize]));
        // A rating is a number divided by another.
        let mut best: Option<(u32, [u64; 2])> = None;
        for [cluster, w] in map.sums() {
            let w = u64::from(w);
            // No cluster is smaller than one vertex: most are out before their size is looked up.
            if best.is_some_and(|(_, most)| w * most[1] < most[0])
                || community.is_some_and(|(communities, own)| communities[cluster as usize] != own)
            {
                continue;
            }
            let load = self.loads[cluster as usize];
            if !allowed(cluster, load) {
                continue;
            }
            let size = match self.how.rating {
                Rating::Weight => 1,
                Rating::Density => (load[0] - if cluster == own { own_size } else { 0 }).max(1),
            };
            let wins = best.is_none_or(|(other, most)| {
                let (mine, its) = (w * most[1], most[0] * size);
                mine > its || mine == its && tie_break(cluster) > tie_break(other)
            });
            if wins {
                best = Some((cluster, [w, size]));
            }
        }
        best.map(|(cluster, _)| cluster)
    }

    /// Moves `v` to its target cluster, if that still has slack. Returns whether it moved.
    fn approve(&mut self, v: u32, target: u32) -> bool {
        let own = self.cluster_of[v as usize];
        // The cluster is empty if the vertex that was alone in it has left.
        let target =
            if self.loads[target as usize][0] == 0 { self.cluster_of[target as usize] } else { target };
        let weight = self.graph.weight(v);
        if target == own
            || !fits(plus(self.loads[target as usize], weight), self.how.cap)
            || !self.may_join(v, target)
        {
            return false;
        }
        self.loads[own as usize] = minus(self.loads[own as usize], weight);
        self.loads[target as usize] = plus(self.loads[target as usize], weight);
        self.cluster_of[v as usize] = target;
        true
    }

    /// Pairs vertices that are alone and prefer the same full cluster, and packs those without neighbours.
    fn pair_singles(&mut self, targets: &[u32], run: &Run) -> Result<()> {
        let n = self.graph.len();
        // By cluster, the vertex that waits for a partner, plus 1. By community and label, the open cluster of
        // vertices without neighbours.
        let mut waiting: Buffer<u32> = Buffer::zeroed(n, "single vertices")?;
        let mut isolated: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        run.each(n, |v| {
            if self.graph.degree(v) == 0 {
                let community = self.communities.map_or(0, |communities| communities[v as usize]);
                let open = isolated.entry((community, self.graph.fixed(v))).or_insert(v);
                if *open != v && !self.approve(v, *open) {
                    *open = v;
                }
            } else if targets[v as usize] != NONE {
                let place = &mut waiting[targets[v as usize] as usize];
                match std::mem::take(place).checked_sub(1) {
                    Some(waits) if self.approve(v, waits) => {}
                    _ => *place = v + 1,
                }
            }
        })
    }

    /// Numbers the clusters by their lowest vertex.
    fn number(mut self, run: &Run) -> Result<Clustering> {
        drop(self.loads);
        let mut number: Buffer<u32> = Buffer::zeroed(self.graph.len(), "clusters")?;
        let mut count = 0;
        run.each(self.graph.len(), |v| {
            let cluster = &mut self.cluster_of[v as usize];
            if number[*cluster as usize] == 0 {
                count += 1;
                number[*cluster as usize] = count;
            }
            *cluster = number[*cluster as usize] - 1;
        })?;
        Ok(Clustering { cluster_of: self.cluster_of, count: count as usize })
    }
}
