//! Repair: vertices leave over-full parts until the caps on vertices and on volume hold, or the cap on volume
//! is raised.
//!
//! SIGMA and the multilevel partitioner use it for what their own rules leave above a cap.
//!
//! 1. *Moves* take vertices out of any over-full part, into parts with slack for them, lowest cut loss first.
//! 2. If a part still has too many vertices, those of lowest degree go to parts with too few, whatever the
//!    volume. Now the cap on vertices holds.
//! 3. *Exchanges* ([`exchange`](mod@exchange)) move volume out of over-full parts and keep the numbers of
//!    vertices.
//! 4. If a volume is still above its cap, it becomes the cap, up to `ceil((2m' + n) / k) + max(d + 1)` with
//!    m' edges without loops. Beyond that all vertices are dealt by descending degree, which keeps this bound
//!    ([`BalanceOn`]).
//!
//! A vertex whose own volume is above the cap makes the cap impossible from the beginning. Then the bound
//! takes its place. Every move and every exchange lowers the total excess over the caps, so each step ends.

mod exchange;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::exchange::exchange;
use super::{BalanceOn, LeastLoaded, Load, PartLoads};
use crate::base::{CancelCheck, Result, Run, reserved};
use crate::graph::Csr;
use crate::sets::SparseSums;

/// A partition under repair.
pub(super) struct Repair<'a> {
    pub csr: &'a Csr,
    pub parts: &'a mut [u32],
    pub loads: PartLoads,
    /// The least excess of the loads over the caps so far.
    left: u64,
    pub run: &'a Run,
}

/// The result of the repair.
pub(crate) struct RepairOutcome {
    /// Load of each part.
    pub loads: Vec<Load>,
    /// The cap on volume that holds.
    pub cap: u64,
    /// Whether all vertices were dealt.
    pub dealt: bool,
}

/// Makes the parts keep the `caps`, or exceed the cap on volume as little as can be reached.
pub(crate) fn repair(
    csr: &Csr,
    parts: &mut [u32],
    loads: &[Load],
    caps: Load,
    run: &Run,
) -> Result<RepairOutcome> {
    let n = csr.num_vertices() as u32;
    let largest = (0..n).map(|v| 1 + u64::from(csr.degree(v))).max().unwrap_or(0);
    let total = csr.num_entries() + u64::from(n);
    let bound = total.div_ceil(loads.len() as u64) + largest;
    let target = if largest > caps[1] { bound } else { caps[1] };
    let loads_of = PartLoads::new(loads.iter().copied(), [caps[0], target], 1.0)?;
    let mut repair = Repair { csr, parts, loads: loads_of, left: 0, run };
    repair.left = (0..loads.len() as u32).map(|part| repair.excess(part)).sum();
    run.begin("repair", repair.left);
    repair.moves()?;
    repair.push_vertices()?;
    exchange(&mut repair)?;
    run.advance(repair.left)?;
    let reached = repair.loads.all().map(|load| load[1]).max().unwrap_or(0);
    if reached <= caps[1].max(bound) {
        return Ok(RepairOutcome {
            loads: repair.loads.all().collect(),
            cap: caps[1].max(reached),
            dealt: false,
        });
    }
    deal(csr, parts, loads.len() as u32, caps, run)
}

