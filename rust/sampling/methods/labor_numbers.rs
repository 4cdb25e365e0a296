//! The random numbers of LABOR, one for each source in a hop. Small ones are found without computing all.
//!
//! Every vertex has a *place*, a hash of its original id, the same in all batches. Places are divided into
//! `GROUPS` intervals, the groups. In each hop the groups are dealt to `COLUMNS` columns at random,
//! `PER_COLUMN` to each, and the vertices of a group are shifted by a random number, cyclically:
//!
//! ```text
//! number of a vertex = (column of its group + fraction of its shifted place) / COLUMNS
//! shifted place = place within the group + shift of its group
//! ```
//!
//! So the vertices whose numbers are below p are those of a few intervals of places: `PER_COLUMN` for each
//! column that p reaches. The map from places to numbers keeps lengths. From this follows, with places that
//! are a hash:
//!
//! - The number of every vertex is uniform, whatever its place, and new in every hop and batch.
//! - Within a batch the numbers of different vertices are independent, as LABOR has them.
//! - Over batches they are not quite: two vertices with places side by side are often taken in the same
//!   batches. That is one pair of 512. To confine it to long lists, only numbers below [`SMALL`] are found
//!   this way. Whether a number is below a threshold above it is decided by a hash of hop and vertex.

use crate::sampling::random::HopKey;
use crate::sampling::topology::lists_by_place::PLACE_BITS;

/// Numbers below are found by intervals: a sixteenth of all.
pub(crate) const SMALL: u32 = 1 << 28;

const COLUMNS: usize = 64;
const PER_COLUMN: usize = 8;
const GROUPS: usize = COLUMNS * PER_COLUMN;

/// Bits of a place within its group, and of a number within its column.
const WITHIN_GROUP: u32 = PLACE_BITS - GROUPS.ilog2();
const WITHIN_COLUMN: u32 = u32::BITS - COLUMNS.ilog2();

/// Bits that a shift has beyond those of a place.
const FINE: u32 = WITHIN_COLUMN - WITHIN_GROUP;

/// The numbers of a hop.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    key: HopKey,
    /// For each group its column, in the highest bits, and its shift.
    deals: Vec<u32>,
    /// The groups in the order of columns.
    groups: Vec<u16>,
}

impl Numbers {
    /// Makes them those of the hop.
    #[inline(always)]
    pub(crate) fn begin(&mut self, key: HopKey) {
        if self.key != key || self.deals.is_empty() {
            self.deal(key);
        }
    }

    #[cold]
    fn deal(&mut self, key: HopKey) {
        self.key = key;
        let mut random = key.stream();
        self.groups.clear();
        self.groups.extend(0..GROUPS as u16);
        for last in (1..GROUPS).rev() {
            self.groups.swap(last, random.below(last as u64 + 1) as usize);
        }
        self.deals.resize(GROUPS, 0);
        for (slot, &group) in self.groups.iter().enumerate() {
            let shift = random.next_u64() as u32 & ((1 << WITHIN_COLUMN) - 1);
            self.deals[usize::from(group)] = ((slot / PER_COLUMN) as u32) << WITHIN_COLUMN | shift;
        }
    }

    /// The number at a place, if it is small. Otherwise the result is also above [`SMALL`].
    #[inline(always)]
    fn at(&self, place: u32) -> u32 {
        let deal = self.deals[(place >> WITHIN_GROUP) as usize];
        let shifted = (place << FINE).wrapping_add(deal) & ((1 << WITHIN_COLUMN) - 1);
        deal >> WITHIN_COLUMN << WITHIN_COLUMN | shifted
    }

    /// Puts the indices of the places whose numbers are below a threshold into `found`. Returns how many
    /// there are.
    #[inline(always)]
    pub(crate) fn find(&self, threshold: u32, places: &[u32], found: &mut [u16]) -> usize {
        let mut count = 0;
        let mut put = |index: u16, wanted: bool| {
            // It cannot be predicted which of them are taken, so there is no branch.
            found[count] = index;
            count += usize::from(wanted);
        };
        if threshold <= SMALL {
            (0..).zip(places).for_each(|(index, &place)| put(index, self.at(place) < threshold));
        } else {
            // The share of the numbers that are not small and below the threshold is chosen so that the share
            // of all is right.
            let rest = u64::from(threshold - SMALL) << 32;
            let rest = (rest / ((1 << 32) - u64::from(SMALL))) as u32;
            let below = |place| (self.at(place) < SMALL) | (self.key.bits(place) < rest);
            (0..).zip(places).for_each(|(index, &place)| put(index, below(place)));
        }
        count
    }

