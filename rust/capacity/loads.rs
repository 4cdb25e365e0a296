//! Loads of the parts, their penalties, and the part with the least penalty among those that have room.
//!
//! A tree over the parts knows the least penalty and the least load of every subtree. A choice descends into the
//! subtrees that can hold a better part than the one found; as the part with the least penalty nearly always has room,
//! that is one descent. A change takes O(log k). 48 bytes per part, rounded up to a power of two.

use super::Load;
use crate::base::buffer::reserved;
use crate::base::error::Result;

#[derive(Clone, Copy)]
struct Node {
    /// The least penalty below.
    penalty: f64,
    /// The least load below, in either dimension by itself.
    load: Load,
}

/// Where there is no part.
const VOID: Node = Node { penalty: f64::INFINITY, load: [u64::MAX; 2] };

/// Number of vertices and volume of each part.
pub struct Loads {
    /// The tree: the children of node i are 2i and 2i + 1, the leaves are the parts.
    nodes: Vec<Node>,
    /// Number of leaves, and the first of them.
    leaves: usize,
    k: u32,
    caps: Load,
    exponent: f64,
    /// Parts whose penalty, and the nodes above, are out of date.
    changed: Vec<u32>,
}

impl Loads {
    /// Parts with these loads. The penalty of a part is its larger load relative to the `caps`, to the power of
    /// `exponent`.
    pub fn new(loads: &[Load], caps: Load, exponent: f64) -> Result<Self> {
        let leaves = loads.len().next_power_of_two();
        let mut nodes = reserved(2 * leaves, "loads of the parts")?;
        nodes.resize(2 * leaves, VOID);
        let mut made = Self { nodes, leaves, k: loads.len() as u32, caps, exponent, changed: Vec::new() };
        for (leaf, &load) in (leaves..).zip(loads) {
            made.nodes[leaf] = Node { penalty: made.penalty_of(load), load };
        }
        for node in (1..leaves).rev() {
            made.nodes[node] = made.merged(node);
        }
        Ok(made)
    }

    /// Bytes for `k` parts.
    pub fn memory(k: u32) -> u64 {
        48 * u64::from(k).next_power_of_two()
    }

    /// Number of parts.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// The caps.
    pub fn caps(&self) -> Load {
        self.caps
    }

    /// The load of a part.
    #[inline(always)]
    pub fn load(&self, part: u32) -> Load {
        self.nodes[self.leaves + part as usize].load
    }

    /// The penalty of a part.
    #[inline(always)]
    pub fn penalty(&self, part: u32) -> f64 {
        self.nodes[self.leaves + part as usize].penalty
    }

