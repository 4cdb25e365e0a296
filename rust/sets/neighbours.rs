//! How many neighbours of a vertex are in each part.

use crate::base::NONE;
use crate::base::buffer::reserved;
use crate::base::error::Result;

/// How many neighbours of a vertex are in each part.
pub struct Tally {
    counts: Vec<u32>,
    parts: Vec<u32>,
}

impl Tally {
    /// Zeros for `k` parts.
    pub fn new(k: u32) -> Result<Self> {
        let mut counts = reserved(k as usize, "neighbours by part")?;
        counts.resize(k as usize, 0);
        Ok(Self { counts, parts: reserved(k as usize, "neighbours by part")? })
    }

    /// Counts the neighbours that are placed.
    #[inline(always)]
    pub fn count(&mut self, neighbours: &[u32], parts: &[u32]) {
        for part in self.parts.drain(..) {
            self.counts[part as usize] = 0;
        }
        for &u in neighbours {
            let part = parts[u as usize];
            if part == NONE {
                continue;
            }
            let count = &mut self.counts[part as usize];
            if *count == 0 {
                self.parts.push(part);
            }
            *count += 1;
        }
    }

    /// Neighbours in `part`.
    #[inline(always)]
    pub fn of(&self, part: u32) -> u32 {
        self.counts[part as usize]
    }

    /// The parts with neighbours.
    #[inline(always)]
    pub fn parts(&self) -> &[u32] {
        &self.parts
    }
}
