//! Flow-based refinement: minimum cuts between pairs of parts.
//!
//! A pair of parts that touch is refined in a *corridor*: the vertices that are a few steps from the boundary
//! between them. All other vertices of each part are one terminal of a flow network. A cut in it between the
//! terminals, cheaper than the present one and with both loads within their caps, is the new boundary
//! ([`cutter`]). Local search moves one vertex at a time, and cannot move a long
//! boundary as a whole. A flow can.
//!
//! Each side of a corridor takes vertices in breadth-first order, until the other part could not take them
//! all even if its slack were [`ALPHA`] times as large, or until they have [`SHARE`] of the entries of a
//! part. Pairs are refined where the boundaries of all parts are short. On other graphs a corridor is most of
//! its two parts, so that flows take long, and gain little.
//!
//! **Parallelism.** The pairs fall into matchings, in a fixed order. The pairs of a matching share no part.
//! Each is refined on a thread of its own, and then all of them move their vertices.
//!
//! **Memory.** 4 bytes per vertex, 12 for each vertex on a boundary and part that it touches, and for the
//! corridors of a matching 18 bytes per entry and 100 per vertex.
//!
//! **Source.** Sanders and Schulz, "Engineering Multilevel Graph Partitioning Algorithms", ESA 2011;
//! Gottesbüren, Heuer and Sanders, "Parallel Flow-Based Hypergraph Partitioning", SEA 2022.

mod cutter;

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::Refiner;
use crate::algorithms::multilevel::model::{Assignment, Graph, Problem, Quality, Size};
use crate::base::{Buffer, Growing, Result, reserved};
use crate::capacity::{Load, fits, minus};
use crate::exec::side_by_side;
use cutter::{FlowCutter, Network, SOURCE, TARGET};

/// The factor by which slacks are enlarged when a corridor is filled.
const ALPHA: f64 = 16.0;
/// Vertices on each path from the boundary to the end of a corridor.
const DEPTH: i32 = 2;
/// A side of a corridor has at most 1/SHARE of the entries of a mean part, or `FEW` if that is more.
const SHARE: u64 = 2;
const FEW: u64 = 1 << 16;

/// Minimum cuts between pairs of parts.
pub struct Flows {
    /// A boundary is short if its vertices have at most 1/`short` of all entries.
    pub short: u64,
}

impl<const D: usize> Refiner<D> for Flows {
    /// Cut edges must cost the same between all parts, and residual capacities must fit.
    fn applies(&self, problem: &Problem<D>, assignment: &Assignment<D>) -> bool {
        assignment.prices.is_none()
            && assignment.migration.is_none()
            && problem.graph.edge_weight() <= u64::from(u32::MAX)
    }

    fn refine(&self, problem: &Problem<D>, assignment: &mut Assignment<D>) -> Result<Option<Quality>> {
        let &Problem { graph, caps, run, .. } = problem;
        let (boundary, mut cut) = assignment.boundary(graph, run)?;
        let entries: u64 = boundary.iter().map(|&v| graph.degree(v) as u64).sum();
        if entries.saturating_mul(self.short) <= graph.num_entries() {
            let place: Buffer<AtomicU32> = Buffer::zeroed(graph.len(), "corridors")?;
            let pairs = Pairs::new(graph, assignment, &boundary)?;
            for matching in pairs.matchings(caps.len()) {
                let refined = |pair| Corridor::new(problem, assignment, pairs.at(pair), &place).refined();
                let changes: Vec<Result<Option<Change>>> = side_by_side(run, matching, refined);
                for change in changes {
                    let Some(Change { moves, gain }) = change? else { continue };
                    moves.into_iter().for_each(|(v, to)| assignment.shift(v, graph.weight(v), to));
                    cut -= gain;
                }
            }
        }
        Ok(Some(Quality { excess: assignment.excess(caps), cut }))
    }

    /// Sides of corridors share no vertex, and have a share of all entries together.
    fn memory(&self, size: &Size) -> u64 {
        let corridor = size.entries / SHARE;
        let boundary = (size.entries / self.short.max(1)).saturating_mul(12);
        boundary
            .saturating_add(corridor.saturating_mul(18))
            .saturating_add(4 * size.n + 100 * corridor.min(size.n))
    }
}

