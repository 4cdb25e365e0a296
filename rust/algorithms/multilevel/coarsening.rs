//! Clusters to contract, by label propagation under a size constraint; on meshes, by heavy-edge matching.
//!
//! Every vertex starts alone. In rounds, in order of ascending degree, each moves to the neighbouring cluster with
//! the best [`Rating`] that has room. Some vertices stay alone, since all clusters around them are full. They are
//! paired if they prefer the same cluster (*two-hop*). Without that the many leaves of hubs would never become
//! fewer.
//!
//! On a mesh, whose vertices have a few neighbours each, the vertices are matched in that order. Every vertex that
//! is alone is paired with another such neighbour, by its heaviest edge. There this is no worse, and faster. The
//! coarser levels of a mesh have more neighbours, and are clustered as others are.
//!
//! **Source.** Meyerhenke, Sanders and Schulz, "Partitioning Complex Networks via Size-Constrained Clustering", SEA
//! 2014; two-hop: LaSalle et al., "Improving Graph Partitioning for Modern Graphs and Architectures", IA3 2015;
//! matching: Karypis and Kumar, "A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs",
//! 1998.

use super::graph::{Graph, Weight};
use crate::base::NONE;
use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::base::random::splitmix64;
use crate::base::run::Run;
use crate::capacity::bounds::{fits, minus, plus};
use crate::sets::groups::Groups;
use crate::sets::rating_map::RatingMap;

/// How a vertex rates a cluster. No rating is the best for all graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rating {
    /// The weight of the edges to it.
    Weight,
    /// The same, per vertex of the cluster.
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
pub struct Coarsening {
    /// How vertices rate clusters.
    pub rating: Rating,
    /// What a cluster may weigh.
    pub cap: Weight,
    /// Rounds over all vertices.
    pub rounds: u32,
    /// Seed of the orders and of ties.
    pub seed: u64,
}

/// A rating: a number divided by another.
#[derive(Clone, Copy)]
struct Rate(f64, u32);

/// Clusters `0..count` of the vertices.
pub struct Clustered {
    /// Cluster of each vertex.
    pub cluster_of: Buffer<u32>,
    /// Number of clusters.
    pub count: usize,
}

impl Clustered {
    /// Labels of the clusters, given those of the vertices, which are the same within a cluster.
    pub fn labels(&self, of_vertices: &[u32], run: &Run) -> Result<Buffer<u32>> {
        let mut labels: Buffer<u32> = Buffer::zeroed(self.count, "labels of clusters")?;
        run.each(of_vertices.len(), |v| {
            labels[self.cluster_of[v as usize] as usize] = of_vertices[v as usize]
        })?;
        Ok(labels)
    }
}

/// Most neighbours of a vertex of a mesh.
const MESH_DEGREE: usize = 8;
/// On smaller graphs time does not matter.
const MESH_VERTICES: usize = 4096;

impl Coarsening {
    /// Clusters `graph`; where vertices have `cells`, each cluster within one of them.
    pub fn cluster(&self, graph: &Graph, cells: Option<&[u32]>, run: &Run) -> Result<Clustered> {
        let n = graph.len();
        let mut state = State {
            graph,
            how: *self,
            cells,
            cluster_of: Buffer::zeroed(n, "clusters")?,
            sizes: Buffer::zeroed(n, "sizes of clusters")?,
            seconds: Buffer::zeroed(if graph.total()[1] > 0 { n } else { 0 }, "weights of clusters")?,
            ratings: RatingMap::default(),
        };
        state.start(run)?;
        let order = ascending_degree(graph, run)?;
        if is_mesh(graph, run)? {
            for vertices in order.items().chunks(4096) {
                vertices.iter().for_each(|&v| state.match_heaviest(v));
                run.check()?;
            }
            return state.number(run);
        }
        for _ in 0..self.rounds {
            let mut moved = 0;
            for vertices in order.items().chunks(1024) {
                moved += vertices.iter().filter(|&&v| state.visit(v)).count();
                run.check()?;
            }
            if moved * 20 < n {
                break;
            }
        }
        state.pair_singles(run)?;
        state.number(run)
    }
}

struct State<'a> {
    graph: &'a Graph,
    how: Coarsening,
    cells: Option<&'a [u32]>,
    cluster_of: Buffer<u32>,
    /// First and second weight of each cluster; the second only under two bounds.
    sizes: Buffer<u32>,
    seconds: Buffer<u64>,
    /// Weight of the edges from the current vertex to each cluster.
    ratings: RatingMap,
}

