//! The least loaded of parts whose loads only grow.
//!
//! Loads are counted at once. A tournament over the loads that the parts once had finds the first part when
//! it is requested: if its load is still the known one, no other part can have less. Else its load becomes
//! known, and the tournament is played again, until the winner's load is known. A request takes O(log k) for
//! each part that has grown above the least load since. It takes up to 32 bytes per part.

use std::cmp::Reverse;

use crate::base::{NONE, Result, Run};
use crate::sets::tournament::Tree;

/// The load of a part that takes nothing any more.
const CLOSED: u64 = u64::MAX;

/// Parts by load: the least loaded first, ties to the lowest part.
#[derive(Debug)]
pub(crate) struct LeastLoaded {
    loads: Vec<u64>,
    /// A load that each part had, by which the tournament is played.
    known: Vec<Reverse<u64>>,
    tree: Tree,
}

impl LeastLoaded {
    /// Parts with these loads.
    pub(crate) fn new(loads: impl IntoIterator<Item = u64>) -> Self {
        let loads: Vec<u64> = loads.into_iter().collect();
        let known: Vec<_> = loads.iter().copied().map(Reverse).collect();
        let mut tree = Tree::new(loads.len());
        tree.rebuild(&known);
        Self { loads, known, tree }
    }

    /// The load of each part.
    pub(crate) fn into_loads(self) -> Vec<u64> {
        self.loads
    }

    /// Number of parts.
    #[inline(always)]
    pub(crate) fn k(&self) -> u32 {
        self.loads.len() as u32
    }

    /// The load of a part.
    #[inline(always)]
    pub(crate) fn load(&self, part: u32) -> u64 {
        self.loads[part as usize]
    }

    /// Adds `load` to a part.
    #[inline(always)]
    pub(crate) fn add(&mut self, part: u32, load: u64) {
        self.loads[part as usize] += load;
    }

    /// Adds `load` to the least loaded part, and returns it.
    #[inline(always)]
    pub(crate) fn place(&mut self, load: u64) -> u32 {
        let part = self.least();
        self.add(part, load);
        part
    }

    /// The least loaded part.
    #[inline(always)]
    pub(crate) fn least(&mut self) -> u32 {
        self.first().unwrap_or(0)
    }

    /// The load of the least loaded part.
    #[inline(always)]
    pub(crate) fn least_load(&mut self) -> u64 {
        self.first().map_or(0, |part| self.load(part))
    }

    /// The least loaded of the parts that are `open`; one that is not will not be asked again.
    pub(crate) fn least_open(&mut self, open: impl Fn(u32) -> bool) -> Option<u32> {
        loop {
            let part = self.first()?;
            if open(part) {
                return Some(part);
            }
            self.loads[part as usize] = CLOSED;
        }
    }

    #[inline(always)]
    fn first(&mut self) -> Option<u32> {
        loop {
            let part = self.tree.best();
            let load = *self.loads.get(part as usize)?;
            if self.known[part as usize].0 == load {
                return (load != CLOSED).then_some(part);
            }
            self.known[part as usize] = Reverse(load);
            self.tree.update(part as usize, &self.known);
        }
    }
}

/// The least loaded of parts that take units.
///
/// A search goes through the parts again and again: parts that it has passed are above the level of this
/// round. The level never exceeds the mean load, so all rounds together take as many steps as there are
/// units. (Measured: streams of vertices are 1.1 times as fast as with [`LeastLoaded`], which takes steps of
/// any size.)
#[derive(Debug)]
pub(crate) struct UnitLoads {
    loads: Vec<u64>,
    /// The least load.
    level: u64,
    /// The lowest part with that load.
    least: u32,
}

impl UnitLoads {
    /// Parts with these loads.
    pub(crate) fn new(loads: Vec<u64>) -> Self {
        let (level, least) = loads.iter().copied().zip(0..).min().unwrap_or_default();
        Self { loads, level, least }
    }

    /// The load of each part.
    pub(crate) fn into_loads(self) -> Vec<u64> {
        self.loads
    }

    /// The load of a part.
    #[inline(always)]
    pub(crate) fn load(&self, part: u32) -> u64 {
        self.loads[part as usize]
    }

    /// The least loaded part.
    #[inline(always)]
    pub(crate) fn least(&self) -> u32 {
        self.least
    }

    /// Adds a unit to a part.
    #[inline(always)]
    pub(crate) fn add(&mut self, part: u32) {
        self.loads[part as usize] += 1;
        while self.load(self.least) > self.level {
            self.least += 1;
            if self.least as usize == self.loads.len() {
                self.least = 0;
                self.level += 1;
            }
        }
    }
}

/// Gives each vertex of `part_of` that has no part, since it has no edges, the part with the fewest vertices
/// by then, in the order of their ids. Nearly every vertex partitioner does so last. Returns the number of
/// vertices of each part, which were `loads`.
pub(crate) fn place_last(part_of: &mut [u32], loads: Vec<u64>, run: &Run) -> Result<Vec<u64>> {
    let mut parts = UnitLoads::new(loads);
    run.each(part_of.len(), |v| {
        if part_of[v as usize] == NONE {
            part_of[v as usize] = parts.least();
            parts.add(parts.least());
        }
    })?;
    Ok(parts.into_loads())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The choice is that of a scan, while items come to any part, mostly of one unit.
        #[test]
        fn the_choice_is_that_of_a_scan(
            mut loads in proptest::collection::vec(0_u64..6, 1..9),
            steps in proptest::collection::vec((0_usize..16, 1_u64..4, 0_u64..3, 0_u32..40), 0..300),
        ) {
            let mut parts = LeastLoaded::new(loads.iter().copied());
            let mut closed = vec![false; loads.len()];
            let scan = |loads: &[u64], closed: &[bool]| {
                (0..loads.len()).filter(|&part| !closed[part]).min_by_key(|&part| loads[part])
            };
            for (part, units, rare, close) in steps {
                let Some(least) = scan(&loads, &closed) else { break };
                prop_assert_eq!(parts.least() as usize, least);
                let part = if part < loads.len() && !closed[part] { part } else { least };
                let load = if rare == 0 { units } else { 1 };
                parts.add(part as u32, load);
                loads[part] += load;
                prop_assert_eq!(parts.load(part as u32), loads[part]);
                if close == 0 {
                    // The least two are full, if there are two.
                    for _ in 0..2 {
                        let full = scan(&loads, &closed).unwrap_or(0);
                        closed[full] = true;
                    }
                    let open = parts.least_open(|part| !closed[part as usize]);
                    prop_assert_eq!(open, scan(&loads, &closed).map(|part| part as u32));
                }
            }
        }
    }

    #[test]
    fn of_no_parts() {
        assert_eq!((LeastLoaded::new([]).least_load(), LeastLoaded::new([]).least_open(|_| true)), (0, None));
    }

    #[test]
    fn those_without_a_part_are_placed_last() {
        let mut part_of = [NONE, 0, NONE, NONE, 1, 0, NONE];
        let loads = place_last(&mut part_of, vec![2, 1, 0], &Run::new(Some(1), None).unwrap()).unwrap();
        assert_eq!(part_of, [2, 0, 1, 2, 1, 0, 0]);
        assert_eq!(loads, [3, 2, 2]);
    }
}
