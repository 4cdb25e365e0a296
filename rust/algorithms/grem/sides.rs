//! Sides of vertices, and the rule that chooses them.

use super::entries::Entries;
use crate::base::{Buffer, CancelCheck, Result, Run};

/// The factor of a count when its vertex comes again: small enough to follow neighbours that moved, large
/// enough to tell a lead from noise.
const KEPT: f32 = 0.8;

/// How a vertex chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The side with more neighbours wins. On equal counts a vertex stays. Caps are kept between chunks.
    Refined,
    /// As Algorithm 2 of the paper has it.
    Faithful,
    /// The first choice is the last.
    Frozen,
}

/// The state of a bisection.
pub(crate) struct Sides {
    /// 0: none yet, else 1 more than the side.
    side: Buffer<u8>,
    /// Neighbours on side 0 less those on side 1, over the chunks. Only their difference decides, and it
    /// fades as they would.
    lead: Buffer<f32>,
    sizes: [u64; 2],
    caps: [u64; 2],
    rule: Rule,
}

impl Sides {
    /// No vertex has a side. A side gets at most its cap in `caps`.
    pub(crate) fn new(n: u64, caps: [u64; 2], rule: Rule) -> Result<Self> {
        let n = n as usize;
        let side = Buffer::zeroed(n, "grem: sides")?;
        let lead = Buffer::zeroed(if rule == Rule::Frozen { 0 } else { n }, "grem: counts")?;
        Ok(Self { side, lead, sizes: [0; 2], caps, rule })
    }

    /// Takes the sides that the seed partitioner gave the vertices of the first chunk, and counts what they
    /// see in it. Where caps are not kept later, what exceeds one goes to the other side.
    pub(crate) fn seed(&mut self, entries: &Entries, side_of: impl Fn(u32) -> u32, run: &Run) -> Result<()> {
        let mut check = CancelCheck::new(run);
        for (v, _) in entries.vertices() {
            let side = side_of(v) as usize;
            let fits = self.rule == Rule::Refined || self.sizes[side] < self.caps[side];
            self.put(v, if fits { side } else { 1 - side });
            check.count(1)?;
        }
        if self.rule != Rule::Frozen {
            for (v, neighbours) in entries.vertices() {
                self.lead[v as usize] = self.lead_in(neighbours);
                check.count(1)?;
            }
        }
        Ok(())
    }

    /// Decides about every vertex of a later chunk.
    pub(crate) fn follow(&mut self, entries: &Entries, run: &Run) -> Result<()> {
        let mut check = CancelCheck::new(run);
        for (v, neighbours) in entries.vertices() {
            let placed = self.side[v as usize] != 0;
            if !(placed && self.rule == Rule::Frozen) {
                let mut lead = self.lead_in(neighbours);
                if placed {
                    let before = self.lead[v as usize];
                    lead = match self.rule {
                        Rule::Faithful => (before + lead) / 2.0,
                        _ => KEPT * before + lead,
                    };
                }
                self.decide(v, lead);
                if self.rule != Rule::Frozen {
                    self.lead[v as usize] = lead;
                }
            }
            check.count(1)?;
        }
        Ok(())
    }

    /// Neighbours on side 0 less those on side 1.
    #[inline(always)]
    fn lead_in(&self, neighbours: impl Iterator<Item = u32>) -> f32 {
        let mut counts = [0_i32; 3];
        neighbours.for_each(|u| counts[self.side[u as usize] as usize % 3] += 1);
        (counts[1] - counts[2]) as f32
    }

    fn decide(&mut self, v: u32, lead: f32) {
        let old = usize::from(self.side[v as usize]).checked_sub(1);
        let wanted = if lead == 0.0 { None } else { Some(usize::from(lead < 0.0)) };
        let has_slack = |side: usize| self.sizes[side] < self.caps[side];
        let side = match self.rule {
            Rule::Refined => wanted.or(old).unwrap_or_else(|| self.freer()),
            Rule::Faithful => wanted.filter(|&side| has_slack(side)).unwrap_or_else(|| self.freer()),
            Rule::Frozen => {
                let side = wanted.unwrap_or_else(|| self.freer());
                if has_slack(side) { side } else { 1 - side }
            }
        };
        if let Some(old) = old {
            self.sizes[old] -= 1;
        }
        self.put(v, side);
    }

    fn put(&mut self, v: u32, side: usize) {
        self.side[v as usize] = side as u8 + 1;
        self.sizes[side] += 1;
    }

    /// The side with more of its capacity free (of equal ones, side 0), or the emptier one if both have the
    /// same.
    fn freer(&self) -> usize {
        let free = |side: usize| {
            (i128::from(self.caps[side]) - i128::from(self.sizes[side])) * i128::from(self.caps[1 - side])
        };
        usize::from(free(1) > free(0))
    }

    /// Brings both sides back under their caps.
    pub(crate) fn keep_caps(&mut self, run: &Run) -> Result<()> {
        for side in 0..2 {
            if self.rule == Rule::Refined && self.sizes[side] > self.caps[side] {
                self.evict(side, self.sizes[side] - self.caps[side], run)?;
            }
        }
        Ok(())
    }

    /// Sends `count` vertices of `side` to the other one: those with the smallest lead here, of equal ones
    /// the lowest ids.
    fn evict(&mut self, side: usize, count: u64, run: &Run) -> Result<()> {
        // The key of the last to go is found one half after the other, so that no list of keys is needed.
        let (mut last, mut before) = (0, 0);
        for shift in [16, 0] {
            let mut counts = vec![0_u64; 1 << 16];
            run.each(self.side.len(), |v| {
                let key = self.key(v, side);
                if self.is_on(v, side) && (shift == 16 || key >> 16 == last >> 16) {
                    counts[usize::from((key >> shift) as u16)] += 1;
                }
            })?;
            let mut digit = 0;
            while before + counts[digit] < count {
                before += counts[digit];
                digit += 1;
            }
            last |= (digit as u32) << shift;
        }
        let mut ties = count - before;
        run.each(self.side.len(), |v| {
            let key = self.key(v, side);
            if self.is_on(v, side) && (key < last || (key == last && ties > 0)) {
                ties -= u64::from(key == last);
                self.sizes[side] -= 1;
                self.put(v, 1 - side);
            }
        })
    }

    fn is_on(&self, v: u32, side: usize) -> bool {
        usize::from(self.side[v as usize]) == side + 1
    }

    /// Ordered as the leads of `side` are.
    #[inline(always)]
    fn key(&self, v: u32, side: usize) -> u32 {
        let lead = self.lead[v as usize];
        let bits = if side == 0 { lead } else { -lead }.to_bits();
        if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
    }

    /// Places the vertices without a record, in the order of their ids.
    pub(crate) fn place_rest(&mut self, run: &Run) -> Result<()> {
        run.each(self.side.len(), |v| {
            if self.side[v as usize] == 0 {
                let side = self.freer();
                self.put(v, side);
            }
        })
    }

    /// The sides alone: the counts return their memory.
    pub(crate) fn finish(self, run: &Run) -> Result<Buffer<u8>> {
        let mut side = self.side;
        run.each(side.len(), |v| side[v as usize] = side[v as usize].saturating_sub(1))?;
        Ok(side)
    }
}
