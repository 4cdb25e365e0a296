//! From bytes of any supported integer type and layout to checked u32 records.

use super::Record;
use crate::base::on_avx2;

/// A record with ids as wide as a file can hold, before they are narrowed or relabelled.
pub type WideRecord = [u64; 2];

/// The integer type of stored ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdType {
    /// 32 bits, unsigned.
    U32,
    /// 32 bits, signed. Negative ids are refused.
    I32,
    /// 64 bits, unsigned.
    U64,
    /// 64 bits, signed. Negative ids are refused.
    I64,
}

impl IdType {
    /// Bytes per id.
    pub fn width(self) -> usize {
        match self {
            IdType::U32 | IdType::I32 => 4,
            IdType::U64 | IdType::I64 => 8,
        }
    }

    /// The type that a `.npy` header names, and whether it is big-endian.
    pub(crate) fn of_npy(descr: &str) -> Result<(Self, bool), String> {
        let known = [("u4", IdType::U32), ("i4", IdType::I32), ("u8", IdType::U64), ("i8", IdType::I64)];
        let (order, kind) = descr.split_at_checked(1).unwrap_or(("", descr));
        match known.into_iter().find(|(name, _)| *name == kind) {
            Some((_, id_type)) if "<=>".contains(order) => Ok((id_type, order == ">")),
            _ => Err(format!("dtype {descr}. Ids must be uint32, int32, uint64 or int64")),
        }
    }

    /// The public name: `u32`, ...
    pub fn name(self) -> &'static str {
        match self {
            IdType::U32 => "u32",
            IdType::I32 => "i32",
            IdType::U64 => "u64",
            IdType::I64 => "i64",
        }
    }
}

/// One column of ids in memory: where it starts, how far apart the ids lie, and how each is stored.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Address of the first id. Needs no alignment.
    pub start: *const u8,
    /// Bytes from one id to the next. May be negative.
    pub stride: isize,
    /// How an id is stored.
    pub id_type: IdType,
    /// Whether the bytes are in the order foreign to this machine.
    pub swapped: bool,
}

impl Column {
    /// Address of id number `index`.
    fn at(self, index: u64) -> *const u8 {
        self.start.wrapping_offset(index as isize * self.stride)
    }
}

// SAFETY: a column is an address with a shape. Only `decode` below dereferences it, which is unsafe and
// demands that the memory is alive. Reading from several threads at once is fine.
unsafe impl Send for Column {}
// SAFETY: as above.
unsafe impl Sync for Column {}

/// An id that does not fit, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadId {
    /// Position within the decoded run.
    pub position: usize,
    /// The value as written.
    pub id: i128,
}

/// Copies records of the columns `from`, starting at record `first`, into `out`. Every id is below `n`.
///
/// # Safety
/// Both columns must be readable for `out.len()` ids from number `first`. The bytes may change meanwhile:
/// what is used is a copy that was checked.
pub(crate) unsafe fn decode(from: [Column; 2], first: u64, n: u64, out: &mut [Record]) -> Result<(), BadId> {
    if is_packed_u32(from) {
        // SAFETY: the caller vouches for `out.len()` records of 8 bytes from here, and any bytes are valid
        // u32 pairs.
        unsafe {
            std::ptr::copy_nonoverlapping(from[0].at(first), out.as_mut_ptr().cast(), size_of_val(out))
        };
        return check(out, n);
    }
    // SAFETY: as the caller vouches.
    if unsafe { narrow(from, first, n, out) } {
        return Ok(());
    }
    // SAFETY: as the caller vouches.
    unsafe { decode_columns(from, first, out, |_, id| (id < n).then_some(id as u32)) }
}

/// Copies records as [`decode`] does, without narrowing: every id that is not negative passes.
///
/// # Safety
/// As for [`decode`].
pub(crate) unsafe fn decode_wide(from: [Column; 2], first: u64, out: &mut [WideRecord]) -> Result<(), BadId> {
    let fits = |id_type, id| {
        let signed = matches!(id_type, IdType::I32 | IdType::I64);
        (!signed || id <= i64::MAX as u64).then_some(id)
    };
    // SAFETY: as the caller vouches.
    unsafe { decode_columns(from, first, out, fits) }
}

