//! Parts under several bounds, and the least loaded one among those that have slack.
//!
//! The load of a part is the largest of its relative loads, such as vertices / n and weight / W. They are
//! compared as integers, `vertices * W` with `weight * n`, so that no rounding decides.
//!
//! Which part has slack depends on the item. A queue by load would have to be searched, to its end if many
//! parts are full under one bound and empty under the other. Therefore each bound has a search tree. It holds
//! the parts that are relatively fullest under that bound, ordered by (load under the bound, part). In a tree
//! the order is that of preference, the slack under its own bound only shrinks along it, and every subtree
//! stores the least load under each bound. So a descent from the root finds the first part with slack under
//! the other bounds. The trees are treaps whose priorities are hashes of the parts. Under one or two bounds a
//! choice and an addition take O(log k). Under more, a choice may enter subtrees where no single part has
//! slack under all bounds. D bounds take 8 + 16 D bytes per part.

use std::cmp::Ordering;

use super::bounds::{Load, fits, limit_for, plus};
use crate::base::{NONE, Result, reserved, splitmix64};

struct Node<const D: usize> {
    load: Load<D>,
    /// The least load of the subtree under each bound by itself.
    least: Load<D>,
    children: [u32; 2],
}

/// The parts and their loads.
pub struct Parts<const D: usize = 2> {
    nodes: Vec<Node<D>>,
    /// The tree of each bound.
    roots: [u32; D],
    cap: Load<D>,
    /// What makes the loads comparable.
    total: Load<D>,
}

impl<const D: usize> Parts<D> {
    /// `k` empty parts for a `total` to come. None will hold more than `cap`.
    pub fn new(k: u32, total: Load<D>, cap: Load<D>) -> Result<Self> {
        let nodes = reserved(k as usize, "parts")?;
        // Without any weight the vertices alone decide.
        let mut parts = Self { nodes, roots: [NONE; D], cap, total: total.map(|total| total.max(1)) };
        for part in 0..k {
            parts.nodes.push(Node { load: [0; D], least: [0; D], children: [NONE; 2] });
            parts.roots[0] = parts.insert(0, parts.roots[0], part);
        }
        Ok(parts)
    }

    /// The largest load of a part.
    pub fn cap(&self) -> Load<D> {
        self.cap
    }

    /// The load of a part.
    pub fn load(&self, part: u32) -> Load<D> {
        self.nodes[part as usize].load
    }

    /// The loads of all parts.
    pub fn loads(&self) -> impl Iterator<Item = Load<D>> {
        self.nodes.iter().map(|node| node.load)
    }

    /// Whether `part` has slack for `item`.
    pub fn fits(&self, part: u32, item: Load<D>) -> bool {
        limit_for(self.cap, item).is_some_and(|limit| fits(self.load(part), limit))
    }

    /// The least loaded part that has slack for `item`. Ties go to the lowest part.
    pub fn choose(&self, item: Load<D>) -> Option<u32> {
        let limit = limit_for(self.cap, item)?;
        let first = |tree: usize| {
            let mut others = limit;
            others[tree] = u64::MAX;
            let part = self.first(self.roots[tree], others)?;
            (self.load(part)[tree] <= limit[tree]).then_some((part, tree))
        };
        let least = (0..D).filter_map(first).min_by(|&a, &b| self.compare(a, b).then(a.cmp(&b)));
        least.map(|(part, _)| part)
    }

    /// Adds `item` to `part`.
    pub fn add(&mut self, part: u32, item: Load<D>) {
        let tree = self.tree_of(part);
        self.roots[tree] = self.remove(tree, self.roots[tree], part);
        let load = plus(self.load(part), item);
        self.nodes[part as usize] = Node { load, least: load, children: [NONE; 2] };
        let tree = self.tree_of(part);
        self.roots[tree] = self.insert(tree, self.roots[tree], part);
    }

    /// Adds `item` to the part that [`choose`](Self::choose) names.
    pub fn place(&mut self, item: Load<D>) -> Option<u32> {
        let part = self.choose(item)?;
        self.add(part, item);
        Some(part)
    }

    /// Compares the relative loads of two parts, each under its bound.
    fn compare(&self, (part, bound): (u32, usize), (other, its): (u32, usize)) -> Ordering {
        let product = |load: u64, total: u64| u128::from(load) * u128::from(total);
        product(self.load(part)[bound], self.total[its])
            .cmp(&product(self.load(other)[its], self.total[bound]))
    }

    /// The bound under which a part is relatively fullest.
    fn tree_of(&self, part: u32) -> usize {
        (1..D).fold(
            0,
            |most, bound| if self.compare((part, bound), (part, most)).is_gt() { bound } else { most },
        )
    }

