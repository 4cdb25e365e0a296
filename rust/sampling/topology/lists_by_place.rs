//! Lists of in-edges with the places of their sources at hand.
//!
//! LABOR asks for the in-edges of a list whose sources have places within some intervals
//! (`methods::labor_numbers`). To read the ids of all sources costs a miss of the cache each. So places are
//! kept, list by list, once a list was asked for:
//!
//! - of [`LONG`] in-edges, in the order of the list,
//! - of [`LONGER`], divided into buckets by the first bits of places, four to eight in-edges each. An entry
//!   of 32 bits has the other bits of the place and the position in the list.
//!
//! **Memory.** 4 bytes per in-edge of these lists, and half a byte to a byte more for buckets, in one map
//! with huge pages. Once a tenth of the memory that was free is taken, further lists are read by ids. The
//! picks are the same.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::part::Part;
use crate::base::budget::available;
use crate::base::{Buffer, Result, prefetch_at, reserved};

/// In-edges of a list whose places are kept.
pub(crate) const LONG: usize = 64;

/// In-edges of a list that is divided into buckets.
pub(crate) const LONGER: usize = 256;

/// Longer lists are read by ids: to divide one would take more than a second.
const LONGEST: usize = 1 << 26;

/// In-edges whose ids are looked up together.
const CHUNK: usize = 1024;

/// Entries of most buckets, but one.
const TYPICAL: usize = 7;

/// Bits of a place: the bits of an entry that its bucket and its position do not say.
pub(crate) const PLACE_BITS: u32 = 29;
/// The state of a list in its slot: nobody asked for it, or it is being read or has no memory. Otherwise
/// `KNOWN` plus its start.
const UNKNOWN: u64 = 0;
const WITHOUT: u64 = 1;
const KNOWN: u64 = 2;

/// The place of a vertex. Ids are below 2^32.
#[inline(always)]
pub(crate) fn place_of(id: i64) -> u32 {
    let mut place = id as u32;
    place = (place ^ place >> 16).wrapping_mul(0x7feb_352d);
    place = (place ^ place >> 15).wrapping_mul(0x846c_a68b);
    (place ^ place >> 16) >> (u32::BITS - PLACE_BITS)
}

/// A list of in-edges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    /// Its part.
    pub part: u32,
    /// Its first in-edge.
    pub first: usize,
    /// Its length.
    pub degree: usize,
}

/// The orders of the lists of a topology.
#[derive(Debug)]
pub(crate) struct Orders {
    /// The slots of each part. The number of a list's first in-edge over [`LONG`] is its slot, which no two
    /// long lists share.
    slots: Vec<Buffer<AtomicU64>>,
    items: Buffer<AtomicU32>,
    used: AtomicU64,
}

impl Orders {
    /// None yet. Memory is taken as it is used. A tenth of the free memory is an eighth of the memory that
    /// may be used.
    pub(crate) fn new(parts: &[Part]) -> Result<Self> {
        let edges: usize = parts.iter().map(Part::num_edges).sum();
        Self::within(parts, (edges + edges / 4).min((available() / 8) as usize / size_of::<u32>()))
    }

    /// None yet, and memory for `items` items.
    pub(crate) fn within(parts: &[Part], items: usize) -> Result<Self> {
        let what = "places of in-edges";
        let slots = parts.iter().map(|part| Buffer::zeroed(part.num_edges() / LONG + 1, what));
        let slots = slots.collect::<Result<_>>()?;
        Ok(Self { slots, items: Buffer::zeroed(items, what)?, used: AtomicU64::new(0) })
    }

    fn slot(&self, list: List) -> Option<&AtomicU64> {
        self.slots[list.part as usize].get(list.first / LONG)
    }

    /// Brings into the cache what [`Self::get`] reads.
    #[inline(always)]
    pub(crate) fn prefetch(&self, list: List) {
        prefetch_at(self.slots[list.part as usize].as_ptr().wrapping_add(list.first / LONG));
    }

