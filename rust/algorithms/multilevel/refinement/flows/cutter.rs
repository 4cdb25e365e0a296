//! Balanced minimum cuts between two terminals: FlowCutter.
//!
//! A maximum flow from the source to the target leaves two minimum cuts: around the vertices that the source
//! still reaches in the residual graph, and around those that still reach the target. If neither keeps the
//! caps of the two sides, the smaller side is *pierced*: all its vertices become terminals, and so does one
//! vertex behind its cut. The flow is augmented, and so on. Cuts grow from piercing to piercing, and the
//! sides with them, until one cut keeps the caps, or costs as much as the one to be improved.
//!
//! The vertex to pierce is one that leaves the flow as it is, if there is any. Among those it is the one that
//! lies deepest within its side of the cut to be improved. So the new cut is near the old one. Flows are
//! augmented along shortest paths, many at a time (Dinic). The reach of a side is extended, not searched
//! again, as long as the flow stays.
//!
//! **Memory.** 12 bytes for each entry, and 60 for each vertex.
//!
//! **Source.** Hamann and Strasser, "Graph Bisection with Pareto Optimization", JEA 2018; Gottesbüren et al.,
//! "Advanced Flow-Based Multilevel Hypergraph Partitioning", SEA 2020; Dinic, "Algorithm for Solution of a
//! Problem of Maximum Flow in Networks with Power Estimation", 1970.

use std::collections::BinaryHeap;

use crate::base::{NONE, Result, Run, reserved, zeros};
use crate::capacity::{Load, fits, minus, plus, relative};

/// The terminals.
pub(crate) const SOURCE: usize = 0;
pub(crate) const TARGET: usize = 1;
/// In place of a side: neither.
const NEITHER: u8 = 2;
/// The search gives up after `WORK` steps for each vertex and entry.
const WORK: usize = 40;

/// An edge in one direction.
#[derive(Clone, Copy, Default)]
struct Arc {
    head: u32,
    /// The place of the other direction.
    twin: u32,
    /// Capacity left.
    residual: u32,
}

/// An undirected graph with two terminals, [`SOURCE`] and [`TARGET`].
pub(crate) struct Network<const D: usize> {
    offsets: Vec<u32>,
    arcs: Vec<Arc>,
    /// Weight of each vertex. A terminal stands for all vertices that are not free.
    weights: Vec<Load<D>>,
    /// Depth of each vertex within the side of the source, by the cut to be improved. Vertices below 0 lie in
    /// the side of the target.
    depths: Vec<i32>,
}

impl<const D: usize> Network<D> {
    /// The network of these vertices and edges. Each edge is given once, with its capacity.
    pub(crate) fn new(weights: Vec<Load<D>>, depths: Vec<i32>, edges: &[[u32; 3]]) -> Result<Self> {
        let n = weights.len();
        let mut offsets: Vec<u32> = zeros(n + 1, "flow network")?;
        for &[u, v, _] in edges {
            offsets[u as usize + 1] += 1;
            offsets[v as usize + 1] += 1;
        }
        for v in 0..n {
            offsets[v + 1] += offsets[v];
        }
        let mut ends = reserved(n, "flow network")?;
        ends.extend_from_slice(&offsets[..n]);
        let mut arcs = reserved(2 * edges.len(), "flow network")?;
        arcs.resize(2 * edges.len(), Arc::default());
        for &[u, v, residual] in edges {
            let [one, other] = [ends[u as usize], ends[v as usize]];
            ends[u as usize] += 1;
            ends[v as usize] += 1;
            arcs[one as usize] = Arc { head: v, twin: other, residual };
            arcs[other as usize] = Arc { head: u, twin: one, residual };
        }
        Ok(Self { offsets, arcs, weights, depths })
    }

    fn len(&self) -> usize {
        self.weights.len()
    }

    fn places(&self, v: u32) -> std::ops::Range<usize> {
        self.offsets[v as usize] as usize..self.offsets[v as usize + 1] as usize
    }

    /// Capacity left on an arc away from a side.
    #[inline(always)]
    fn open(&self, arc: Arc, side: usize) -> u32 {
        if side == SOURCE { arc.residual } else { self.arcs[arc.twin as usize].residual }
    }
}

/// The vertices that a side reaches.
struct Side<const D: usize> {
    /// Its terminals, and then other vertices that it reaches.
    members: Vec<u32>,
    /// Number of terminals among them.
    terminals: usize,
    /// Number of scanned members.
    scanned: usize,
    load: Load<D>,
    /// Vertices behind the cut around it, the best to pierce first: whether the other side does not reach it,
    /// how deep it lies in this side, and the vertex.
    frontier: BinaryHeap<(bool, i32, u32)>,
}