/// The pairs of parts that touch, and the vertices on the boundaries between them.
struct Pairs {
    /// Pairs of parts with vertices on their boundary, ascending.
    ends: Vec<([u32; 2], u32)>,
    /// Where the vertices of each pair begin.
    starts: Vec<usize>,
}

impl Pairs {
    fn new<const D: usize>(graph: &Graph<D>, assignment: &Assignment<D>, boundary: &[u32]) -> Result<Self> {
        let mut ends: Growing<([u32; 2], u32)> = Growing::default();
        for &v in boundary {
            let (own, mut last) = (assignment.part(v), None);
            graph.each(v, |u, _| {
                let other = assignment.part(u);
                if other != own {
                    let end = ([own.min(other), own.max(other)], v);
                    if last.replace(end) != Some(end) {
                        ends.push(end);
                    }
                }
            });
        }
        let mut ends = ends.finish("vertices between parts")?;
        ends.sort_unstable();
        ends.dedup();
        let first = |index: &usize| *index == 0 || ends[*index].0 != ends[*index - 1].0;
        let starts = (0..ends.len()).filter(first).chain([ends.len()]).collect();
        Ok(Self { ends, starts })
    }

    /// The pairs, such that those of a matching share no part.
    fn matchings(&self, k: usize) -> Vec<Vec<usize>> {
        let mut left: Vec<usize> = (0..self.starts.len() - 1).collect();
        let mut all = Vec::new();
        while !left.is_empty() {
            let mut taken = vec![false; k];
            let is_free = |pair: &usize| {
                let parts = self.ends[self.starts[*pair]].0.map(|part| part as usize);
                let is_free = parts.iter().all(|&part| !taken[part]);
                if is_free {
                    parts.iter().for_each(|&part| taken[part] = true);
                }
                is_free
            };
            let (matching, rest) = left.into_iter().partition(is_free);
            all.push(matching);
            left = rest;
        }
        all
    }

    /// The vertices on the boundary of a pair when it was found, and the parts.
    fn at(&self, pair: usize) -> &[([u32; 2], u32)] {
        &self.ends[self.starts[pair]..self.starts[pair + 1]]
    }
}

/// Moves of vertices, and their gain.
struct Change {
    moves: Vec<(u32, u32)>,
    gain: u64,
}

/// Slack of a side of a corridor.
struct Left<const D: usize> {
    load: Load<D>,
    entries: u64,
}

/// A corridor around the boundary of two parts.
struct Corridor<'a, const D: usize> {
    problem: &'a Problem<'a, D>,
    assignment: &'a Assignment<D>,
    parts: [u32; 2],
    /// The vertices, those of the first part first.
    vertices: Vec<u32>,
    /// Steps of each vertex from the boundary. Below 0 in the second part.
    depths: Vec<i32>,
    /// For each vertex of the graph in the corridor: its place in the network.
    place: &'a [AtomicU32],
}

impl<'a, const D: usize> Corridor<'a, D> {
    /// The corridor around the boundary of the first two parts in `ends`, which lists the vertices on it.
    fn new(
        problem: &'a Problem<'a, D>,
        assignment: &'a Assignment<D>,
        ends: &[([u32; 2], u32)],
        place: &'a [AtomicU32],
    ) -> Self {
        let parts = ends.first().map_or([0, 0], |(parts, _)| *parts);
        let mut corridor =
            Self { problem, assignment, parts, vertices: Vec::new(), depths: vec![0, 0], place };
        for side in [SOURCE, TARGET] {
            corridor.fill(side, ends);
        }
        corridor
    }

    /// Cap on the weight of a side of the corridor.
    fn limit(&self, side: usize) -> Load<D> {
        let Problem { graph, caps, .. } = self.problem;
        let [own, other] = [side, 1 - side].map(|side| self.parts[side] as usize);
        let loads = &self.assignment.loads;
        std::array::from_fn(|bound| {
            let all: f64 = caps.iter().map(|cap| cap[bound] as f64).sum();
            let cap = caps[other][bound] as f64;
            let mean = graph.total()[bound] as f64 * cap / all.max(1.0);
            let most = mean + ALPHA * (cap - mean).max(0.0) - loads[other][bound] as f64;
            (most.max(0.0) as u64).min(loads[own][bound])
        })
    }

