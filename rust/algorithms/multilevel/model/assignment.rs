//! Parts of the vertices, their loads, and their quality.

use std::sync::Arc;

use super::graph::Graph;
use super::machines::Prices;
use super::migration::Migration;
use crate::base::{Buffer, Growing, Result, Run, zeros};
use crate::capacity::{Load, excess, fits, minus, plus, relative};
use crate::exec::scratches;
use crate::sets::SparseSums;

/// The part of each vertex, and the load of each part.
pub struct Assignment<const D: usize> {
    /// Part of each vertex.
    pub part_of: Buffer<u32>,
    /// Load of each part.
    pub loads: Vec<Load<D>>,
    /// Prices of cut edges. Each costs 1 if it is `None`.
    pub prices: Option<Arc<Prices>>,
    /// Penalties for vertices that leave their old parts. Moves cost nothing if it is `None`.
    pub migration: Option<Migration>,
    /// The vertices that moved since somebody asked for them. `None` if nobody does.
    pub trail: Option<Vec<u32>>,
}

/// The quality of a partition: first the excess of its loads over the caps, then its cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quality {
    /// Sum over all parts and bounds of the excess relative to the cap.
    pub excess: f64,
    /// Weight of the edges between parts.
    pub cut: u64,
}

impl Quality {
    /// Whether it is better: loads within their caps count more than the cut.
    pub fn beats(self, other: Quality) -> bool {
        self.excess < other.excess - 1e-12 || self.excess <= other.excess + 1e-12 && self.cut < other.cut
    }
}

impl<const D: usize> Assignment<D> {
    /// The loads of given parts `0..k`.
    pub fn new(graph: &Graph<D>, part_of: Buffer<u32>, k: usize, run: &Run) -> Result<Self> {
        let mut loads: Vec<Load<D>> = zeros(k, "loads of parts")?;
        graph.add_weights(&mut loads, |v| part_of[v as usize], run)?;
        Ok(Self { part_of, loads, prices: None, migration: None, trail: None })
    }

    /// Part of `v`.
    #[inline(always)]
    pub fn part(&self, v: u32) -> u32 {
        self.part_of[v as usize]
    }

    /// Moves `v`, which weighs `weight`.
    #[inline(always)]
    pub fn shift(&mut self, v: u32, weight: Load<D>, to: u32) {
        let from = std::mem::replace(&mut self.part_of[v as usize], to);
        self.loads[from as usize] = minus(self.loads[from as usize], weight);
        self.loads[to as usize] = plus(self.loads[to as usize], weight);
        if let Some(trail) = &mut self.trail {
            trail.push(v);
        }
    }

    /// By how much the loads exceed the caps.
    pub fn excess(&self, caps: &[Load<D>]) -> f64 {
        self.loads.iter().zip(caps).map(|(&load, &cap)| excess(load, cap)).sum()
    }

    /// Whether all loads keep their caps.
    pub fn is_within(&self, caps: &[Load<D>]) -> bool {
        self.loads.iter().zip(caps).all(|(&load, &cap)| fits(load, cap))
    }

    /// The largest share of its caps that each part uses.
    pub fn fullness(&self, caps: &[Load<D>]) -> Vec<f64> {
        self.loads.iter().zip(caps).map(|(&load, &cap)| relative(load, cap)).collect()
    }

    /// The parts, those with the most slack first.
    pub fn by_slack(&self, caps: &[Load<D>]) -> BySlack {
        let fullness = self.fullness(caps);
        let mut parts: Vec<u32> = (0..caps.len() as u32).collect();
        parts.sort_by(|&a, &b| fullness[a as usize].total_cmp(&fullness[b as usize]));
        BySlack { parts, first: 0 }
    }

    /// The vertices with a neighbour in another part, ascending, and the same cost as [`Self::cut`].
    pub(crate) fn boundary(&self, graph: &Graph<D>, run: &Run) -> Result<(Vec<u32>, u64)> {
        let mut found = scratches(run, graph.num_entries(), || Ok((Growing::default(), 0_u64)))?;
        let mut nothing: Vec<()> = vec![(); graph.len()];
        let all = std::iter::once(0..graph.len() as u32);
        graph.propose(
            &mut found,
            all,
            &mut nothing,
            run,
            |(found, ends): &mut (Growing<u32>, u64), v, ()| {
                let before = *ends;
                *ends += self.ends(graph, v);
                if *ends > before {
                    found.push(v);
                }
            },
        )?;
        let ends = graph.sum(found.iter().map(|(_, ends)| ends).sum())?;
        let mut boundary =
            graph.all(Growing::concat(found.into_iter().map(|(found, _)| found), "boundary vertices")?)?;
        boundary.sort_unstable();
        Ok((boundary, ends / 2))
    }

