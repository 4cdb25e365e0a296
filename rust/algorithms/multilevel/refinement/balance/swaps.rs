//! Exchanges of two vertices, where no move of one brings a load nearer to its cap.
//!
//! The vertex that leaves the part above its cap relieves it more than the one that comes burdens it. The
//! heaviest vertices of that part are tried with the lightest of all others.
//!
//! The first two of three steps are functions of vertices and of the state at their start, so that vertices
//! can be divided in any way, and the last one reads no list of neighbours.
//! 1. [`Pairs::nominate`]: the first [`TRIED`] vertices of each side. If there are several divisions, the
//!    first of all their nominees are taken ([`Nominees::merge`]).
//! 2. [`Pairs::gains`]: the gain of each pair.
//! 3. [`Pairs::commit`]: exchanges the pair that gains most, and so on.

use std::collections::BinaryHeap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::algorithms::multilevel::model::{Assignment, Connections, Graph};
use crate::base::{Result, Run};
use crate::capacity::{Load, excess, minus, plus};
use crate::exec::{scratches, share};

/// Vertices on each side that are tried.
const TRIED: usize = 64;

/// Exchanges vertices of the part that exceeds its caps most with vertices of other parts, so that the excess
/// of the first falls and that of no other part rises. Returns whether it found such a pair.
pub(crate) fn exchange<const D: usize>(
    graph: &Graph<D>,
    assignment: &mut Assignment<D>,
    caps: &[Load<D>],
    run: &Run,
) -> Result<bool> {
    let over = |part: u32| excess(assignment.loads[part as usize], caps[part as usize]);
    let parts = (0..caps.len() as u32).filter(|&part| over(part) > 0.0);
    let Some(part) = parts.max_by(|&a, &b| over(a).total_cmp(&over(b)).then(b.cmp(&a))) else {
        return Ok(false);
    };
    let (load, cap) = (assignment.loads[part as usize], caps[part as usize]);
    for bound in (0..D).filter(|&bound| load[bound] > cap[bound]) {
        let pairs = Pairs { graph, caps, part, bound };
        let mut found = scratches(run, graph.len() as u64, || Ok(Nominees::default()))?;
        share(&mut found, graph.split(0..graph.len() as u32), run, |found, range| {
            pairs.nominate(assignment, range, found);
            run.check()
        })?;
        let sides = found.into_iter().fold(Nominees::default(), Nominees::merge).sides();
        let gains = pairs.gains(assignment, &sides, run)?;
        if pairs.commit(assignment, &sides, &gains) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Vertices of a part above its cap under one bound, and partners for them.
struct Pairs<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    caps: &'a [Load<D>],
    part: u32,
    bound: usize,
}

/// The first vertices by some key, and then by number: at most [`TRIED`].
#[derive(Default)]
struct Firsts(BinaryHeap<(u64, u32)>);

impl Firsts {
    fn push(&mut self, entry: (u64, u32)) {
        if self.0.len() < TRIED || self.0.peek().is_some_and(|&last| entry < last) {
            self.0.push(entry);
        }
        if self.0.len() > TRIED {
            self.0.pop();
        }
    }
}

/// The vertices that may be exchanged.
#[derive(Default)]
struct Nominees {
    /// The heaviest vertices of the part.
    heavy: Firsts,
    /// The lightest of all others.
    light: Firsts,
}

impl Nominees {
    /// The first ones of both.
    fn merge(mut self, other: Self) -> Self {
        other.heavy.0.into_iter().for_each(|entry| self.heavy.push(entry));
        other.light.0.into_iter().for_each(|entry| self.light.push(entry));
        self
    }

    /// The heavy and the light ones.
    fn sides(self) -> [Vec<u32>; 2] {
        [self.heavy, self.light].map(|side| side.0.into_sorted_vec().into_iter().map(|(_, v)| v).collect())
    }
}

impl<const D: usize> Pairs<'_, D> {
    /// Nominates vertices of `range`.
    fn nominate(&self, assignment: &Assignment<D>, range: Range<u32>, nominees: &mut Nominees) {
        for v in range.filter(|&v| self.graph.may_move(v)) {
            let weight = self.graph.weight(v)[self.bound];
            if assignment.part(v) == self.part {
                nominees.heavy.push((!weight, v));
            } else {
                nominees.light.push((weight, v));
            }
        }
    }

    /// The gain of each pair: a row for each heavy vertex.
    fn gains(
        &self,
        assignment: &Assignment<D>,
        [heavy, light]: &[Vec<u32>; 2],
        run: &Run,
    ) -> Result<Vec<Vec<i64>>> {
        let mut connections = Connections::new(assignment)?;
        let gain_of = |connections: &Connections, from: u32, to: u32| {
            i64::from(connections.to(to)) - i64::from(connections.to(from))
        };
        // Lists that are not here add nothing. Edges are summed once for all partners: a hub has many, and
        // the heaviest vertices are hubs.
        let here = self.graph.here();
        let mut gains = vec![0; (heavy.len() + 1) * light.len()];
        let (of_light, of_heavy) = gains.split_at_mut(light.len());
        for (&u, gain) in light.iter().zip(of_light).filter(|(u, _)| here.contains(u)) {
            connections.count(self.graph, assignment, u);
            *gain = gain_of(&connections, assignment.part(u), self.part);
        }
        let rows = of_heavy.chunks_mut(light.len().max(1));
        for (&v, row) in heavy.iter().zip(rows).filter(|(v, _)| here.contains(v)) {
            connections.count(self.graph, assignment, v);
            let mut between: FxHashMap<u32, i64> = light.iter().map(|&u| (u, 0)).collect();
            self.graph.each(v, |u, w| {
                if let Some(joined) = between.get_mut(&u) {
                    *joined += i64::from(w);
                }
            });
            for (&u, gain) in light.iter().zip(row) {
                let other = assignment.part(u);
                let price = i64::from(assignment.price(self.part, other));
                *gain = gain_of(&connections, self.part, other) - 2 * price * between[&u];
            }
            run.check()?;
        }
        let gains = self.graph.totals(gains)?;
        let (of_light, of_heavy) = gains.split_at(light.len());
        let rows = of_heavy.chunks(light.len().max(1));
        Ok(rows.map(|row| row.iter().zip(of_light).map(|(one, other)| one + other).collect()).collect())
    }

    /// Exchanges pairs of distinct vertices, until the part keeps its caps or no pair helps. Returns whether
    /// one did.
    fn commit(
        &self,
        assignment: &mut Assignment<D>,
        [heavy, light]: &[Vec<u32>; 2],
        gains: &[Vec<i64>],
    ) -> bool {
        let (cap, mut moved) = (self.caps[self.part as usize], vec![]);
        loop {
            let load = assignment.loads[self.part as usize];
            let mut best: Option<(i64, u32, u32)> = None;
            for (&v, row) in heavy.iter().zip(gains) {
                for (&u, &gain) in light.iter().zip(row) {
                    if best.is_some_and(|(most, ..)| gain <= most) || [v, u].iter().any(|v| moved.contains(v))
                    {
                        continue;
                    }
                    let (weight, other) = (self.graph.weight(v), assignment.part(u) as usize);
                    let here = plus(minus(load, weight), self.graph.weight(u));
                    let before = assignment.loads[other];
                    let there = plus(minus(before, self.graph.weight(u)), weight);
                    let rises = excess(there, self.caps[other]) > excess(before, self.caps[other]);
                    if excess(here, cap) < excess(load, cap) && !rises {
                        best = Some((gain, v, u));
                    }
                }
            }
            let Some((_, v, u)) = best else { return !moved.is_empty() };
            let other = assignment.part(u);
            assignment.shift(v, self.graph.weight(v), other);
            assignment.shift(u, self.graph.weight(u), self.part);
            moved.extend([v, u]);
        }
    }
}
