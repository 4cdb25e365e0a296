//! Neighbourhood expansion over the lists of the low vertices, one part after the other.

use std::ops::Range;

use super::queue::{Queue, Vertex};
use crate::base::{Buffer, CancelCheck, NONE, Permutation, Result, Run, prefetch, reserved};
use crate::sets::{Bits, Incidence};

/// [`LowParts::home`] of a high vertex.
pub(crate) const HIGH: u32 = NONE - 1;

/// Entries of a list that are looked at together.
const CHUNK: usize = 64;
/// Vertices by which data is prefetched ahead.
const AHEAD: usize = 4;
/// Cache lines of a list that are prefetched. The processor prefetches longer lists by itself.
const LINES: usize = 3;

/// Inputs of an expansion besides the lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule<'a> {
    /// Degrees of all vertices.
    pub degrees: &'a [u32],
    /// The largest degree of a low vertex.
    pub threshold: u32,
    /// The mean degree.
    pub mean: f64,
    /// Number of parts.
    pub k: u32,
    /// The most records of a part.
    pub cap: u64,
    /// Seed of the order in which expansions begin.
    pub seed: u64,
}

/// The parts after the expansion.
#[derive(Debug)]
pub(crate) struct LowParts {
    /// The parts that each low vertex has joined.
    pub present: Incidence,
    /// Records of each part.
    pub loads: Vec<u64>,
    /// The part that took all records left of a low vertex, those with high ends included. [`NONE`] without
    /// one. [`HIGH`].
    pub home: Buffer<u32>,
}

/// An expansion at work on one part.
struct Expansion<'a> {
    rule: Rule<'a>,
    offsets: &'a [u64],
    entries: &'a mut [u32],
    vertices: Buffer<Vertex>,
    queue: Queue,
    /// The vertices in the part, as a set and as a list.
    inside: Bits,
    members: Vec<u32>,
    present: Incidence,
    part: u32,
    load: u64,
    /// Records of the lists, and of their vertices with high ends, that have no part yet.
    left: u64,
    /// The order in which expansions begin, gone through twice, and how far it is.
    order: Permutation,
    next: u64,
    /// Counts the entries that were looked at.
    check: CancelCheck<'a>,
    run: &'a Run,
}

/// Bytes for `n` vertices with lists of at most `longest` entries, the lists not included.
pub(crate) fn memory(n: u64, longest: u64, k: u32) -> u64 {
    let vertex = size_of::<Vertex>() as u64 + 4;
    vertex * n + n / 8 + 8 + Queue::memory(n, longest) + Incidence::memory(n, k) + 8 * u64::from(k)
}

/// Expands all parts over the low neighbours of low vertices: where each list begins, and the lists.
pub(crate) fn expand(
    (offsets, mut entries): (Buffer<u64>, Buffer<u32>),
    rule: Rule,
    run: &Run,
) -> Result<LowParts> {
    let mut expansion = Expansion::new(&offsets, &mut entries, rule, run)?;
    let mut loads = vec![0; rule.k as usize];
    run.begin("expansion", expansion.left.max(1));
    for (part, load) in (0..).zip(&mut loads) {
        if expansion.left == 0 {
            break;
        }
        (expansion.part, expansion.load) = (part, 0);
        if part == rule.k - 1 && expansion.left <= rule.cap {
            expansion.take_all()?;
        } else {
            expansion.grow(expansion.left.div_ceil(u64::from(rule.k - part)).min(rule.cap))?;
            expansion.clean_up()?;
        }
        *load = expansion.load;
        run.advance(*load)?;
    }
    let Expansion { vertices, present, .. } = expansion;
    drop((offsets, entries));
    let mut home = Buffer::zeroed(vertices.len(), "parts of low vertices")?;
    run.each(home.len(), |v| home[v as usize] = vertices[v as usize].home)?;
    Ok(LowParts { present, loads, home })
}