    /// Adds the vertices of a side in breadth-first order.
    fn fill(&mut self, side: usize, ends: &[([u32; 2], u32)]) {
        let Self { problem: Problem { graph, caps, .. }, assignment, parts, .. } = *self;
        let sign = if side == SOURCE { 1 } else { -1 };
        let most = (graph.num_entries() / (SHARE * caps.len() as u64)).max(FEW);
        let mut left = Left { load: self.limit(side), entries: most };
        let touches = |v: u32| {
            let mut touches = false;
            graph.each(v, |u, _| touches |= assignment.part(u) == parts[1 - side]);
            touches
        };
        let mut index = self.vertices.len();
        for &(_, v) in ends.iter().filter(|&&(_, v)| assignment.part(v) == parts[side] && touches(v)) {
            self.add(v, sign, &mut left);
        }
        while let Some(&v) = self.vertices.get(index) {
            let depth = self.depths[index + 2] + sign;
            index += 1;
            if depth.abs() > DEPTH {
                break;
            }
            graph.each(v, |u, _| {
                if assignment.part(u) == parts[side] {
                    self.add(u, depth, &mut left);
                }
            });
        }
    }

    /// Adds a vertex that is free, if its side may have it.
    fn add(&mut self, v: u32, depth: i32, left: &mut Left<D>) {
        let graph = self.problem.graph;
        let (weight, entries) = (graph.weight(v), graph.degree(v) as u64);
        let place = &self.place[v as usize];
        if place.load(Relaxed) == 0 && graph.may_move(v) && fits(weight, left.load) && entries <= left.entries
        {
            *left = Left { load: minus(left.load, weight), entries: left.entries - entries };
            self.vertices.push(v);
            self.depths.push(depth);
            place.store(self.vertices.len() as u32 + 1, Relaxed);
        }
    }

    /// The cheapest balanced cut through the corridor, if it is cheaper than the boundary.
    fn refined(self) -> Result<Option<Change>> {
        let &Problem { graph, caps, run, .. } = self.problem;
        let (edges, cut) = self.edges()?;
        for &v in &self.vertices {
            self.place[v as usize].store(0, Relaxed);
        }
        if cut == 0 {
            return Ok(None);
        }
        let Self { assignment, parts, vertices, depths, .. } = self;
        let mut weights = reserved(vertices.len() + 2, "flow network")?;
        weights.extend(parts.map(|part| assignment.loads[part as usize]));
        for &v in &vertices {
            let side = usize::from(assignment.part(v) == parts[1]);
            let weight = graph.weight(v);
            weights[side] = minus(weights[side], weight);
            weights.push(weight);
        }
        let network = Network::new(weights, depths, &edges)?;
        drop(edges);
        let caps = parts.map(|part| caps[part as usize]);
        let Some((flow, is_target)) = FlowCutter::new(network, caps, run)?.cut_below(cut)? else {
            return Ok(None);
        };
        let moves = vertices.iter().zip(&is_target[2..]).filter_map(|(&v, &is_target)| {
            let to = parts[usize::from(is_target)];
            (assignment.part(v) != to).then_some((v, to))
        });
        Ok(Some(Change { moves: moves.collect(), gain: cut - flow }))
    }

