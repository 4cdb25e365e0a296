//! The random numbers of LABOR, one for each source in a hop, of which small ones are found without a look at all.
//!
//! Every vertex has a *place*, a hash of its original id, the same in all batches. Places are divided into `GROUPS`
//! intervals, the groups. In each hop the groups are dealt to `COLUMNS` columns at random, `PER_COLUMN` to each, and the
//! vertices of a group are turned like a wheel by a random number:
//!
//! ```text
//! number of a vertex = (column of its group + fraction of (place within the group + turn of its group)) / COLUMNS
//! ```
//!
//! So the vertices whose numbers are below p are those of a few intervals of places: `PER_COLUMN` for each column that p
//! reaches. The map from places to numbers keeps lengths. From this follows, with places that are a hash:
//!
//! - The number of every vertex is uniform, whatever its place, and new in every hop and batch.
//! - Within a batch the numbers of different vertices are independent, as LABOR has them.
//! - Over batches they are not quite: two vertices with places side by side are often taken in the same batches. That
//!   is one pair of a thousand. To confine it to long lists, only numbers below [`SMALL`] are found this way. Whether a
//!   number is below a threshold above it is decided by a hash of hop and vertex.

use super::random::HopKey;

/// Bits of a place: as many as an entry of an order has beside what its bucket says.
pub(super) const PLACE_BITS: u32 = 29;

/// Numbers below are found by intervals: a sixteenth of all.
pub(super) const SMALL: u32 = 1 << 28;

const COLUMNS: usize = 64;
const PER_COLUMN: usize = 16;
const GROUPS: usize = COLUMNS * PER_COLUMN;

/// Bits of a place within its group, and of a number within its column.
const WITHIN_GROUP: u32 = PLACE_BITS - GROUPS.ilog2();
const WITHIN_COLUMN: u32 = u32::BITS - COLUMNS.ilog2();

/// Bits that a turn has beyond those of a place.
const FINE: u32 = WITHIN_COLUMN - WITHIN_GROUP;

/// The place of a vertex. Ids are below 2^32.
#[inline(always)]
pub(super) fn place_of(id: i64) -> u32 {
    let mut place = id as u32;
    place = (place ^ place >> 16).wrapping_mul(0x7feb_352d);
    place = (place ^ place >> 15).wrapping_mul(0x846c_a68b);
    (place ^ place >> 16) >> (u32::BITS - PLACE_BITS)
}

/// The numbers of a hop.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    key: Option<HopKey>,
    /// Of each group the column, in the highest bits, and the turn.
    deals: Vec<u32>,
    /// The groups in the order of columns.
    groups: Vec<u16>,
}

impl Numbers {
    /// Makes them those of the hop.
    #[inline(always)]
    pub(super) fn begin(&mut self, key: HopKey) {
        if self.key != Some(key) {
            self.deal(key);
        }
    }

    #[cold]
    fn deal(&mut self, key: HopKey) {
        self.key = Some(key);
        let mut random = key.stream();
        self.groups.clear();
        self.groups.extend(0..GROUPS as u16);
        for last in (1..GROUPS).rev() {
            self.groups.swap(last, random.below(last as u64 + 1) as usize);
        }
        self.deals.resize(GROUPS, 0);
        for (slot, &group) in self.groups.iter().enumerate() {
            let turn = random.next_u64() as u32 & ((1 << WITHIN_COLUMN) - 1);
            self.deals[usize::from(group)] = ((slot / PER_COLUMN) as u32) << WITHIN_COLUMN | turn;
        }
    }

    /// The number at a place.
    #[inline(always)]
    pub(super) fn at(&self, place: u32) -> u32 {
        let deal = self.deals[(place >> WITHIN_GROUP) as usize];
        let turned = ((place << FINE).wrapping_add(deal)) & ((1 << WITHIN_COLUMN) - 1);
        deal >> WITHIN_COLUMN << WITHIN_COLUMN | turned
    }

    /// Calls `visit` with the first place and the length of each interval whose numbers are below the threshold.
    #[inline(always)]
    pub(super) fn intervals(&self, threshold: u32, mut visit: impl FnMut(u32, u32)) {
        let full = (threshold >> WITHIN_COLUMN) as usize * PER_COLUMN;
        for &group in &self.groups[..full] {
            visit(u32::from(group) << WITHIN_GROUP, 1 << WITHIN_GROUP);
        }
        let rest = threshold & ((1 << WITHIN_COLUMN) - 1);
        if rest == 0 {
            return;
        }
        for &group in &self.groups[full..full + PER_COLUMN] {
            let (start, turn) = (u32::from(group) << WITHIN_GROUP, self.deals[usize::from(group)]);
            let fine = turn & ((1 << FINE) - 1);
            let count = rest.saturating_sub(fine).div_ceil(1 << FINE);
            let first = (turn >> FINE).wrapping_neg() & ((1 << WITHIN_GROUP) - 1);
            let before_end = count.min((1 << WITHIN_GROUP) - first);
            visit(start + first, before_end);
            if before_end < count {
                visit(start, count - before_end);
            }
        }
    }
}
