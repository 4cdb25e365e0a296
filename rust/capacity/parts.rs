//! Parts with two loads, and the least loaded one among those that have room.
//!
//! A part is as loaded as the larger of its two relative loads, vertices / n and weight / W. Both are compared as the
//! integers `vertices * W` and `weight * n`, so that no rounding decides.
//!
//! Which part has room depends on the item, so a queue by load would have to be searched; with many parts full in one
//! dimension and empty in the other, to its end. Therefore two search trees: the parts in which the vertices weigh
//! more, ordered by (vertices, part), and the others, ordered by (weight, part). In either tree the order is that of
//! preference, the room in its own dimension only shrinks along it, and every subtree knows the least load in the
//! other dimension: one descent finds its first part with room. The trees are treaps whose priorities are hashes of
//! the parts. A choice and an addition take O(log k), and 32 bytes per part.

use crate::base::buffer::reserved;
use crate::base::error::Result;
use crate::base::random::splitmix64;

/// Number of vertices, and their weight.
pub type Load = [u64; 2];

/// No part.
const NONE: u32 = u32::MAX;

struct Node {
    load: Load,
    /// The least load of the subtree in the dimension that the tree is not ordered by.
    least: u64,
    children: [u32; 2],
}

/// The parts and their loads.
pub struct Parts {
    nodes: Vec<Node>,
    /// The tree of each dimension.
    roots: [u32; 2],
    cap: Load,
    /// What makes the loads comparable.
    scale: Load,
}

impl Parts {
    /// `k` empty parts for a `total` to come; none will hold more than `cap`.
    pub fn new(k: u32, total: Load, cap: Load) -> Result<Self> {
        // Without any weight the vertices alone decide.
        let scale = [total[1].max(1), total[0]];
        let mut parts = Self { nodes: reserved(k as usize, "parts")?, roots: [NONE; 2], cap, scale };
        for part in 0..k {
            parts.nodes.push(Node { load: [0; 2], least: 0, children: [NONE; 2] });
            parts.roots[0] = parts.insert(0, parts.roots[0], part);
        }
        Ok(parts)
    }

    /// The load of a part.
    pub fn load(&self, part: u32) -> Load {
        self.nodes[part as usize].load
    }

    /// The loads of all parts.
    pub fn loads(&self) -> impl Iterator<Item = Load> {
        self.nodes.iter().map(|node| node.load)
    }

    /// Whether `part` has room for `item`.
    pub fn fits(&self, part: u32, item: Load) -> bool {
        (0..2).all(|dimension| {
            self.load(part)[dimension].saturating_add(item[dimension]) <= self.cap[dimension]
        })
    }

    /// The least loaded part that has room for `item`; ties go to the lowest part.
    pub fn choose(&self, item: Load) -> Option<u32> {
        let room = [self.cap[0].checked_sub(item[0])?, self.cap[1].checked_sub(item[1])?];
        let firsts = (0..2).filter_map(|dimension| self.first(dimension, room));
        firsts.min_by_key(|&part| (self.scaled(part).into_iter().max(), part))
    }

    /// Adds `item` to `part`.
    pub fn add(&mut self, part: u32, item: Load) {
        let tree = self.tree_of(part);
        self.roots[tree] = self.remove(tree, self.roots[tree], part);
        let node = &mut self.nodes[part as usize];
        node.load = [node.load[0] + item[0], node.load[1] + item[1]];
        let tree = self.tree_of(part);
        self.reset(tree, part);
        self.roots[tree] = self.insert(tree, self.roots[tree], part);
    }

    /// Adds `item` to the part that [`choose`](Self::choose) names.
    pub fn place(&mut self, item: Load) -> Option<u32> {
        let part = self.choose(item)?;
        self.add(part, item);
        Some(part)
    }

    fn scaled(&self, part: u32) -> [u128; 2] {
        let load = self.load(part);
        [0, 1].map(|dimension| u128::from(load[dimension]) * u128::from(self.scale[dimension]))
    }

    /// The dimension in which a part is relatively fuller.
    fn tree_of(&self, part: u32) -> usize {
        let [vertices, weight] = self.scaled(part);
        usize::from(weight > vertices)
    }

    /// The first part of a tree that has at most `room`.
    fn first(&self, tree: usize, room: Load) -> Option<u32> {
        let mut at = self.roots[tree];
        loop {
            let node = self.nodes.get(at as usize)?;
            let [before, after] = node.children;
            if self.least(before) <= room[1 - tree] {
                at = before;
            } else if node.load[1 - tree] <= room[1 - tree] {
                return (node.load[tree] <= room[tree]).then_some(at);
            } else {
                at = after;
            }
        }
    }

    /// The least load in the other dimension of a subtree.
    fn least(&self, root: u32) -> u64 {
        self.nodes.get(root as usize).map_or(u64::MAX, |node| node.least)
    }

    /// Whether `part` comes before `other` in a tree.
    fn precedes(&self, tree: usize, part: u32, other: u32) -> bool {
        (self.load(part)[tree], part) < (self.load(other)[tree], other)
    }

