//! Sorting the entries of a bucket by source and target.
//!
//! Entries that fit in the cache are sorted by the digits of the target, the lowest first, and then placed by
//! source. Each is a counting sort, which is stable. If the list of a vertex is larger, it is divided in
//! place by its highest digit until its pieces are small enough. Entries with weights are sorted by
//! comparing, and equal ones by weight.

use super::changed;
use crate::base::{Buffer, Result, Run, reserved};
use crate::sets::to_starts;

/// Most bits of a digit, and most digits of an id.
const DIGIT: u32 = 11;
const DIGITS: usize = 3;

/// Buckets with fewer entries are sorted by comparing, which then costs less than counting the digits.
const FEW: usize = 256;

/// Bits of the digit by which long lists are cut in place.
const CUT: u32 = 8;

/// Moves in place between two polls of the cancel flag.
const MOVES: u64 = 1 << 16;

type Counts = [u32; 1 << DIGIT];

/// Bytes of a [`Sorter`].
pub(crate) fn memory(capacity: u64, vertices: u64) -> u64 {
    16 * capacity + 4 * vertices + (DIGITS * size_of::<Counts>()) as u64
}

/// Scratch space of one worker.
pub(crate) struct Sorter {
    bits: u32,
    keys: Buffer<u64>,
    other: Buffer<u64>,
    /// Keys with weights below, instead of the others.
    weighted: Buffer<u128>,
    counts: Buffer<Counts>,
    next: Vec<u32>,
}

impl Sorter {
    /// A sorter of ids below `n`, of buckets of up to `capacity` entries, or of one vertex, and of up to
    /// `vertices` vertices.
    pub(crate) fn new(n: usize, capacity: usize, vertices: usize, weighted: bool) -> Result<Self> {
        let (capacity, weighted) = if weighted { (0, capacity) } else { (capacity, 0) };
        Ok(Self {
            weighted: Buffer::zeroed(weighted, "sorting the adjacency")?,
            bits: usize::BITS - n.saturating_sub(1).leading_zeros(),
            keys: Buffer::zeroed(capacity, "sorting the adjacency")?,
            other: Buffer::zeroed(capacity, "sorting the adjacency")?,
            counts: Buffer::zeroed(DIGITS, "sorting the adjacency")?,
            next: reserved(vertices, "sorting the adjacency")?,
        })
    }

    /// Sorts a bucket, the lists of which begin at `offsets` minus the first of them. `weights` is as long as
    /// `targets`, or empty.
    pub(crate) fn sort(
        &mut self,
        targets: &mut [u32],
        sources: &[u16],
        weights: &mut [u32],
        offsets: &[u64],
        run: &Run,
    ) -> Result<()> {
        if targets.len() > self.capacity() {
            return self.sort_long(targets, weights, self.bits, run);
        }
        if !weights.is_empty() {
            self.sort_weighted(targets, weights, sources.iter().copied());
            return self.check(targets.len(), offsets);
        }
        for ((key, &target), &source) in self.keys.iter_mut().zip(&*targets).zip(sources) {
            *key = u64::from(source) << 32 | u64::from(target);
        }
        self.sort_keys(targets.len());
        self.place(targets, offsets)
    }

    /// Entries that are sorted at a time.
    fn capacity(&self) -> usize {
        self.keys.len().max(self.weighted.len())
    }

    /// Sorts entries by source, target and weight.
    fn sort_weighted(
        &mut self,
        targets: &mut [u32],
        weights: &mut [u32],
        sources: impl Iterator<Item = u16>,
    ) {
        let keys = &mut self.weighted[..targets.len()];
        for (((key, source), &target), &weight) in keys.iter_mut().zip(sources).zip(&*targets).zip(&*weights)
        {
            *key = u128::from(source) << 64 | u128::from(target) << 32 | u128::from(weight);
        }
        keys.sort_unstable();
        for ((key, target), weight) in keys.iter().zip(targets).zip(weights) {
            (*target, *weight) = ((key >> 32) as u32, *key as u32);
        }
    }

    /// Refuses a bucket of `len` sorted entries whose lists are not as long as `offsets` say.
    fn check(&self, len: usize, offsets: &[u64]) -> Result<()> {
        let keys = &self.weighted[..len];
        let mut lists = (0..).zip(offsets.windows(2));
        let fits = lists.all(|(source, ends): (u128, &[u64])| {
            let list = keys.get((ends[0] - offsets[0]) as usize..(ends[1] - offsets[0]) as usize);
            list.is_some_and(|list| {
                [list.first(), list.last()].into_iter().flatten().all(|key| key >> 64 == source)
            })
        });
        if fits { Ok(()) } else { Err(changed()) }
    }