    /// Number of intervals of places whose numbers are below a small threshold. There is one more where a
    /// group is cut.
    #[inline(always)]
    pub(crate) fn count(threshold: u32) -> usize {
        (threshold as usize).div_ceil(1 << WITHIN_COLUMN) * PER_COLUMN
    }

    /// Calls `visit` with the first place and the length of each interval of places whose numbers are below a
    /// threshold.
    #[inline(always)]
    pub(crate) fn intervals(&self, threshold: u32, mut visit: impl FnMut(u32, u32)) {
        let full = (threshold >> WITHIN_COLUMN) as usize * PER_COLUMN;
        for &group in &self.groups[..full] {
            visit(u32::from(group) << WITHIN_GROUP, 1 << WITHIN_GROUP);
        }
        let rest = threshold & ((1 << WITHIN_COLUMN) - 1);
        if rest == 0 {
            return;
        }
        for &group in &self.groups[full..full + PER_COLUMN] {
            let (start, shift) = (u32::from(group) << WITHIN_GROUP, self.deals[usize::from(group)]);
            let fine = shift & ((1 << FINE) - 1);
            let count = rest.saturating_sub(fine).div_ceil(1 << FINE);
            let first = (shift >> FINE).wrapping_neg() & ((1 << WITHIN_GROUP) - 1);
            let before_end = count.min((1 << WITHIN_GROUP) - first);
            visit(start + first, before_end);
            if before_end < count {
                visit(start, count - before_end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;

    fn numbers(step: u64) -> Numbers {
        let mut numbers = Numbers::default();
        numbers.begin(HopKey::new(1, 2, step, 0));
        numbers
    }

    #[test]
    fn intervals_hold_the_places_of_numbers_below_a_threshold() {
        let mut random = Random::new(3, 4);
        for step in 0..20 {
            let numbers = numbers(step);
            let column = 1 << WITHIN_COLUMN;
            for threshold in [0, 1, 63, 64, 65, column, column + 1, random.below(SMALL.into()) as u32, SMALL]
            {
                let mut intervals = Vec::new();
                numbers.intervals(threshold, |first, count| intervals.push(first..first + count));
                assert!(intervals.len() <= Numbers::count(threshold) + PER_COLUMN);
                let all: u64 = intervals.iter().map(|places| places.len() as u64).sum();
                let share = u64::from(threshold) >> (u32::BITS - PLACE_BITS);
                assert!(all.abs_diff(share) <= PER_COLUMN as u64);
                let ends = intervals.iter().flat_map(|places| {
                    [places.start.wrapping_sub(1), places.start, places.end.wrapping_sub(1), places.end]
                });
                let others = (0..200).map(|_| random.next_u64() as u32);
                for place in ends.chain(others).map(|place| place & ((1 << PLACE_BITS) - 1)) {
                    let within = intervals.iter().any(|places| places.contains(&place));
                    assert_eq!(within, numbers.at(place) < threshold, "{place} {threshold}");
                }
            }
        }
    }

    #[test]
    fn a_number_is_below_a_threshold_with_that_probability() {
        let (steps, thresholds) = (20_000, [1 << 24, SMALL - 1, SMALL, 1 << 29, 3 << 30]);
        let (places, mut below) = ([0, 12_345_678, (1 << PLACE_BITS) - 1], [[0; 3]; 5]);
        for step in 0..steps {
            let (numbers, mut found) = (numbers(step), [0; 3]);
            for (threshold, below) in thresholds.into_iter().zip(&mut below) {
                let count = numbers.find(threshold, &places, &mut found);
                found[..count].iter().for_each(|&index| below[usize::from(index)] += 1);
            }
        }
        for (threshold, below) in thresholds.into_iter().zip(below) {
            let p = f64::from(threshold) / 4_294_967_296.0;
            let (expected, deviation) = (p * steps as f64, (p * (1.0 - p) * steps as f64).sqrt());
            assert!(below.iter().all(|&count| (f64::from(count) - expected).abs() < 4.0 * deviation));
        }
    }
}
