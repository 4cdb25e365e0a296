//! Loads of the parts under several bounds, and the part with the least penalty among those that have slack.
//!
//! The penalty of a part is the largest of its relative loads, or a power of that. Relative to the caps it
//! says how full the part is, relative to the total load which share of everything the part has.
//!
//! Which part has slack depends on the item. A tree over the parts stores the least penalty of every subtree,
//! and the least load under each bound by itself. A choice descends into the subtrees that can hold a better
//! part than the one found. The part with the least penalty nearly always has slack, so one descent from the
//! root nearly always suffices. Only where many parts are full under one bound and empty under the other, a
//! choice may enter subtrees in which no single part has slack. A change takes O(log k). D bounds take
//! `16 + 16 D` bytes per part, rounded up to a power of two.

use super::bounds::{Load, fits, limit_for, minus, plus, relative};
use crate::base::{Result, reserved};

#[derive(Clone, Copy)]
struct Node<const D: usize> {
    /// The least penalty below.
    penalty: f64,
    /// The least load below, under each bound by itself.
    load: Load<D>,
}

/// The loads of all parts under D bounds.
pub struct PartLoads<const D: usize = 2> {
    /// The tree: the children of node i are 2i and 2i + 1, the leaves are the parts.
    nodes: Vec<Node<D>>,
    /// Number of leaves, and the first of them.
    leaves: usize,
    k: u32,
    caps: Load<D>,
    /// The loads that penalties are relative to, and the exponent of penalties.
    whole: Load<D>,
    exponent: f64,
    /// Parts whose penalty, and the nodes above, are out of date.
    changed: Vec<u32>,
}

impl<const D: usize> PartLoads<D> {
    /// `k` empty parts for a `total` to come, which penalties are relative to.
    pub fn empty(k: u32, total: Load<D>, caps: Load<D>) -> Result<Self> {
        Ok(Self { whole: total, ..Self::new((0..k).map(|_| [0; D]), caps, 1.0)? })
    }

    /// Parts with these loads. The penalty of a part is its largest load relative to the `caps`, to the power
    /// of `exponent`.
    pub(crate) fn new(
        of_parts: impl ExactSizeIterator<Item = Load<D>>,
        caps: Load<D>,
        exponent: f64,
    ) -> Result<Self> {
        let k = of_parts.len() as u32;
        let leaves = k.next_power_of_two() as usize;
        let mut nodes = reserved(2 * leaves, "loads of the parts")?;
        // Where there is no part.
        nodes.resize(2 * leaves, Node { penalty: f64::INFINITY, load: [u64::MAX; D] });
        let mut loads = Self { nodes, leaves, k, caps, whole: caps, exponent, changed: Vec::new() };
        for (leaf, load) in (leaves..).zip(of_parts) {
            loads.nodes[leaf] = Node { penalty: loads.penalty_of(load), load };
        }
        for node in (1..leaves).rev() {
            loads.nodes[node] = loads.merged(node);
        }
        Ok(loads)
    }

    /// Bytes for `k` parts.
    pub(crate) fn memory(k: u32) -> u64 {
        2 * size_of::<Node<D>>() as u64 * u64::from(k).next_power_of_two()
    }

    /// Number of parts.
    pub(crate) fn k(&self) -> u32 {
        self.k
    }

    /// The caps.
    pub(crate) fn caps(&self) -> Load<D> {
        self.caps
    }

    /// The load of a part.
    #[inline(always)]
    pub(crate) fn load(&self, part: u32) -> Load<D> {
        self.nodes[self.leaves + part as usize].load
    }

    /// The penalty of a part.
    #[inline(always)]
    pub(crate) fn penalty(&self, part: u32) -> f64 {
        self.nodes[self.leaves + part as usize].penalty
    }

