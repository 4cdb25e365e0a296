//! Loose bounds on volume, which are ignored in the beginning.
//!
//! **Algorithm.** Many graphs keep a bound on volume of 1.25 or more without being asked to. So the graph is
//! partitioned without it. If a part is above its cap then, the parts are *mended*: brought within the bound
//! and improved in rounds ([`rounds`](super::rounds)).
//!
//! **Hubs.** If a few vertices have most of the edges, parts without the bound are so far above it that
//! mending takes longer than a partition under all bounds from the start on. The degrees say so beforehand:
//! the vertices with the highest degrees, as many as a part may have, would exceed the cap by [`FAR`] of the
//! volume.
//!
//! **Lists in files**, and lists that replicas share, are read in the order of the vertices only, so a round
//! has Jet and no greedy passes. There are fewer rounds, since each reads all lists several times. The cap of
//! a loose bound that is not reached is raised to what is reached. The last resorts of
//! [`bounds`](super::bounds) would read lists in any order.
//!
//! **Figures.** On 17 graphs and 4, 8 and 32 parts a bound of 2 costs 1, 4 and 3 % of the cut, and one of 1.3
//! costs 23, 23 and 10 %, in 1.0 to 1.6 times the time of no bound. If all bounds hold from the start on,
//! they cost 4, 8 and 7 %, and 25, 23 and 12 %, in twice the time. Tight bounds cost less from the start on.
//! With levels in files a bound of 2 costs as much as in memory: where parts would break it (10 graphs, 14
//! cases) the cut is 1.11 times that without the bound, in 1.5 times the time, on every path. On an R-MAT
//! graph (n = 2 M, m = 20 M, k = 16), where one part has 13 times its share, mending takes 3.0 times the time
//! of no bound for a bound of 2, and all bounds from the start on 2.1 times, for the same cut.

use super::rounds::Rounds;
use super::scheme::Effort;
use super::start::Start;
use crate::algorithms::multilevel::model::{Bound, Goal};
use crate::base::{Buffer, Result, Run, reserved};
use crate::capacity::Shares;
use crate::graph::Csr;
use crate::partition::{Capacity, VertexPartition};

/// Most rounds of mending with lists in files.
const ROUNDS_IN_ORDER: u64 = 4;
/// The share of the volume by which the vertices with the highest degrees may exceed the cap of a part.
const FAR: f64 = 0.45;

impl Goal {
    /// Partitions the graph of `csr`. Also returns the number of rounds.
    pub(crate) fn partition(&self, start: Start, csr: &Csr, run: &Run) -> Result<(VertexPartition, u64)> {
        let shares = self.shares()?;
        let loose = self.bounds.iter().find(|bound| bound.is_loose());
        let (Start::Anew(effort, _), Some(loose)) = (start, loose) else {
            return self.bounded(start, csr, run);
        };
        let is_alone = self.volume_alone(start, &shares, csr.graph().n).is_some();
        if is_alone || self.is_far(loose, &shares, csr, run)? {
            return self.bounded(start, csr, run);
        }
        let bounds = self.bounds.iter().filter(|bound| !bound.is_loose()).cloned().collect();
        let (free, rounds) = Goal { bounds, connected: false, ..self.clone() }.bounded(start, csr, run)?;
        let parts: Buffer<u32> = free.assignment.reinterpret();
        let volume = loose.capacity(csr, &shares, &parts, run)?;
        if let (Some(volume), false) = (volume, self.connected) {
            let assignment = parts.reinterpret();
            return Ok((VertexPartition { assignment, volume: Some(volume), ..free }, rounds));
        }
        let in_order = start.is_in_order();
        let most = effort.tuning().mending_rounds.or(in_order.then_some(ROUNDS_IN_ORDER));
        let mending = Rounds { effort: Effort::Best { rounds: most, time_limit: None }, in_order };
        let (partition, _) = self.bounded(Start::Mended(&parts, mending), csr, run)?;
        Ok((partition, rounds))
    }

    /// Whether a partition without the bound may be too far above it.
    fn is_far(&self, bound: &Bound, shares: &Shares, csr: &Csr, run: &Run) -> Result<bool> {
        let n = csr.num_vertices();
        let mut volumes: Vec<u64> = reserved(n, "volumes")?;
        run.each(n, |v| volumes.push(bound.weight(csr, v)))?;
        let cap = bound.caps(csr, shares).into_iter().max().unwrap_or(0);
        Ok(self.beyond(volumes, cap, shares) > FAR)
    }

    /// The share of the volume by which a part of the vertices with the highest volumes would exceed the cap.
    pub(crate) fn beyond(&self, mut volumes: Vec<u64>, cap: u64, shares: &Shares) -> f64 {
        let n = volumes.len();
        let most = shares.caps(self.balance, n as u64).max().unwrap_or(0).min(n as u64) as usize;
        if most < n {
            volumes.select_nth_unstable_by(most, |one, other| other.cmp(one));
        }
        let (heaviest, all): (u64, u64) = (volumes[..most].iter().sum(), volumes.iter().sum());
        heaviest.saturating_sub(cap) as f64 / all.max(1) as f64
    }
}

impl Bound {
    /// The loads of parts that keep the bound, and the caps, or `None` if they do not.
    fn capacity(&self, csr: &Csr, shares: &Shares, parts: &[u32], run: &Run) -> Result<Option<Capacity>> {
        let caps = self.caps(csr, shares);
        let mut loads = vec![0; caps.len()];
        run.each(parts.len(), |v| loads[parts[v as usize] as usize] += self.weight(csr, v))?;
        if loads.iter().zip(&caps).any(|(load, cap)| load > cap) {
            return Ok(None);
        }
        let capacity = Capacity::of_parts(loads, caps.into_iter().map(|cap| [cap, cap]).collect());
        Ok(Some(if shares.are_equal() { Capacity { of_parts: Vec::new(), ..capacity } } else { capacity }))
    }
}
