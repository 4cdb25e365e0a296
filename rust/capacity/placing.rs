//! Placement of vertices under both caps: in groups where these fit, else one by one. In the end, vertices
//! that fit nowhere are exchanged with others.
//!
//! **Exchange.** If a vertex x fits nowhere, some parts have no slack for its weight, and the others have no
//! slack for a vertex. Let b be the part with the least weight. Let a be the part with the least weight among
//! those with slack for a vertex (ties: lowest part). Let y be the lightest vertex (then lowest id) of those
//! that b had before all exchanges. Then x takes the place of y, and y goes to a. If a has no slack for y,
//! all vertices are dealt instead. The heaviest of the vertices left (then the lowest ids) are exchanged
//! first.
//!
//! Part b has slack for the weight of x. It has at most the mean of what is placed, and a cap is at least the
//! mean plus the heaviest vertex (with weights 0 and 1, at least the mean, rounded up, of more than what is
//! placed). Hence b is full of vertices, and b is not a.
//!
//! **With weights 0 and 1 the exchange never fails.** Then x has weight 1. Part a has no slack for it, so a
//! has all the weight it may have. So y fits if y has weight 0. A part has no more weight than vertices, and
//! a may have one vertex more, so the cap on weight is below that on vertices. So b, full of vertices but not
//! of weight, holds at least as many vertices of weight 0 as it lacks weight. Each exchange lowers both
//! numbers by one. Vertices that came to b in exchanges are never needed, since parts like a stay full of
//! weight and are never b.

use std::cmp::Reverse;

use super::{BalanceOn, BalancedAssignment, CHECK_EVERY, LeastLoaded, Load, PartLoads};
use crate::base::{Buffer, NONE, Result, Run, reserved};
use crate::exec::sort_by_key;

/// An assignment while vertices are placed.
pub struct Placing<'a> {
    part_of: Buffer<u32>,
    parts: PartLoads,
    /// Number of vertices that fitted nowhere.
    left: usize,
    balance_on: &'a BalanceOn,
    run: &'a Run,
}

impl<'a> Placing<'a> {
    /// `k` empty parts for all vertices, at most `cap` in each; `part_of`, one value per vertex, will be
    /// overwritten.
    pub fn new(
        part_of: Buffer<u32>,
        k: u32,
        cap: u64,
        balance_on: &'a BalanceOn,
        run: &'a Run,
    ) -> Result<Self> {
        Ok(Self::resume(part_of, balance_on.parts(k, cap)?, 0, balance_on, run))
    }

    /// An assignment begun elsewhere, with the loads in `parts`; `left` vertices, without a part, fitted
    /// nowhere.
    pub fn resume(
        part_of: Buffer<u32>,
        parts: PartLoads,
        left: usize,
        balance_on: &'a BalanceOn,
        run: &'a Run,
    ) -> Self {
        Self { part_of, parts, left, balance_on, run }
    }

    /// Places vertices that weigh `weight` together: in one part if they fit, else one by one.
    pub fn place(&mut self, vertices: &[u32], weight: u64) -> Result<()> {
        match self.parts.place([vertices.len() as u64, weight]) {
            Some(part) => self.put(vertices, |_, _| Some(part)),
            None => self.place_each(vertices),
        }
    }

    /// Places vertices one by one.
    pub fn place_each(&mut self, vertices: &[u32]) -> Result<()> {
        self.put(vertices, |parts, weight| parts.place([1, weight]))
    }

    fn put(&mut self, vertices: &[u32], part: impl Fn(&mut PartLoads, u64) -> Option<u32>) -> Result<()> {
        for vertices in vertices.chunks(CHECK_EVERY) {
            for &vertex in vertices {
                let part = part(&mut self.parts, self.balance_on.weight(vertex));
                self.left += usize::from(part.is_none());
                self.part_of[vertex as usize] = part.unwrap_or(NONE);
            }
            self.run.advance(vertices.len() as u64)?;
        }
        Ok(())
    }

    /// The assignment, once all vertices were placed or left.
    pub fn finish(mut self) -> Result<BalancedAssignment> {
        let mut loads: Vec<Load> = self.parts.all().collect();
        if self.left > 0 && !self.exchange(&mut loads)? {
            return self.balance_on.deal(loads.len() as u32, self.run);
        }
        Ok(BalancedAssignment { assignment: self.part_of.reinterpret(), loads, dealt: false })
    }

    /// Finds places for the vertices left; false if there is none for one of them.
    fn exchange(&mut self, loads: &mut [Load]) -> Result<bool> {
        let Self { part_of, parts, left, balance_on, run } = self;
        let cap = parts.caps();
        run.begin("exchange", *left as u64);
        let weight = |vertex: u32| balance_on.weight(vertex);
        let mut order = balance_on.vertices()?;
        sort_by_key(&mut order, run, |&vertex| (part_of[vertex as usize], weight(vertex), vertex));
        let (placed, left) = order.split_at_mut(part_of.len() - *left);
        left.sort_unstable_by_key(|&vertex| (Reverse(weight(vertex)), vertex));
        // The vertices of each part that have not moved, lightest first.
        let (mut lightest, mut rest) = (reserved(loads.len(), "vertices of each part")?, &*placed);
        lightest.extend(loads.iter().map(|load| {
            let (own, others) = rest.split_at(load[0] as usize);
            rest = others;
            own.iter().copied()
        }));
        let [mut all, mut open] = [(); 2].map(|()| LeastLoaded::new(loads.iter().map(|load| load[1])));
        for left in left.chunks(CHECK_EVERY) {
            for &x in left {
                let b = all.least();
                let Some(y) = lightest[b as usize].next() else { return Ok(false) };
                let has_slack = |part: u32| loads[part as usize][0] < cap[0];
                let Some(a) = open.least_open(has_slack) else { return Ok(false) };
                if open.load(a) + weight(y) > cap[1] {
                    return Ok(false);
                }
                loads[a as usize][0] += 1;
                open.add(a, weight(y));
                // x is heavier than y, since a has slack for y only.
                for (part, more) in [(a, weight(y)), (b, weight(x) - weight(y))] {
                    loads[part as usize][1] += more;
                    all.add(part, more);
                }
                (part_of[x as usize], part_of[y as usize]) = (b, a);
            }
            run.advance(left.len() as u64)?;
        }
        Ok(true)
    }
}