/// Whether the two columns are one run of native u32 pairs.
pub(crate) fn is_packed_u32(from: [Column; 2]) -> bool {
    let native = |column: Column| column.id_type == IdType::U32 && !column.swapped && column.stride == 8;
    native(from[0]) && native(from[1]) && from[0].start.wrapping_add(4) == from[1].start
}

/// The largest id of `records`. 0 without records. Measured: the baseline processor has no unsigned maximum,
/// and a pass that only reads takes 1.7 times as long.
pub(crate) fn largest(records: &[Record]) -> u32 {
    on_avx2!(|records: &[Record]| -> u32 {
        // As many maxima as vector registers take, so that no addition waits for the one before.
        let ids: &[u32] = bytemuck::cast_slice(records);
        let (chunks, rest) = ids.as_chunks::<64>();
        let mut lanes = [0_u32; 64];
        for chunk in chunks {
            for (lane, &id) in lanes.iter_mut().zip(chunk) {
                *lane = id.max(*lane);
            }
        }
        lanes.iter().chain(rest).fold(0, |largest, &id| largest.max(id))
    })
}

/// Refuses the first record with an id that is not below `n`.
pub(crate) fn check(records: &[Record], n: u64) -> Result<(), BadId> {
    if records.is_empty() || u64::from(largest(records)) < n {
        return Ok(());
    }
    let bad =
        records.iter().enumerate().flat_map(|(position, ids)| ids.iter().map(move |&id| (position, id)));
    let (position, id) = bad.into_iter().find(|&(_, id)| u64::from(id) >= n).unwrap_or((0, u32::MAX));
    Err(BadId { position, id: i128::from(id) })
}

/// Decodes dense columns in one pass without a branch, several ids at once. False where an id is not below
/// `n`, or the columns are of another kind: [`decode_columns`] goes from id to id, and says which.
///
/// # Safety
/// As for [`decode`].
unsafe fn narrow(from: [Column; 2], first: u64, n: u64, out: &mut [Record]) -> bool {
    on_avx2!(|from: [Column; 2], first: u64, n: u64, out: &mut [Record]| -> bool {
        // The half of an id that does not fit 32 bits is a mark. Negative ids have one.
        // SAFETY: as the caller of `narrow` vouches.
        let [largest, marks] = unsafe {
            match from[0].id_type {
                IdType::U32 => narrow_as(from, first, out, |id: u32| [id, 0]),
                IdType::I32 => narrow_as(from, first, out, |id: i32| [id as u32, (id >> 31) as u32]),
                IdType::U64 => narrow_as(from, first, out, |id: u64| [id as u32, (id >> 32) as u32]),
                IdType::I64 => narrow_as(from, first, out, |id: i64| [id as u32, (id >> 32) as u32]),
            }
        };
        u64::from(largest) < n && marks == 0
    })
}

/// The largest of the narrowed ids, and the marks of all. `halves` gives both of an id. Columns that are not
/// dense have all marks.
///
/// # Safety
/// As for [`decode`].
#[inline(always)]
unsafe fn narrow_as<T>(
    from: [Column; 2],
    first: u64,
    out: &mut [Record],
    halves: impl Fn(T) -> [u32; 2],
) -> [u32; 2] {
    let (width, [start, other]) = (size_of::<T>(), from.map(|column| column.at(first)));
    let strides = from.map(|column| column.stride);
    if from[0].id_type != from[1].id_type || from.iter().any(|column| column.swapped) {
        return [0, u32::MAX];
    }
    // SAFETY: the caller vouches for all ids of a column. The read needs no alignment.
    let id = |start: *const u8, index| unsafe { start.add(index * width).cast::<T>().read_unaligned() };
    let (mut largest, mut marks) = (0, 0);
    let mut fold = |[low, mark]: [u32; 2]| {
        largest = low.max(largest);
        marks |= mark;
        low
    };
    if strides == [2 * width as isize; 2] && other == start.wrapping_add(width) {
        for (index, into) in out.as_flattened_mut().iter_mut().enumerate() {
            *into = fold(halves(id(start, index)));
        }
    } else if strides == [width as isize; 2] {
        for (index, into) in out.iter_mut().enumerate() {
            *into = [fold(halves(id(start, index))), fold(halves(id(other, index)))];
        }
    } else {
        return [0, u32::MAX];
    }
    [largest, marks]
}

