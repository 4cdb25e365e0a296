//! How the graph of a level is built, and that of some vertices of one: vertex by vertex, by one thread or by
//! several.

use super::entries::{Entries, Items};
use super::graph::{Graph, VertexWeights, largest, sum_of};
use crate::base::{Buffer, Growing, NONE, Result, Run, reserve};
use crate::capacity::{Load, plus};
use crate::exec::share;
use crate::sets::RatingMap;

/// Purpose of the memory, for errors.
const LISTS: &str = "neighbours of clusters";

/// The entries of some vertices, one after the other.
#[derive(Default)]
pub(crate) struct Lists<const D: usize> {
    /// The neighbours.
    pub targets: Vec<u32>,
    /// Weight of each entry.
    pub weights: Vec<u32>,
    /// Number of entries of each vertex, and its weight.
    pub vertices: Vec<(usize, Load<D>)>,
    /// Clusters that were left out, and how many vertices come before each.
    left_out: Vec<(u32, usize)>,
}

impl<const D: usize> Lists<D> {
    /// Adds a vertex of this weight. Its entries are the sums of `map`, shifted.
    pub(crate) fn vertex(&mut self, map: &RatingMap, shift: u32, weight: Load<D>) -> Result<()> {
        self.reserve(map.len())?;
        map.sums().for_each(|sum| self.entry(sum, shift));
        self.end(map.len(), weight)
    }

    /// Makes place for further entries.
    pub(crate) fn reserve(&mut self, entries: usize) -> Result<()> {
        reserve(&mut self.targets, entries, LISTS)?;
        reserve(&mut self.weights, entries, LISTS)
    }

    /// Adds an entry, for which there is place.
    #[inline(always)]
    pub(crate) fn entry(&mut self, [target, sum]: [u32; 2], shift: u32) {
        self.targets.push(target);
        self.weights.push((sum >> shift).max(1));
    }

    /// Makes a vertex of this weight of the last entries.
    pub(crate) fn end(&mut self, entries: usize, weight: Load<D>) -> Result<()> {
        reserve(&mut self.vertices, 1, LISTS)?;
        self.vertices.push((entries, weight));
        Ok(())
    }

    /// Leaves a cluster out, whose vertex belongs here.
    pub(crate) fn leave_out(&mut self, cluster: u32) -> Result<()> {
        reserve(&mut self.left_out, 1, LISTS)?;
        self.left_out.push((cluster, self.vertices.len()));
        Ok(())
    }

    /// Whether no cluster was left out.
    pub(crate) fn is_whole(&self) -> bool {
        self.left_out.is_empty()
    }

    /// Forgets them, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.left_out.clear();
        self.targets.clear();
        self.weights.clear();
        self.vertices.clear();
    }
}

/// Builder of a graph: the entries of a vertex, then the vertex.
pub(crate) struct Builder<const D: usize> {
    offsets: Buffer<u64>,
    targets: Buffer<u32>,
    edge_weights: Buffer<u32>,
    weights: Buffer<Load<D>>,
    total: Load<D>,
    heaviest: Load<D>,
    edge_weight: u64,
    vertices: usize,
    end: usize,
}

impl<const D: usize> Builder<D> {
    /// Reserves memory for `n` vertices and `entries` entries. Unused memory is never touched.
    pub(crate) fn new(n: usize, entries: usize) -> Result<Self> {
        Ok(Self {
            offsets: Buffer::zeroed(n + 1, "graph: offsets")?,
            targets: Buffer::zeroed(entries, "graph: edges")?,
            edge_weights: Buffer::zeroed(entries, "graph: weights of edges")?,
            weights: Buffer::zeroed(n, "graph: weights")?,
            total: [0; D],
            heaviest: [0; D],
            edge_weight: 0,
            vertices: 0,
            end: 0,
        })
    }

    /// Adds an entry to the current vertex.
    #[inline(always)]
    pub(crate) fn entry(&mut self, u: u32, weight: u32) {
        self.targets[self.end] = u;
        self.edge_weights[self.end] = weight;
        self.edge_weight += u64::from(weight);
        self.end += 1;
    }

