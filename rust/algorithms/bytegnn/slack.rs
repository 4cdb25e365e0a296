//! Finds the parts that have slack for vertices, if all later vertices must also fit.
//!
//! **Bounds.** One on vertices, and one on each of the three splits. The cap on the vertices of a part is at
//! least n / k, that on a split at least its vertices / k.
//!
//! **Why nothing gets stuck.** A part may fill up with other vertices although the training vertices that are
//! left fit nowhere else. So a part counts as having slack for a vertex only if all that come later still fit
//! after that. If no vertex is in two splits, this is a flow from the splits through the parts. It exists if
//! for every set S of splits the vertices of S that are still to come are at most the sum over the parts of
//! `min(vertices, vertices of S)` that a part has slack for (max-flow min-cut). There are 8 sets, and their
//! sums change with one part at a time. In the beginning they are large enough, and some part keeps them so
//! for each vertex. So only the caps asked for are needed. If vertices are in several splits, the condition
//! is necessary but not sufficient. Then the caps on splits may have to be raised.

use super::SPLITS;
use crate::base::{Result, Run, reserved};
use crate::capacity::{Load, fits, plus};

/// Number of bounds: on all vertices, then on the vertices of each split.
pub(crate) const BOUNDS: usize = 1 + SPLITS;

/// Sets of splits.
const SETS: usize = 1 << SPLITS;

/// Vertices of which only the first may be in splits.
#[derive(Debug, Clone, Copy)]
pub struct Piece {
    /// Their number.
    pub vertices: u64,
    /// The splits of the first: the sum of 1, 2 and 4.
    pub splits: u32,
}

impl Piece {
    fn load(self) -> Load<BOUNDS> {
        std::array::from_fn(|bound| match bound {
            0 => self.vertices,
            split => u64::from(self.splits >> (split - 1) & 1),
        })
    }

    /// Number of its vertices in a split of `set`.
    fn of(self, set: usize) -> u64 {
        u64::from(self.splits as usize & set != 0)
    }
}

/// Numbers of all vertices.
pub struct Total {
    /// By bound.
    pub load: Load<BOUNDS>,
    /// By set: vertices in any of its splits.
    of: [u64; SETS],
}

/// Counts the vertices, given the splits of each.
pub fn total(splits: &[u32], run: &Run) -> Result<Total> {
    let mut total = Total { load: [0; BOUNDS], of: [0; SETS] };
    run.each(splits.len(), |v| {
        let piece = Piece { vertices: 1, splits: splits[v as usize] };
        total.load = plus(total.load, piece.load());
        total.of.iter_mut().zip(0..).for_each(|(count, set)| *count += piece.of(set));
    })?;
    Ok(total)
}

/// The slack of the parts.
pub struct Slack {
    loads: Vec<Load<BOUNDS>>,
    cap: Load<BOUNDS>,
    /// By set: vertices in any of its splits that are still to come.
    coming: [u64; SETS],
    /// By set: how many of these all parts have slack for.
    open: [u64; SETS],
}

impl Slack {
    /// `k` empty parts of at most `cap` for all vertices.
    pub fn new(k: u32, cap: Load<BOUNDS>, total: &Total) -> Result<Slack> {
        let mut loads = reserved(k as usize, "loads of the parts")?;
        loads.resize(k as usize, [0; BOUNDS]);
        let mut slack = Slack { loads, cap, coming: total.of, open: [0; SETS] };
        slack.recount();
        Ok(slack)
    }

    /// The loads of all parts.
    pub fn loads(&self) -> &[Load<BOUNDS>] {
        &self.loads
    }

    /// The load of `part`.
    #[inline(always)]
    pub fn load(&self, part: u32) -> Load<BOUNDS> {
        self.loads[part as usize]
    }

    /// Whether `part` has slack for `piece`, and all vertices that come later still fit after that.
    pub fn fits(&self, part: u32, piece: Piece) -> bool {
        let before = self.load(part);
        let after = plus(before, piece.load());
        let enough = |set: usize| {
            self.open[set] - self.open_in(before, set) + self.open_in(after, set) + piece.of(set)
                >= self.coming[set]
        };
        fits(after, self.cap) && (1..SETS).all(enough)
    }

    /// The number of vertices of a piece that `part` has slack for, if the first fits. The split counts of
    /// the piece are taken as they are.
    pub fn most(&self, part: u32, piece: Piece) -> u64 {
        // If some vertices fit, fewer also fit.
        let (mut most, mut too_many) = (1, piece.vertices + 1);
        while most + 1 < too_many {
            let middle = most.midpoint(too_many);
            if self.fits(part, Piece { vertices: middle, ..piece }) {
                most = middle;
            } else {
                too_many = middle;
            }
        }
        most
    }

    /// Adds `piece` to `part`.
    pub fn add(&mut self, part: u32, piece: Piece) {
        let before = self.load(part);
        let after = plus(before, piece.load());
        for set in 0..SETS {
            self.open[set] = self.open[set] - self.open_in(before, set) + self.open_in(after, set);
            self.coming[set] -= piece.of(set);
        }
        self.loads[part as usize] = after;
    }

    /// Raises the caps on all splits by one.
    pub fn raise(&mut self) {
        self.cap[1..].iter_mut().for_each(|cap| *cap += 1);
        self.recount();
    }

    fn recount(&mut self) {
        self.open = std::array::from_fn(|set| self.loads.iter().map(|&load| self.open_in(load, set)).sum());
    }

    /// Number of vertices, each in any split of `set`, that a part with this load has slack for.
    fn open_in(&self, load: Load<BOUNDS>, set: usize) -> u64 {
        let left = |bound: usize| self.cap[bound].saturating_sub(load[bound]);
        let of_splits = (0..SPLITS).filter(|split| set >> split & 1 == 1).map(|split| left(1 + split)).sum();
        left(0).min(of_splits)
    }
}