    /// Writes the targets of the sorted keys to the lists of their sources.
    fn place(&mut self, targets: &mut [u32], offsets: &[u64]) -> Result<()> {
        let [starts @ .., _] = offsets else { return Ok(()) };
        self.next.clear();
        self.next.extend(starts.iter().map(|start| (start - starts[0]) as u32));
        for &key in &self.keys[..targets.len()] {
            let next = &mut self.next[(key >> 32) as usize];
            let Some(target) = targets.get_mut(*next as usize) else { return Err(changed()) };
            *target = key as u32;
            *next += 1;
        }
        let full = |(next, end): (&u32, &u64)| u64::from(*next) == end - starts[0];
        if self.next.iter().zip(&offsets[1..]).all(full) { Ok(()) } else { Err(changed()) }
    }

    /// Sorts the first `len` keys by target, equal ones in any order of their sources if they are few.
    fn sort_keys(&mut self, len: usize) {
        if len < FEW {
            self.keys[..len].sort_unstable_by_key(|&key| key as u32);
            return;
        }
        let digits = self.bits.div_ceil(DIGIT).max(1);
        let width = self.bits.div_ceil(digits);
        let mask = (1 << width) - 1;
        let counts = &mut self.counts[..digits as usize];
        counts.iter_mut().for_each(|counts| counts[..=mask].fill(0));
        for &key in &self.keys[..len] {
            for (counts, shift) in counts.iter_mut().zip((0..).step_by(width as usize)) {
                counts[(key >> shift) as usize & mask] += 1;
            }
        }
        for (counts, shift) in counts.iter_mut().zip((0..).step_by(width as usize)) {
            if counts[(self.keys[0] >> shift) as usize & mask] as usize == len {
                continue;
            }
            to_starts(&mut counts[..=mask]);
            for &key in &self.keys[..len] {
                let next = &mut counts[(key >> shift) as usize & mask];
                self.other[*next as usize] = key;
                *next += 1;
            }
            std::mem::swap(&mut self.keys, &mut self.other);
        }
    }

    /// Sorts a list of ids that differ in their lowest `bits` only, with their weights if there are any.
    fn sort_long(&mut self, list: &mut [u32], weights: &mut [u32], bits: u32, run: &Run) -> Result<()> {
        if bits == 0 {
            weights.sort_unstable();
            return Ok(());
        }
        if list.len() <= self.capacity() {
            if !weights.is_empty() {
                self.sort_weighted(list, weights, std::iter::repeat(0));
                return run.check();
            }
            self.keys.iter_mut().zip(&*list).for_each(|(key, &target)| *key = u64::from(target));
            self.sort_keys(list.len());
            list.iter_mut().zip(&*self.keys).for_each(|(target, &key)| *target = key as u32);
            return run.check();
        }
        let shift = bits.saturating_sub(CUT);
        let weighted = !weights.is_empty();
        let (mut rest, mut rest_of_weights) = (list, weights);
        let counts = if weighted {
            cut::<true>(rest, rest_of_weights, shift, run)?
        } else {
            cut::<false>(rest, rest_of_weights, shift, run)?
        };
        for count in counts {
            let (part, after) = rest.split_at_mut(count);
            let (weights, weights_after) = rest_of_weights.split_at_mut(if weighted { count } else { 0 });
            self.sort_long(part, weights, shift, run)?;
            (rest, rest_of_weights) = (after, weights_after);
        }
        Ok(())
    }
}

/// Orders a list by the digit at `shift`, in place, with its weights if `W` says so, and returns how often
/// each digit occurs.
fn cut<const W: bool>(
    list: &mut [u32],
    weights: &mut [u32],
    shift: u32,
    run: &Run,
) -> Result<[usize; 1 << CUT]> {
    let digit = |id: u32| (id >> shift) as usize % (1 << CUT);
    let mut counts = [0; 1 << CUT];
    for ids in list.chunks(MOVES as usize) {
        ids.iter().for_each(|&id| counts[digit(id)] += 1);
        run.check()?;
    }
    let (mut next, mut ends) = ([0; 1 << CUT], [0; 1 << CUT]);
    let mut sum = 0;
    for (place, count) in counts.into_iter().enumerate() {
        next[place] = sum;
        sum += count;
        ends[place] = sum;
    }
    let mut moves = 0;
    for place in 0..next.len() {
        while next[place] < ends[place] {
            // Around the circle of ids that are in each other's place.
            let mut id = list[next[place]];
            let mut weight = if W { weights[next[place]] } else { 1 };
            while digit(id) != place {
                let there = &mut next[digit(id)];
                std::mem::swap(&mut id, &mut list[*there]);
                if W {
                    std::mem::swap(&mut weight, &mut weights[*there]);
                }
                *there += 1;
                moves += 1;
                if moves % MOVES == 0 {
                    // The ids stay a mess, which nobody sees.
                    run.check()?;
                }
            }
            list[next[place]] = id;
            if W {
                weights[next[place]] = weight;
            }
            next[place] += 1;
        }
    }
    Ok(counts)
}