/// The search for a balanced cut.
pub(crate) struct FlowCutter<'a, const D: usize> {
    network: Network<D>,
    /// Cap on the weight of each side.
    caps: [Load<D>; 2],
    total: Load<D>,
    sides: [Side<D>; 2],
    /// The side that reaches each vertex, or [`NEITHER`].
    owner: Vec<u8>,
    is_terminal: Vec<bool>,
    /// Steps from the terminals of the source, and the arc at which the search for paths goes on.
    levels: Vec<u32>,
    next: Vec<u32>,
    queue: Vec<u32>,
    /// The flow, which is the capacity of the cuts.
    flow: u64,
    work: usize,
    run: &'a Run,
}

impl<'a, const D: usize> FlowCutter<'a, D> {
    pub(crate) fn new(network: Network<D>, caps: [Load<D>; 2], run: &'a Run) -> Result<Self> {
        let n = network.len();
        let side = || Side {
            members: Vec::new(),
            terminals: 0,
            scanned: 0,
            load: [0; D],
            frontier: BinaryHeap::new(),
        };
        let mut cutter = Self {
            caps,
            total: network.weights.iter().fold([0; D], |sum, &weight| plus(sum, weight)),
            sides: [side(), side()],
            owner: zeros(n, "flow network")?,
            is_terminal: reserved(n, "flow network")?,
            levels: zeros(n, "flow network")?,
            next: zeros(n, "flow network")?,
            queue: Vec::new(),
            flow: 0,
            work: 0,
            network,
            run,
        };
        cutter.owner.fill(NEITHER);
        cutter.is_terminal.resize(n, false);
        for side in [SOURCE, TARGET] {
            cutter.claim(side, side as u32);
            cutter.settle(side);
        }
        Ok(cutter)
    }

    /// The capacity of a cut below `limit` whose sides keep the caps, and the side of each vertex. Among the
    /// cuts that were found it is the least.
    pub(crate) fn cut_below(&mut self, limit: u64) -> Result<Option<(u64, Vec<bool>)>> {
        loop {
            while self.augment() {
                self.run.check()?;
                if self.flow >= limit || self.is_tired() {
                    return Ok(None);
                }
            }
            self.release();
            for side in [SOURCE, TARGET] {
                self.grow(side);
            }
            loop {
                if let Some(side) = self.balanced() {
                    let is_target =
                        self.owner.iter().map(|&owner| (owner as usize == side) == (side == TARGET));
                    return Ok(Some((self.flow, is_target.collect())));
                }
                match self.pierce() {
                    Some(true) => break,
                    Some(false) if !self.is_tired() => {}
                    _ => return Ok(None),
                }
            }
        }
    }

    /// Whether the search has taken too long.
    fn is_tired(&self) -> bool {
        self.work > WORK * (self.network.arcs.len() + self.network.len())
    }

    /// A side that keeps the caps together with all that is not in it. The one that is balanced better if
    /// there are two.
    fn balanced(&self) -> Option<usize> {
        let fullness = |side: usize| {
            let load = self.sides[side].load;
            let rest = minus(self.total, load);
            let [own, other] = [self.caps[side], self.caps[1 - side]];
            (fits(load, own) && fits(rest, other)).then(|| relative(load, own).max(relative(rest, other)))
        };
        match [fullness(SOURCE), fullness(TARGET)] {
            [Some(source), Some(target)] => Some(if source <= target { SOURCE } else { TARGET }),
            [Some(_), None] => Some(SOURCE),
            [None, Some(_)] => Some(TARGET),
            [None, None] => None,
        }
    }

    /// Makes all that the smaller side reaches terminals, and one vertex behind its cut, and extends the
    /// side. Returns whether the flow can be augmented, and nothing if no side can grow.
    fn pierce(&mut self) -> Option<bool> {
        let filled = |side: usize| relative(self.sides[side].load, self.caps[side]);
        let smaller = if filled(SOURCE) <= filled(TARGET) { SOURCE } else { TARGET };
        for side in [smaller, 1 - smaller] {
            if !fits(self.sides[side].load, self.caps[side]) {
                return None;
            }
            if let Some(v) = self.behind(side) {
                let meets = self.owner[v as usize] != NEITHER;
                self.claim(side, v);
                self.settle(side);
                return Some(meets || self.grow(side));
            }
        }
        None
    }