    /// The cost of the cut edges, and the migration penalties.
    pub fn cut(&self, graph: &Graph<D>, run: &Run) -> Result<u64> {
        let mut ends = scratches(run, graph.num_entries(), || Ok(0_u64))?;
        // Nothing to propose: the rounds only visit all vertices.
        let mut nothing: Vec<()> = vec![(); graph.len()];
        let all = std::iter::once(0..graph.len() as u32);
        graph.propose(&mut ends, all, &mut nothing, run, |ends, v, ()| *ends += self.ends(graph, v))?;
        Ok(graph.sum(ends.into_iter().sum())? / 2)
    }

    /// The cost of the cut edges of `v`, and its migration penalty twice.
    #[inline(always)]
    fn ends(&self, graph: &Graph<D>, v: u32) -> u64 {
        let own = self.part(v);
        let mut ends = 2 * self.migration.as_ref().map_or(0, |migration| u64::from(migration.due(v, own)));
        graph.each(v, |u, w| ends += u64::from(w) * u64::from(self.price(self.part(u), own)));
        ends
    }

    /// The cost of an edge between two parts.
    #[inline(always)]
    pub fn price(&self, one: u32, other: u32) -> u32 {
        self.prices.as_ref().map_or(u32::from(one != other), |prices| prices.between(one, other))
    }

    /// The highest cost of an edge between parts.
    pub fn highest_price(&self) -> u32 {
        self.prices.as_ref().map_or(1, |prices| prices.most())
    }

    /// The migration penalty of `v` for leaving this part.
    #[inline(always)]
    pub fn migration_penalty(&self, v: u32, part: u32) -> u32 {
        self.migration.as_ref().map_or(0, |migration| migration.penalty(v, part))
    }

    /// The quality under `caps`.
    pub fn quality(&self, graph: &Graph<D>, caps: &[Load<D>], run: &Run) -> Result<Quality> {
        Ok(Quality { excess: self.excess(caps), cut: self.cut(graph, run)? })
    }
}

/// The parts in the order of their slack at some time, those with the most first.
pub struct BySlack {
    /// Fullest last.
    pub parts: Vec<u32>,
    /// Parts before this index have filled up since.
    pub first: usize,
}

impl BySlack {
    /// Skips the first parts that are full, but the last one.
    #[inline(always)]
    pub fn skip(&mut self, is_full: impl Fn(usize) -> bool) {
        while self.first + 1 < self.parts.len() && is_full(self.parts[self.first] as usize) {
            self.first += 1;
        }
    }

    /// The parts that were not skipped.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.parts[self.first..].iter().copied()
    }
}

/// The caps, each raised by this share.
pub(crate) fn with_slack<const D: usize>(caps: &[Load<D>], slack: f64) -> Vec<Load<D>> {
    caps.iter().map(|cap| cap.map(|cap| cap.saturating_add((cap as f64 * slack) as u64))).collect()
}

/// The connections of one vertex: the weight of its edges to each part.
pub struct Connections {
    sums: SparseSums<u32>,
    /// Connections to each machine.
    machines: SparseSums<u32>,
}

impl Connections {
    /// Scratch space for the connections to the parts of an assignment.
    pub fn new<const D: usize>(assignment: &Assignment<D>) -> Result<Self> {
        let machines = assignment.prices.as_ref().map_or(0, |prices| prices.machines());
        Ok(Self {
            sums: SparseSums::new(assignment.loads.len() as u32)?,
            machines: SparseSums::new(machines)?,
        })
    }

    /// Computes the connections of `v`.
    #[inline(always)]
    pub fn count<const D: usize>(&mut self, graph: &Graph<D>, assignment: &Assignment<D>, v: u32) {
        let Self { sums, machines } = self;
        sums.clear();
        let part_of = &assignment.part_of[..];
        graph.each(v, |u, w| sums.add(part_of[u as usize], w));
        if let Some(prices) = &assignment.prices {
            prices.apply(sums, machines);
        }
        if let Some(migration) = &assignment.migration {
            migration.apply(v, sums);
        }
    }

    /// Connections to one part only.
    #[inline(always)]
    pub fn only(&mut self, part: u32, w: u32) {
        self.sums.clear();
        if w > 0 {
            self.sums.add(part, w);
        }
    }

    /// The connection to `part`.
    #[inline(always)]
    pub fn to(&self, part: u32) -> u32 {
        self.sums.of(part)
    }

    /// The parts with a connection, and its weight.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.sums.iter()
    }
}
