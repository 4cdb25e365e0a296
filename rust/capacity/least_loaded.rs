//! The least loaded of parts whose loads only grow.
//!
//! Loads are counted at once. The order of the parts is updated only when the first part is requested. Parts
//! wait in a heap by a load that they had earlier. Parts that grew by a few units only are visited level by
//! level of the least load, in the order of their ids, and need no heap. A request takes O(1) amortised once
//! all parts are level, and O(log k) otherwise. It takes 32 bytes per part.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::base::{NONE, Result, Run};

/// Distance above the level within which a part goes on from level to level. Scanning it costs less than the
/// heap.
const NEAR: u64 = 32;

/// The load of a part that takes nothing any more.
const CLOSED: u64 = u64::MAX;

/// Parts by load: the least loaded first, ties to the lowest part.
#[derive(Debug)]
pub(crate) struct LeastLoaded {
    loads: Vec<u64>,
    /// Parts by a load that was theirs and is at least `level`.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    /// No load is below.
    level: u64,
    /// Parts that were near the level below, ascending; those from `next` on were not looked at.
    at_level: Vec<u32>,
    next: usize,
    /// Parts found near above `level`, ascending.
    raised: Vec<u32>,
}

impl LeastLoaded {
    /// Parts with these loads.
    pub(crate) fn new(loads: impl IntoIterator<Item = u64>) -> Self {
        let loads: Vec<u64> = loads.into_iter().collect();
        let waiting = loads.iter().zip(0..).map(|(&load, part)| Reverse((load, part))).collect();
        Self { loads, waiting, level: 0, at_level: Vec::new(), next: 0, raised: Vec::new() }
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

    fn first(&mut self) -> Option<u32> {
        loop {
            let waiting = self.waiting.peek().map(|&Reverse(first)| first);
            let fresh = waiting.filter(|&(load, _)| load == self.level).map(|(_, part)| part);
            match (fresh, self.at_level.get(self.next).copied()) {
                (Some(part), level) if level.is_none_or(|level| part < level) => {
                    let load = self.loads[part as usize];
                    if load == self.level {
                        return Some(part);
                    }
                    if let Some(mut top) = self.waiting.peek_mut() {
                        if load - self.level <= NEAR {
                            PeekMut::pop(top);
                            self.raised.push(part);
                        } else {
                            top.0.0 = load;
                        }
                    }
                }
                (_, Some(part)) => {
                    let load = self.loads[part as usize];
                    if load == self.level {
                        return Some(part);
                    }
                    self.next += 1;
                    if load - self.level <= NEAR {
                        self.raised.push(part);
                    } else {
                        self.waiting.push(Reverse((load, part)));
                    }
                }
                _ if self.raised.is_empty() => {
                    self.level = waiting.map(|(load, _)| load).filter(|&load| load != CLOSED)?;
                }
                _ => {
                    self.level += 1;
                    self.next = 0;
                    self.at_level.clear();
                    std::mem::swap(&mut self.at_level, &mut self.raised);
                }
            }
        }
    }
}

/// Gives the vertices of `part_of` that have no part, since they have no edges, what `part` says, in the
/// order of their ids. Every vertex partitioner does so last, and nearly always by the fewest vertices
/// ([`LeastLoaded::place`]).
pub(crate) fn place_last(part_of: &mut [u32], run: &Run, mut part: impl FnMut() -> u32) -> Result<()> {
    run.each(part_of.len(), |v| {
        if part_of[v as usize] == NONE {
            part_of[v as usize] = part();
        }
    })
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
        let mut parts = LeastLoaded::new([2, 1, 0]);
        place_last(&mut part_of, &Run::new(Some(1), None).unwrap(), || parts.place(1)).unwrap();
        assert_eq!(part_of, [2, 0, 1, 2, 1, 0, 0]);
        assert_eq!(parts.into_loads(), [3, 2, 2]);
    }
}
