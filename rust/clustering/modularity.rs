//! Modularity clustering of a stream of vertices.
//!
//! **Requirements.** The neighbours of every vertex ([`Csr`]).
//!
//! **Memory.** 17 bytes per vertex (cluster of each vertex, size and volume of each cluster, three bits), and
//! per thread a table of the clusters around one vertex.
//!
//! **Algorithm.** Vertices come in id order. Putting `v` into the cluster `C` gains, in modularity,
//! `e(v,C) / m' - d(v) vol(C) / 2m'^2`. Here `e` counts the edges between them and `vol(C)` the degrees of
//! the other members. `v` joins the cluster with the largest gain among those of its placed neighbours that
//! stay within both caps, if that gain is positive. Otherwise it founds a cluster (of any volume). In the
//! second pass each vertex first leaves its cluster and then does the same. Then come rounds over the
//! *active* vertices, in id order: those with a neighbour that moved in the pass or round before. The last
//! round is the tenth, or the one that gains less than 5 % of all that was gained before. Among equal gains a
//! vertex prefers to stay, then to be alone, then the cluster of its lowest neighbour.
//!
//! Gains are compared exactly, as the integers `2m' e(v,C) - d(v) vol(C)`.
//!
//! **Parallelism.** Batches of vertices are decided in parallel against a frozen state, then committed in
//! order. A vertex with an earlier neighbour in its batch that moved is decided again, so its counts are
//! never stale. Only the volumes can be stale. A move that the current volumes forbid, or make a loss, is
//! also decided again. Graphs of fewer than 2^15 vertices are clustered with batches of 1: the sequential
//! rule.
//!
//! **Complexity.** O(n + m) time per pass.
//!
//! **Source.** SIGMA, section 3.3 ("CluStRE light+"). Chhabra, Dorian Peretz and Schulz, "CluStRE: Streaming
//! Graph Clustering with Multi-Stage Refinement", SEA 2025.

use std::num::NonZeroUsize;

use super::Clusters;
use crate::base::{Buffer, Error, NONE, Result, Run, ahead, prefetch};
use crate::exec::{Decider, decide_all};
use crate::graph::Csr;
use crate::sets::{Bits, RatingMap};

/// Bytes per vertex at the peak, result included, adjacency and scratch space not.
pub(crate) const BYTES_PER_VERTEX: u64 = 17;

/// Smaller graphs are clustered by the sequential rule.
const SEQUENTIAL_BELOW: usize = 1 << 15;
/// Vertices decided against one frozen state.
const BATCH: usize = 1 << 10;
/// In the first pass, a batch is at most this share of what was placed before: the first clusters grow fast.
const SHARE_OF_PLACED: usize = 16;
const MAX_ROUNDS: u32 = 10;
/// A round that gains less than 1/LEAST_SHARE of the total ends the search.
const LEAST_SHARE: i128 = 20;

/// Parameters of modularity clustering.
#[derive(Debug, Clone, Default)]
pub struct Modularity {
    /// Vertices that a cluster may have. `None` sets no bound.
    pub max_vertices: Option<u64>,
    /// The largest sum of `d(v) + 1` over a cluster. A vertex beyond it is a cluster of its own. `None` sets
    /// no bound.
    pub max_volume: Option<u64>,
    /// Vertices decided against one frozen state. `None` chooses by the size of the graph, 1 is the
    /// sequential rule.
    pub batch: Option<NonZeroUsize>,
}

impl Modularity {
    /// Clusters the graph of `csr`.
    pub fn cluster(&self, csr: &Csr, run: &Run) -> Result<Clusters> {
        self.validate()?;
        let n = csr.num_vertices();
        let mut widest = 0;
        run.each(n, |v| widest = csr.degree(v).max(widest))?;
        let scratch = RatingMap::memory(u64::from(widest), n as u64) * (run.threads() as u64 + 1);
        run.require(n as u64 * BYTES_PER_VERTEX + scratch, format!("modularity clustering of {n} vertices"))?;
        let mut state = State::new(csr, widest, self, run)?;
        let batch = self.batch.map_or(if n < SEQUENTIAL_BELOW { 1 } else { BATCH }, NonZeroUsize::get);
        run.begin("clustering", 2 * csr.num_entries() + 2 * n as u64);
        state.first_pass(batch, run)?;
        decide_all(&mut state, 0..n as u32, batch, run)?;
        state.search(batch, run)?;
        let State { cluster_of, sizes, volumes, .. } = state;
        drop(volumes);
        Clusters::numbered(cluster_of, sizes, |v| csr.degree(v), run)
    }

    fn validate(&self) -> Result<()> {
        if self.max_vertices == Some(0) {
            return Err(Error::parameter("max_vertices", "0 vertices. A cluster has at least 1"));
        }
        if self.max_volume == Some(0) {
            return Err(Error::parameter("max_volume", "a volume of 0. Use 1 or more, or None for no bound"));
        }
        Ok(())
    }
}