    /// The best vertex behind the cut around a side.
    fn behind(&mut self, side: usize) -> Option<u32> {
        while let Some((is_free, depth, v)) = self.sides[side].frontier.pop() {
            self.work += 1;
            let owner = self.owner[v as usize] as usize;
            let load = plus(self.sides[side].load, self.network.weights[v as usize]);
            if owner == side || self.is_terminal[v as usize] || !fits(load, self.caps[side]) {
                continue;
            }
            if is_free && owner == 1 - side {
                self.sides[side].frontier.push((false, depth, v));
                continue;
            }
            return Some(v);
        }
        None
    }

    /// Adds a vertex to those that a side reaches.
    #[inline(always)]
    fn claim(&mut self, side: usize, v: u32) {
        self.owner[v as usize] = side as u8;
        let weight = self.network.weights[v as usize];
        let side = &mut self.sides[side];
        side.members.push(v);
        side.load = plus(side.load, weight);
    }

    /// Makes all that a side reaches terminals.
    fn settle(&mut self, side: usize) {
        let side = &mut self.sides[side];
        for &v in &side.members[side.terminals..] {
            self.is_terminal[v as usize] = true;
        }
        side.terminals = side.members.len();
    }

    /// Forgets the reach of both sides, except their terminals.
    fn release(&mut self) {
        for side in &mut self.sides {
            for &v in &side.members[side.terminals..] {
                if !self.is_terminal[v as usize] {
                    self.owner[v as usize] = NEITHER;
                }
                side.load = minus(side.load, self.network.weights[v as usize]);
            }
            side.members.truncate(side.terminals);
            side.scanned = 0;
            side.frontier.clear();
        }
    }

    /// Extends the reach of a side. Returns whether it meets the other one, so that the flow can be
    /// augmented.
    fn grow(&mut self, side: usize) -> bool {
        while let Some(&v) = self.sides[side].members.get(self.sides[side].scanned) {
            self.sides[side].scanned += 1;
            self.work += self.network.places(v).len();
            for place in self.network.places(v) {
                let arc = self.network.arcs[place];
                let owner = self.owner[arc.head as usize];
                if owner as usize == side {
                    continue;
                }
                if self.network.open(arc, side) == 0 {
                    let depth = self.network.depths[arc.head as usize];
                    let depth = if side == SOURCE { depth } else { -depth };
                    self.sides[side].frontier.push((owner == NEITHER, depth, arc.head));
                } else if owner == NEITHER {
                    self.claim(side, arc.head);
                } else {
                    return true;
                }
            }
        }
        false
    }

    /// Sends as much as shortest paths can take. Returns whether there is any path.
    fn augment(&mut self) -> bool {
        if !self.find_levels() {
            return false;
        }
        for v in 0..self.network.len() {
            self.next[v] = self.network.offsets[v];
        }
        for index in 0..self.sides[SOURCE].terminals {
            self.send(self.sides[SOURCE].members[index]);
        }
        true
    }

    /// Finds how many steps each vertex is away from the source. Returns whether the target is reached.
    fn find_levels(&mut self) -> bool {
        self.levels.fill(NONE);
        self.work += self.network.len();
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        queue.extend_from_slice(&self.sides[SOURCE].members[..self.sides[SOURCE].terminals]);
        queue.iter().for_each(|&v| self.levels[v as usize] = 0);
        let (mut index, mut last) = (0, NONE);
        while let Some(&v) = queue.get(index) {
            index += 1;
            let level = self.levels[v as usize] + 1;
            if level > last {
                break;
            }
            self.work += self.network.places(v).len();
            for place in self.network.places(v) {
                let Arc { head, residual, .. } = self.network.arcs[place];
                if residual > 0 && self.levels[head as usize] == NONE {
                    self.levels[head as usize] = level;
                    if self.is_sink(head) {
                        last = level;
                    } else {
                        queue.push(head);
                    }
                }
            }
        }
        self.queue = queue;
        last != NONE
    }

    /// Whether a vertex is a terminal of the target.
    #[inline(always)]
    fn is_sink(&self, v: u32) -> bool {
        self.is_terminal[v as usize] && self.owner[v as usize] as usize == TARGET
    }

    /// Sends all flow from one terminal that fits along paths which gain a level with each step.
    fn send(&mut self, start: u32) {
        let mut path: Vec<u32> = Vec::new();
        let mut v = start;
        loop {
            if self.is_sink(v) {
                v = self.push_along(&mut path).unwrap_or(start);
            }
            let end = self.network.offsets[v as usize + 1];
            let level = self.levels[v as usize].wrapping_add(1);
            let is_step = |&place: &u32| {
                let Arc { head, residual, .. } = self.network.arcs[place as usize];
                residual > 0 && self.levels[head as usize] == level
            };
            let found = (self.next[v as usize]..end).find(is_step);
            self.work += 1;
            self.next[v as usize] = found.unwrap_or(end);
            if let Some(place) = found {
                path.push(place);
                v = self.network.arcs[place as usize].head;
                continue;
            }
            let Some(place) = path.pop() else { return };
            v = self.network.arcs[self.network.arcs[place as usize].twin as usize].head;
            self.next[v as usize] += 1;
        }
    }