    /// The loads of all parts.
    pub fn all(&self) -> impl Iterator<Item = Load> + '_ {
        self.nodes[self.leaves..][..self.k as usize].iter().map(|node| node.load)
    }

    /// The largest load relative to its cap.
    pub fn fullest(&self) -> f64 {
        self.all().map(|load| self.relative(load)).fold(0.0, f64::max)
    }

    /// The load that a part may have before `item` comes, if caps are scaled by `scale`.
    #[inline(always)]
    pub fn room(&self, scale: f64, item: Load) -> Option<Load> {
        let cap = |dimension: usize| (self.caps[dimension] as f64 * scale) as u64;
        Some([cap(0).checked_sub(item[0])?, cap(1).checked_sub(item[1])?])
    }

    /// Whether a part has no more load than `room`.
    #[inline(always)]
    pub fn is_within(&self, part: u32, room: Load) -> bool {
        let load = self.load(part);
        load[0] <= room[0] && load[1] <= room[1]
    }

    /// Whether a part is above a cap.
    pub fn is_over(&self, part: u32) -> bool {
        !self.is_within(part, self.caps)
    }

    /// Adds `item` to a part. Until [`refresh`](Self::refresh), only [`load`](Self::load) and what compares it know.
    #[inline(always)]
    pub fn add(&mut self, part: u32, item: Load) {
        let load = self.load(part);
        self.nodes[self.leaves + part as usize].load = [load[0] + item[0], load[1] + item[1]];
        if self.changed.last() != Some(&part) {
            self.changed.push(part);
        }
    }

    /// Takes `item` out of a part; see [`add`](Self::add).
    pub fn remove(&mut self, part: u32, item: Load) {
        let load = self.load(part);
        self.nodes[self.leaves + part as usize].load = [load[0] - item[0], load[1] - item[1]];
        self.changed.push(part);
    }

    /// Brings penalties and choices up to date with the loads.
    pub fn refresh(&mut self) {
        if self.changed.len() > 1 {
            self.changed.sort_unstable();
            self.changed.dedup();
        }
        for index in 0..self.changed.len() {
            let mut node = self.leaves + self.changed[index] as usize;
            self.nodes[node].penalty = self.penalty_of(self.nodes[node].load);
            while node > 1 {
                node /= 2;
                self.nodes[node] = self.merged(node);
            }
        }
        self.changed.clear();
    }

    /// The part with the least penalty among those within `room`; ties go to the lowest.
    pub fn least(&self, room: Load) -> Option<u32> {
        let mut best = usize::MAX;
        self.descend(1, 0, room, &mut best);
        (best != usize::MAX).then(|| (best - self.leaves) as u32)
    }

    /// The part whose larger relative load is the smallest once it has `item`; ties go to the lowest.
    pub fn least_overloaded(&self, item: Load) -> u32 {
        let after = |load: Load| self.relative([load[0] + item[0], load[1] + item[1]]);
        let least = (0..).zip(self.all().map(after)).min_by(|a, b| a.1.total_cmp(&b.1));
        least.map_or(0, |(part, _)| part)
    }

    /// Looks for a better leaf than `best` below `node`, which lies `depth` below the root.
    fn descend(&self, node: usize, depth: u32, room: Load, best: &mut usize) {
        let Node { penalty, load } = self.nodes[node];
        let height = self.leaves.trailing_zeros() - depth;
        if load[0] > room[0] || load[1] > room[1] {
            return;
        }
        if *best != usize::MAX {
            let known = self.nodes[*best].penalty;
            if penalty > known || (penalty == known && node << height > *best) {
                return;
            }
        }
        if height == 0 {
            *best = node;
            return;
        }
        let right_first = self.nodes[2 * node + 1].penalty < self.nodes[2 * node].penalty;
        for side in [right_first, !right_first] {
            self.descend(2 * node + usize::from(side), depth + 1, room, best);
        }
    }

    fn merged(&self, node: usize) -> Node {
        let [left, right] = [self.nodes[2 * node], self.nodes[2 * node + 1]];
        let least = |dimension: usize| left.load[dimension].min(right.load[dimension]);
        Node { penalty: left.penalty.min(right.penalty), load: [least(0), least(1)] }
    }

    fn relative(&self, load: Load) -> f64 {
        (load[0] as f64 / self.caps[0] as f64).max(load[1] as f64 / self.caps[1] as f64)
    }

    fn penalty_of(&self, load: Load) -> f64 {
        libm::pow(self.relative(load), self.exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    /// The choice is that of a scan over all parts, while items come and go.
    #[test]
    fn the_least_penalty_within_the_room() {
        let mut random = Random::new(5, 0);
        for k in [1, 2, 3, 31, 32, 70] {
            let mut loads = Loads::new(&vec![[0; 2]; k], [40, 900], 1.4).unwrap();
            for step in 0..3000 {
                // Several changes at once, too.
                if step % 4 > 0 {
                    loads.refresh();
                } else {
                    loads.add(0, [1, 1]);
                    loads.add(k as u32 - 1, [1, 1]);
                    loads.refresh();
                }
                let item = [1, 1 + random.below(60)];
                let room = [random.below(45), random.below(1000)];
                let scan = (0..k as u32).filter(|&part| loads.is_within(part, room));
                let scan = scan.min_by(|&a, &b| loads.penalty(a).total_cmp(&loads.penalty(b)));
                assert_eq!(loads.least(room), scan, "k = {k}, step {step}");
                let part = random.below(k as u64) as u32;
                match loads.load(part) {
                    [vertices, volume] if vertices > 0 && volume >= item[1] && step % 3 == 0 => {
                        loads.remove(part, item);
                    }
                    _ => loads.add(part, item),
                }
            }
        }
    }

    #[test]
    fn the_least_overloaded_part() {
        let loads = Loads::new(&[[4, 10], [1, 30], [2, 20]], [4, 40], 1.4).unwrap();
        assert_eq!(loads.fullest(), 1.0);
        assert_eq!(loads.least_overloaded([1, 10]), 2);
        assert_eq!(loads.least_overloaded([1, 40]), 0);
        assert!(!loads.is_over(0));
        assert_eq!(loads.room(0.5, [1, 3]), Some([1, 17]));
        assert_eq!(loads.room(0.5, [3, 3]), None);
    }
}