/// Where a vertex should go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move {
    /// The cluster, its own, or [`NONE`] for a new one.
    to: u32,
    /// Neighbours there.
    there: u32,
    /// Neighbours in its own cluster.
    here: u32,
}

struct State<'a> {
    csr: &'a Csr,
    /// The largest degree.
    widest: u32,
    /// 2m'.
    ends: i128,
    max_vertices: u64,
    max_volume: u64,
    /// [`NONE`] until a vertex is placed.
    cluster_of: Buffer<u32>,
    sizes: Buffer<u32>,
    /// Volume of each cluster. An empty cluster below `fresh` has the cluster that was emptied before it
    /// instead.
    volumes: Buffer<u64>,
    /// No cluster from here on was ever used.
    fresh: u32,
    /// The cluster that was emptied last.
    emptied: u32,
    /// Sum of all gains, times 2m'^2.
    gained: i128,
    /// Vertices with a neighbour that moved, for the next round.
    active: Bits,
    /// Vertices of this batch with a neighbour that moved.
    stale: Bits,
    batch: Batch,
}

/// First and last vertex of the batch at work. None while vertices are decided one by one.
type Batch = Option<(u32, u32)>;

impl<'a> State<'a> {
    fn new(csr: &'a Csr, widest: u32, caps: &Modularity, run: &Run) -> Result<Self> {
        let n = csr.num_vertices();
        let mut cluster_of: Buffer<u32> = Buffer::zeroed(n, "clusters of vertices")?;
        run.each(n, |v| cluster_of[v as usize] = NONE)?;
        Ok(Self {
            csr,
            widest,
            ends: i128::from(csr.num_entries()),
            max_vertices: caps.max_vertices.unwrap_or(u64::MAX),
            max_volume: caps.max_volume.unwrap_or(u64::MAX),
            cluster_of,
            sizes: Buffer::zeroed(n, "sizes of clusters")?,
            volumes: Buffer::zeroed(n, "volumes of clusters")?,
            fresh: 0,
            emptied: NONE,
            gained: 0,
            active: Bits::new(n as u64, "active vertices")?,
            stale: Bits::new(n as u64, "active vertices")?,
            batch: None,
        })
    }

    /// Places every vertex. Batches grow with the number of vertices placed.
    fn first_pass(&mut self, batch: usize, run: &Run) -> Result<()> {
        let n = self.csr.num_vertices();
        let mut start = 0;
        while start < n {
            let end = n.min((2 * start).max(SHARE_OF_PLACED));
            let batch = batch.min(start / SHARE_OF_PLACED).max(1);
            decide_all(self, start as u32..end as u32, batch, run)?;
            start = end;
        }
        // Founding a cluster moves nothing in the sense of the rounds.
        self.active.clear();
        Ok(())
    }

    /// Rounds over active vertices.
    fn search(&mut self, batch: usize, run: &Run) -> Result<()> {
        for _ in 0..MAX_ROUNDS {
            let before = self.gained;
            let next = Bits::new(self.csr.num_vertices() as u64, "active vertices")?;
            let active = std::mem::replace(&mut self.active, next);
            if active.is_empty() {
                break;
            }
            run.begin("local search", active.iter().map(|v| self.work(v)).sum());
            decide_all(self, active.iter(), batch, run)?;
            if LEAST_SHARE * (self.gained - before) < before {
                break;
            }
        }
        Ok(())
    }

    /// Gain, times 2m'^2, of a vertex of degree `degree` that has `edges` edges to a cluster of volume
    /// `volume` without it.
    #[inline(always)]
    fn gain(&self, degree: u32, edges: u32, volume: u64) -> i128 {
        self.ends * i128::from(edges) - i128::from(degree) * i128::from(volume)
    }

    /// Gain of `v` where it is.
    fn gain_of_staying(&self, v: u32, here: u32) -> i128 {
        let (own, degree) = (self.cluster_of[v as usize], self.csr.degree(v));
        if own == NONE {
            return 0;
        }
        self.gain(degree, here, self.volumes[own as usize] - u64::from(degree))
    }

    #[inline(always)]
    fn fits(&self, cluster: u32, degree: u32) -> bool {
        let members = u64::from(self.sizes[cluster as usize]) + 1;
        members <= self.max_vertices
            && self.volumes[cluster as usize] + u64::from(degree) + members <= self.max_volume
    }