impl Repair<'_> {
    pub(crate) fn item(&self, v: u32) -> Load {
        [1, 1 + u64::from(self.csr.degree(v))]
    }

    /// By how much a part is above its caps.
    fn excess(&self, part: u32) -> u64 {
        let above = |(load, cap): (u64, u64)| load.saturating_sub(cap);
        self.loads.load(part).into_iter().zip(self.loads.caps()).map(above).sum()
    }

    /// Moves `v` into `part`.
    pub(crate) fn shift(&mut self, v: u32, part: u32) {
        let (item, from) = (self.item(v), self.parts[v as usize]);
        let before = self.excess(from) + self.excess(part);
        self.loads.remove(from, item);
        self.loads.add(part, item);
        self.loads.refresh();
        self.parts[v as usize] = part;
        let relieved = before.saturating_sub(self.excess(from) + self.excess(part)).min(self.left);
        self.left -= relieved;
        // Whether the run is cancelled is asked between the moves.
        let _ = self.run.advance(relieved);
    }

    /// The vertices for which `wanted` says yes to their part, in id order.
    pub(crate) fn members(&self, wanted: impl Fn(u32) -> bool) -> Result<Vec<u32>> {
        let mut members = Vec::new();
        self.run.each(self.parts.len(), |v| {
            if wanted(self.parts[v as usize]) {
                members.push(v);
            }
        })?;
        Ok(members)
    }

    /// Moves out of over-full parts, in rounds, since a part that is no longer over-full may have slack for
    /// others.
    fn moves(&mut self) -> Result<()> {
        let mut tally = SparseSums::new(self.loads.k())?;
        while (0..self.loads.k()).any(|part| self.loads.is_over(part)) {
            if !self.round_of_moves(&mut tally)? {
                break;
            }
        }
        Ok(())
    }

    /// Every vertex of an over-full part that has somewhere to go, lowest loss first (ties: the lowest id). A
    /// loss is computed again when its entry is popped. If it has grown, the vertex is queued again. Returns
    /// whether any moved.
    fn round_of_moves(&mut self, tally: &mut SparseSums<u32>) -> Result<bool> {
        let members = self.members(|part| self.loads.is_over(part))?;
        let mut queue = BinaryHeap::from(reserved(members.len(), "vertices of over-full parts")?);
        let mut work = CancelCheck::new(self.run);
        for v in members {
            work.count(1 + self.csr.degree(v) as usize)?;
            queue.extend(self.best_move(v, tally).map(|(loss, _)| Reverse((loss, v))));
        }
        let mut moved = false;
        while let Some(Reverse((loss, v))) = queue.pop() {
            if !self.loads.is_over(self.parts[v as usize]) {
                continue;
            }
            work.count(1 + self.csr.degree(v) as usize)?;
            match self.best_move(v, tally) {
                Some((now, part)) if now <= loss => {
                    self.shift(v, part);
                    moved = true;
                }
                Some((now, _)) => queue.push(Reverse((now, v))),
                None => {}
            }
        }
        Ok(moved)
    }

    /// The part with slack for `v` that has most of its neighbours (ties: the least loaded, then the lowest),
    /// and how many more edges are cut if `v` goes there.
    fn best_move(&self, v: u32, tally: &mut SparseSums<u32>) -> Option<(i64, u32)> {
        let limit = self.loads.limit(1.0, self.item(v))?;
        let mut best = self.loads.least(limit)?;
        tally.count(self.csr.neighbours(v), self.parts);
        for part in tally.parts().filter(|&part| self.loads.is_within(part, limit)) {
            let key = |part: u32| (tally.of(best).cmp(&tally.of(part)), self.loads.penalty(part), part);
            if key(part) < key(best) {
                best = part;
            }
        }
        let own = tally.of(self.parts[v as usize]);
        Some((i64::from(own) - i64::from(tally.of(best)), best))
    }

    /// Vertices of lowest degree (ties: the lowest id) out of parts with too many, each into the part of
    /// least volume (ties: the lowest) that has slack for a vertex. There is one, since the caps hold all
    /// vertices.
    fn push_vertices(&mut self) -> Result<()> {
        let cap = self.loads.caps()[0];
        let too_many = |loads: &PartLoads, part: u32| loads.load(part)[0] > cap;
        if !(0..self.loads.k()).any(|part| too_many(&self.loads, part)) {
            return Ok(());
        }
        let mut members = self.members(|part| too_many(&self.loads, part))?;
        members.sort_unstable_by_key(|&v| (self.csr.degree(v), v));
        let mut open = LeastLoaded::new(self.loads.all().map(|load| load[1]));
        let mut work = CancelCheck::new(self.run);
        for v in members {
            work.count(1)?;
            if !too_many(&self.loads, self.parts[v as usize]) {
                continue;
            }
            let Some(part) = open.least_open(|part| self.loads.load(part)[0] < cap) else { break };
            self.shift(v, part);
            open.add(part, self.item(v)[1]);
        }
        Ok(())
    }
}

/// The last resort.
fn deal(csr: &Csr, parts: &mut [u32], k: u32, caps: Load, run: &Run) -> Result<RepairOutcome> {
    let n = csr.num_vertices();
    let mut degrees = reserved(n, "degrees")?;
    degrees.extend((0..n as u32).map(|v| csr.degree(v)));
    let dealt = BalanceOn::new(degrees, 1.0)?.deal(k, run)?;
    for (part, &dealt) in parts.iter_mut().zip(&dealt.assignment[..]) {
        *part = dealt as u32;
    }
    let loads: Vec<Load> =
        dealt.loads.iter().map(|&[vertices, degree]| [vertices, degree + vertices]).collect();
    let reached = loads.iter().map(|load| load[1]).max().unwrap_or(0);
    Ok(RepairOutcome { loads, cap: reached.max(caps[1]), dealt: true })
}
