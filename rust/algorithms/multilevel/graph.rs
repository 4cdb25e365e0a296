//! Graphs with weights, from the one to be partitioned down to the coarsest.

use crate::base::buffer::Buffer;
use crate::base::error::{Error, Result};
use crate::base::run::Run;
use crate::capacity::bounds::{Load, plus};
use crate::graph::csr::Csr;
use crate::sets::groups::Groups;
use crate::sets::rating_map::RatingMap;

/// What vertices weigh: the first bound is on their number, the second on their volume or on weights of the user.
pub type Weight = Load;

/// An undirected graph; every edge is an entry at both of its ends.
#[derive(Debug)]
pub struct Graph {
    offsets: Buffer<u64>,
    /// Neighbour and weight of each entry.
    entries: Buffer<[u32; 2]>,
    weights: Buffer<Weight>,
    /// Sum of the weights of the edges of each vertex.
    volumes: Buffer<u32>,
    total: Weight,
    heaviest: Weight,
}

impl Graph {
    /// The graph of `csr`, parallel entries merged; vertex v weighs `weight(v)`.
    pub fn of(csr: &Csr, weight: impl Fn(u32) -> Weight, run: &Run) -> Result<Graph> {
        let n = csr.num_vertices();
        if csr.num_entries() >= u64::from(u32::MAX) {
            let what = "multilevel: 2^31 edges or more; a streaming partitioner takes them";
            return Err(Error::Capacity(what.into()));
        }
        let mut builder = Builder::new(n, csr.num_entries() as usize)?;
        run.begin("graph", n as u64);
        for v in 0..n as u32 {
            let mut last = u32::MAX;
            for &u in csr.neighbours(v) {
                if u == last {
                    builder.thicken();
                } else {
                    builder.entry(u, 1);
                    last = u;
                }
            }
            builder.vertex(weight(v));
            if (v + 1) % 4096 == 0 {
                run.advance(4096)?;
            }
        }
        run.advance(n as u64 % 4096)?;
        Ok(builder.finish())
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Number of entries: twice the number of edges.
    pub fn num_entries(&self) -> usize {
        self.offsets[self.len()] as usize
    }

    /// Number of neighbours.
    #[inline(always)]
    pub fn degree(&self, v: u32) -> usize {
        (self.offsets[v as usize + 1] - self.offsets[v as usize]) as usize
    }

    /// Neighbours of `v`, each with the weight of the edge.
    #[inline(always)]
    pub fn edges(&self, v: u32) -> &[[u32; 2]] {
        &self.entries[self.offsets[v as usize] as usize..self.offsets[v as usize + 1] as usize]
    }

    /// The weight of all edges of `v`.
    #[inline(always)]
    pub fn volume(&self, v: u32) -> u32 {
        self.volumes[v as usize]
    }

    /// What `v` weighs.
    #[inline(always)]
    pub fn weight(&self, v: u32) -> Weight {
        self.weights[v as usize]
    }

    /// What all vertices weigh.
    pub fn total(&self) -> Weight {
        self.total
    }

    /// The largest weight of a vertex, for each bound.
    pub fn heaviest(&self) -> Weight {
        self.heaviest
    }

    /// The graph whose vertices are the clusters `0..count` of this one's.
    pub fn contract(&self, cluster_of: &[u32], count: usize, run: &Run) -> Result<Graph> {
        let mut sizes: Buffer<u32> = Buffer::zeroed(count, "sizes of clusters")?;
        run.each(cluster_of.len(), |v| sizes[cluster_of[v as usize] as usize] += 1)?;
        let cluster = |v: u32| Some(cluster_of[v as usize]);
        let members = Groups::of(self.len(), sizes, cluster, |_| run.check())?;
        let mut builder = Builder::new(count, self.num_entries())?;
        let mut weights = RatingMap::default();
        for cluster in 0..count as u32 {
            let members = members.group(cluster);
            weights.begin(members.iter().map(|&v| self.degree(v)).sum::<usize>(), count);
            let mut weight = [0; 2];
            for &v in members {
                weight = plus(weight, self.weight(v));
                for &[u, w] in self.edges(v) {
                    let other = cluster_of[u as usize];
                    if other != cluster {
                        weights.add(other, w);
                    }
                }
            }
            weights.sums().for_each(|[other, w]| builder.entry(other, w));
            builder.vertex(weight);
            if cluster % 1024 == 0 {
                run.check()?;
            }
        }
        Ok(builder.finish())
    }

    /// The graph of the vertices that `part_of` puts into `part`, and their ids here.
    pub fn induced(&self, part_of: &[u32], part: u32, run: &Run) -> Result<(Graph, Vec<u32>)> {
        let mut ids: Vec<u32> = Vec::new();
        let mut place: Buffer<u32> = Buffer::zeroed(self.len(), "induced graph")?;
        let mut entries = 0;
        run.each(self.len(), |v| {
            if part_of[v as usize] == part {
                place[v as usize] = ids.len() as u32;
                ids.push(v);
                entries += self.degree(v);
            }
        })?;
        let mut builder = Builder::new(ids.len(), entries)?;
        for (&v, index) in ids.iter().zip(0_u32..) {
            for &[u, w] in self.edges(v).iter().filter(|[u, _]| part_of[*u as usize] == part) {
                builder.entry(place[u as usize], w);
            }
            builder.vertex(self.weight(v));
            if index % 4096 == 0 {
                run.check()?;
            }
        }
        Ok((builder.finish(), ids))
    }
}

/// Builder of a graph: the entries of a vertex, then the vertex.
pub struct Builder {
    offsets: Buffer<u64>,
    entries: Buffer<[u32; 2]>,
    weights: Buffer<Weight>,
    volumes: Buffer<u32>,
    total: Weight,
    heaviest: Weight,
    vertices: usize,
    end: usize,
}

impl Builder {
    /// Room for `n` vertices and `entries` entries; what is not used is never touched.
    pub fn new(n: usize, entries: usize) -> Result<Self> {
        Ok(Self {
            offsets: Buffer::zeroed(n + 1, "graph: offsets")?,
            entries: Buffer::zeroed(entries, "graph: edges")?,
            weights: Buffer::zeroed(n, "graph: weights")?,
            volumes: Buffer::zeroed(n, "graph: volumes")?,
            total: [0; 2],
            heaviest: [0; 2],
            vertices: 0,
            end: 0,
        })
    }

    /// Adds an entry to the current vertex.
    #[inline(always)]
    pub fn entry(&mut self, u: u32, weight: u32) {
        self.entries[self.end] = [u, weight];
        self.end += 1;
    }

    /// Adds 1 to the weight of the last entry.
    #[inline(always)]
    pub fn thicken(&mut self) {
        self.entries[self.end - 1][1] += 1;
    }

    /// Ends the current vertex.
    pub fn vertex(&mut self, weight: Weight) {
        self.weights[self.vertices] = weight;
        self.total = plus(self.total, weight);
        self.heaviest = [0, 1].map(|bound| self.heaviest[bound].max(weight[bound]));
        let edges = &self.entries[self.offsets[self.vertices] as usize..self.end];
        self.volumes[self.vertices] = edges.iter().map(|&[_, w]| w).sum();
        self.vertices += 1;
        self.offsets[self.vertices] = self.end as u64;
    }

    /// The graph of the vertices that were ended.
    pub fn finish(self) -> Graph {
        Graph {
            offsets: self.offsets,
            entries: self.entries,
            weights: self.weights,
            volumes: self.volumes,
            total: self.total,
            heaviest: self.heaviest,
        }
    }
}
