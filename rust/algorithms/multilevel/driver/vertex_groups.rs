//! Placement of groups of vertices: groups without a part, groups that full parts can spare for empty parts,
//! and groups that gain by moving.
//!
//! **Groups without a part** go to the part to which they have the strongest connection, if it has slack. The
//! group with the largest share of its edges at placed vertices comes first. So the order does not depend on
//! ids, and a region without parts is filled from its border.
//!
//! **An empty part grows** by groups of the parts that have a surplus. Groups of new vertices come before
//! groups in which a vertex had a part. Among equals the group that cuts the fewest further edges per vertex
//! comes first: its connection to the part it leaves, less its connection to the part that grows. Growth
//! begins everywhere at once, or at some random group and then only at its border. The cheapest of a few
//! tries is taken.
//!
//! **Groups that gain** move to a part with slack, the largest gain first. The gain is computed again before
//! the move.
//!
//! **Memory.** 44 bytes per vertex and 8 per bound where every vertex is a group, and 16 bytes for each entry
//! of the queue.

use std::cmp::Reverse;

use crate::algorithms::multilevel::coarsening::Clustering;
use crate::algorithms::multilevel::model::{Graph, Migration};
use crate::algorithms::multilevel::refinement::{Moves, OrderedF64};
use crate::base::{Buffer, NONE, Random, Result, Run, zeros};
use crate::capacity::{Load, fits, minus, plus, relative};
use crate::sets::{Bits, Groups, SparseSums};

/// Tries to grow a part.
const TRIES: u64 = 6;
/// Passes over all groups that may gain.
const PASSES: usize = 4;
/// Times that a group can be queued again with a larger share. Without a limit the queue would grow with the
/// edges.
const STEPS: u32 = 16;

/// Vertices in groups, which get parts as a whole.
pub(crate) struct VertexGroups<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    group_of: Buffer<u32>,
    members: Groups,
    weights: Vec<Load<D>>,
    run: &'a Run,
}

/// The part of each vertex, or [`NONE`], and the loads of the parts.
pub(crate) struct PartialAssignment<const D: usize> {
    /// Part of each vertex.
    pub part_of: Buffer<u32>,
    /// Load of each part.
    pub loads: Vec<Load<D>>,
}

/// The groups that a part grows by, in order, and how many more edges are cut then.
type Growth = (i64, Vec<u32>);

/// The groups by which a part may grow.
struct SpareGroups {
    groups: Vec<u32>,
    /// Edges of each group to its own part.
    homes: Buffer<u32>,
    /// The groups of which a vertex had a part.
    old: Bits,
}

impl SpareGroups {
    /// The group with which a try begins: a random one, of new vertices if there are such.
    fn first(&self, random: &mut Random) -> u32 {
        let new: Vec<u32> = self.groups.iter().copied().filter(|&group| !self.old.contains(group)).collect();
        let choice = if new.is_empty() { &self.groups } else { &new };
        choice[random.below(choice.len() as u64) as usize]
    }
}

impl<'a, const D: usize> VertexGroups<'a, D> {
    /// The clusters of `graph` as groups.
    pub(crate) fn new(graph: &'a Graph<'a, D>, clustering: Clustering, run: &'a Run) -> Result<Self> {
        let Clustering { cluster_of: group_of, count } = clustering;
        let mut weights: Vec<Load<D>> = zeros(count, "weights of groups")?;
        graph.add_weights(&mut weights, |v| group_of[v as usize], run)?;
        let members = Groups::counted(graph.len(), count, |v| Some(group_of[v as usize]), |_| run.check())?;
        Ok(Self { graph, group_of, members, weights, run })
    }

    fn len(&self) -> usize {
        self.weights.len()
    }

    fn members(&self, group: u32) -> &[u32] {
        self.members.group(group)
    }

    /// The part of a group, all of whose members have the same.
    fn part(&self, parts: &PartialAssignment<D>, group: u32) -> u32 {
        parts.part_of[self.members(group)[0] as usize]
    }

    /// Whether no vertex of the group is fixed.
    fn may_move(&self, group: u32) -> bool {
        !self.graph.has_fixed() || self.members(group).iter().all(|&v| self.graph.may_move(v))
    }

    /// Calls `visit` with each neighbour of the group outside of it, and the weight of the edge.
    fn each(&self, group: u32, mut visit: impl FnMut(u32, u32)) {
        for &v in self.members(group) {
            self.graph.each(v, |u, w| {
                if self.group_of[u as usize] != group {
                    visit(u, w);
                }
            });
        }
    }

