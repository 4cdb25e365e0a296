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

/// Copies `count` records of the columns `from`, starting at record `first`, into `out`. Every id is below
/// `n`.
///
/// # Safety
/// Both columns must be readable for `first + count` ids. The bytes may change meanwhile: each is read once,
/// and only the copy is checked and used.
pub(crate) unsafe fn decode(
    from: [Column; 2],
    first: u64,
    count: usize,
    n: u64,
    out: &mut Vec<Record>,
) -> Result<(), BadId> {
    out.clear();
    if is_packed_u32(from) {
        out.reserve(count);
        // SAFETY: the caller vouches for `count` records of 8 bytes from here. `out` has reserved them, and
        // any bytes are valid u32 pairs.
        unsafe {
            std::ptr::copy_nonoverlapping(from[0].at(first), out.as_mut_ptr().cast::<u8>(), count * 8);
            out.set_len(count);
        }
        return check(out, n);
    }
    out.resize(count, [0; 2]);
    // SAFETY: as the caller vouches.
    unsafe { decode_columns(from, first, out, |_, id| (id < n).then_some(id as u32)) }
}

/// Copies records as [`decode`] does, without narrowing: every id that is not negative passes.
///
/// # Safety
/// As for [`decode`].
pub(crate) unsafe fn decode_wide(
    from: [Column; 2],
    first: u64,
    count: usize,
    out: &mut Vec<WideRecord>,
) -> Result<(), BadId> {
    out.clear();
    out.resize(count, [0; 2]);
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
    use super::*;

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
                let mut out = Vec::new();
                let from = columns(&bytes, id_type, swapped, rows);
                // SAFETY: the columns lie over `bytes`, which has three records.
                unsafe { decode(from, 0, 3, 8, &mut out) }.unwrap();
                assert_eq!(out, [[0, 5], [3, 2], [7, 1]]);
                // SAFETY: as above.
                let bad = unsafe { decode(from, 1, 2, 7, &mut out) }.unwrap_err();
                assert_eq!((bad.position, bad.id), (1, 7));
            }
        }
    }

    #[test]
    fn negative_and_wide_ids_never_wrap() {
        for (id_type, value) in [(IdType::I64, -1_i64), (IdType::U64, 1 << 32), (IdType::I64, i64::MIN)] {
            let bytes: Vec<u8> = [0, value].iter().flat_map(|id| id.to_le_bytes()).collect();
            let mut out = Vec::new();
            let from = columns(&bytes, id_type, false, true);
            // SAFETY: one record of two 8-byte ids.
            let bad = unsafe { decode(from, 0, 1, 1 << 32, &mut out) };
            let seen = if id_type == IdType::U64 { i128::from(value as u64) } else { i128::from(value) };
            assert_eq!(bad.unwrap_err().id, seen);
            let mut wide = Vec::new();
            // SAFETY: as above.
            let decoded = unsafe { decode_wide(from, 0, 1, &mut wide) };
            if value < 0 {
                assert_eq!(decoded.unwrap_err().id, seen);
            } else {
                assert_eq!((decoded, wide), (Ok(()), vec![[0, value as u64]]));
            }
        }
    }
}
