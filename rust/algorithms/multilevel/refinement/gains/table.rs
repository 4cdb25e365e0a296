//! Gains of the vertices of a small graph, from a table of their connections to all parts.
//!
//! **Memory.** 4 bytes per vertex and part, which only graphs of some ten thousand vertices can afford.

use super::MoveGains;
use crate::algorithms::multilevel::model::{Assignment, Connections, Graph, Quality};
use crate::base::{Buffer, Result, Run};
use crate::capacity::{Load, fits, plus, relative};
use crate::exec::{scratches, share};

/// Vertices whose rows a thread fills at a time.
const CHUNK: usize = 1 << 8;

/// An assignment, and the connection of every vertex to every part.
pub struct GainTable<'a, const D: usize> {
    /// The graph.
    pub graph: &'a Graph<'a, D>,
    /// Number of parts.
    pub k: usize,
    /// The parts and their loads.
    pub assignment: &'a mut Assignment<D>,
    /// Cap of each part.
    pub caps: &'a [Load<D>],
    /// Weight of the edges from v to part p, at `v * k + p`.
    connections: Buffer<u32>,
    /// Weight of the edges of each vertex.
    volumes: Buffer<u32>,
    /// Weight of the edges between parts.
    pub cut: u64,
    /// Number of parts above a cap.
    over: usize,
    /// The larger share of its caps that each part uses.
    relative: Vec<f64>,
}

impl<'a, const D: usize> GainTable<'a, D> {
    /// The table of an assignment.
    pub fn new(
        graph: &'a Graph<'a, D>,
        assignment: &'a mut Assignment<D>,
        caps: &'a [Load<D>],
        run: &Run,
    ) -> Result<Self> {
        let k = caps.len();
        let mut connections: Buffer<u32> =
            Buffer::zeroed(graph.len() * k, "connections of vertices to parts")?;
        let mut volumes: Buffer<u32> = Buffer::zeroed(graph.len(), "weights of edges")?;
        let chunks = connections.chunks_mut(CHUNK * k.max(1)).zip(volumes.chunks_mut(CHUNK));
        let mut ends = scratches(run, graph.num_entries(), || Ok(0_u64))?;
        let shared = &*assignment;
        share(&mut ends, (0_u32..).step_by(CHUNK).zip(chunks), run, |ends, (first, (rows, volumes))| {
            for ((v, row), volume) in (first..).zip(rows.chunks_mut(k)).zip(volumes) {
                let own = shared.part(v);
                graph.each(v, |u, w| {
                    let part = shared.part(u);
                    match &shared.prices {
                        None => row[part as usize] += w,
                        Some(prices) => prices.connect(row, part, w),
                    }
                    *volume += w * shared.highest_price();
                    *ends += u64::from(w) * u64::from(shared.price(part, own));
                });
            }
            run.check()
        })?;
        let ends: u64 = ends.iter().sum();
        let both = || assignment.loads.iter().zip(caps);
        let over = both().filter(|(load, cap)| !fits(**load, **cap)).count();
        let relative = both().map(|(load, cap)| relative(*load, *cap)).collect();
        Ok(Self { graph, k, assignment, caps, connections, volumes, cut: ends / 2, over, relative })
    }

    /// Its quality.
    pub fn quality(&self) -> Quality {
        let excess = if self.over == 0 { 0.0 } else { self.assignment.excess(self.caps) };
        Quality { excess, cut: self.cut }
    }

    /// Part of `v`.
    #[inline(always)]
    pub fn part(&self, v: u32) -> usize {
        self.assignment.part(v) as usize
    }

    /// Weight of the edges from `v` to each part.
    #[inline(always)]
    pub fn connections(&self, v: u32) -> &[u32] {
        &self.connections[v as usize * self.k..][..self.k]
    }

    /// Whether `v` has neighbours in other parts.
    #[inline(always)]
    pub fn on_boundary(&self, v: u32) -> bool {
        self.connections(v)[self.part(v)] != self.volumes[v as usize]
    }