    /// The best place for the vertex whose neighbours were counted.
    fn best(&self, connections: &RatingMap, v: u32) -> Move {
        let (own, degree) = (self.cluster_of[v as usize], self.csr.degree(v));
        let here = if own == NONE { 0 } else { connections.sum(own) };
        let staying = self.gain_of_staying(v, here);
        let to = if staying < 0 { NONE } else { own };
        let (mut best, mut found) = (staying.max(0), Move { to, there: here, here });
        for [cluster, there] in connections.sums().filter(|&[cluster, _]| cluster != own) {
            let gain = self.gain(degree, there, self.volumes[cluster as usize]);
            if gain > best && self.fits(cluster, degree) {
                (best, found) = (gain, Move { to: cluster, there, here });
            }
        }
        found
    }

    /// The gain of the move in the current state, times 2m'^2. `None` if the cluster is full.
    fn gain_of(&self, v: u32, Move { to, there, here }: Move) -> Option<i128> {
        let degree = self.csr.degree(v);
        let arriving = match to {
            NONE => 0,
            to if !self.fits(to, degree) => return None,
            to => self.gain(degree, there, self.volumes[to as usize]),
        };
        Some(arriving - self.gain_of_staying(v, here))
    }

    fn carry_out(&mut self, v: u32, to: u32, gain: i128) {
        let degree = u64::from(self.csr.degree(v));
        let from = self.cluster_of[v as usize];
        if from != NONE {
            self.sizes[from as usize] -= 1;
            self.volumes[from as usize] -= degree;
            if self.sizes[from as usize] == 0 {
                self.volumes[from as usize] = u64::from(self.emptied);
                self.emptied = from;
            }
        }
        let to = if to == NONE { self.empty_cluster() } else { to };
        self.cluster_of[v as usize] = to;
        self.sizes[to as usize] += 1;
        self.volumes[to as usize] += degree;
        self.gained += gain;
        let neighbours = self.csr.neighbours(v);
        if from != NONE {
            neighbours.iter().for_each(|&u| self.active.insert(u));
        }
        if let Some((_, last)) = self.batch {
            let later = neighbours.partition_point(|&u| u <= v);
            neighbours[later..].iter().take_while(|&&u| u <= last).for_each(|&u| self.stale.insert(u));
        }
    }

    /// An empty cluster.
    fn empty_cluster(&mut self) -> u32 {
        let cluster = self.emptied;
        if cluster == NONE {
            self.fresh += 1;
            return self.fresh - 1;
        }
        self.emptied = self.volumes[cluster as usize] as u32;
        self.volumes[cluster as usize] = 0;
        cluster
    }
}

impl Decider for State<'_> {
    type Scratch = RatingMap;
    /// `None` if the vertex must wait for a neighbour.
    type Decision = Option<Move>;

    fn scratch(&self) -> Result<RatingMap> {
        RatingMap::new(self.widest as usize, self.csr.num_vertices())
    }

    fn begin(&mut self, batch: &[u32], _run: &Run) -> Result<()> {
        if let Some((first, last)) = self.batch {
            self.stale.clear_around(first, last);
        }
        self.batch = batch.first().copied().zip(batch.last().copied());
        Ok(())
    }

    fn prepare(&self, v: u32) {
        for &u in self.csr.neighbours(v).iter().take(2 * ahead::ENTRIES) {
            prefetch(&self.cluster_of, u as usize);
        }
    }

    fn decide(&self, connections: &mut RatingMap, v: u32) -> Option<Move> {
        let neighbours = self.csr.neighbours(v);
        connections.begin_growing(neighbours.len());
        let mut waits = false;
        // In the first pass no vertex after v is placed.
        let unplaced = self.cluster_of[v as usize] == NONE;
        for (index, &u) in neighbours.iter().enumerate() {
            if unplaced && u > v {
                break;
            }
            if let Some(&later) = neighbours.get(index + 2 * ahead::ENTRIES) {
                prefetch(&self.cluster_of, later as usize);
            }
            let cluster = self.cluster_of[u as usize];
            if cluster == NONE {
                waits = true;
                break;
            }
            if connections.add(cluster, 1) {
                prefetch(&self.volumes, cluster as usize);
            }
        }
        if waits { None } else { Some(self.best(connections, v)) }
    }

    fn commit(&mut self, connections: &mut RatingMap, v: u32, decision: Option<Move>) {
        let own = self.cluster_of[v as usize];
        if let Some(found) = decision.filter(|_| !self.stale.contains(v)) {
            if found.to == own && own != NONE {
                return;
            }
            if let Some(gain) = self.gain_of(v, found).filter(|&gain| gain > 0 || own == found.to) {
                return self.carry_out(v, found.to, gain);
            }
        }
        let Some(found) = self.decide(connections, v) else { return };
        if found.to != own || own == NONE {
            let gain = self.gain_of(v, found).unwrap_or(0);
            self.carry_out(v, found.to, gain);
        }
    }

    fn work(&self, v: u32) -> u64 {
        u64::from(self.csr.degree(v)) + 1
    }
}