    /// Sends as much as a path can take. It then ends before its first full arc. Returns where that begins.
    fn push_along(&mut self, path: &mut Vec<u32>) -> Option<u32> {
        let arcs = &mut self.network.arcs;
        let most = path.iter().map(|&place| arcs[place as usize].residual).min()?;
        let mut first = None;
        for (index, &place) in path.iter().enumerate() {
            let twin = arcs[place as usize].twin as usize;
            arcs[place as usize].residual -= most;
            arcs[twin].residual += most;
            if arcs[place as usize].residual == 0 && first.is_none() {
                first = Some((index, arcs[twin].head));
            }
        }
        self.flow += u64::from(most);
        let (index, v) = first?;
        path.truncate(index);
        Some(v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;

    /// A random network of few vertices. Its edges may be parallel.
    fn random_network(random: &mut Random) -> (Vec<Load<1>>, Vec<i32>, Vec<[u32; 3]>) {
        let n = 3 + random.below(6);
        let weights = (0..n).map(|_| [1 + random.below(3)]).collect();
        let depths = (0..n).map(|_| random.below(5) as i32 - 2).collect();
        let mut end = || random.below(n) as u32;
        let mut edges: Vec<[u32; 3]> = (0..3 * n).map(|_| [end(), end(), 1 + end() % 4]).collect();
        edges.retain(|edge| edge[0] != edge[1]);
        (weights, depths, edges)
    }

    /// The capacity of a cut, and the loads of its sides.
    fn measured(weights: &[Load<1>], edges: &[[u32; 3]], is_target: &[bool]) -> (u64, [u64; 2]) {
        let is_cut = |edge: &&[u32; 3]| is_target[edge[0] as usize] != is_target[edge[1] as usize];
        let cut = edges.iter().filter(is_cut).map(|edge| u64::from(edge[2])).sum();
        let mut loads = [0, 0];
        for (weight, &is_target) in weights.iter().zip(is_target) {
            loads[usize::from(is_target)] += weight[0];
        }
        (cut, loads)
    }

    /// The sides of all cuts between the terminals.
    fn all_cuts(n: usize) -> impl Iterator<Item = Vec<bool>> {
        (0..1_u32 << (n - 2))
            .map(move |set| (0..n).map(|v| v == TARGET || v > TARGET && set >> (v - 2) & 1 == 1).collect())
    }

    #[test]
    fn a_cut_without_caps_is_minimum_and_one_with_caps_keeps_them() {
        let run = Run::new(Some(1), None).unwrap();
        let mut balanced = 0;
        for seed in 0..400 {
            let (weights, depths, edges) = random_network(&mut Random::new(seed, 0));
            let total: u64 = weights.iter().map(|weight| weight[0]).sum();
            let cuts: Vec<_> = all_cuts(weights.len()).map(|cut| measured(&weights, &edges, &cut)).collect();
            for cap in [total, total / 2 + 1] {
                let least = cuts.iter().filter(|(_, loads)| loads.iter().all(|&load| load <= cap));
                let least = least.map(|&(cut, _)| cut).min();
                let network = Network::new(weights.clone(), depths.clone(), &edges).unwrap();
                let mut cutter = FlowCutter::new(network, [[cap]; 2], &run).unwrap();
                let Some((flow, is_target)) = cutter.cut_below(u64::MAX).unwrap() else {
                    assert!(cap < total);
                    continue;
                };
                let (cut, loads) = measured(&weights, &edges, &is_target);
                assert_eq!((flow, is_target[SOURCE], is_target[TARGET]), (cut, false, true));
                assert!(loads.iter().all(|&load| load <= cap) && Some(cut) >= least);
                assert!(cap < total || Some(cut) == least);
                balanced += u32::from(cap < total);
            }
        }
        assert!(balanced > 100, "{balanced}");
    }

    #[test]
    fn only_cuts_below_the_limit_are_found() {
        let (run, edges) = (Run::new(Some(1), None).unwrap(), [[0, 2, 5], [2, 3, 2], [3, 1, 5]]);
        for (limit, expected) in [(2, None), (3, Some((2, vec![false, true, false, true])))] {
            let network = Network::new(vec![[1]; 4], vec![0; 4], &edges).unwrap();
            let mut cutter = FlowCutter::<1>::new(network, [[2]; 2], &run).unwrap();
            assert_eq!(cutter.cut_below(limit).unwrap(), expected);
        }
    }
}