impl<'a> Expansion<'a> {
    fn new(offsets: &'a [u64], entries: &'a mut [u32], rule: Rule<'a>, run: &'a Run) -> Result<Self> {
        let n = rule.degrees.len();
        let mut vertices: Buffer<Vertex> = Buffer::zeroed(n, "vertices")?;
        let (mut left, mut longest) = (0, 0);
        run.each(n, |v| {
            let (v, degree) = (v as usize, rule.degrees[v as usize]);
            let length = (offsets[v + 1] - offsets[v]) as u32;
            let home = if degree > rule.threshold { HIGH } else { NONE };
            vertices[v] = Vertex { length, external: 0, slot: NONE, home };
            longest = longest.max(length as usize);
            // Each record between low ends is counted at both.
            left += if length > 0 { 2 * u64::from(degree) - u64::from(length) } else { 0 };
        })?;
        Ok(Self {
            rule,
            offsets,
            entries,
            vertices,
            queue: Queue::new(n, longest)?,
            inside: Bits::new(n as u64, "vertices of a part")?,
            members: reserved(n, "vertices of a part")?,
            present: Incidence::new(n, rule.k)?,
            part: 0,
            load: 0,
            left: left / 2,
            order: Permutation::new(rule.seed, n as u64),
            next: 0,
            check: CancelCheck::new(run),
            run,
        })
    }