    /// The first part of the tree `root` whose load is within `limit`, which leaves out the tree's own bound.
    fn first(&self, mut root: u32, limit: Load<D>) -> Option<u32> {
        loop {
            let node = self.nodes.get(root as usize)?;
            let [before, after] = node.children;
            if self.nodes.get(before as usize).is_some_and(|before| fits(before.least, limit)) {
                if D <= 2 {
                    // The part with the least load under the only other bound is one.
                    root = before;
                    continue;
                }
                if let Some(part) = self.first(before, limit) {
                    return Some(part);
                }
            }
            if fits(node.load, limit) {
                return Some(root);
            }
            root = after;
        }
    }

    /// Whether `part` comes before `other` in a tree.
    fn precedes(&self, tree: usize, part: u32, other: u32) -> bool {
        (self.load(part)[tree], part) < (self.load(other)[tree], other)
    }

    fn update(&mut self, root: u32) {
        let Node { load, children, .. } = self.nodes[root as usize];
        let children = children.into_iter().filter_map(|child| self.nodes.get(child as usize));
        self.nodes[root as usize].least = children
            .fold(load, |least, child| std::array::from_fn(|bound| least[bound].min(child.least[bound])));
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
        self.update(top);
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
        self.update(root);
        halves[1 - side] = root;
        halves
    }

    /// The tree `root` without `part`.
    fn remove(&mut self, tree: usize, root: u32, part: u32) -> u32 {
        let children = self.nodes[root as usize].children;
        if root == part {
            return self.join(children);
        }
        let side = usize::from(self.precedes(tree, root, part));
        self.nodes[root as usize].children[side] = self.remove(tree, children[side], part);
        self.update(root);
        root
    }

    /// One tree of two, the first of which comes before the second.
    fn join(&mut self, [before, after]: [u32; 2]) -> u32 {
        if before == NONE || after == NONE {
            return before.min(after);
        }
        let first = splitmix64(before.into()) > splitmix64(after.into());
        let (root, side) = if first { (before, 1) } else { (after, 0) };
        let child = self.nodes[root as usize].children[side];
        let joined = if first { [child, after] } else { [before, child] };
        self.nodes[root as usize].children[side] = self.join(joined);
        self.update(root);
        root
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    /// The choice as it is described, by looking at every part.
    fn scan<const D: usize>(loads: &[Load<D>], total: Load<D>, cap: Load<D>, item: Load<D>) -> Option<u32> {
        let fits = |load: &Load<D>| (0..D).all(|d| load[d] + item[d] <= cap[d]);
        let less = |a: &Load<D>, b: &Load<D>| {
            // The largest of a is below the largest of b if some of b is above all of a.
            let scaled = |load: u64, other: usize| u128::from(load) * u128::from(total[other].max(1));
            (0..D).any(|e| (0..D).all(|d| scaled(a[d], e) < scaled(b[e], d)))
        };
        let feasible = (0..loads.len()).filter(|&part| fits(&loads[part]));
        feasible.reduce(|a, b| if less(&loads[b], &loads[a]) { b } else { a }).map(|part| part as u32)
    }

    fn compare_with_a_scan<const D: usize>() {
        for seed in 0..400 {
            let mut random = Random::new(seed, D as u64);
            let k = 1 + random.below(if seed % 3 == 0 { 4 } else { 70 }) as u32;
            let largest = [0, 1, 5, 1 << 31][random.below(4) as usize];
            let mut item = || {
                let mut item = [0; D].map(|_: u64| random.below(largest + 1));
                item[0] = 1 + random.below(8) * random.below(2);
                item
            };
            let items: Vec<Load<D>> = (0..20 * seed % 400).map(|_| item()).collect();
            let total = items.iter().copied().fold([0; D], plus);
            // From tight under all bounds to loose under some.
            let cap = total.map(|total| total.div_ceil(u64::from(k)) * (10 + random.below(20)) / 10);
            let mut parts = Parts::new(k, total, cap).unwrap();
            let mut loads = vec![[0; D]; k as usize];
            for item in items {
                let expected = scan(&loads, total, cap, item);
                assert_eq!(parts.choose(item), expected, "seed {seed}, {item:?} into {loads:?}, cap {cap:?}");
                assert!(
                    (0..k).all(|part| parts.fits(part, item) == fits(plus(loads[part as usize], item), cap))
                );
                assert_eq!(parts.place(item), expected);
                if let Some(part) = expected {
                    loads[part as usize] = plus(loads[part as usize], item);
                }
            }
            assert!(parts.loads().eq(loads.iter().copied()));
        }
    }

    #[test]
    fn the_choice_is_that_of_a_scan() {
        compare_with_a_scan::<1>();
        compare_with_a_scan::<2>();
        compare_with_a_scan::<3>();
        compare_with_a_scan::<8>();
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
