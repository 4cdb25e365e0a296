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
//! **Fixed vertices.** The *label* of a cluster is that of the vertex that it began with, and stays. Free
//! vertices may join any cluster, and fixed ones only clusters with their label. So a cluster never holds
//! vertices that are fixed to different parts, and it takes no memory to know that.
//!
//! **Hubs.** All threads rate the clusters around a vertex with a long list together, in one array
//! ([`SharedSums`]). The proposals of a group for such vertices come after the others, and see the same
//! clusters.
//!
//! **Memory.** 12 bytes per vertex and 8 per vertex and bound, and per thread a table for lists that are not
//! long.
//!
//! **Source.** Meyerhenke, Sanders and Schulz, "Partitioning Complex Networks via Size-Constrained
//! Clustering", SEA 2014; two-hop: LaSalle et al., "Improving Graph Partitioning for Modern Graphs and
//! Architectures", IA3 2015; groups: Gottesbüren and Hamann, "Deterministic Parallel Hypergraph
//! Partitioning", Euro-Par 2022.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use rustc_hash::FxHashMap;

use crate::algorithms::multilevel::model::Graph;
use crate::base::{Buffer, NONE, Result, Run, prefetch, shared, splitmix64};
use crate::capacity::{Load, fits, minus, plus};
use crate::exec::{fill, fold, map, scratches, select, share};
use crate::sets::{RatingMap, SharedSums, to_starts};

/// Groups of the vertices of a large graph: with fewer, clusters are worse.
const GROUPS: u32 = 64;
/// Minimum vertices of a group.
const GROUP: u32 = 32;
/// Most vertices of a block. Their lists are read one after the other.
const BLOCK: u32 = 256;
/// A round in which fewer than one vertex in `LEAST_MOVED` moves is the last.
const LEAST_MOVED: usize = 20;

/// Vertices that a thread numbers at a time.
const CHUNK: usize = 1 << 14;
/// Entries of a long list that are worth a thread.
const ENTRIES_OF_A_THREAD: usize = 1 << 13;

