//! Is this file what it was taken for? Looks that refuse text, archives, the wrong width and the wrong byte
//! order when `dtype=` was not given, and ids so large that they can only be a mistake.

use super::decode::IdType;
use super::{BLOCK, EdgeStream};
use crate::base::{Error, Result};

const CONVERT: &str = "Convert it first: `fastpart convert IN OUT.bin`";
const NOTHING: &str = "fastpart reads headerless pairs of u32 or u64, and .npy";

/// The first bytes of files of other formats, the formats, and the remedies.
const MAGICS: [(&[u8], &str, &str); 15] = [
    (
        b"PK\x03\x04",
        "a zip or .npz file (magic PK)",
        "Unpack it, and convert the table in it. Save arrays as .npy",
    ),
    (
        b"PAR1",
        "a Parquet file (magic PAR1)",
        "Name it x.parquet and convert it: `fastpart convert x.parquet OUT.bin`",
    ),
    (b"\x28\xb5\x2f\xfd", "a zstd file (magic 28 b5 2f fd)", "Unpack it first, as `zstd -d` does"),
    (b"\xfd7zXZ\0", "an xz file (magic fd 37 7a 58 5a)", "Unpack it first, as `xz -d` does"),
    (b"BZh", "a bzip2 file (magic BZh)", "Unpack it first, as `bzip2 -d` does"),
    (b"\x04\x22\x4d\x18", "an lz4 file (magic 04 22 4d 18)", "Unpack it first, as `lz4 -d` does"),
    (b"LZIP", "an lzip file (magic LZIP)", "Unpack it first, as `lzip -d` does"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip file (magic 37 7a bc af)", "Unpack it first, as `7z x` does"),
    (b"Rar!\x1a\x07", "a RAR file (magic Rar!)", "Unpack it first"),
    (b"ARROW1", "an Arrow file (magic ARROW1)", "Save it as Parquet, and convert that"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file (magic 89 HDF)", "Save the edges in it as .npy"),
    (b"SQLite format 3\0", "an SQLite database", "Export the table of edges as CSV, and convert that"),
    (b"%PDF-", "a PDF (magic %PDF)", NOTHING),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture (magic 89 PNG)", NOTHING),
    (b"\x7fELF", "an ELF program (magic 7f ELF)", NOTHING),
];

/// The other binary format that a file begins like, and the remedy. The magic of bzip2 is also text: a digit
/// and the digits of pi follow it.
pub(crate) fn other_format(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if is_pickle(head) {
        let remedy = "Load it in Python, if you trust it, and pass its content to fp.open_graph";
        return Some(("a pickle of Python (magic 80)", remedy));
    }
    if is_parhip(head) {
        return Some((
            "a binary graph of ParHIP",
            "Name the METIS graph that it was made from x.graph, and convert that",
        ));
    }
    let (magic, seen, remedy) = MAGICS.iter().find(|(magic, ..)| head.starts_with(magic))?;
    let is = *magic != b"BZh" || head.get(4..10) == Some(b"\x31\x41\x59\x26\x53\x59");
    is.then_some((seen, remedy))
}

/// Whether it begins as pickles of protocols 2 to 5 do: those from 4 on with the length of a frame, the
/// others with the opcode of a dictionary, list, tuple or class and a letter.
fn is_pickle(head: &[u8]) -> bool {
    match head {
        [0x80, 4 | 5, 0x95, _, _, _, _, high @ ..] => high.get(..4) == Some(&[0; 4]),
        [0x80, 2 | 3, b'}' | b']' | b'(' | b'c', letter, ..] => letter.is_ascii_graphic(),
        _ => false,
    }
}

/// Whether it begins as graphs of ParHIP do, in words of 64 bits: the version 3, n, m, and the place of the
/// first list of neighbours, which n + 1 places precede.
fn is_parhip(head: &[u8]) -> bool {
    let word = |at: usize| {
        head.get(8 * at..8 * at + 8).and_then(|word| Some(u64::from_le_bytes(word.try_into().ok()?)))
    };
    matches!((word(0), word(1), word(3)), (Some(3), Some(n), Some(first)) if n < 1 << 40 && first == 8 * (n + 4))
}

/// Refuses files that begin like another format.
pub(crate) fn check_magic(head: &[u8], origin: &str) -> Result<()> {
    let (seen, remedy) = match other_format(head) {
        Some(found) => found,
        None if is_gzip(head) => ("a gzip file (magic 1f 8b)", CONVERT),
        None if is_text(head) => ("text", CONVERT),
        None => return Ok(()),
    };
    Err(Error::format(
        origin,
        format!("this is {seen}, not binary edges. {remedy}. If it is binary, pass dtype="),
    ))
}

/// A gzip header also reads as a vertex id. Its method, flags and system bytes tell them apart.
pub(crate) fn is_gzip(head: &[u8]) -> bool {
    head.len() >= 18 && head.starts_with(&[0x1f, 0x8b, 8]) && head[3] < 32 && matches!(head[9], 0..=13 | 255)
}

/// Whether it begins as text does.
pub(crate) fn is_text(head: &[u8]) -> bool {
    let head = &head[..head.len().min(4096)];
    let text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    head.len() >= 3 && head.iter().all(text) && head.iter().any(|&byte| byte != head[0])
}

/// Why a file's length cannot be right, with the likely reason.
pub(crate) fn odd_length(size: u64, id_type: IdType) -> String {
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
pub(crate) fn check_words(edges: &dyn EdgeStream, origin: &str) -> Result<()> {
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

/// Refuses u32 records that, read as u64, are ids below 2^32, and not only zeros. Word `high` of each would
/// be the zero half. Few records prove nothing: a small star around vertex 0 looks the same.
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