    /// Makes a part a tree of its own.
    fn reset(&mut self, tree: usize, part: u32) {
        self.nodes[part as usize].children = [NONE; 2];
        self.update(tree, part);
    }

    fn update(&mut self, tree: usize, root: u32) {
        let Node { load, children, .. } = self.nodes[root as usize];
        let least = children.map(|child| self.least(child)).into_iter().min().unwrap_or(u64::MAX);
        self.nodes[root as usize].least = least.min(load[1 - tree]);
    }

    /// The tree `root` with `part`, which has no children.
    fn insert(&mut self, tree: usize, root: u32, part: u32) -> u32 {
        if root == NONE {
            return part;
        }
        let top = if splitmix64(part.into()) > splitmix64(root.into()) {
            self.nodes[part as usize].children = self.split(tree, root, part);
            part
        } else {
            let side = usize::from(self.precedes(tree, root, part));
            let child = self.nodes[root as usize].children[side];
            self.nodes[root as usize].children[side] = self.insert(tree, child, part);
            root
        };
        self.update(tree, top);
        top
    }

    /// The tree `root` in two: what comes before `part`, and the rest.
    fn split(&mut self, tree: usize, root: u32, part: u32) -> [u32; 2] {
        if root == NONE {
            return [NONE; 2];
        }
        let side = usize::from(self.precedes(tree, root, part));
        let mut halves = self.split(tree, self.nodes[root as usize].children[side], part);
        self.nodes[root as usize].children[side] = halves[1 - side];
        self.update(tree, root);
        halves[1 - side] = root;
        halves
    }

    /// The tree `root` without `part`.
    fn remove(&mut self, tree: usize, root: u32, part: u32) -> u32 {
        let children = self.nodes[root as usize].children;
        if root == part {
            return self.join(tree, children);
        }
        let side = usize::from(self.precedes(tree, root, part));
        self.nodes[root as usize].children[side] = self.remove(tree, children[side], part);
        self.update(tree, root);
        root
    }

    /// One tree of two, the first of which comes before the second.
    fn join(&mut self, tree: usize, [before, after]: [u32; 2]) -> u32 {
        if before == NONE || after == NONE {
            return before.min(after);
        }
        let first = splitmix64(before.into()) > splitmix64(after.into());
        let (root, side) = if first { (before, 1) } else { (after, 0) };
        let child = self.nodes[root as usize].children[side];
        let joined = if first { [child, after] } else { [before, child] };
        self.nodes[root as usize].children[side] = self.join(tree, joined);
        self.update(tree, root);
        root
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    /// The choice as it is described, by looking at every part.
    fn scan(loads: &[Load], total: Load, cap: Load, item: Load) -> Option<u32> {
        let fits = |load: &Load| (0..2).all(|d| load[d] + item[d] <= cap[d]);
        let relative = |load: &Load| {
            let scaled = |d: usize, other: u64| u128::from(load[d]) * u128::from(other);
            scaled(0, total[1].max(1)).max(scaled(1, total[0]))
        };
        let feasible = loads.iter().zip(0..).filter(|(load, _)| fits(load));
        feasible.min_by_key(|&(load, part)| (relative(load), part)).map(|(_, part)| part)
    }

    #[test]
    fn the_choice_is_that_of_a_scan() {
        for seed in 0..600 {
            let mut random = Random::new(seed, 0);
            let k = 1 + random.below(if seed % 3 == 0 { 4 } else { 70 }) as u32;
            let largest = [0, 1, 5, 1 << 31][random.below(4) as usize];
            let items: Vec<Load> = (0..random.below(400))
                .map(|_| [1 + random.below(8) * random.below(2), random.below(largest + 1)])
                .collect();
            let total = items.iter().fold([0, 0], |sum, item| [sum[0] + item[0], sum[1] + item[1]]);
            // From tight in both dimensions to loose in one or both.
            let cap = [0, 1].map(|d| total[d].div_ceil(u64::from(k)) * (10 + random.below(20)) / 10);
            let mut parts = Parts::new(k, total, cap).unwrap();
            let mut loads = vec![[0, 0]; k as usize];
            for item in items {
                let expected = scan(&loads, total, cap, item);
                assert_eq!(parts.choose(item), expected, "seed {seed}, {item:?} into {loads:?}, cap {cap:?}");
                assert!((0..k).all(|part| parts.fits(part, item)
                    == (0..2).all(|d| { loads[part as usize][d] + item[d] <= cap[d] })));
                assert_eq!(parts.place(item), expected);
                if let Some(part) = expected {
                    loads[part as usize] = [0, 1].map(|d| loads[part as usize][d] + item[d]);
                }
            }
            assert!(parts.loads().eq(loads.iter().copied()));
        }
    }

    #[test]
    fn nothing_overflows() {
        let total = [u64::from(u32::MAX), i64::MAX as u64];
        let mut parts = Parts::new(2, total, total).unwrap();
        assert_eq!(
            (parts.place(total), parts.place([1, 1]), parts.place([1, u64::MAX])),
            (Some(0), Some(1), None)
        );
        assert_eq!(parts.load(0), total);
    }
}
