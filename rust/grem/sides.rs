//! Sides of vertices, and the rule that chooses them.

use super::entries::Entries;
use crate::buffer::Buffer;
use crate::error::Result;
use crate::run::Run;

/// Vertices between two looks at the cancel flag.
const STEP: usize = 4096;

/// How a vertex chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Not to a full side, and on equal counts stay.
    Refined,
    /// As Algorithm 2 of the paper has it.
    Faithful,
    /// The first choice is the last.
    Frozen,
}

/// A bisection in the making.
pub struct Sides {
    /// 0: none yet; else 1 more than the side.
    side: Buffer<u8>,
    /// Neighbours on side 0 less those on side 1, averaged over the chunks. Only their difference decides, and it is
    /// averaged as they would be.
    lead: Buffer<f32>,
    sizes: [u64; 2],
    caps: [u64; 2],
    rule: Rule,
}

impl Sides {
    /// Nobody has a side; at most `caps` vertices get one each.
    pub fn new(n: u64, caps: [u64; 2], rule: Rule) -> Result<Self> {
        let n = n as usize;
        let side = Buffer::zeroed(n, "grem: sides")?;
        let lead = Buffer::zeroed(if rule == Rule::Frozen { 0 } else { n }, "grem: counts")?;
        Ok(Self { side, lead, sizes: [0; 2], caps, rule })
    }

    /// Takes the sides that the seed partitioner gave the vertices of the first chunk; what exceeds a cap, since it put
    /// whole clusters there, goes to the other side.
    pub fn seed(&mut self, entries: &Entries, side_of: impl Fn(u32) -> u32) {
        for (v, _) in entries.vertices() {
            let side = side_of(v) as usize;
            self.put(v, if self.sizes[side] < self.caps[side] { side } else { 1 - side });
        }
    }

    /// Counts what the vertices of the first chunk see in it.
    pub fn count(&mut self, entries: &Entries) {
        if self.rule != Rule::Frozen {
            for (v, neighbours) in entries.vertices() {
                self.lead[v as usize] = self.lead_in(neighbours);
            }
        }
    }

    /// Decides again about the vertices of the first chunk, by it alone: the seed partitioner gave either side its share of
    /// them, or saw their clusters only; the room that is left for vertices yet to come may be used better.
    pub fn improve(&mut self, entries: &Entries, rounds: u32, run: &Run) -> Result<()> {
        for _ in 0..rounds {
            for (index, (v, neighbours)) in entries.vertices().enumerate() {
                let lead = self.lead_in(neighbours);
                self.decide(v, lead, Rule::Refined);
                if index % STEP == 0 {
                    run.advance(0)?;
                }
            }
        }
        Ok(())
    }

    /// Decides about every vertex of a later chunk.
    pub fn follow(&mut self, entries: &Entries, run: &Run) -> Result<()> {
        for (index, (v, neighbours)) in entries.vertices().enumerate() {
            let placed = self.side[v as usize] != 0;
            if !(placed && self.rule == Rule::Frozen) {
                let mut lead = self.lead_in(neighbours);
                if placed {
                    lead = (self.lead[v as usize] + lead) / 2.0;
                }
                self.decide(v, lead, self.rule);
                if self.rule != Rule::Frozen {
                    self.lead[v as usize] = lead;
                }
            }
            if index % STEP == 0 {
                run.advance(0)?;
            }
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

    fn decide(&mut self, v: u32, lead: f32, rule: Rule) {
        let old = usize::from(self.side[v as usize]).checked_sub(1);
        let wanted = if lead == 0.0 { None } else { Some(usize::from(lead < 0.0)) };
        let has_room = |side: &usize| self.sizes[*side] < self.caps[*side];
        let side = match (rule, old) {
            (Rule::Faithful, _) => wanted.filter(has_room).unwrap_or_else(|| self.freer()),
            (_, None) => {
                let side = wanted.unwrap_or_else(|| self.freer());
                if has_room(&side) { side } else { 1 - side }
            }
            (_, Some(old)) => match wanted {
                Some(side) if side != old && has_room(&side) => side,
                _ => old,
            },
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

    /// The side with more of its capacity free (of equal ones, side 0); the emptier one if both have the same.
    fn freer(&self) -> usize {
        let free = |side: usize| {
            (i128::from(self.caps[side]) - i128::from(self.sizes[side])) * i128::from(self.caps[1 - side])
        };
        usize::from(free(1) > free(0))
    }

    /// Places the vertices without a record, in the order of their ids.
    pub fn place_rest(&mut self, run: &Run) -> Result<()> {
        for v in 0..self.side.len() {
            if self.side[v] == 0 {
                let side = self.freer();
                self.put(v as u32, side);
            }
            if v % STEP == 0 {
                run.advance(0)?;
            }
        }
        Ok(())
    }

    /// The sides alone: the counts return their memory.
    pub fn finish(self) -> Buffer<u8> {
        let mut side = self.side;
        side.iter_mut().for_each(|side| *side = side.saturating_sub(1));
        side
    }
}