    /// Gives the group a part.
    fn assign(&self, parts: &mut PartialAssignment<D>, group: u32, to: u32) {
        let (from, weight) = (self.part(parts, group), self.weights[group as usize]);
        if from != NONE {
            parts.loads[from as usize] = minus(parts.loads[from as usize], weight);
        }
        parts.loads[to as usize] = plus(parts.loads[to as usize], weight);
        self.members(group).iter().for_each(|&v| parts.part_of[v as usize] = to);
    }

    /// Gives each group without a part one of the first parts, as many as there are caps.
    pub(crate) fn place(&self, parts: &mut PartialAssignment<D>, caps: &[Load<D>]) -> Result<()> {
        let mut known: Buffer<u32> = Buffer::zeroed(self.len(), "edges to placed vertices")?;
        let mut volumes: Buffer<u32> = Buffer::zeroed(self.len(), "edges of groups")?;
        let mut queue = Moves::new(None, self.run);
        let share =
            |known: u32, volume: u32| Reverse(OrderedF64(f64::from(known) / f64::from(volume.max(1))));
        self.run.each(self.len(), |group| {
            if self.part(parts, group) == NONE {
                let (known, volume) = (&mut known[group as usize], &mut volumes[group as usize]);
                self.each(group, |u, w| {
                    *volume = volume.saturating_add(w);
                    *known = known.saturating_add(if parts.part_of[u as usize] == NONE { 0 } else { w });
                });
                queue.push(share(*known, *volume), group);
            }
        })?;
        let mut connections = SparseSums::new(parts.loads.len() as u32)?;
        // Loads only rise.
        let fullness =
            |loads: &[Load<D>], part: u32| OrderedF64(relative(loads[part as usize], caps[part as usize]));
        let mut emptiest = Moves::new(None, self.run);
        (0..caps.len() as u32).for_each(|part| emptiest.push(fullness(&parts.loads, part), part));
        while let Some((_, group)) = queue.next()? {
            if self.part(parts, group) != NONE {
                continue;
            }
            self.count(parts, group, None, &mut connections);
            let mut to = self.favourite(parts, caps, group, &connections).map(|(to, _)| to);
            while to.is_none()
                && let Some((known, part)) = emptiest.next()?
            {
                let now = fullness(&parts.loads, part);
                emptiest.push(now, part);
                to = (now <= known).then_some(part);
            }
            let to = to.unwrap_or(0);
            self.assign(parts, group, to);
            self.each(group, |u, w| {
                let other = self.group_of[u as usize];
                if parts.part_of[u as usize] == NONE {
                    let (known, volume) = (&mut known[other as usize], volumes[other as usize]);
                    let step = volume / STEPS + 1;
                    let before = std::mem::replace(known, known.saturating_add(w));
                    if before / step < *known / step {
                        queue.push(share(*known, volume), other);
                    }
                }
            });
        }
        Ok(())
    }

    /// The weight of the edges of a group to each part, and the migration penalties of leaving the old parts.
    fn count(
        &self,
        parts: &PartialAssignment<D>,
        group: u32,
        migration: Option<&Migration>,
        connections: &mut SparseSums<u64>,
    ) {
        connections.clear();
        self.each(group, |u, w| connections.add_if_any(parts.part_of[u as usize], w.into()));
        if let Some(migration) = migration {
            self.members(group)
                .iter()
                .filter_map(|&v| migration.of(v))
                .for_each(|(old, price)| connections.add(old, price.into()));
        }
    }

    /// The part with slack, other than its own, to which a group has the strongest connection.
    fn favourite(
        &self,
        parts: &PartialAssignment<D>,
        caps: &[Load<D>],
        group: u32,
        connections: &SparseSums<u64>,
    ) -> Option<(u32, u64)> {
        let (own, weight) = (self.part(parts, group), self.weights[group as usize]);
        let has_slack = |&(part, _): &(u32, u64)| {
            part != own
                && (part as usize) < caps.len()
                && fits(plus(parts.loads[part as usize], weight), caps[part as usize])
        };
        connections.iter().filter(has_slack).max_by_key(|&(part, connection)| (connection, Reverse(part)))
    }

    /// Moves groups that gain into parts with slack. Returns the number of moves.
    pub(crate) fn improve_greedily(
        &self,
        parts: &mut PartialAssignment<D>,
        caps: &[Load<D>],
        migration: Option<&Migration>,
    ) -> Result<u64> {
        let mut connections = SparseSums::<u64>::new(parts.loads.len() as u32)?;
        let gain = |parts: &PartialAssignment<D>, connections: &mut SparseSums<u64>, group: u32| {
            self.count(parts, group, migration, connections);
            let home = connections.of(self.part(parts, group));
            let best = self.favourite(parts, caps, group, connections);
            best.filter(|(_, most)| *most > home && self.may_move(group)).map(|(to, most)| (most - home, to))
        };
        let mut all = 0;
        for _ in 0..PASSES {
            let mut moves = Moves::new(None, self.run);
            self.run.each(self.len(), |group| {
                if let Some((gain, _)) = gain(parts, &mut connections, group) {
                    moves.push(Reverse(gain), group);
                }
            })?;
            let mut moved = 0;
            while let Some((_, group)) = moves.next()? {
                if let Some((_, to)) = gain(parts, &mut connections, group) {
                    self.assign(parts, group, to);
                    moved += 1;
                }
            }
            all += moved;
            if moved == 0 {
                break;
            }
        }
        Ok(all)
    }

