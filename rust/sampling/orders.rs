//! Long lists of in-edges in the order of the places of their sources.
//!
//! LABOR asks for the in-edges whose sources have places in some interval. An order divides the in-edges of a list into
//! buckets by the first bits of places, four to eight in each. An entry of 32 bits has the other bits of the place and
//! the position in the list.
//!
//! **Memory.** 4 bytes per in-edge of a long list and half a byte to a byte for the buckets, for lists that were asked
//! for. Where an eighth of the memory that was free is taken, further lists get no order and are read as short ones.
//! The picks are the same.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::numbers::{PLACE_BITS, place_of};
use super::part::Part;
use super::targets::Target;
use crate::base::budget::available;
use crate::base::{Result, prefetch_at, reserved};

/// In-edges of a list that may have an order.
pub(super) const LONG: usize = 256;

/// Longer lists have none: to make it would take more than a second.
const LONGEST: usize = 1 << 26;

/// In-edges whose ids are looked up together.
const CHUNK: usize = 1024;

/// The orders of the lists of a topology.
#[derive(Debug)]
pub(crate) struct Orders {
    /// Of each part, by the number of the first in-edge over [`LONG`]: no two long lists share one.
    parts: Vec<Vec<OnceLock<Box<[u32]>>>>,
    /// Bytes that they may take yet.
    left: AtomicU64,
}

impl Orders {
    /// No orders yet.
    pub(super) fn new(parts: &[Part]) -> Self {
        let mut left = available() / 8;
        let slots = |part: &Part| {
            let count = part.num_edges() / LONG + 1;
            let bytes = (count * size_of::<OnceLock<Box<[u32]>>>()) as u64;
            let Some(after) = left.checked_sub(bytes) else { return Vec::new() };
            left = after;
            reserved(count, "orders of lists").map_or_else(
                |_| Vec::new(),
                |mut slots| {
                    slots.resize_with(count, OnceLock::new);
                    slots
                },
            )
        };
        let parts = parts.iter().map(slots).collect();
        Self { parts, left: AtomicU64::new(left) }
    }

    /// The order of a list, if it was made.
    #[inline(always)]
    pub(super) fn get(&self, target: &Target) -> Option<Order<'_>> {
        Order::of(self.parts[target.part as usize].get(target.first / LONG)?.get()?, target.degree)
    }

    /// The order of a long list. It is made if there is none, and memory for it.
    pub(super) fn get_or_make(&self, target: &Target, part: &Part) -> Result<Option<Order<'_>>> {
        let Some(slot) = self.parts[target.part as usize].get(target.first / LONG) else { return Ok(None) };
        if slot.get().is_none() {
            let bytes = 4 * Shape::of(target.degree).items() as u64;
            let fits = target.degree <= LONGEST
                && self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok();
            let order = if fits { made(target, part)? } else { Box::default() };
            // Another thread may have been faster.
            if slot.set(order).is_err() && fits {
                self.left.fetch_add(bytes, Relaxed);
            }
        }
        Ok(slot.get().and_then(|items| Order::of(items, target.degree)))
    }
}

/// How the order of a list is laid out.
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

    /// Four to eight entries each.
    fn buckets(self) -> usize {
        1 << (self.position - 3)
    }

    /// Where each bucket begins, and the entries.
    fn items(self) -> usize {
        self.buckets() + 1 + self.degree
    }

    /// Bits of a place in an entry.
    fn rest(self) -> u32 {
        PLACE_BITS - (self.position - 3)
    }
}

/// Makes the order of a list.
#[cold]
fn made(target: &Target, part: &Part) -> Result<Box<[u32]>> {
    let shape = Shape::of(target.degree);
    let mut places: Vec<u32> = reserved(target.degree, "order of a list")?;
    let mut sources = [0; CHUNK];
    for first in (0..target.degree).step_by(CHUNK) {
        let sources = &mut sources[..CHUNK.min(target.degree - first)];
        part.copy_sources(target.first + first, sources)?;
        sources.iter().for_each(|&local| part.prefetch_id(local as u32));
        for &local in &*sources {
            places.push(place_of(part.id(local as u32)?));
        }
    }
    let mut items: Vec<u32> = reserved(shape.items(), "order of a list")?;
    items.resize(shape.items(), 0);
    let (starts, entries) = items.split_at_mut(shape.buckets() + 1);
    places.iter().for_each(|&place| starts[(place >> shape.rest()) as usize + 1] += 1);
    (1..starts.len()).for_each(|bucket| starts[bucket] += starts[bucket - 1]);
    // From the last to the first in-edge, each before the one behind it.
    for (position, &place) in places.iter().enumerate().rev() {
        let bucket = (place >> shape.rest()) as usize;
        starts[bucket + 1] -= 1;
        let rest = place & ((1 << shape.rest()) - 1);
        entries[starts[bucket + 1] as usize] = rest << shape.position | position as u32;
    }
    // Every start is now that of the bucket before.
    starts.rotate_left(1);
    starts[shape.buckets()] = target.degree as u32;
    Ok(items.into_boxed_slice())
}

/// The order of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order<'a> {
    shape: Shape,
    starts: &'a [u32],
    entries: &'a [u32],
}

impl<'a> Order<'a> {
    /// None if it is not that of a list of that length.
    #[inline(always)]
    fn of(items: &'a [u32], degree: usize) -> Option<Self> {
        let shape = Shape::of(degree);
        if items.len() != shape.items() {
            return None;
        }
        let (starts, entries) = items.split_at(shape.buckets() + 1);
        Some(Self { shape, starts, entries })
    }

    /// Brings into the cache where the bucket of a place begins.
    #[inline(always)]
    pub(super) fn prefetch_bucket(&self, place: u32) {
        prefetch_at(self.starts.as_ptr().wrapping_add((place >> self.shape.rest()) as usize));
    }

    /// Brings the first entries of the bucket of a place into the cache.
    #[inline(always)]
    pub(super) fn prefetch_entries(&self, place: u32) {
        let start = self.starts[(place >> self.shape.rest()) as usize] as usize;
        prefetch_at(self.entries.as_ptr().wrapping_add(start));
        prefetch_at(self.entries.as_ptr().wrapping_add(start + 7));
    }

    /// Appends the positions of the in-edges whose places are among `count` from `first` on.
    #[inline(always)]
    pub(super) fn find(&self, first: u32, count: u32, found: &mut Vec<u32>) {
        let Shape { position, .. } = self.shape;
        let rest = self.shape.rest();
        let last = first + count.max(1) - 1;
        for bucket in first >> rest..=last >> rest {
            let entries = self.starts[bucket as usize] as usize..self.starts[bucket as usize + 1] as usize;
            for &entry in &self.entries[entries] {
                let place = bucket << rest | entry >> position;
                if place.wrapping_sub(first) < count {
                    found.push(entry & ((1 << position) - 1));
                }
            }
        }
    }
}
