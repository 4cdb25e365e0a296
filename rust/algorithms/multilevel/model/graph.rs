//! Graphs with weights: the one to be partitioned, which is the adjacency itself, and the coarser ones.
//!
//! The finest graph borrows the lists of the adjacency, and the weights of its entries if the records have
//! any. Else all edges weigh 1, which is stored nowhere. Parallel records stay parallel entries: a sum over
//! the entries of a vertex is the same as over merged ones. A coarser graph owns its lists, with 4 bytes for
//! a neighbour and 4 for the weight of the edge. Weights are above 0. The weights of the adjacency add up to
//! at most 2^32, so that sums fit.
//!
//! In a divided run the lists of some vertices are with other replicas ([`divided`](super::divided)).
//!
//! **Fixed vertices** must be in a given part. Each has the number of that part as its *label*. All others,
//! which are free, have [`NONE`]. A vertex of a coarser graph has the label of any fixed vertex in it, since
//! a cluster holds fixed vertices of at most one part. A step that moves vertices asks [`Graph::may_move`].
//! Where groups of parts are partitioned first, as in recursive bisection, labels name the groups
//! ([`Graph::for_groups`]). They take 4 bytes per vertex, if any is fixed.
//!
//! Lists in files are read ahead of each pass over [`Graph::ranges`]. Where the disk is the limit, they are
//! packed ([`Graph::packed`]), with all entries in the same order.

use std::ops::Range;
use std::sync::Arc;

use super::entries::{Entries, Items, ReadAhead};
use crate::base::{Buffer, NONE, Result, Run, prefetch, zeros};
use crate::capacity::{Load, plus};
use crate::exec::{Division, fill, fold, scan_ranges};
use crate::graph::Csr;
use crate::graph::csr::Packed;

/// Entries of the vertices that a thread takes at a time.
const ENTRIES_AT_A_TIME: u64 = 1 << 15;
/// Most vertices that a thread takes at a time.
const VERTICES_AT_A_TIME: u32 = 1 << 13;
/// Vertices whose weights a thread adds up at a time.
const WEIGHTS_AT_A_TIME: usize = 1 << 14;
/// Threads add up weights by group if groups have at least this many vertices on average.
const GROUPS_OF: usize = 64;
/// Entries of a piece of a list that threads share.
const PIECE: u64 = 1 << 12;
/// Bytes of a packed list, per neighbour that is prefetched.
const PREFETCHED: usize = 3;

/// The weight of a vertex of the given graph under each bound.
pub(crate) type WeightOf<'a, const D: usize> = dyn Fn(u32) -> Load<D> + Sync + 'a;

/// The weights of the vertices.
pub(crate) enum VertexWeights<'a, const D: usize> {
    Given(&'a WeightOf<'a, D>),
    Stored(Items<'a, Load<D>>),
}

impl<const D: usize> VertexWeights<'_, D> {
    /// Lends the weights to another graph, without a copy.
    pub(crate) fn lent(&self) -> VertexWeights<'_, D> {
        match self {
            Self::Given(weight) => VertexWeights::Given(*weight),
            Self::Stored(weights) => VertexWeights::Stored(Items::Borrowed(weights)),
        }
    }
}

/// An undirected graph whose vertices weigh something under each of D bounds. Every edge is an entry at both
/// ends.
pub struct Graph<'a, const D: usize> {
    pub(crate) offsets: Items<'a, u64>,
    pub(crate) entries: Entries<'a>,
    pub(crate) weights: VertexWeights<'a, D>,
    pub(crate) total: Load<D>,
    pub(crate) heaviest: Load<D>,
    /// The weight of all entries.
    pub(crate) edge_weight: u64,
    /// Whether its lists lie in files.
    pub(crate) outside: bool,
    /// The part that each vertex must be in, or [`NONE`], if any vertex is fixed.
    pub(crate) fixed: Option<Items<'a, u32>>,
    /// The ranges whose lists the replicas have, if the run is divided among any.
    pub(crate) division: Option<Division>,
}

/// The arrays of a graph that owns them.
pub struct Arrays<'a, const D: usize> {
    /// Where the list of each vertex begins, and the number of all entries.
    pub offsets: &'a [u64],
    /// All lists.
    pub targets: &'a [u32],
    /// Weight of each entry.
    pub edge_weights: &'a [u32],
    /// Weight of each vertex.
    pub weights: &'a [Load<D>],
}

/// The weight of `n` vertices, and the largest in each bound.
fn totals<const D: usize>(n: usize, weight: &WeightOf<D>, run: &Run) -> Result<(Load<D>, Load<D>)> {
    let add =
        |(total, heaviest), v: usize| (plus(total, weight(v as u32)), largest(heaviest, weight(v as u32)));
    fold(run, n, ([0; D], [0; D]), add, |one, other| (plus(one.0, other.0), largest(one.1, other.1)))
}