/// Decodes both columns. The error names the first id, in the order of the records, that does not fit.
///
/// # Safety
/// Both columns must be readable for `out.len()` ids from number `first`.
unsafe fn decode_columns<T>(
    from: [Column; 2],
    first: u64,
    out: &mut [[T; 2]],
    narrow: impl Fn(IdType, u64) -> Option<T>,
) -> Result<(), BadId> {
    let mut bad: Option<BadId> = None;
    for (slot, column) in from.into_iter().enumerate() {
        // SAFETY: as the caller vouches.
        let decoded = unsafe { decode_column(column, first, out, slot, |id| narrow(column.id_type, id)) };
        bad = bad.into_iter().chain(decoded.err()).min_by_key(|bad| bad.position);
    }
    bad.map_or(Ok(()), Err)
}

/// # Safety
/// The column must be readable for `out.len()` ids from number `first`.
unsafe fn decode_column<T>(
    column: Column,
    first: u64,
    out: &mut [[T; 2]],
    slot: usize,
    narrow: impl Fn(u64) -> Option<T>,
) -> Result<(), BadId> {
    let start = column.at(first);
    macro_rules! decode_as {
        ($int:ty) => {
            for (position, record) in out.iter_mut().enumerate() {
                let address = start.wrapping_offset(position as isize * column.stride);
                // SAFETY: as the caller vouches. The read needs no alignment.
                let raw = unsafe { address.cast::<$int>().read_unaligned() };
                let id = if column.swapped { raw.swap_bytes() } else { raw };
                // A negative id becomes a huge one here, and fails the same test.
                let Some(id) = narrow(id as u64) else {
                    return Err(BadId { position, id: i128::from(id) });
                };
                record[slot] = id;
            }
        };
    }
    match column.id_type {
        IdType::U32 => decode_as!(u32),
        IdType::I32 => decode_as!(i32),
        IdType::U64 => decode_as!(u64),
        IdType::I64 => decode_as!(i64),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TYPES: [IdType; 4] = [IdType::U32, IdType::I32, IdType::U64, IdType::I64];

    /// The stride of columns of `m` ids, and where the second one begins: of rows, of columns, and of two
    /// columns of a wider table.
    fn layout(number: usize, width: usize, m: usize) -> (usize, usize) {
        [(2 * width, width), (width, m * width), (3 * width, 2 * width)][number]
    }

    /// The bytes of an id, of which a narrow type takes the low ones.
    fn stored(id: i64, id_type: IdType, swapped: bool) -> Vec<u8> {
        let mut bytes = id.to_le_bytes()[..id_type.width()].to_vec();
        if swapped {
            bytes.reverse();
        }
        bytes
    }

    /// The value that a type gives these bytes.
    fn value(id: i64, id_type: IdType) -> i128 {
        match id_type {
            IdType::U32 => i128::from(id as u32),
            IdType::I32 => i128::from(id as i32),
            IdType::U64 => i128::from(id as u64),
            IdType::I64 => i128::from(id),
        }
    }

    fn id() -> impl Strategy<Value = i64> {
        let edges = [-1, i64::MIN, i64::MAX, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 3];
        prop_oneof![400 => 0_i64..1000, 1 => prop::sample::select(edges.to_vec()), 1 => any::<i64>()]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]

        #[test]
        fn records_and_errors_are_those_of_one_id_after_the_other(
            ids in prop::collection::vec([id(), id()], 0..200),
            first in 0_usize..20,
            id_type in prop::sample::select(TYPES.to_vec()),
            other_type in prop::option::weighted(0.1, prop::sample::select(TYPES.to_vec())),
            swapped in prop::bool::weighted(0.2),
            number in 0_usize..3,
            n in prop::sample::select(vec![900_u64, 1000, 1 << 31, u64::from(u32::MAX), 1 << 32]),
        ) {
            // Columns of two types have the same width here, so that they lie in one table.
            let types = [id_type, other_type.filter(|other| other.width() == id_type.width()).unwrap_or(id_type)];
            let width = id_type.width();
            let (stride, second) = layout(number, width, ids.len());
            let mut bytes = vec![0; 3 * width * (ids.len() + 1)];
            for (index, record) in ids.iter().enumerate() {
                for (slot, offset) in [0, second].into_iter().enumerate() {
                    let at = offset + index * stride;
                    bytes[at..at + width].copy_from_slice(&stored(record[slot], types[slot], swapped));
                }
            }
            let from = [0, 1].map(|slot| Column {
                start: bytes[[0, second][slot]..].as_ptr(),
                stride: stride as isize,
                id_type: types[slot],
                swapped,
            });
            let first = first.min(ids.len());
            let mut out = vec![[7; 2]; ids.len() - first];
            // SAFETY: the columns lie over `bytes`.
            let decoded = unsafe { decode(from, first as u64, n, &mut out) };
            let mut expected = (Vec::new(), Ok(()));
            for (position, record) in ids[first..].iter().enumerate() {
                let values = [0, 1].map(|slot| value(record[slot], types[slot]));
                if let Some(&id) = values.iter().find(|&&id| !(0..i128::from(n)).contains(&id)) {
                    expected.1 = Err(BadId { position, id });
                    break;
                }
                expected.0.push(values.map(|id| id as u32));
            }
            prop_assert_eq!(decoded, expected.1);
            if decoded.is_ok() {
                prop_assert_eq!(out, expected.0);
            }
        }
    }

    fn columns(bytes: &[u8], id_type: IdType, swapped: bool, rows: bool) -> [Column; 2] {
        let width = id_type.width();
        let m = bytes.len() / (2 * width);
        let (stride, offset) = if rows { (2 * width, width) } else { (width, m * width) };
        [0, offset].map(|offset| Column {
            start: bytes[offset..].as_ptr(),
            stride: stride as isize,
            id_type,
            swapped,
        })
    }

    #[test]
    fn types_of_other_numbers_are_refused() {
        assert_eq!(IdType::of_npy("<u4"), Ok((IdType::U32, false)));
        assert_eq!(IdType::of_npy(">i8"), Ok((IdType::I64, true)));
        for descr in ["<f8", "|O", "|u1", "", "é", "u4"] {
            assert!(IdType::of_npy(descr).is_err_and(|error| error.starts_with("dtype ")), "{descr}");
        }
    }

    #[test]
    fn every_type_order_and_layout_agrees() {
        let ids: [u32; 6] = [0, 5, 3, 2, 7, 1];
        for (rows, swapped) in [(true, false), (true, true), (false, false), (false, true)] {
            for id_type in [IdType::U32, IdType::I32, IdType::U64, IdType::I64] {
                let order = if rows { [0, 1, 2, 3, 4, 5] } else { [0, 2, 4, 1, 3, 5] };
                let bytes: Vec<u8> = order
                    .iter()
                    .flat_map(|&at| {
                        let wide = u64::from(ids[at]);
                        match (id_type.width(), swapped) {
                            (4, false) => (wide as u32).to_le_bytes().to_vec(),
                            (4, true) => (wide as u32).to_be_bytes().to_vec(),
                            (_, false) => wide.to_le_bytes().to_vec(),
                            (_, true) => wide.to_be_bytes().to_vec(),
                        }
                    })
                    .collect();
                let mut out = [[0; 2]; 3];
                let from = columns(&bytes, id_type, swapped, rows);
                // SAFETY: the columns lie over `bytes`, which has three records.
                unsafe { decode(from, 0, 8, &mut out) }.unwrap();
                assert_eq!(out, [[0, 5], [3, 2], [7, 1]]);
                // SAFETY: as above.
                let bad = unsafe { decode(from, 1, 7, &mut out[1..]) }.unwrap_err();
                assert_eq!((bad.position, bad.id), (1, 7));
            }
        }
    }

    #[test]
    fn negative_and_wide_ids_never_wrap() {
        for (id_type, value) in [(IdType::I64, -1_i64), (IdType::U64, 1 << 32), (IdType::I64, i64::MIN)] {
            let bytes: Vec<u8> = [0, value].iter().flat_map(|id| id.to_le_bytes()).collect();
            let from = columns(&bytes, id_type, false, true);
            // SAFETY: one record of two 8-byte ids.
            let bad = unsafe { decode(from, 0, 1 << 32, &mut [[0; 2]]) };
            let seen = if id_type == IdType::U64 { i128::from(value as u64) } else { i128::from(value) };
            assert_eq!(bad.unwrap_err().id, seen);
            let mut wide = [[0; 2]];
            // SAFETY: as above.
            let decoded = unsafe { decode_wide(from, 0, &mut wide) };
            if value < 0 {
                assert_eq!(decoded.unwrap_err().id, seen);
            } else {
                assert_eq!((decoded, wide), (Ok(()), [[0, value as u64]]));
            }
        }
    }
}
