//! Clusters to contract, by label propagation under a size constraint.
//!
//! Every vertex starts alone. In rounds, in order of ascending degree, each moves
//! to the neighbouring cluster with the best [`Rating`] that has room. Vertices that are alone in the end, since all
//! clusters around them are full, are paired if they prefer the same cluster (*two-hop*): without it the many leaves of
//! hubs would never get fewer.
//!
//! **Source.** Meyerhenke, Sanders and Schulz, "Partitioning Complex Networks via Size-Constrained Clustering", SEA
//! 2014; two-hop: LaSalle et al., "Improving Graph Partitioning for Modern Graphs and Architectures", IA3 2015.

use super::array::Array;
use super::graph::{Graph, Weight, fits, minus, plus};
use crate::error::Result;
use crate::random::splitmix64;
use crate::run::Run;

/// What a vertex likes about a cluster. None is the best for all graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rating {
    /// The weight of the edges to it.
    Weight,
    /// The same, per vertex of the cluster.
    Density,
    /// What joining it adds to the modularity.
    Modularity,
}

/// How to cluster.
#[derive(Debug, Clone, Copy)]
pub struct Coarsening {
    /// What vertices like.
    pub rating: Rating,
    /// What a cluster may weigh.
    pub cap: Weight,
    /// Rounds over all vertices.
    pub rounds: u32,
    /// Seed of the orders and of ties.
    pub seed: u64,
}

/// Clusters `0..count` of the vertices.
pub struct Clustered {
    /// Cluster of each vertex.
    pub cluster_of: Array<u32>,
    /// Number of clusters.
    pub count: usize,
}

const NONE: u32 = u32::MAX;

impl Coarsening {
    /// Clusters `graph`.
    pub fn cluster(&self, graph: &Graph, run: &Run) -> Result<Clustered> {
        let n = graph.len();
        let mut state = State {
            graph,
            how: *self,
            cluster_of: Array::zeroed(n, "clusters")?,
            weights: Array::zeroed(n, "weights of clusters")?,
            volumes: Array::zeroed(
                if self.rating == Rating::Modularity { n } else { 0 },
                "volumes of clusters",
            )?,
            ties: Array::zeroed(n, "ties")?,
            touched: Vec::new(),
            ends: 0.0,
        };
        state.start();
        let order = ascending_degree(graph)?;
        for _ in 0..self.rounds {
            let mut moved = 0;
            for vertices in order.chunks(1024) {
                moved += vertices.iter().filter(|&&v| state.visit(v)).count();
                run.advance(0)?;
            }
            if moved * 20 < n {
                break;
            }
        }
        state.pair_singles()?;
        state.number()
    }
}

struct State<'a> {
    graph: &'a Graph,
    how: Coarsening,
    cluster_of: Array<u32>,
    weights: Array<Weight>,
    volumes: Array<u64>,
    /// Weight of the edges from the vertex at hand to each cluster.
    ties: Array<u32>,
    touched: Vec<u32>,
    /// Weight of all entries.
    ends: f64,
}