impl<'a, const D: usize> Graph<'a, D> {
    /// The graph of `csr`.
    pub fn finest(csr: &'a Csr, weight: &'a WeightOf<'a, D>, run: &Run) -> Result<Self> {
        let (total, heaviest) = totals(csr.num_vertices(), weight, run)?;
        Ok(Self {
            offsets: Items::Borrowed(csr.offsets()),
            entries: Entries::Plain {
                targets: Items::Borrowed(csr.entries()),
                weights: csr.weights().map(Items::Borrowed),
            },
            weights: VertexWeights::Given(weight),
            total,
            heaviest,
            edge_weight: csr.weight(),
            outside: !csr.is_in_memory(),
            fixed: None,
            division: csr.division().cloned(),
        })
    }

    /// This graph for a partition into groups of parts. `group_of` returns the group of a part.
    pub(crate) fn for_groups(&self, group_of: impl Fn(u32) -> u32 + Sync, run: &Run) -> Result<Graph<'_, D>> {
        let groups = |fixed: &Items<u32>| -> Result<Items<'static, u32>> {
            let mut labels: Buffer<u32> = Buffer::zeroed(self.len(), "fixed vertices")?;
            fill(&mut labels, run, |v, label| {
                *label = if fixed[v] == NONE { NONE } else { group_of(fixed[v]) };
            })?;
            Ok(Items::Owned(labels))
        };
        Ok(Graph {
            offsets: Items::Borrowed(&self.offsets),
            entries: self.entries.lent(),
            weights: self.weights.lent(),
            fixed: self.fixed.as_ref().map(groups).transpose()?,
            division: self.division.clone(),
            ..*self
        })
    }

    /// The graph without weights of edges: all weigh 1.
    pub fn unweighted(self) -> Self {
        match self.entries {
            Entries::Plain { targets, .. } => {
                let edge_weight = self.offsets[self.offsets.len() - 1];
                Self { entries: Entries::Plain { targets, weights: None }, edge_weight, ..self }
            }
            Entries::Packed(_) => self,
        }
    }

    /// The graph of these lists in files. They are stored in the order of the vertices, each list beginning
    /// at its offset. The weights of the entries come with their sum.
    pub fn of(
        offsets: Buffer<u64>,
        targets: Buffer<u32>,
        (edge_weights, edge_weight): (Buffer<u32>, u64),
        weights: Buffer<Load<D>>,
        run: &Run,
    ) -> Result<Self> {
        let (total, heaviest) = totals(weights.len(), &|v: u32| weights[v as usize], run)?;
        Ok(Self {
            offsets: Items::Owned(offsets),
            entries: Entries::owned(targets, edge_weights),
            weights: VertexWeights::Stored(Items::Owned(weights)),
            total,
            heaviest,
            edge_weight,
            outside: true,
            fixed: None,
            division: None,
        })
    }

    /// The arrays that [`Graph::of`] takes, if the graph is neither borrowed nor packed.
    pub fn arrays(&self) -> Option<Arrays<'_, D>> {
        match (&self.entries, &self.weights) {
            (Entries::Plain { targets, weights: Some(edge_weights) }, VertexWeights::Stored(weights)) => {
                Some(Arrays { offsets: &self.offsets, targets, edge_weights, weights })
            }
            _ => None,
        }
    }

    /// The graph with its lists packed, if they lie in files, take more than `available` bytes, and get
    /// smaller by packing.
    pub fn packed(self, available: u64, run: &Run) -> Result<Self> {
        let Entries::Plain { weights, .. } = &self.entries else { return Ok(self) };
        let (all, weighted) = (0..self.len() as u32, weights.is_some());
        let most = self.num_entries() * if weighted { 8 } else { 4 };
        if !self.outside || most <= available || self.division.is_some() {
            return Ok(self);
        }
        let list = |v: u32| self.entries.list(self.range(v..v + 1));
        let packed = Packed::of(self.len(), weighted, || self.ranges(all.clone()), list, most, run)?;
        Ok(match packed {
            None => self,
            Some(lists) => Self { entries: Entries::Packed(Arc::new(lists)), ..self },
        })
    }

    /// Number of vertices.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of entries: twice the number of edges.
    pub fn num_entries(&self) -> u64 {
        self.offsets[self.len()]
    }

    /// Number of entries of `v`.
    #[inline(always)]
    pub fn degree(&self, v: u32) -> usize {
        (self.offsets[v as usize + 1] - self.offsets[v as usize]) as usize
    }

    /// The places of the entries of these vertices in the order of all.
    fn range(&self, vertices: Range<u32>) -> Range<u64> {
        self.offsets[vertices.start as usize]..self.offsets[vertices.end as usize]
    }

    /// Calls `visit` with each neighbour of `v` and the weight of the edge.
    #[inline(always)]
    pub fn each(&self, v: u32, mut visit: impl FnMut(u32, u32)) {
        let range = self.offsets[v as usize] as usize..self.offsets[v as usize + 1] as usize;
        match &self.entries {
            Entries::Plain { targets, weights: None } => targets[range].iter().for_each(|&u| visit(u, 1)),
            Entries::Plain { targets, weights: Some(weights) } => {
                targets[range.clone()].iter().zip(&weights[range]).for_each(|(&u, &w)| visit(u, w));
            }
            Entries::Packed(lists) => lists.each(v, visit),
        }
    }

    /// Pieces of the list of `v`, for [`Self::each_of`]. A packed list is one piece.
    pub fn pieces(&self, v: u32) -> impl Iterator<Item = Range<u64>> + use<D> {
        let all = self.range(v..v + 1);
        let piece = match self.entries {
            Entries::Plain { .. } => PIECE,
            Entries::Packed(_) => all.end - all.start,
        };
        let end = all.end;
        all.step_by(piece.max(1) as usize).map(move |start| start..end.min(start + piece))
    }

    /// Calls `visit` with each neighbour of `v` in a piece of its list, and the weight of the edge.
    #[inline(always)]
    pub fn each_of(&self, v: u32, piece: Range<u64>, mut visit: impl FnMut(u32, u32)) {
        match &self.entries {
            Entries::Packed(lists) => lists.each(v, visit),
            Entries::Plain { .. } => match self.entries.list(piece) {
                (targets, None) => targets.iter().for_each(|&u| visit(u, 1)),
                (targets, Some(weights)) => targets.iter().zip(weights).for_each(|(&u, &w)| visit(u, w)),
            },
        }
    }

    /// Calls `visit` with each neighbour of `v` once. The list must ascend, as those of the given graph do.
    #[inline(always)]
    pub fn distinct(&self, v: u32, mut visit: impl FnMut(u32)) {
        let mut last = NONE;
        self.each(v, |u, _| {
            if std::mem::replace(&mut last, u) != u {
                visit(u);
            }
        });
    }

    /// Brings the items of at most about `most` neighbours of `v` into the cache. A vertex outside has no
    /// neighbours.
    #[inline(always)]
    pub fn prefetch_neighbours<T>(&self, v: u32, most: usize, items: &[T]) {
        let Some(&[start, end]) =
            self.offsets.get(v as usize..v as usize + 2).and_then(|ends| ends.first_chunk())
        else {
            return;
        };
        match &self.entries {
            Entries::Plain { targets, .. } => targets
                [start as usize..(end as usize).min(start as usize + most)]
                .iter()
                .for_each(|&u| prefetch(items, u as usize)),
            Entries::Packed(lists) => {
                lists.each_within(v, most * PREFETCHED, |u, _| prefetch(items, u as usize));
            }
        }
    }

    /// The weight of all edges of `v`.
    pub fn volume(&self, v: u32) -> u32 {
        let mut volume = 0;
        self.each(v, |_, w| volume += w);
        volume
    }

    /// Weight of `v`.
    #[inline(always)]
    pub fn weight(&self, v: u32) -> Load<D> {
        match &self.weights {
            VertexWeights::Given(weight) => weight(v),
            VertexWeights::Stored(weights) => weights[v as usize],
        }
    }

    /// Weight of all vertices.
    pub fn total(&self) -> Load<D> {
        self.total
    }

    /// The largest weight of a vertex, for each bound.
    pub fn heaviest(&self) -> Load<D> {
        self.heaviest
    }

    /// The weight of all entries.
    pub fn edge_weight(&self) -> u64 {
        self.edge_weight
    }

    /// Number of entries of the vertices in `range`.
    pub fn entries_of(&self, range: Range<u32>) -> u64 {
        self.offsets[range.end as usize] - self.offsets[range.start as usize]
    }

    /// Ranges of the vertices `within`, each of about as much work as any other. Their lists are read ahead.
    pub fn ranges(&self, within: Range<u32>) -> impl Iterator<Item = Range<u32>> {
        self.ranges_of(std::iter::once(within))
    }

    /// The ranges of all `blocks`, which ascend: those whose lists are here.
    pub fn ranges_of(
        &self,
        blocks: impl Iterator<Item = Range<u32>> + Clone,
    ) -> impl Iterator<Item = Range<u32>> {
        let here = self.here();
        let within = move |block: Range<u32>| block.start.max(here.start)..block.end.min(here.end);
        let blocks = blocks.map(within).filter(|block| !block.is_empty());
        let mut ahead = self.outside.then(|| ReadAhead::new(&self.entries, &self.offsets, blocks.clone()));
        blocks.flat_map(|block| self.split(block)).inspect(move |range| {
            if let Some(ahead) = &mut ahead {
                ahead.take(range.clone());
            }
        })
    }

    /// The ranges without reading ahead.
    pub fn split(&self, within: Range<u32>) -> impl Iterator<Item = Range<u32>> {
        let mut start = within.start;
        std::iter::from_fn(move || {
            if start >= within.end {
                return None;
            }
            let most = within.end.min(start.saturating_add(VERTICES_AT_A_TIME));
            let enough = self.offsets[start as usize] + ENTRIES_AT_A_TIME;
            let ends = &self.offsets[start as usize + 1..=most as usize];
            let end = most.min(start + 1 + ends.partition_point(|&end| end < enough) as u32);
            Some(std::mem::replace(&mut start, end)..end)
        })
    }
}