    /// The order of a list.
    #[inline(always)]
    pub(crate) fn get(&self, list: List) -> Option<Order<'_>> {
        let start = self.slot(list)?.load(Acquire).checked_sub(KNOWN)? as usize;
        let shape = Shape::of(list.degree);
        Some(Order::of(shape, self.items.get(start..start + shape.items())?))
    }

    /// The order of a list of at least [`LONG`] in-edges, which is read if nobody asked for it before.
    pub(crate) fn get_or_make(&self, list: List, part: &Part) -> Result<Option<Order<'_>>> {
        let unknown = |slot: &&AtomicU64| slot.compare_exchange(UNKNOWN, WITHOUT, Relaxed, Relaxed).is_ok();
        if let Some(slot) = self.slot(list).filter(|slot| slot.load(Relaxed) == UNKNOWN).filter(unknown)
            && let Some(start) = self.make(list, part)?
        {
            slot.store(start + KNOWN, Release);
        }
        Ok(self.get(list))
    }

    /// Keeps the places of a list, if there is memory. Returns where.
    #[cold]
    fn make(&self, list: List, part: &Part) -> Result<Option<u64>> {
        let (shape, most) = (Shape::of(list.degree), self.items.len() as u64);
        let count = shape.items() as u64;
        let taken = |used: u64| used.checked_add(count).filter(|&used| used <= most);
        let fits = list.degree <= LONGEST;
        let Some(Ok(start)) = fits.then(|| self.used.fetch_update(Relaxed, Relaxed, taken)) else {
            return Ok(None);
        };
        let places = places(list, part)?;
        let items = &self.items[start as usize..(start + count) as usize];
        let set = |item: &AtomicU32, value| item.store(value, Relaxed);
        match shape.is_divided() {
            true => {
                divided(shape, &places)?.into_iter().zip(items).for_each(|(value, item)| set(item, value))
            }
            false => places.into_iter().zip(items).for_each(|(value, item)| set(item, value)),
        }
        Ok(Some(start))
    }
}

/// The places of the sources of a list.
fn places(list: List, part: &Part) -> Result<Vec<u32>> {
    let mut places = reserved(list.degree, "places of a list")?;
    let mut sources = [0; CHUNK];
    for first in (0..list.degree).step_by(CHUNK) {
        let sources = &mut sources[..CHUNK.min(list.degree - first)];
        part.copy_sources(list.first + first, sources)?;
        sources.iter().for_each(|&local| part.prefetch_id(local as u32));
        for &local in &*sources {
            places.push(place_of(part.id(local as u32)?));
        }
    }
    Ok(places)
}

/// Where each bucket begins, and the entries.
fn divided(shape: Shape, places: &[u32]) -> Result<Vec<u32>> {
    let mut items: Vec<u32> = reserved(shape.items(), "places of a list")?;
    items.resize(shape.items(), 0);
    let (starts, entries) = items.split_at_mut(shape.buckets() + 1);
    places.iter().for_each(|&place| starts[(place >> shape.rest()) as usize] += 1);
    let mut end = 0;
    for start in &mut *starts {
        end += *start;
        *start = end;
    }
    // Every start is the end of its bucket, until all entries are before it.
    for (position, &place) in places.iter().enumerate().rev() {
        let start = &mut starts[(place >> shape.rest()) as usize];
        *start -= 1;
        entries[*start as usize] = place << shape.position | position as u32;
    }
    Ok(items)
}

/// How a list is kept.
#[derive(Debug, Clone, Copy)]
struct Shape {
    degree: usize,
    /// Bits of a position.
    position: u32,
}

impl Shape {
    fn of(degree: usize) -> Self {
        Self { degree, position: usize::BITS - (degree - 1).leading_zeros() }
    }

    fn is_divided(self) -> bool {
        self.degree >= LONGER
    }

    /// Four to eight entries each.
    fn buckets(self) -> usize {
        1 << (self.position - 3)
    }

    /// Numbers in memory.
    fn items(self) -> usize {
        self.degree + if self.is_divided() { self.buckets() + 1 } else { 0 }
    }

    /// Bits of a place in an entry. Together with those of a position they are 32.
    fn rest(self) -> u32 {
        PLACE_BITS - (self.position - 3)
    }
}