    /// The other part with slack for `v` to which it has the strongest connection (ties: the one with the
    /// smaller relative load, then the lowest), and the gain of moving there.
    #[inline(always)]
    pub fn best_move(&self, v: u32) -> Option<(usize, i64)> {
        if !self.graph.may_move(v) {
            return None;
        }
        let (own, weight, row) = (self.part(v), self.graph.weight(v), self.connections(v));
        let has_slack =
            |part: usize| part != own && fits(plus(self.assignment.loads[part], weight), self.caps[part]);
        let emptier = |part: usize, other: usize| self.relative_load(part) < self.relative_load(other);
        let mut best: Option<(usize, u32)> = None;
        for (part, &w) in row.iter().enumerate().filter(|&(_, &w)| w > 0) {
            if best.is_none_or(|(other, most)| w > most || w == most && emptier(part, other))
                && has_slack(part)
            {
                best = Some((part, w));
            }
        }
        // Seldom: no neighbour is in another part with slack.
        let any = || {
            (0..self.k)
                .filter(|&p| row[p] == 0 && has_slack(p))
                .reduce(|a, b| if emptier(b, a) { b } else { a })
        };
        let (part, w) = best.or_else(|| Some((any()?, 0)))?;
        Some((part, i64::from(w) - i64::from(row[own])))
    }

    /// Whether a part is above a cap.
    #[inline(always)]
    pub fn exceeds(&self, part: usize) -> bool {
        !fits(self.assignment.loads[part], self.caps[part])
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
        self.cut = self.cut + u64::from(self.connections(v)[from]) - u64::from(self.connections(v)[to]);
        self.over -= [from, to].into_iter().filter(|&part| self.exceeds(part)).count();
        self.assignment.shift(v, weight, to as u32);
        self.over += [from, to].into_iter().filter(|&part| self.exceeds(part)).count();
        for part in [from, to] {
            self.relative[part] = relative(self.assignment.loads[part], self.caps[part]);
        }
        let Self { graph, connections, k, assignment, .. } = self;
        let start = |u: u32| u as usize * *k;
        match &assignment.prices {
            None => graph.each(v, |u, w| {
                let row = &mut connections[start(u)..][..*k];
                row[from] -= w;
                row[to] += w;
            }),
            Some(prices) => graph.each(v, |u, w| {
                prices.shift(&mut connections[start(u)..][..*k], [from as u32, to as u32], w);
            }),
        }
    }
}

impl<'a, const D: usize> MoveGains<'a, D> for GainTable<'a, D> {
    fn graph(&self) -> &'a Graph<'a, D> {
        self.graph
    }

    fn assignment(&self) -> &Assignment<D> {
        self.assignment
    }

    fn quality(&self) -> Quality {
        GainTable::quality(self)
    }

    fn may_begin(&self, v: u32) -> bool {
        self.on_boundary(v) || self.exceeds(self.part(v))
    }

    #[inline(always)]
    fn best_move(&self, _: &mut Connections, v: u32) -> Option<(u32, i64)> {
        GainTable::best_move(self, v).map(|(part, gain)| (part as u32, gain))
    }

    fn shift(&mut self, _: &mut Connections, v: u32, to: u32) {
        GainTable::shift(self, v, to as usize);
    }

    #[inline(always)]
    fn raised(
        &self,
        _: &mut Connections,
        u: u32,
        [from, to]: [u32; 2],
        w: u32,
        old: Option<i64>,
    ) -> Option<i64> {
        let price = self.assignment.price(from, to);
        let (own, connections) = (self.part(u), self.connections(u));
        let gain = i64::from(connections[to as usize]) - i64::from(connections[own]);
        Some(match old {
            // It can leave for any part more easily, or for any on that machine.
            Some(old) if own == from as usize || price > 1 => gain.max(old + i64::from(w) * i64::from(price)),
            _ => gain,
        })
    }
}