impl State<'_> {
    fn start(&mut self, run: &Run) -> Result<()> {
        run.each(self.graph.len(), |v| {
            self.cluster_of[v as usize] = v;
            self.sizes[v as usize] = self.graph.weight(v)[0] as u32;
            if !self.seconds.is_empty() {
                self.seconds[v as usize] = self.graph.weight(v)[1];
            }
        })
    }

    /// What a cluster weighs.
    #[inline(always)]
    fn load(&self, cluster: u32) -> Weight {
        [
            u64::from(self.sizes[cluster as usize]),
            self.seconds.get(cluster as usize).copied().unwrap_or_default(),
        ]
    }

    fn set_load(&mut self, cluster: u32, load: Weight) {
        self.sizes[cluster as usize] = load[0] as u32;
        if let Some(second) = self.seconds.get_mut(cluster as usize) {
            *second = load[1];
        }
    }

    /// Whether `v` has its cluster for itself.
    fn is_alone(&self, v: u32) -> bool {
        self.cluster_of[v as usize] == v && self.load(v) == self.graph.weight(v)
    }

    /// Pairs `v`, if it is alone, with the neighbour by the heaviest edge that is alone, too, and light enough.
    fn match_heaviest(&mut self, v: u32) {
        if !self.is_alone(v) {
            return;
        }
        let weight = self.graph.weight(v);
        let may = |&&[u, _]: &&[u32; 2]| {
            self.is_alone(u)
                && fits(plus(self.graph.weight(u), weight), self.how.cap)
                && self.cells.is_none_or(|cells| cells[u as usize] == cells[v as usize])
        };
        let lot = |u: u32| splitmix64(self.how.seed ^ u64::from(v) << 32 ^ u64::from(u));
        let edges = self.graph.edges(v).iter().filter(may);
        let Some(&[u, _]) = edges.max_by_key(|&&[u, w]| (w, lot(u))) else { return };
        self.cluster_of[v as usize] = u;
        self.set_load(u, plus(self.load(u), weight));
        self.set_load(v, [0; 2]);
    }

    /// Moves `v` to the cluster with the best rating; whether it moved.
    fn visit(&mut self, v: u32) -> bool {
        let own = self.cluster_of[v as usize];
        let (weight, cap) = (self.graph.weight(v), self.how.cap);
        let Some(best) = self.favourite(v, |cluster, load| cluster == own || fits(plus(load, weight), cap))
        else {
            return false;
        };
        if best == own {
            return false;
        }
        self.set_load(own, minus(self.load(own), weight));
        self.set_load(best, plus(self.load(best), weight));
        self.cluster_of[v as usize] = best;
        true
    }

    /// The cluster with the best rating among those around `v` that `allowed` says yes to.
    #[inline(always)]
    fn favourite(&mut self, v: u32, allowed: impl Fn(u32, Weight) -> bool) -> Option<u32> {
        let own = self.cluster_of[v as usize];
        let edges = self.graph.edges(v);
        self.ratings.begin(edges.len(), self.cluster_of.len());
        for &[u, w] in edges {
            self.ratings.add(self.cluster_of[u as usize], w);
        }
        let own_size = self.graph.weight(v)[0] as u32;
        // Ties are broken at random, else low ids would attract everything.
        let salt = splitmix64(self.how.seed ^ u64::from(v));
        let lot = |cluster: u32| (salt ^ u64::from(cluster)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut best: Option<(Rate, u32)> = None;
        for [cluster, w] in self.ratings.sums() {
            let load = self.load(cluster);
            if !allowed(cluster, load)
                || self.cells.is_some_and(|cells| cells[cluster as usize] != cells[v as usize])
            {
                continue;
            }
            let rate = match self.how.rating {
                Rating::Weight => Rate(f64::from(w), 1),
                Rating::Density => {
                    let others = load[0] as u32 - if cluster == own { own_size } else { 0 };
                    Rate(f64::from(w), others.max(1))
                }
            };
            let wins = best.is_none_or(|(most, other)| {
                let (mine, its) = (rate.0 * f64::from(most.1), most.0 * f64::from(rate.1));
                mine > its || mine == its && lot(cluster) > lot(other)
            });
            if wins {
                best = Some((rate, cluster));
            }
        }
        best.map(|(_, cluster)| cluster)
    }

    /// Pairs vertices that are alone and prefer the same full cluster.
    fn pair_singles(&mut self, run: &Run) -> Result<()> {
        let n = self.graph.len();
        let mut waiting: Buffer<u32> = Buffer::zeroed(n, "single vertices")?;
        waiting.iter_mut().for_each(|place| *place = NONE);
        run.each(n, |v| {
            if !self.is_alone(v) {
                return;
            }
            let Some(cluster) = self.favourite(v, |cluster, _| cluster != v) else { return };
            let waits = std::mem::replace(&mut waiting[cluster as usize], NONE);
            let together =
                if waits == NONE { [u64::MAX; 2] } else { plus(self.load(waits), self.graph.weight(v)) };
            if fits(together, self.how.cap) {
                self.cluster_of[v as usize] = waits;
                self.set_load(waits, together);
                self.set_load(v, [0; 2]);
            } else {
                waiting[cluster as usize] = v;
            }
        })
    }

    /// Numbers the clusters by their lowest vertex.
    fn number(mut self, run: &Run) -> Result<Clustered> {
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
        Ok(Clustered { cluster_of: self.cluster_of, count: count as usize })
    }
}

/// Whether no vertex of a large graph has more than a few neighbours, as on roads and grids.
fn is_mesh(graph: &Graph, run: &Run) -> Result<bool> {
    let mut most = 0;
    run.each(graph.len(), |v| most = graph.degree(v).max(most))?;
    Ok(graph.len() >= MESH_VERTICES && most <= MESH_DEGREE)
}

/// The vertices by the length of their degree in bits (ties: id), in linear time.
fn ascending_degree(graph: &Graph, run: &Run) -> Result<Groups> {
    let length = |v: u32| usize::BITS - graph.degree(v).leading_zeros();
    let mut sizes: Buffer<u32> = Buffer::zeroed(usize::BITS as usize + 1, "lengths of degrees")?;
    run.each(graph.len(), |v| sizes[length(v) as usize] += 1)?;
    Groups::of(graph.len(), sizes, |v| Some(length(v)), |_| run.check())
}