/// The order of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Order<'a> {
    /// The places of its sources.
    Places(&'a [AtomicU32]),
    /// Its in-edges by places.
    Buckets(Buckets<'a>),
}

impl<'a> Order<'a> {
    #[inline(always)]
    fn of(shape: Shape, items: &'a [AtomicU32]) -> Self {
        if !shape.is_divided() {
            return Order::Places(items);
        }
        let (starts, entries) = items.split_at(shape.buckets() + 1);
        Order::Buckets(Buckets { rest: shape.rest(), position: shape.position, starts, entries })
    }
}

/// In-edges in buckets of places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buckets<'a> {
    rest: u32,
    position: u32,
    starts: &'a [AtomicU32],
    entries: &'a [AtomicU32],
}

/// Places of one bucket that follow each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    /// The entry of the first of them, at position 0.
    least: u32,
    /// The largest entry at the last place, less `least`.
    width: u32,
    /// The entries of the bucket.
    begin: u32,
    end: u32,
}

impl Piece {
    /// Entries to look at.
    pub(crate) fn len(self) -> usize {
        self.end.saturating_sub(self.begin) as usize
    }
}

impl Buckets<'_> {
    /// Brings into the cache where the bucket of a place begins.
    #[inline(always)]
    pub(crate) fn prefetch(&self, place: u32) {
        prefetch_at(self.starts.as_ptr().wrapping_add((place >> self.rest) as usize));
    }

    /// Calls `visit` with the pieces that `count` places from `first` on are, and brings their entries into
    /// the cache.
    #[inline(always)]
    pub(crate) fn pieces(&self, first: u32, count: u32, mut visit: impl FnMut(Piece)) {
        let (mut first, end) = (first, first + count);
        while first < end {
            let bucket = (first >> self.rest) as usize;
            let next = end.min(((bucket as u32) + 1) << self.rest);
            let [begin, end] = [bucket, bucket + 1].map(|bucket| self.starts[bucket].load(Relaxed));
            prefetch_at(self.entries.as_ptr().wrapping_add(begin as usize));
            prefetch_at(self.entries.as_ptr().wrapping_add(begin as usize + TYPICAL));
            // A whole bucket has 2^32 values of entries: its width wraps.
            let width = ((next - first) << self.position).wrapping_sub(1);
            visit(Piece { least: first << self.position, width, begin, end });
            first = next;
        }
    }

    /// Puts the positions of the in-edges in a piece into `found`, from `count` on. Returns how many there
    /// are then.
    #[inline(always)]
    pub(crate) fn find(&self, piece: Piece, found: &mut [u32], mut count: usize) -> usize {
        let mask = (1 << self.position) - 1;
        for entry in &self.entries[piece.begin as usize..piece.end as usize] {
            // It cannot be predicted which of them are taken, so there is no branch.
            let entry = entry.load(Relaxed);
            found[count] = entry & mask;
            count += usize::from(entry.wrapping_sub(piece.least) <= piece.width);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;

    #[test]
    fn buckets_hold_the_in_edges_of_any_interval() {
        let mut random = Random::new(5, 6);
        let all = 1 << PLACE_BITS;
        for degree in [LONGER, 511, 512, 513, 3000] {
            let mut places: Vec<u32> = (0..degree).map(|_| random.below(all) as u32).collect();
            places[7] = places[0];
            (places[8], places[9]) = (0, all as u32 - 1);
            let shape = Shape::of(degree);
            let items: Vec<AtomicU32> =
                divided(shape, &places).unwrap().into_iter().map(AtomicU32::new).collect();
            let Order::Buckets(buckets) = Order::of(shape, &items) else { panic!("{degree} in-edges") };
            for _ in 0..50 {
                let first = random.below(all) as u32;
                let count = (random.below(all) >> random.below(u64::from(PLACE_BITS))) as u32;
                for (first, count) in [(first, count.min(all as u32 - first)), (first, 0), (0, all as u32)] {
                    let (mut found, mut len) = (vec![0; degree], 0);
                    buckets.pieces(first, count, |piece| len = buckets.find(piece, &mut found, len));
                    found.truncate(len);
                    found.sort_unstable();
                    let within = |&index: &u32| (first..first + count).contains(&places[index as usize]);
                    assert_eq!(found, (0..degree as u32).filter(within).collect::<Vec<_>>());
                }
            }
        }
    }
}