    /// Grows the part `to`, which is empty, by groups of the parts with a surplus of vertices. `old` holds
    /// the part that each vertex had.
    pub(crate) fn grow(
        &self,
        parts: &mut PartialAssignment<D>,
        surplus: &[u64],
        (to, cap): (u32, Load<D>),
        old: &[u32],
        seed: u64,
    ) -> Result<()> {
        let sparing = self.sparing(parts, surplus, old)?;
        let mut best: Option<Growth> = None;
        for attempt in 0..if sparing.groups.is_empty() { 0 } else { TRIES } {
            let mut random = Random::new(seed, attempt);
            let first = (attempt > 0).then(|| sparing.first(&mut random));
            let grown = self.grown(parts, surplus, &sparing, first, cap)?;
            if best.as_ref().is_none_or(|(least, _)| grown.0 < *least) {
                best = Some(grown);
            }
        }
        for group in best.into_iter().flat_map(|(_, groups)| groups) {
            self.assign(parts, group, to);
        }
        Ok(())
    }

    /// The groups of the parts with a surplus.
    fn sparing(&self, parts: &PartialAssignment<D>, surplus: &[u64], old: &[u32]) -> Result<SpareGroups> {
        let mut homes: Buffer<u32> = Buffer::zeroed(self.len(), "edges to the own part")?;
        let mut had_parts = Bits::new(self.len() as u64, "groups that had a part")?;
        let mut groups: Vec<u32> = Vec::new();
        self.run.each(self.len(), |group| {
            let own = self.part(parts, group);
            if surplus[own as usize] > 0 && self.may_move(group) {
                groups.push(group);
                self.each(group, |u, w| {
                    let same = parts.part_of[u as usize] == own;
                    homes[group as usize] += if same { w } else { 0 };
                });
                if self.members(group).iter().any(|&v| old[v as usize] != NONE) {
                    had_parts.insert(group);
                }
            }
        })?;
        Ok(SpareGroups { groups, homes, old: had_parts })
    }

