//! The largest of many numbers that change one at a time.

/// A tournament: each node holds the winner among the leaves below it. 8 bytes per item.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Node i has the children 2i and 2i + 1. The leaves follow the nodes.
    winners: Vec<u32>,
    leaves: usize,
}

impl Tree {
    /// A tree over `len` items. See [`Self::rebuild`].
    pub(crate) fn new(len: usize) -> Self {
        let leaves = len.next_power_of_two();
        // Leaves beyond the items repeat the last one: it ties with itself.
        let mut winners = vec![0; leaves];
        winners.extend((0..leaves).map(|leaf| leaf.min(len.saturating_sub(1)) as u32));
        Self { winners, leaves }
    }

    /// The index of the largest item. Ties go to the lowest.
    #[inline(always)]
    pub(crate) fn best(&self) -> u32 {
        self.winners[1]
    }

    /// Updates the tree after a change of one item.
    #[inline(always)]
    pub(crate) fn update(&mut self, item: usize, items: &[impl PartialOrd]) {
        let mut node = (self.leaves + item) / 2;
        while node >= 1 {
            self.play(node, items);
            node /= 2;
        }
    }

    /// Updates the tree after changes of all items.
    pub(crate) fn rebuild(&mut self, items: &[impl PartialOrd]) {
        for node in (1..self.leaves).rev() {
            self.play(node, items);
        }
    }

    #[inline(always)]
    fn play(&mut self, node: usize, items: &[impl PartialOrd]) {
        let [left, right] = [self.winners[2 * node], self.winners[2 * node + 1]];
        self.winners[node] = if items[right as usize] > items[left as usize] { right } else { left };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    #[test]
    fn the_first_of_the_largest_wins() {
        let mut random = Random::new(0, 0);
        for len in [1, 2, 3, 7, 64, 100] {
            let mut items: Vec<f64> = (0..len).map(|_| random.below(5) as f64).collect();
            let mut tree = Tree::new(len);
            tree.rebuild(&items);
            for _ in 0..200 {
                let expected = (0..len).rev().max_by(|&a, &b| items[a].total_cmp(&items[b])).unwrap();
                assert_eq!(tree.best() as usize, expected, "{items:?}");
                let item = random.below(len as u64) as usize;
                items[item] = random.below(5) as f64;
                tree.update(item, &items);
            }
        }
    }
}