    /// Expands vertices until the part has `target` records, or the next vertex does not fit, or nothing is
    /// left.
    fn grow(&mut self, target: u64) -> Result<()> {
        while self.load < target {
            let v = match self.queue.pop(&mut self.vertices) {
                Some(v) => v,
                None => {
                    let Some(v) = self.seed()? else { return Ok(()) };
                    self.enter(v);
                    self.vertices[v as usize].external = self.vertices[v as usize].length;
                    v
                }
            };
            if !self.expand(v)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Lets all neighbours of `v` join, and places its records with high ends. False if the part is full
    /// before.
    fn expand(&mut self, v: u32) -> Result<bool> {
        let list = self.list(v);
        prefetch(self.rule.degrees, v as usize);
        let mut outside = [0; CHUNK];
        for start in list.clone().step_by(CHUNK) {
            let end = list.end.min(start + CHUNK);
            let count = select(&self.entries[start..end], &self.inside, false, &mut outside);
            let outside = &outside[..count];
            outside.iter().for_each(|&u| self.prefetch(u));
            outside.iter().take(AHEAD).for_each(|&u| self.prefetch_list(u));
            for (index, &u) in outside.iter().enumerate() {
                if let Some(&later) = outside.get(index + AHEAD) {
                    self.prefetch_list(later);
                }
                // The first of parallel records was enough.
                if !self.is_inside(u) && !self.join(u)? {
                    return Ok(false);
                }
            }
            self.check.count(end - start)?;
        }
        Ok(self.settle(v))
    }

    /// Brings `v` into the part with all its records to vertices there. False if they do not fit.
    #[inline(always)]
    fn join(&mut self, v: u32) -> Result<bool> {
        let list = self.list(v);
        let slack = self.rule.cap - self.load;
        let inside = || self.entries[list.clone()].iter().filter(|&&u| self.is_inside(u)).count();
        if list.len() as u64 > slack && inside() as u64 > slack {
            return Ok(false);
        }
        self.enter(v);
        let (mut joined, mut near) = (0, [0; CHUNK]);
        for start in list.clone().step_by(CHUNK) {
            let end = list.end.min(start + CHUNK);
            let count = select(&self.entries[start..end], &self.inside, true, &mut near);
            joined += count;
            near[..AHEAD.min(count)].iter().for_each(|&u| prefetch(&self.vertices, u as usize));
            for index in 0..count {
                let u = near[index];
                prefetch(&self.vertices, near[(index + AHEAD) % CHUNK] as usize);
                let vertex = &mut self.vertices[u as usize];
                vertex.external -= 1;
                if vertex.slot != NONE {
                    self.queue.push(u, &mut self.vertices, self.run)?;
                }
            }
            self.check.count(end - start)?;
        }
        self.load += joined as u64;
        self.vertices[v as usize].external = (list.len() - joined) as u32;
        self.queue.push(v, &mut self.vertices, self.run)?;
        Ok(true)
    }

    /// Places the records of `v`, all neighbours of which are inside, with its high ends. False if they do
    /// not fit.
    #[inline(always)]
    fn settle(&mut self, v: u32) -> bool {
        let high = self.with_high_ends(v);
        let fits = self.load + high <= self.rule.cap;
        if fits {
            self.load += high;
            self.vertices[v as usize].home = self.part;
        }
        fits
    }

    /// Takes the records that have a part now out of the lists of the members.
    fn clean_up(&mut self) -> Result<()> {
        let members = std::mem::take(&mut self.members);
        let mut given_up = 0;
        for (index, &v) in members.iter().enumerate() {
            if let Some(&later) = members.get(index + 2 * AHEAD) {
                self.prefetch(later);
                self.present.prefetch(later);
            }
            if let Some(&later) = members.get(index + AHEAD) {
                self.prefetch_list(later);
            }
            let Vertex { length, external, home, .. } = self.vertices[v as usize];
            // The vertex that began is alone where its first neighbour does not fit.
            if external < length {
                self.present.insert(v, self.part);
            }
            if external > 0 {
                self.compact(v);
            } else if home == NONE && !self.settle(v) {
                given_up += self.with_high_ends(v);
            }
            self.vertices[v as usize].length = external;
            self.check.count(1 + length as usize)?;
        }
        for &v in &members {
            self.vertices[v as usize].slot = NONE;
            self.inside.clear_around(v, v);
            self.check.count(1)?;
        }
        self.queue.clear();
        self.left -= self.load + given_up;
        self.members = members;
        self.members.clear();
        Ok(())
    }

    /// Drops the entries of the list of `v` that are inside.
    fn compact(&mut self, v: u32) {
        let list = self.list(v);
        let (mut kept, inside) = (list.start, &self.inside);
        for index in list {
            let u = self.entries[index];
            self.entries[kept] = u;
            kept += usize::from(!inside.contains(u));
        }
    }

    /// Places all records that are left.
    fn take_all(&mut self) -> Result<()> {
        for v in 0..self.vertices.len() {
            if self.vertices[v].length > 0 {
                self.vertices[v].home = self.part;
                self.present.insert(v as u32, self.part);
            }
            self.check.count(1)?;
        }
        self.load = std::mem::take(&mut self.left);
        Ok(())
    }

    /// The vertex to begin with when the queue is empty, in random order. Lists up to the mean degree come
    /// first.
    fn seed(&mut self) -> Result<Option<u32>> {
        let n = self.vertices.len() as u64;
        while self.next < 2 * n {
            let v = self.order.of(self.next % n) as u32;
            let length = self.vertices[v as usize].length;
            let short = f64::from(length) <= self.rule.mean || self.next >= n;
            if length > 0 && short && !self.is_inside(v) {
                return Ok(Some(v));
            }
            self.next += 1;
            self.check.count(1)?;
        }
        Ok(None)
    }

    #[inline(always)]
    fn prefetch(&self, v: u32) {
        prefetch(&self.vertices, v as usize);
        prefetch(self.offsets, v as usize);
    }

    #[inline(always)]
    fn prefetch_list(&self, v: u32) {
        let start = self.offsets[v as usize] as usize;
        (0..LINES).for_each(|line| prefetch(self.entries, start + 16 * line));
    }

    #[inline(always)]
    fn list(&self, v: u32) -> Range<usize> {
        let start = self.offsets[v as usize] as usize;
        start..start + self.vertices[v as usize].length as usize
    }

    /// Records of `v` with high ends.
    #[inline(always)]
    fn with_high_ends(&self, v: u32) -> u64 {
        let v = v as usize;
        u64::from(self.rule.degrees[v]) - (self.offsets[v + 1] - self.offsets[v])
    }

    #[inline(always)]
    fn enter(&mut self, v: u32) {
        self.inside.insert(v);
        self.members.push(v);
    }

    #[inline(always)]
    fn is_inside(&self, v: u32) -> bool {
        self.inside.contains(v)
    }
}

/// Collects the vertices that are inside, or those that are not, without an unpredictable branch.
#[inline(always)]
fn select(vertices: &[u32], inside: &Bits, wanted: bool, into: &mut [u32; CHUNK]) -> usize {
    let mut count = 0;
    for &v in vertices {
        into[count] = v;
        count += usize::from(inside.contains(v) == wanted);
    }
    count
}