/// The sum of some weights of entries.
pub(crate) fn sum_of(weights: &[u32]) -> u64 {
    weights.iter().map(|&weight| u64::from(weight)).sum()
}

pub(crate) fn largest<const D: usize>(a: Load<D>, b: Load<D>) -> Load<D> {
    std::array::from_fn(|bound| a[bound].max(b[bound]))
}

impl<'a, const D: usize> Graph<'a, D> {
    /// The graph with these labels of fixed vertices.
    pub fn with_fixed(mut self, labels: Option<&'a [u32]>) -> Self {
        self.fixed = labels.map(Items::Borrowed);
        self
    }

    /// The graph of clusters of `finer`, with labels if that has some.
    pub(crate) fn with_fixed_of(mut self, finer: &Graph<D>, cluster_of: &[u32], run: &Run) -> Result<Self> {
        let Some(fixed) = &finer.fixed else { return Ok(self) };
        let mut labels: Buffer<u32> = Buffer::zeroed(self.len(), "fixed clusters")?;
        labels.fill(NONE);
        run.each(finer.len(), |v| {
            if fixed[v as usize] != NONE {
                labels[cluster_of[v as usize] as usize] = fixed[v as usize];
            }
        })?;
        self.fixed = Some(Items::Owned(labels));
        Ok(self)
    }