/// Vertices by which clusters are prefetched ahead, and the most neighbours for which they are.
const AHEAD: u32 = 2;
const MOST_AHEAD: usize = 64;
/// Vertices by which the clusters that others want to join are prefetched ahead.
const APPROVED_AHEAD: usize = 8;

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
    /// Cap on the weight of a cluster.
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
        fill(&mut cluster_of, run, |v, cluster| *cluster = v as u32)?;
        Ok(Self { cluster_of, count: n })
    }

    /// Calls `visit` with the cluster of each neighbour of `v` outside its own `cluster`, and the weight of
    /// the edge.
    #[inline(always)]
    pub(crate) fn each_outside<const D: usize>(
        &self,
        graph: &Graph<D>,
        v: u32,
        cluster: u32,
        mut visit: impl FnMut(u32, u32),
    ) {
        graph.each(v, |u, w| {
            let other = self.cluster_of[u as usize];
            if other != cluster {
                visit(other, w);
            }
        });
    }

    /// Labels of the clusters, given labels of the vertices. All vertices of a cluster must have the same
    /// label.
    pub fn labels(&self, of_vertices: &[u32], run: &Run) -> Result<Buffer<u32>> {
        let mut labels: Buffer<u32> = Buffer::zeroed(self.count, "labels of clusters")?;
        let cells = shared(&mut labels);
        // Whichever vertex of a cluster comes last, the label is the same.
        let store = |(), v: usize| cells[self.cluster_of[v] as usize].store(of_vertices[v], Relaxed);
        fold(run, of_vertices.len(), (), store, |(), ()| ())?;
        Ok(labels)
    }

    /// Labels of the vertices, given labels of the clusters.
    pub fn projected(&self, of_clusters: &[u32], run: &Run) -> Result<Buffer<u32>> {
        let n = self.cluster_of.len();
        let mut labels: Buffer<u32> = Buffer::zeroed(n, "labels of vertices")?;
        fill(&mut labels, run, |v, label| *label = of_clusters[self.cluster_of[v] as usize])?;
        Ok(labels)
    }

    /// The clustering of the vertices by the clusters of their clusters.
    pub fn coarsened(mut self, of_clusters: &Clustering, run: &Run) -> Result<Clustering> {
        fill(&mut self.cluster_of, run, |_, cluster| *cluster = of_clusters.cluster_of[*cluster as usize])?;
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
        fill(&mut state.cluster_of, run, |v, cluster| *cluster = v as u32)?;
        fill(&mut state.loads, run, |v, load| *load = graph.weight(v as u32))?;
        let mut targets: Buffer<u32> = Buffer::zeroed(n, "targets of vertices")?;
        let mut maps = scratches(run, graph.num_entries(), || RatingMap::of_short(n))?;
        let mut hubs = Hubs::new(graph, run)?;
        for round in 0..self.rounds {
            let mut moved = 0;
            for group in groups(n as u32, self.seed ^ u64::from(round)) {
                state.propose::<false>(&group, &mut maps, &mut hubs, &mut targets, run)?;
                for block in group {
                    moved += state.approve_all(block.clone(), &targets);
                }
                run.check()?;
            }
            if moved * LEAST_MOVED < n {
                break;
            }
        }
        let all = 0..n as u32;
        state.propose::<true>(std::slice::from_ref(&all), &mut maps, &mut hubs, &mut targets, run)?;
        drop((maps, hubs));
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

/// The vertices here whose lists are long, and the sums around one of them.
struct Hubs {
    /// They ascend.
    vertices: Vec<u32>,
    sums: SharedSums,
}

impl Hubs {
    fn new<const D: usize>(graph: &Graph<D>, run: &Run) -> Result<Self> {
        let (n, here) = (graph.len(), graph.here());
        let some = if SharedSums::takes(graph.num_entries() as usize, n) { n } else { 0 };
        let is_hub = |v: u32| SharedSums::takes(graph.degree(v), n) && here.contains(&v);
        let vertices = select(run, some, "vertices with long lists", is_hub)?;
        Ok(Self { vertices, sums: SharedSums::new(n) })
    }

    /// The vertices in a block.
    fn within(&self, block: &Range<u32>) -> impl Iterator<Item = u32> {
        let first = self.vertices.partition_point(|&v| v < block.start);
        self.vertices[first..].iter().copied().take_while(|&v| v < block.end)
    }
}

/// A cluster and its rating: a number divided by another.
type Rated = (u32, [u64; 2]);

/// Chooses the target of a vertex among the clusters around it.
struct Chooser<'a, const D: usize, const PAIRS: bool> {
    state: &'a State<'a, D>,
    v: u32,
    own: u32,
    weight: Load<D>,
    /// Ties are broken at random, else low ids would attract everything.
    salt: u64,
    community: Option<(&'a [u32], u32)>,
}

impl<'a, const D: usize, const PAIRS: bool> Chooser<'a, D, PAIRS> {
    #[inline(always)]
    fn new(state: &'a State<'a, D>, v: u32) -> Self {
        let community = state.communities.map(|communities| (communities, communities[v as usize]));
        let salt = splitmix64(state.how.seed ^ u64::from(v));
        Self { state, v, own: state.cluster_of[v as usize], weight: state.graph.weight(v), salt, community }
    }

    /// Compares the best cluster so far with one more, to which edges of the weight `w` lead.
    #[inline(always)]
    fn rate(&self, best: &mut Option<Rated>, cluster: u32, w: u32) {
        let (&Self { state, v, own, weight, community, .. }, w) = (self, u64::from(w));
        // No cluster is smaller than one vertex: most are out before their size is looked up.
        if best.is_some_and(|(_, most)| w * most[1] < most[0])
            || community.is_some_and(|(communities, own)| communities[cluster as usize] != own)
        {
            return;
        }
        let load = state.loads[cluster as usize];
        let is_allowed = match PAIRS {
            true => cluster != v && state.may_join(v, cluster),
            false => cluster == own || fits(plus(load, weight), state.how.cap) && state.may_join(v, cluster),
        };
        if !is_allowed {
            return;
        }
        let size = match state.how.rating {
            Rating::Weight => 1,
            Rating::Density => (load[0] - if cluster == own { weight[0] } else { 0 }).max(1),
        };
        *best = Some(best.map_or((cluster, [w, size]), |best| self.better(best, (cluster, [w, size]))));
    }

    /// The better one of two clusters.
    #[inline(always)]
    fn better(&self, best: Rated, other: Rated) -> Rated {
        let tie_break = |cluster: u32| (self.salt ^ u64::from(cluster)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (mine, its) = (other.1[0] * best.1[1], best.1[0] * other.1[1]);
        if mine > its || mine == its && tie_break(other.0) > tie_break(best.0) { other } else { best }
    }

    /// The best cluster, or [`NONE`] for a vertex that stays in its own.
    #[inline(always)]
    fn target(&self, best: Option<Rated>) -> u32 {
        best.filter(|&(cluster, _)| PAIRS || cluster != self.own).map_or(NONE, |(cluster, _)| cluster)
    }
}

struct State<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    how: Clusterer<D>,
    communities: Option<&'a [u32]>,
    cluster_of: Buffer<u32>,
    /// Weight of each cluster.
    loads: Buffer<Load<D>>,
}

impl<const D: usize> State<'_, D> {
    /// Whether `v` has its cluster for itself.
    fn is_alone(&self, v: u32) -> bool {
        self.cluster_of[v as usize] == v && self.loads[v as usize] == self.graph.weight(v)
    }

    /// Whether no fixed vertex keeps `v` out of a cluster. Clusters have the numbers of the vertices that
    /// they began with.
    #[inline(always)]
    fn may_join(&self, v: u32, cluster: u32) -> bool {
        self.graph.may_move(v) || self.graph.fixed(v) == self.graph.fixed(cluster)
    }

    /// Finds the targets of the vertices of `blocks`. With `PAIRS` these are the clusters that vertices which
    /// are alone would join if caps did not count.
    fn propose<const PAIRS: bool>(
        &self,
        blocks: &[Range<u32>],
        maps: &mut Vec<RatingMap>,
        hubs: &mut Hubs,
        targets: &mut [u32],
        run: &Run,
    ) -> Result<()> {
        let (graph, n) = (self.graph, self.cluster_of.len());
        let of_short = |map: &mut RatingMap, v: u32, target: &mut u32| {
            if !SharedSums::takes(graph.degree(v), n) {
                *target = self.target::<PAIRS>(map, v);
            }
        };
        let of_hubs = |targets: &mut [u32]| {
            for v in blocks.iter().flat_map(|block| hubs.within(block)).collect::<Vec<_>>() {
                targets[v as usize] = self.target_of_hub::<PAIRS>(hubs, v, run)?;
            }
            Ok(())
        };
        graph.propose_and(maps, blocks.iter().cloned(), targets, run, of_short, of_hubs)
    }

    /// The target of a vertex whose list is not long.
    #[inline(always)]
    fn target<const PAIRS: bool>(&self, map: &mut RatingMap, v: u32) -> u32 {
        if PAIRS && !self.is_alone(v) {
            return NONE;
        }
        map.begin(self.graph.degree(v), self.cluster_of.len());
        // Lookups in arrays of all vertices wait for memory: those of a vertex to come are begun now.
        self.graph.prefetch_neighbours(v.saturating_add(AHEAD), MOST_AHEAD, &self.cluster_of);
        self.graph.each(v, |u, w| {
            let cluster = self.cluster_of[u as usize];
            if map.add(cluster, w) {
                prefetch(&self.loads, cluster as usize);
            }
        });
        let (chooser, mut best) = (Chooser::<D, PAIRS>::new(self, v), None);
        map.sums().for_each(|[cluster, w]| chooser.rate(&mut best, cluster, w));
        chooser.target(best)
    }

    /// The target of a vertex with a long list, which all threads rate. The order in which they do is that of
    /// nothing: the best cluster is the same in any order.
    fn target_of_hub<const PAIRS: bool>(&self, hubs: &mut Hubs, v: u32, run: &Run) -> Result<u32> {
        if PAIRS && !self.is_alone(v) {
            return Ok(NONE);
        }
        let graph = self.graph;
        let threads = (graph.degree(v) / ENTRIES_OF_A_THREAD).clamp(1, run.threads());
        let sums = hubs.sums.share(threads)?;
        let mut bests: Vec<Option<Rated>> = vec![None; threads];
        share(&mut bests, graph.pieces(v), run, |_, piece| {
            let mut adder = sums.adder();
            graph.each_of(v, piece, |u, w| adder.add(self.cluster_of[u as usize], w));
            run.check()
        })?;
        let chooser = Chooser::<D, PAIRS>::new(self, v);
        share(&mut bests, graph.pieces(v), run, |best, piece| {
            graph.each_of(v, piece, |u, _| {
                let cluster = self.cluster_of[u as usize];
                match sums.take(cluster) {
                    0 => {}
                    w => chooser.rate(best, cluster, w),
                }
            });
            run.check()
        })?;
        Ok(chooser.target(bests.into_iter().flatten().reduce(|one, other| chooser.better(one, other))))
    }

    /// Moves the vertices of a block to their targets, as far as these have slack. Returns how many moved.
    #[inline(always)]
    fn approve_all(&mut self, block: Range<u32>, targets: &[u32]) -> usize {
        let mut moved = 0;
        for v in block {
            if let Some(&later) = targets.get(v as usize + APPROVED_AHEAD) {
                prefetch(&self.loads, later as usize);
            }
            let target = targets[v as usize];
            moved += usize::from(target != NONE && self.approve(v, target));
        }
        moved
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
        // By cluster, the vertex that waits for a partner, plus 1. By community and label, the open cluster
        // of vertices without neighbours.
        let mut waiting: Buffer<u32> = Buffer::zeroed(n, "single vertices")?;
        let mut isolated: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let is_single = |v: u32| self.graph.degree(v) == 0 || targets[v as usize] != NONE;
        for (v, index) in select(run, n, "single vertices", is_single)?.into_iter().zip(1_usize..) {
            if index % CHUNK == 0 {
                run.check()?;
            }
            if self.graph.degree(v) == 0 {
                let community = self.communities.map_or(0, |communities| communities[v as usize]);
                let open = isolated.entry((community, self.graph.fixed(v))).or_insert(v);
                if *open != v && !self.approve(v, *open) {
                    *open = v;
                }
            } else {
                let place = &mut waiting[targets[v as usize] as usize];
                match std::mem::take(place).checked_sub(1) {
                    Some(waits) if self.approve(v, waits) => {}
                    _ => *place = v + 1,
                }
            }
        }
        Ok(())
    }

    /// Numbers the clusters by their lowest vertex.
    fn number(self, run: &Run) -> Result<Clustering> {
        let Self { mut cluster_of, loads, .. } = self;
        drop(loads);
        let n = cluster_of.len();
        let mut lowest: Buffer<u32> = Buffer::zeroed(n, "lowest vertices of clusters")?;
        fill(&mut lowest, run, |_, lowest| *lowest = NONE)?;
        let cells = shared(&mut lowest);
        let lower = |(), v: usize| {
            let cell = &cells[cluster_of[v] as usize];
            // Most vertices are not the lowest, and a load costs less than a store.
            if cell.load(Relaxed) > v as u32 {
                cell.fetch_min(v as u32, Relaxed);
            }
        };
        fold(run, n, (), lower, |(), ()| ())?;
        let is_lowest = |&v: &usize| lowest[cluster_of[v] as usize] == v as u32;
        let chunks = n.div_ceil(CHUNK);
        let chunk = |index: usize| index * CHUNK..n.min((index + 1) * CHUNK);
        let count = |(): &mut (), index| Ok(chunk(index).filter(is_lowest).count() as u32);
        let mut starts = map(run, usize::MAX, chunks, || Ok(()), count)?;
        let count = to_starts(&mut starts) as usize;
        let mut number: Buffer<u32> = Buffer::zeroed(n, "clusters")?;
        let cells = shared(&mut number);
        map(
            run,
            usize::MAX,
            chunks,
            || Ok(()),
            |(), index| {
                let numbered = chunk(index).filter(is_lowest).zip(starts[index]..);
                numbered.for_each(|(v, number)| cells[cluster_of[v] as usize].store(number, Relaxed));
                Ok(())
            },
        )?;
        fill(&mut cluster_of, run, |_, cluster| *cluster = number[*cluster as usize])?;
        Ok(Clustering { cluster_of, count })
    }
}
