//! Is this file what it was taken for? Looks that refuse text, archives, the wrong width and the wrong byte order
//! when `dtype=` was not given, and ids so large that they can only be a mistake.

use super::decode::IdType;
use super::{BLOCK, EdgeStream};
use crate::base::{Error, Result};

/// Refuses files that begin like another format.
pub fn check_magic(head: &[u8], origin: &str) -> Result<()> {
    let seen = match head {
        _ if is_gzip(head) => "a gzip file (magic 1f 8b)",
        [b'P', b'K', 3, 4, ..] => "a zip or .npz file (magic PK)",
        [b'P', b'A', b'R', b'1', ..] => "a Parquet file (magic PAR1)",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "a zstd file (magic 28 b5 2f fd)",
        [0x7f, b'E', b'L', b'F', ..] => "an ELF program (magic 7f ELF)",
        _ if is_text(head) => "text",
        _ => return Ok(()),
    };
    let remedy = match seen {
        "text" | "a gzip file (magic 1f 8b)" => "Convert it first: `fastpart convert IN OUT.bin`",
        _ => "fastpart reads headerless pairs of u32 or u64, and .npy",
    };
    Err(Error::format(
        origin,
        format!("this is {seen}, not binary edges. {remedy}. If it is binary, pass dtype="),
    ))
}

/// A gzip header also reads as a vertex id. Its method, flags and system bytes tell them apart.
pub fn is_gzip(head: &[u8]) -> bool {
    head.len() >= 18 && head.starts_with(&[0x1f, 0x8b, 8]) && head[3] < 32 && matches!(head[9], 0..=13 | 255)
}

/// Whether it begins as text does.
pub fn is_text(head: &[u8]) -> bool {
    let head = &head[..head.len().min(4096)];
    let text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    head.len() >= 3 && head.iter().all(text) && head.iter().any(|&byte| byte != head[0])
}

/// Why a file's length cannot be right, with the likely reason.
pub fn odd_length(size: u64, id_type: IdType) -> String {
    let record = 2 * id_type.width() as u64;
    let hint = match (record, size % record) {
        (8, 4) if size > 12 => {
            ". A header of 12 bytes (as 2PS and HEP write) would explain it: name the file x.binedgelist and convert it, \
             `fastpart convert x.binedgelist OUT.bin`"
        }
        (16, 8) => ". It suits dtype=\"u32\"",
        _ => ". The file is cut off, or holds something else",
    };
    format!(
        "length {size} is not a multiple of {record}, the size of one {} record (remainder {}){hint}",
        id_type.name(),
        size % record
    )
}

/// Refuses a raw u32 file whose words look like u64 ids, or like ids in the other byte order.
pub fn check_words(edges: &dyn EdgeStream, origin: &str) -> Result<()> {
    check_width(edges, 1, origin)?;
    let mut buf = Vec::new();
    let sample = edges.block(0..edges.num_edges().min(BLOCK), &mut buf)?;
    let largest = |order: fn(u32) -> u32| sample.iter().flatten().map(|&id| order(id)).max().unwrap_or(0);
    let (native, swapped) = (largest(|id| id), largest(u32::swap_bytes));
    if native >= 1 << 24 && u64::from(swapped) * 256 <= u64::from(native) {
        let what = format!(
            "ids up to {native}, but only up to {swapped} with their bytes swapped: this looks big-endian. \
             Convert it with `fastpart convert --swap`, or pass dtype=\"u32\" if it is not"
        );
        return Err(Error::format(origin, what));
    }
    Ok(())
}

/// Refuses u32 records that, read as u64, are ids below 2^32, and not only zeros. Word `high` of each would be the
/// zero half. Few records prove nothing: a small star around vertex 0 looks the same.
pub(super) fn check_width(edges: &dyn EdgeStream, high: usize, origin: &str) -> Result<()> {
    let m = edges.num_edges();
    let mut buf = Vec::new();
    let sample = edges.block(0..m.min(BLOCK), &mut buf)?;
    let zero = |word: usize| sample.iter().all(|record| record[word] == 0);
    if sample.len() < 16 || !m.is_multiple_of(2) || !zero(high) || zero(1 - high) {
        return Ok(());
    }
    let what = "every second word is zero: these look like u64 ids. Pass dtype=\"u64\", or dtype=\"u32\" if they are \
                not";
    Err(Error::format(origin, what))
}