    /// The part that `v` must be in, or [`NONE`] if it is free.
    #[inline(always)]
    pub fn fixed(&self, v: u32) -> u32 {
        self.fixed.as_ref().map_or(NONE, |labels| labels[v as usize])
    }

    /// Whether `v` may leave its part. A fixed vertex is where it must be.
    #[inline(always)]
    pub fn may_move(&self, v: u32) -> bool {
        self.fixed(v) == NONE
    }

    /// Adds the weights of the vertices to the loads of their groups. [`NONE`] is no group.
    pub(crate) fn add_weights(
        &self,
        loads: &mut [Load<D>],
        group_of: impl Fn(u32) -> u32 + Sync,
        run: &Run,
    ) -> Result<()> {
        let add = |loads: &mut [Load<D>], v: u32| {
            if let Some(load) = loads.get_mut(group_of(v) as usize) {
                *load = plus(*load, self.weight(v));
            }
        };
        let (groups, n) = (loads.len(), self.len());
        // Each thread has its own sums, which must be few beside the vertices.
        if run.threads() == 1 || n <= WEIGHTS_AT_A_TIME || n / GROUPS_OF < groups {
            return run.each(n, |v| add(loads, v));
        }
        let sums = || zeros(groups, "weights of groups");
        let add_all = |loads: &mut Vec<Load<D>>, range: Range<usize>| {
            range.for_each(|v| add(loads, v as u32));
            Ok(())
        };
        for sums in scan_ranges(run, usize::MAX, n, WEIGHTS_AT_A_TIME, sums, add_all)? {
            loads.iter_mut().zip(sums).for_each(|(load, sum)| *load = plus(*load, sum));
        }
        Ok(())
    }

    /// Moves all fixed vertices to where they must be.
    pub(crate) fn place_fixed(&self, part_of: &mut [u32], run: &Run) -> Result<()> {
        let Some(fixed) = &self.fixed else { return Ok(()) };
        fill(part_of, run, |v, part| {
            if fixed[v] != NONE {
                *part = fixed[v];
            }
        })
    }

    /// Whether any vertex may be fixed.
    pub fn has_fixed(&self) -> bool {
        self.fixed.is_some()
    }
}