    /// Adds the vertices of `lists`, in their order. Several threads copy the entries.
    pub(crate) fn append(&mut self, lists: &[Lists<D>], run: &Run) -> Result<()> {
        let mut rest = (&mut self.targets[self.end..], &mut self.edge_weights[self.end..]);
        let places = lists.iter().map(|lists| {
            let len = lists.targets.len();
            let (targets, weights) = std::mem::take(&mut rest);
            let (targets, later) = (targets.split_at_mut(len), weights.split_at_mut(len));
            rest = (targets.1, later.1);
            (lists, targets.0, later.0)
        });
        let mut sums = vec![0; run.threads().min(lists.len())];
        share(&mut sums, places, run, |sum, (lists, targets, weights)| {
            targets.copy_from_slice(&lists.targets);
            weights.copy_from_slice(&lists.weights);
            *sum += sum_of(weights);
            Ok(())
        })?;
        self.edge_weight += sums.into_iter().sum::<u64>();
        for &(entries, weight) in lists.iter().flat_map(|lists| &lists.vertices) {
            self.end += entries;
            self.vertex(weight);
        }
        Ok(())
    }

    /// Adds the vertices of `lists`, in their order. `add` adds those of the clusters that were left out.
    pub(crate) fn append_with(
        &mut self,
        lists: &Lists<D>,
        mut add: impl FnMut(&mut Self, u32) -> Result<()>,
    ) -> Result<()> {
        let mut left_out = lists.left_out.iter().peekable();
        let mut start = 0;
        for index in 0..=lists.vertices.len() {
            while let Some(&(cluster, _)) = left_out.next_if(|&&(_, before)| before == index) {
                add(self, cluster)?;
            }
            let Some(&(entries, weight)) = lists.vertices.get(index) else { break };
            for at in start..start + entries {
                self.entry(lists.targets[at], lists.weights[at]);
            }
            start += entries;
            self.vertex(weight);
        }
        Ok(())
    }

    /// Ends the current vertex.
    pub(crate) fn vertex(&mut self, weight: Load<D>) {
        self.weights[self.vertices] = weight;
        self.total = plus(self.total, weight);
        self.heaviest = largest(self.heaviest, weight);
        self.vertices += 1;
        self.offsets[self.vertices] = self.end as u64;
    }

    /// The graph of the vertices that were ended.
    pub(crate) fn finish(self) -> Graph<'static, D> {
        Graph {
            offsets: Items::Owned(self.offsets),
            entries: Entries::owned(self.targets, self.edge_weights),
            weights: VertexWeights::Stored(Items::Owned(self.weights)),
            total: self.total,
            heaviest: self.heaviest,
            edge_weight: self.edge_weight,
            outside: false,
            fixed: None,
            division: None,
        }
    }
}

impl<const D: usize> Graph<'_, D> {
    /// The graph of the vertices that `part_of` puts into `part`, and their ids here. It is going to be
    /// partitioned into the parts from `first` on, so labels are counted from there.
    pub fn induced(
        &self,
        part_of: &[u32],
        part: u32,
        first: u32,
        run: &Run,
    ) -> Result<(Graph<'static, D>, Vec<u32>)> {
        let mut ids = Growing::default();
        let mut place: Buffer<u32> = Buffer::zeroed(self.len(), "induced graph")?;
        let (mut entries, mut count) = (0, 0);
        run.each(self.len(), |v| {
            if part_of[v as usize] == part {
                place[v as usize] = count;
                count += 1;
                ids.push(v);
                entries += self.degree(v);
            }
        })?;
        let ids = ids.finish("vertices of an induced graph")?;
        let mut builder = Builder::new(ids.len(), entries)?;
        for (&v, index) in ids.iter().zip(0_u32..) {
            self.each(v, |u, w| {
                if part_of[u as usize] == part {
                    builder.entry(place[u as usize], w);
                }
            });
            builder.vertex(self.weight(v));
            if index % 4096 == 0 {
                run.check()?;
            }
        }
        let fixed = self.fixed.as_ref().map(|fixed| {
            let mut labels: Buffer<u32> = Buffer::zeroed(ids.len(), "fixed vertices")?;
            run.each(ids.len(), |index| {
                let part = fixed[ids[index as usize] as usize];
                labels[index as usize] = if part == NONE { NONE } else { part - first };
            })?;
            Ok(Items::Owned(labels))
        });
        let graph = builder.finish();
        Ok((Graph { fixed: fixed.transpose()?, ..graph }, ids))
    }
}