impl State<'_> {
    fn start(&mut self) {
        for v in 0..self.graph.len() as u32 {
            self.cluster_of[v as usize] = v;
            self.weights[v as usize] = self.graph.weight(v);
            if self.how.rating == Rating::Modularity {
                self.volumes[v as usize] = self.volume(v);
                self.ends += self.volumes[v as usize] as f64;
            }
        }
    }

    fn volume(&self, v: u32) -> u64 {
        self.graph.edges(v).iter().map(|&[_, w]| u64::from(w)).sum()
    }

    /// Moves `v` to the cluster that it likes best; whether it moved.
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
        self.weights[own as usize] = minus(self.weights[own as usize], weight);
        self.weights[best as usize] = plus(self.weights[best as usize], weight);
        if self.how.rating == Rating::Modularity {
            let volume = self.volume(v);
            self.volumes[own as usize] -= volume;
            self.volumes[best as usize] += volume;
        }
        self.cluster_of[v as usize] = best;
        true
    }

    /// The cluster with the best rating among those around `v` that `allowed` says yes to.
    fn favourite(&mut self, v: u32, allowed: impl Fn(u32, Weight) -> bool) -> Option<u32> {
        let own = self.cluster_of[v as usize];
        let (mut ties, mut touched) =
            (std::mem::replace(&mut self.ties, Array::Small(Vec::new())), std::mem::take(&mut self.touched));
        for &[u, w] in self.graph.edges(v) {
            let cluster = self.cluster_of[u as usize] as usize;
            if ties[cluster] == 0 {
                touched.push(cluster as u32);
            }
            ties[cluster] += w;
        }
        let volume = if self.how.rating == Rating::Modularity { self.volume(v) as f64 } else { 0.0 };
        let mut best: Option<(f64, u32)> = None;
        for &cluster in &touched {
            let load = self.weights[cluster as usize];
            let w = f64::from(std::mem::take(&mut ties[cluster as usize]));
            if !allowed(cluster, load) {
                continue;
            }
            let rating = match self.how.rating {
                Rating::Weight => w,
                Rating::Density => {
                    let others = load[0] - if cluster == own { self.graph.weight(v)[0] } else { 0 };
                    w / others.max(1) as f64
                }
                Rating::Modularity => {
                    let there =
                        self.volumes[cluster as usize] as f64 - if cluster == own { volume } else { 0.0 };
                    w - volume * there / self.ends
                }
            };
            // Ties are broken at random, else low ids would attract everything.
            let wins = match best {
                None => true,
                Some((most, other)) if rating == most => self.lot(v, cluster) > self.lot(v, other),
                Some((most, _)) => rating > most,
            };
            if wins {
                best = Some((rating, cluster));
            }
        }
        touched.clear();
        (self.ties, self.touched) = (ties, touched);
        best.filter(|&(rating, _)| self.how.rating != Rating::Modularity || rating > 0.0)
            .map(|(_, cluster)| cluster)
    }

    fn lot(&self, v: u32, cluster: u32) -> u64 {
        splitmix64(self.how.seed ^ u64::from(cluster) << 32 ^ u64::from(v))
    }

    /// Pairs vertices that are alone and prefer the same full cluster.
    fn pair_singles(&mut self) -> Result<()> {
        let n = self.graph.len();
        let mut waiting: Array<u32> = Array::zeroed(n, "single vertices")?;
        waiting.iter_mut().for_each(|place| *place = NONE);
        for v in 0..n as u32 {
            let own = self.cluster_of[v as usize];
            let alone = own == v && self.weights[v as usize] == self.graph.weight(v);
            if !alone {
                continue;
            }
            let Some(cluster) = self.favourite(v, |cluster, _| cluster != own) else { continue };
            let waits = std::mem::replace(&mut waiting[cluster as usize], NONE);
            let load = if waits == NONE { [u64::MAX; 2] } else { self.weights[waits as usize] };
            let together = [
                load[0].saturating_add(self.graph.weight(v)[0]),
                load[1].saturating_add(self.graph.weight(v)[1]),
            ];
            if waits != NONE && fits(together, self.how.cap) {
                self.cluster_of[v as usize] = waits;
                self.weights[waits as usize] = together;
                self.weights[v as usize] = [0; 2];
            } else {
                waiting[cluster as usize] = v;
            }
        }
        Ok(())
    }

    /// Numbers the clusters by their lowest vertex.
    fn number(mut self) -> Result<Clustered> {
        let mut number: Array<u32> = Array::zeroed(self.graph.len(), "clusters")?;
        let mut count = 0;
        for cluster in self.cluster_of.iter_mut() {
            if number[*cluster as usize] == 0 {
                count += 1;
                number[*cluster as usize] = count;
            }
            *cluster = number[*cluster as usize] - 1;
        }
        Ok(Clustered { cluster_of: self.cluster_of, count: count as usize })
    }
}

/// The vertices by degree (ties: id), in linear time.
fn ascending_degree(graph: &Graph) -> Result<Array<u32>> {
    let n = graph.len();
    let bucket = |v: u32| (usize::BITS - graph.degree(v).leading_zeros()) as usize;
    let mut starts = [0_usize; usize::BITS as usize + 2];
    (0..n as u32).for_each(|v| starts[bucket(v) + 1] += 1);
    for bucket in 1..starts.len() {
        starts[bucket] += starts[bucket - 1];
    }
    let mut order = Array::zeroed(n, "order of the vertices")?;
    for v in 0..n as u32 {
        let place = &mut starts[bucket(v)];
        order[*place] = v;
        *place += 1;
    }
    Ok(order)
}
