//! Gains of the vertices of a large graph, computed when they are asked for.
//!
//! Where the parts have short boundaries, few vertices are asked, and most of them have few neighbours. A
//! table for all vertices and parts would take more memory than the graph.

use super::MoveGains;
use crate::algorithms::multilevel::model::{Assignment, Connections, Graph, Quality};
use crate::capacity::{Load, fits, plus, relative};

/// An assignment, and how good it is.
pub(crate) struct BoundaryGains<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    assignment: &'a mut Assignment<D>,
    caps: &'a [Load<D>],
    /// The cost of the cut edges.
    cut: u64,
    /// Number of parts above a cap.
    over: usize,
}

impl<'a, const D: usize> BoundaryGains<'a, D> {
    /// The gains of an assignment, whose cut edges cost `cut`.
    pub(crate) fn new(
        graph: &'a Graph<'a, D>,
        assignment: &'a mut Assignment<D>,
        caps: &'a [Load<D>],
        cut: u64,
    ) -> Self {
        let over = assignment.loads.iter().zip(caps).filter(|(load, cap)| !fits(**load, **cap)).count();
        Self { graph, assignment, caps, cut, over }
    }

    fn exceeds(&self, part: u32) -> bool {
        !fits(self.assignment.loads[part as usize], self.caps[part as usize])
    }

    /// The larger share of its caps that a part uses.
    fn relative_load(&self, part: u32) -> f64 {
        relative(self.assignment.loads[part as usize], self.caps[part as usize])
    }
}

impl<'a, const D: usize> MoveGains<'a, D> for BoundaryGains<'a, D> {
    fn graph(&self) -> &'a Graph<'a, D> {
        self.graph
    }

    fn assignment(&self) -> &Assignment<D> {
        self.assignment
    }

    fn quality(&self) -> Quality {
        let excess = if self.over == 0 { 0.0 } else { self.assignment.excess(self.caps) };
        Quality { excess, cut: self.cut }
    }

    fn may_begin(&self, _: u32) -> bool {
        true
    }

    /// Only parts with a connection.
    fn best_move(&self, connections: &mut Connections, v: u32) -> Option<(u32, i64)> {
        if !self.graph.may_move(v) {
            return None;
        }
        connections.count(self.graph, self.assignment, v);
        let (own, weight) = (self.assignment.part(v), self.graph.weight(v));
        let mut best: Option<(u32, u32)> = None;
        for (part, w) in connections.iter().filter(|&(part, w)| part != own && w > 0) {
            let load = plus(self.assignment.loads[part as usize], weight);
            let emptier = |other: u32| self.relative_load(part) < self.relative_load(other);
            if best.is_none_or(|(other, most)| w > most || w == most && emptier(other))
                && fits(load, self.caps[part as usize])
            {
                best = Some((part, w));
            }
        }
        best.map(|(part, w)| (part, i64::from(w) - i64::from(connections.to(own))))
    }

    fn shift(&mut self, connections: &mut Connections, v: u32, to: u32) {
        let from = self.assignment.part(v);
        connections.count(self.graph, self.assignment, v);
        self.cut = self.cut + u64::from(connections.to(from)) - u64::from(connections.to(to));
        self.over -= [from, to].into_iter().filter(|&part| self.exceeds(part)).count();
        self.assignment.shift(v, self.graph.weight(v), to);
        self.over += [from, to].into_iter().filter(|&part| self.exceeds(part)).count();
    }

    fn raised(
        &self,
        connections: &mut Connections,
        u: u32,
        [from, _]: [u32; 2],
        w: u32,
        old: Option<i64>,
    ) -> Option<i64> {
        let price = self.assignment.highest_price();
        let both = self.assignment.part(u) == from || price > 1;
        match old {
            Some(old) => Some(old + i64::from(w) * i64::from(price) * if both { 2 } else { 1 }),
            None => self.best_move(connections, u).map(|(_, gain)| gain),
        }
    }
}
