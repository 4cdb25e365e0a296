//! A partition while it is improved, and what every vertex would gain by moving.

use super::graph::{Graph, Weight};
use crate::base::buffer::Buffer;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::capacity::bounds::{excess, fits, minus, plus, relative};

/// Parts of all vertices, their loads, and the connection of every vertex to every part.
pub struct State<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Number of parts.
    pub k: usize,
    /// Part of each vertex.
    pub part_of: Buffer<u32>,
    /// Load of each part.
    pub loads: Vec<Weight>,
    /// What each part may weigh.
    pub caps: &'a [Weight],
    /// Weight of the edges from v to part p, at `v * k + p`.
    ties: Buffer<u32>,
    /// Weight of the edges between parts.
    pub cut: u64,
    /// Number of parts above a cap.
    over: usize,
    /// The larger share of its caps that each part uses.
    relative: Vec<f64>,
}

/// How good a partition is: first how much its loads exceed the caps, then its cut.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Quality {
    /// Sum over all parts and bounds of the excess relative to the cap.
    pub excess: f64,
    /// Weight of the edges between parts.
    pub cut: u64,
}

impl Quality {
    /// That of the given parts.
    pub fn of(graph: &Graph, part_of: &[u32], caps: &[Weight], run: &Run) -> Result<Self> {
        let (mut loads, mut ends) = (vec![[0; 2]; caps.len()], 0);
        for v in 0..graph.len() as u32 {
            let own = part_of[v as usize];
            loads[own as usize] = plus(loads[own as usize], graph.weight(v));
            let cut = graph.edges(v).iter().filter(|&&[u, _]| part_of[u as usize] != own);
            ends += cut.map(|&[_, w]| u64::from(w)).sum::<u64>();
            if v % 4096 == 0 {
                run.check()?;
            }
        }
        let excess = loads.iter().zip(caps).map(|(load, cap)| excess(*load, *cap)).sum();
        Ok(Self { excess, cut: ends / 2 })
    }
}

impl<'a> State<'a> {
    /// The state of a given partition.
    pub fn new(graph: &'a Graph, part_of: Buffer<u32>, caps: &'a [Weight], run: &Run) -> Result<Self> {
        let k = caps.len();
        let mut ties: Buffer<u32> = Buffer::zeroed(graph.len() * k, "ties of vertices to parts")?;
        let mut loads = vec![[0; 2]; k];
        let mut ends = 0;
        for v in 0..graph.len() as u32 {
            let own = part_of[v as usize] as usize;
            loads[own] = plus(loads[own], graph.weight(v));
            let row = &mut ties[v as usize * k..][..k];
            for &[u, w] in graph.edges(v) {
                let part = part_of[u as usize] as usize;
                row[part] += w;
                ends += u64::from(w) * u64::from(part != own);
            }
            if v % 4096 == 0 {
                run.check()?;
            }
        }
        let over = loads.iter().zip(caps).filter(|(load, cap)| !fits(**load, **cap)).count();
        let relative = loads.iter().zip(caps).map(|(load, cap)| relative(*load, *cap)).collect();
        Ok(Self { graph, k, part_of, loads, caps, ties, cut: ends / 2, over, relative })
    }

    /// Its quality.
    pub fn quality(&self) -> Quality {
        let each = |(load, cap): (&Weight, &Weight)| excess(*load, *cap);
        let excess = if self.over == 0 { 0.0 } else { self.loads.iter().zip(self.caps).map(each).sum() };
        Quality { excess, cut: self.cut }
    }

    /// Part of `v`.
    #[inline(always)]
    pub fn part(&self, v: u32) -> usize {
        self.part_of[v as usize] as usize
    }

    /// Weight of the edges from `v` to each part.
    #[inline(always)]
    pub fn ties(&self, v: u32) -> &[u32] {
        &self.ties[v as usize * self.k..][..self.k]
    }

    /// Whether `v` has neighbours in other parts.
    #[inline(always)]
    pub fn on_boundary(&self, v: u32) -> bool {
        self.ties(v)[self.part(v)] != self.graph.volume(v)
    }

    /// The other part with room for `v` to which it has the strongest connection (ties: the one with the smaller relative
    /// load, then the lowest), and the gain of moving there.
    #[inline(always)]
    pub fn best_move(&self, v: u32) -> Option<(usize, i64)> {
        let (own, weight, row) = (self.part(v), self.graph.weight(v), self.ties(v));
        let room = |part: usize| part != own && fits(plus(self.loads[part], weight), self.caps[part]);
        let emptier = |part: usize, other: usize| self.relative_load(part) < self.relative_load(other);
        let mut best: Option<(usize, u32)> = None;
        for (part, &w) in row.iter().enumerate().filter(|&(_, &w)| w > 0) {
            if best.is_none_or(|(other, most)| w > most || w == most && emptier(part, other)) && room(part) {
                best = Some((part, w));
            }
        }
        // Seldom: no neighbour is in another part with room.
        let any = || {
            (0..self.k).filter(|&p| row[p] == 0 && room(p)).reduce(|a, b| if emptier(b, a) { b } else { a })
        };
        let (part, w) = best.or_else(|| Some((any()?, 0)))?;
        Some((part, i64::from(w) - i64::from(row[own])))
    }

    /// Whether a part is above a cap.
    #[inline(always)]
    pub fn exceeds(&self, part: usize) -> bool {
        !fits(self.loads[part], self.caps[part])
    }

    /// The larger share of its caps that a part uses.
    #[inline(always)]
    pub fn relative_load(&self, part: usize) -> f64 {
        self.relative[part]
    }

    /// Moves `v`.
    pub fn shift(&mut self, v: u32, to: usize) {
        let (from, weight) = (self.part(v), self.graph.weight(v));
        if from == to {
            return;
        }
        self.cut = self.cut + u64::from(self.ties(v)[from]) - u64::from(self.ties(v)[to]);
        self.over -= [from, to].into_iter().filter(|&part| self.exceeds(part)).count();
        self.loads[from] = minus(self.loads[from], weight);
        self.loads[to] = plus(self.loads[to], weight);
        self.over += [from, to].into_iter().filter(|&part| self.exceeds(part)).count();
        for part in [from, to] {
            self.relative[part] = relative(self.loads[part], self.caps[part]);
        }
        self.part_of[v as usize] = to as u32;
        for &[u, w] in self.graph.edges(v) {
            let row = &mut self.ties[u as usize * self.k..][..self.k];
            row[from] -= w;
            row[to] += w;
        }
    }
}