    /// The loads of all parts.
    pub(crate) fn all(&self) -> impl Iterator<Item = Load<D>> + '_ {
        self.nodes[self.leaves..][..self.k as usize].iter().map(|node| node.load)
    }

    /// The largest load relative to its cap.
    pub(crate) fn fullest(&self) -> f64 {
        self.all().map(|load| relative(load, self.caps)).fold(0.0, f64::max)
    }

    /// Whether `part` has slack for `item`.
    #[inline(always)]
    pub(crate) fn fits(&self, part: u32, item: Load<D>) -> bool {
        limit_for(self.caps, item).is_some_and(|limit| self.is_within(part, limit))
    }

    /// The part with the least penalty that has slack for `item`. Ties go to the lowest.
    pub(crate) fn choose(&self, item: Load<D>) -> Option<u32> {
        self.least(limit_for(self.caps, item)?)
    }

    /// Adds `item` to the part that [`choose`](Self::choose) names.
    pub(crate) fn place(&mut self, item: Load<D>) -> Option<u32> {
        let part = self.choose(item)?;
        self.put(part, item);
        Some(part)
    }

    /// The largest load of a part that can take `item`, if caps are scaled by `scale`.
    #[inline(always)]
    pub(crate) fn limit(&self, scale: f64, item: Load<D>) -> Option<Load<D>> {
        limit_for(self.caps.map(|cap| (cap as f64 * scale) as u64), item)
    }

    /// Whether a part has no more load than `limit`.
    #[inline(always)]
    pub(crate) fn is_within(&self, part: u32, limit: Load<D>) -> bool {
        fits(self.load(part), limit)
    }

    /// Whether a part is above a cap.
    pub(crate) fn is_over(&self, part: u32) -> bool {
        !self.is_within(part, self.caps)
    }

    /// Adds `item` to a part. Until [`refresh`](Self::refresh), only [`load`](Self::load) and what compares
    /// it know.
    #[inline(always)]
    pub(crate) fn add(&mut self, part: u32, item: Load<D>) {
        self.nodes[self.leaves + part as usize].load = plus(self.load(part), item);
        if self.changed.last() != Some(&part) {
            self.changed.push(part);
        }
    }

    /// Adds `item` to a part, and brings everything up to date.
    #[inline(always)]
    pub(crate) fn put(&mut self, part: u32, item: Load<D>) {
        self.add(part, item);
        self.refresh();
    }

    /// Takes `item` out of a part; see [`add`](Self::add).
    pub(crate) fn remove(&mut self, part: u32, item: Load<D>) {
        self.nodes[self.leaves + part as usize].load = minus(self.load(part), item);
        self.changed.push(part);
    }

    /// Brings penalties and choices up to date with the loads.
    pub(crate) fn refresh(&mut self) {
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

    /// The part with the least penalty among those within `limit`. Ties go to the lowest.
    pub(crate) fn least(&self, limit: Load<D>) -> Option<u32> {
        let mut best = usize::MAX;
        self.descend(1, 0, limit, &mut best);
        (best != usize::MAX).then(|| (best - self.leaves) as u32)
    }

    /// The part whose largest relative load is the smallest once it has `item`. Ties go to the lowest.
    pub(crate) fn least_overloaded(&self, item: Load<D>) -> u32 {
        let after = |load: Load<D>| relative(plus(load, item), self.caps);
        let least = (0..).zip(self.all().map(after)).min_by(|a, b| a.1.total_cmp(&b.1));
        least.map_or(0, |(part, _)| part)
    }

    /// Looks for a better leaf than `best` below `node`, which lies `depth` below the root.
    fn descend(&self, node: usize, depth: u32, limit: Load<D>, best: &mut usize) {
        let Node { penalty, load } = self.nodes[node];
        let height = self.leaves.trailing_zeros() - depth;
        if !fits(load, limit) {
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
            self.descend(2 * node + usize::from(side), depth + 1, limit, best);
        }
    }

    fn merged(&self, node: usize) -> Node<D> {
        let [left, right] = [self.nodes[2 * node], self.nodes[2 * node + 1]];
        let load = std::array::from_fn(|bound| left.load[bound].min(right.load[bound]));
        Node { penalty: left.penalty.min(right.penalty), load }
    }

    fn penalty_of(&self, load: Load<D>) -> f64 {
        let largest = relative(load, self.whole);
        if self.exponent == 1.0 { largest } else { libm::pow(largest, self.exponent) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    fn compare_with_a_scan<const D: usize>() {
        let mut random = Random::new(5, D as u64);
        let of = |mut draw: [u64; D], first: u64| {
            draw[0] = first;
            draw
        };
        for k in [1, 2, 3, 31, 32, 70] {
            let mut loads = PartLoads::new(vec![[0; D]; k].into_iter(), of([900; D], 40), 1.4).unwrap();
            for step in 0..3000 {
                // Also several changes at once.
                if step % 4 > 0 {
                    loads.refresh();
                } else {
                    loads.add(0, [1; D]);
                    loads.add(k as u32 - 1, [1; D]);
                    loads.refresh();
                }
                let item = of([0; D].map(|_: u64| 1 + random.below(60)), 1);
                let limit = of([0; D].map(|_: u64| random.below(1000)), random.below(45));
                let scan = (0..k as u32).filter(|&part| loads.is_within(part, limit));
                let scan = scan.min_by(|&a, &b| loads.penalty(a).total_cmp(&loads.penalty(b)));
                assert_eq!(loads.least(limit), scan, "k = {k}, step {step}");
                let part = random.below(k as u64) as u32;
                if step % 3 == 0 && fits(item, loads.load(part)) {
                    loads.remove(part, item);
                } else {
                    loads.add(part, item);
                }
            }
        }
    }

    /// The choice is that of a scan over all parts, while items come and go.
    #[test]
    fn the_least_penalty_within_the_limit() {
        compare_with_a_scan::<1>();
        compare_with_a_scan::<2>();
        compare_with_a_scan::<3>();
        compare_with_a_scan::<8>();
    }

    /// Penalties relative to a total: the choice is that of a scan, from tight to loose caps.
    #[test]
    fn the_least_loaded_part_with_slack() {
        for seed in 0..400 {
            let mut random = Random::new(seed, 2);
            let k = 1 + random.below(if seed % 3 == 0 { 4 } else { 70 }) as u32;
            let largest = [0, 1, 5, 1 << 31][random.below(4) as usize];
            let mut item = || [1 + random.below(8) * random.below(2), random.below(largest + 1)];
            let items: Vec<Load> = (0..20 * seed % 400).map(|_| item()).collect();
            let total = items.iter().copied().fold([0; 2], plus);
            let caps = total.map(|total| total.div_ceil(u64::from(k)) * (10 + random.below(20)) / 10);
            let mut parts = PartLoads::empty(k, total, caps).unwrap();
            let mut loads = vec![[0; 2]; k as usize];
            for item in items {
                let feasible = (0..k).filter(|&part| fits(plus(loads[part as usize], item), caps));
                assert!((0..k).all(|p| parts.fits(p, item) == fits(plus(loads[p as usize], item), caps)));
                let share = |part: u32| relative(loads[part as usize], total);
                let expected = feasible.min_by(|&a, &b| share(a).total_cmp(&share(b)));
                assert_eq!(
                    parts.place(item),
                    expected,
                    "seed {seed}, {item:?} into {loads:?}, caps {caps:?}"
                );
                if let Some(part) = expected {
                    loads[part as usize] = plus(loads[part as usize], item);
                }
            }
            assert!(parts.all().eq(loads.iter().copied()));
        }
    }

    #[test]
    fn nothing_overflows() {
        let total = [u64::from(u32::MAX), i64::MAX as u64];
        let mut parts = PartLoads::empty(2, total, total).unwrap();
        assert_eq!(
            (parts.place(total), parts.place([1, 1]), parts.place([1, u64::MAX])),
            (Some(0), Some(1), None)
        );
        assert_eq!(parts.load(0), total);
    }

    #[test]
    fn the_least_overloaded_part() {
        let loads = PartLoads::new([[4, 10], [1, 30], [2, 20]].into_iter(), [4, 40], 1.4).unwrap();
        assert_eq!(loads.fullest(), 1.0);
        assert_eq!(loads.least_overloaded([1, 10]), 2);
        assert_eq!(loads.least_overloaded([1, 40]), 0);
        assert!(!loads.is_over(0));
        assert_eq!(loads.limit(0.5, [1, 3]), Some([1, 17]));
        assert_eq!(loads.limit(0.5, [3, 3]), None);
    }
}