    /// The edges of the network, and the weight of those that are cut.
    fn edges(&self) -> Result<(Vec<[u32; 3]>, u64)> {
        let (graph, parts) = (self.problem.graph, self.parts);
        let degrees: usize = self.vertices.iter().map(|&v| graph.degree(v)).sum();
        let mut edges = reserved(degrees + 2 * self.vertices.len(), "flow network")?;
        let mut cut = 0;
        for (&v, place) in self.vertices.iter().zip(2_u32..) {
            let own = usize::from(self.assignment.part(v) == parts[1]);
            let mut terminals = [0, 0];
            graph.each(v, |u, w| {
                let part = self.assignment.part(u);
                let Some(side) = parts.iter().position(|&one| one == part) else { return };
                let at = self.place[u as usize].load(Relaxed);
                if at == 0 {
                    terminals[side] += w;
                } else if at > place {
                    edges.push([place, at, w]);
                    cut += u64::from(w) * u64::from(side != own);
                }
            });
            cut += u64::from(terminals[1 - own]);
            for (terminal, w) in terminals.into_iter().enumerate().filter(|&(_, w)| w > 0) {
                edges.push([terminal as u32, place, w]);
            }
        }
        Ok((edges, cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::multilevel::model::Builder;
    use crate::base::{NONE, Random, Run};

    const SIDE: u32 = 24;

    /// A grid of vertices of different weights and edges of different weights.
    fn grid(random: &mut Random) -> Graph<'static, 2> {
        let n = SIDE * SIDE;
        let weight_of = |u: u32, v: u32| (u.min(v) * 7 + u.max(v)) % 3 + 1;
        let mut builder = Builder::new(n as usize, 4 * n as usize).unwrap();
        for v in 0..n {
            let (x, y) = (v % SIDE, v / SIDE);
            let steps = [(x > 0, 0, 1), (x + 1 < SIDE, 1, 0), (y > 0, 0, SIDE), (y + 1 < SIDE, SIDE, 0)];
            for (_, plus, minus) in steps.into_iter().filter(|step| step.0) {
                let u = v + plus - minus;
                builder.entry(u, weight_of(u, v));
            }
            builder.vertex([1, 1 + random.below(3)]);
        }
        builder.finish()
    }

    /// Parts in stripes with ragged boundaries.
    fn ragged(k: u32, random: &mut Random) -> Vec<u32> {
        let mut part = |v: u32| (v / SIDE + random.below(3) as u32).min(SIDE - 1) * k / SIDE;
        (0..SIDE * SIDE).map(&mut part).collect()
    }

    #[test]
    fn cuts_fall_within_the_caps_fixed_vertices_stay_and_threads_do_not_count() {
        for (seed, k) in [(1, 2), (2, 3), (3, 6)] {
            let mut random = Random::new(seed, 0);
            let (plain, parts) = (grid(&mut random), ragged(k, &mut random));
            let fixed: Vec<u32> =
                parts.iter().map(|&part| if random.below(9) == 0 { part } else { NONE }).collect();
            let graph = plain.with_fixed(Some(&fixed));
            let refined = |threads: usize| {
                let run = Run::new(Some(threads), None).unwrap();
                let mut start: Buffer<u32> = Buffer::zeroed(parts.len(), "parts").unwrap();
                start.copy_from_slice(&parts);
                let loads = Assignment::new(&graph, start, k as usize, &run).unwrap();
                let caps: Vec<Load<2>> = loads.loads.iter().map(|load| load.map(|load| load + 6)).collect();
                let problem = Problem::new(&graph, &caps, seed, &run);
                let mut assignment = problem.assignment(loads.part_of).unwrap();
                let before = problem.quality(&assignment).unwrap();
                let after = Flows { short: 1 }.refine(&problem, &mut assignment).unwrap().unwrap();
                assert_eq!(after, problem.quality(&assignment).unwrap());
                assert!(assignment.is_within(&caps));
                assert!(after.cut * 10 < before.cut * 9, "{before:?} {after:?}");
                let again = Assignment::new(&graph, assignment.part_of, k as usize, &run).unwrap();
                assert_eq!(again.loads, assignment.loads);
                again.part_of.to_vec()
            };
            let all = refined(1);
            assert_eq!(all, refined(2));
            assert!(all.iter().zip(&fixed).all(|(part, &fixed)| fixed == NONE || fixed == *part));
        }
    }

    #[test]
    fn long_boundaries_are_left_alone() {
        let (mut random, run) = (Random::new(4, 0), Run::new(Some(1), None).unwrap());
        let graph = grid(&mut random);
        let caps = [[u64::MAX; 2]; 2];
        let problem = Problem::new(&graph, &caps, 0, &run);
        let mut parts: Buffer<u32> = Buffer::zeroed(graph.len(), "parts").unwrap();
        parts.iter_mut().for_each(|part| *part = random.below(2) as u32);
        let mut assignment = problem.assignment(parts).unwrap();
        let before = (assignment.part_of.to_vec(), problem.quality(&assignment).unwrap());
        let after = Flows { short: 2 }.refine(&problem, &mut assignment).unwrap().unwrap();
        assert_eq!((assignment.part_of.to_vec(), after), before);
    }
}