    /// One try: from the `first` group, or from all that can be spared.
    fn grown(
        &self,
        parts: &PartialAssignment<D>,
        surplus: &[u64],
        SpareGroups { groups, homes, old }: &SpareGroups,
        first: Option<u32>,
        cap: Load<D>,
    ) -> Result<Growth> {
        let mut left = surplus.to_vec();
        let mut connections: Buffer<[u32; 2]> = Buffer::zeroed(self.len(), "connections of groups")?;
        groups.iter().for_each(|&group| connections[group as usize][0] = homes[group as usize]);
        let loss = |[home, inside]: [u32; 2]| i64::from(home) - i64::from(inside);
        let price = |group: u32, both: [u32; 2]| {
            let per_vertex = loss(both) as f64 / self.weights[group as usize][0] as f64;
            (old.contains(group), OrderedF64(per_vertex))
        };
        // A try from one group takes those at its border before all others.
        let mut queue = Moves::new(None, self.run);
        groups.iter().for_each(|&group| {
            queue.push((first.is_some(), price(group, connections[group as usize])), group);
        });
        let (mut load, mut lost, mut taken) = ([0; D], 0, Vec::new());
        let mut is_taken = vec![false; self.len()];
        let mut next = first;
        while let Some(group) = match next.take() {
            None => queue.next()?.map(|(_, group)| group),
            first => first,
        } {
            let (own, weight) = (self.part(parts, group), self.weights[group as usize]);
            if is_taken[group as usize] || weight[0] > left[own as usize] || !fits(plus(load, weight), cap) {
                continue;
            }
            left[own as usize] -= weight[0];
            load = plus(load, weight);
            lost += loss(connections[group as usize]);
            is_taken[group as usize] = true;
            taken.push(group);
            self.each(group, |u, w| {
                let (other, part) = (self.group_of[u as usize], parts.part_of[u as usize]);
                if !is_taken[other as usize] && left[part as usize] > 0 {
                    let both = &mut connections[other as usize];
                    let (before, step) = (loss(*both), i64::from(homes[other as usize] / STEPS + 1));
                    both[0] -= if part == own { w } else { 0 };
                    both[1] = both[1].saturating_add(w);
                    if loss(*both).div_euclid(step) < before.div_euclid(step) {
                        queue.push((false, price(other, *both)), other);
                    }
                }
            });
        }
        Ok((lost, taken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::multilevel::model::Builder;

    const K: u32 = 5;

    /// A graph of random edges, whose groups are pairs of neighbouring ids. Some groups have no part, and
    /// part 4 is empty.
    fn cases() -> impl Iterator<Item = (Graph<'static, 1>, Buffer<u32>, Buffer<u32>)> {
        (0..60).map(|seed| {
            let mut random = Random::new(seed, 0);
            let n = 20 + random.below(40) as usize;
            let mut weights = vec![vec![0_u32; n]; n];
            for _ in 0..3 * n {
                let (u, v) = (random.below(n as u64) as usize, random.below(n as u64) as usize);
                let w = 1 + random.below(3) as u32;
                if u != v {
                    (weights[u][v], weights[v][u]) = (w, w);
                }
            }
            let mut builder = Builder::new(n, n * n).unwrap();
            for list in &weights {
                list.iter().zip(0..).filter(|(w, _)| **w > 0).for_each(|(&w, u)| builder.entry(u, w));
                builder.vertex([1]);
            }
            let mut group_of: Buffer<u32> = Buffer::zeroed(n, "groups").unwrap();
            let mut part_of: Buffer<u32> = Buffer::zeroed(n, "parts").unwrap();
            let parts: Vec<u32> = (0..n)
                .map(|_| if random.below(3) == 0 { NONE } else { random.below(K as u64 - 1) as u32 })
                .collect();
            for v in 0..n {
                group_of[v] = v as u32 / 2;
                part_of[v] = parts[v / 2];
            }
            (builder.finish(), group_of, part_of)
        })
    }

    /// The number of vertices of each part.
    fn counted(part_of: &[u32]) -> Vec<Load<1>> {
        (0..K).map(|part| [part_of.iter().filter(|&&own| own == part).count() as u64]).collect()
    }

    fn cut(graph: &Graph<1>, part_of: &[u32]) -> u64 {
        let mut cut = 0;
        for v in 0..graph.len() as u32 {
            graph.each(v, |u, w| cut += u64::from(w) * u64::from(part_of[u as usize] != part_of[v as usize]));
        }
        cut / 2
    }

    #[test]
    fn all_groups_are_placed_grow_an_empty_part_and_move_as_a_whole() {
        let run = Run::new(Some(1), None).unwrap();
        let mut grown = 0;
        for (graph, group_of, part_of) in cases() {
            let (old, n) = (part_of.to_vec(), graph.len() as u64);
            let clustering = Clustering { cluster_of: group_of, count: graph.len().div_ceil(2) };
            let groups = VertexGroups::new(&graph, clustering, &run).unwrap();
            let check = |parts: &PartialAssignment<1>| {
                assert_eq!(parts.loads, counted(&parts.part_of));
                assert!(parts.part_of.iter().all(|&part| part < K));
                assert!(parts.part_of.chunks(2).all(|group| group.iter().all(|&part| part == group[0])));
            };
            let mut parts = PartialAssignment { loads: counted(&part_of), part_of };
            groups.place(&mut parts, &[[n.div_ceil(3)]; K as usize - 1]).unwrap();
            check(&parts);
            assert!(old.iter().zip(&*parts.part_of).all(|(&old, &new)| old == NONE || old == new));

            let surplus: Vec<u64> =
                parts.loads.iter().map(|load| load[0].saturating_sub(n / u64::from(K))).collect();
            let (before, cap) = (parts.loads.clone(), [n.div_ceil(u64::from(K))]);
            groups.grow(&mut parts, &surplus, (K - 1, cap), &old, 1).unwrap();
            check(&parts);
            assert!(fits(parts.loads[K as usize - 1], cap));
            for ((before, after), surplus) in
                before.iter().zip(&parts.loads).zip(&surplus).take(K as usize - 1)
            {
                assert!(before[0] - after[0] <= *surplus);
            }
            grown += parts.loads[K as usize - 1][0];

            let (caps, before) =
                ([[n.div_ceil(4)]; K as usize], (cut(&graph, &parts.part_of), parts.loads.clone()));
            groups.improve_greedily(&mut parts, &caps, None).unwrap();
            check(&parts);
            assert!(cut(&graph, &parts.part_of) <= before.0);
            let is_kept = |(before, after): (&Load<1>, &Load<1>)| after[0] <= before[0].max(caps[0][0]);
            assert!(before.1.iter().zip(&parts.loads).all(is_kept));
        }
        assert!(grown > 60);
    }
}
