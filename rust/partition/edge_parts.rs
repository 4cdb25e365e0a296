//! Parts of records, in the narrowest type that holds them, in memory or in a mapped `.npy` file.
//!
//! **Types.** `u8` for k <= 255, `i16` for k <= 32,767, else `i32`: what torch 2.2 reads. The highest value
//! of each marks a record without a part, [`NONE`].
//!
//! **Memory.** 1, 2 or 4 bytes per record. In a file none of it is anonymous memory. The caller names and
//! renames the file.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use bytemuck::{Pod, Zeroable};

use crate::base::npy::{self, Item};
use crate::base::{Buffer, Error, NONE, Result, Run};
use crate::edges::{BLOCK, EdgeStream, Record};
use crate::exec::scan;

/// Bytes of the part of a record, for `k` parts.
pub(crate) fn width(k: u32) -> u64 {
    match k {
        0..=255 => 1,
        256..=32_767 => 2,
        _ => 4,
    }
}

/// The parts of `m` records. All are 0 in the beginning.
#[derive(Debug)]
pub struct EdgeParts {
    words: Words,
    m: u64,
    in_file: bool,
}

/// The parts as they are stored.
#[derive(Debug)]
pub enum Words {
    /// For k <= 255.
    U8(Buffer<u8>),
    /// For k <= 32,767.
    I16(Buffer<i16>),
    /// For more parts.
    I32(Buffer<i32>),
}

/// `m` zeros, in memory or in the file `out` behind a header.
fn zeroed<T: Item>(m: u64, out: Option<&Path>) -> Result<Buffer<T>> {
    let Some(path) = out else { return Buffer::zeroed(m as usize, "parts of the records") };
    let io = |error| Error::io(path, error);
    let mut file =
        File::options().read(true).write(true).create(true).truncate(true).open(path).map_err(io)?;
    let header = npy::header(T::DESCR, &[m]);
    file.write_all(&header).map_err(io)?;
    // SAFETY: the file was made here, under a temporary name. That nobody cuts it meanwhile is the contract
    // of `out`. A header has a multiple of 64 bytes.
    unsafe { Buffer::mapped(&file, path, header.len(), m as usize) }
}

/// A stored part: the cast from u32 keeps the low bits. In the mark they are all ones, except the sign.
trait Word: Pod + Zeroable + Send + Sync {
    const MARK: Self;
    fn from_part(part: u32) -> Self;
    fn part(self) -> u32;
}

macro_rules! word {
    ($type:ty) => {
        impl Word for $type {
            const MARK: Self = <$type>::MAX;
            #[inline(always)]
            fn from_part(part: u32) -> Self {
                if part == NONE { Self::MARK } else { part as $type }
            }
            #[inline(always)]
            fn part(self) -> u32 {
                if self == Self::MARK { NONE } else { self as u32 }
            }
        }
    };
}
word!(u8);
word!(i16);
word!(i32);

/// Does the same with words of any type.
macro_rules! with_words {
    ($all:expr, $words:ident => $work:expr) => {
        match $all {
            Words::U8($words) => $work,
            Words::I16($words) => $work,
            Words::I32($words) => $work,
        }
    };
}

impl EdgeParts {
    /// `m` parts below `k`, in the file `out` (created, or cut) or in memory.
    pub fn new(m: u64, k: u32, out: Option<&Path>) -> Result<Self> {
        let words = match width(k) {
            1 => Words::U8(zeroed(m, out)?),
            2 => Words::I16(zeroed(m, out)?),
            _ => Words::I32(zeroed(m, out)?),
        };
        Ok(Self { words, m, in_file: out.is_some() })
    }

    /// Bytes of memory that `m` parts below `k` take.
    pub fn memory(m: u64, k: u32, in_file: bool) -> u64 {
        if in_file { 0 } else { m * width(k) }
    }

    /// Number of records.
    pub fn len(&self) -> u64 {
        self.m
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.m == 0
    }

    /// The parts as they are stored, unless they are in a file.
    pub fn in_memory(self) -> Option<Words> {
        (!self.in_file).then_some(self.words)
    }

    /// Reads the parts of the records `range` into `buf`, whose old content is lost.
    pub fn read<'a>(&self, range: Range<u64>, buf: &'a mut Vec<u32>) -> &'a [u32] {
        let range = range.start as usize..range.end as usize;
        buf.clear();
        with_words!(&self.words, words => buf.extend(words[range].iter().map(|word| word.part())));
        buf
    }

    /// Sets the parts of the records from `first` on.
    pub fn write(&mut self, first: u64, parts: &[u32]) {
        let range = first as usize..first as usize + parts.len();
        with_words!(&mut self.words, words => store(&mut words[range], parts));
    }

    /// Sets the parts of records anywhere.
    pub fn set(&mut self, parts: impl Iterator<Item = (u64, u32)>) {
        with_words!(&mut self.words, words => {
            parts.for_each(|(record, part)| words[record as usize] = Word::from_part(part));
        });
    }

    /// Gives every record the part that `part_of` finds for it, block by block, in parallel. It gets the
    /// records of a block, the place of one among them, and its number in the stream. Returns how many
    /// records each of the first `counted` parts has.
    pub fn fill(
        &mut self,
        edges: &dyn EdgeStream,
        counted: u32,
        run: &Run,
        part_of: impl Fn(&[Record], usize, u64) -> u32 + Sync,
    ) -> Result<Vec<u64>> {
        with_words!(&mut self.words, words => fill(words, edges, counted, run, part_of))
    }
}

fn store<T: Word>(words: &mut [T], parts: &[u32]) {
    words.iter_mut().zip(parts).for_each(|(word, &part)| *word = T::from_part(part));
}

fn fill<T: Word>(
    words: &mut [T],
    edges: &dyn EdgeStream,
    counted: u32,
    run: &Run,
    part_of: impl Fn(&[Record], usize, u64) -> u32 + Sync,
) -> Result<Vec<u64>> {
    edges.check_unchanged()?;
    let states = scan(
        run,
        usize::MAX,
        words.chunks_mut(BLOCK as usize).zip((0..).step_by(BLOCK as usize)),
        || Ok((vec![0; counted as usize], Vec::new())),
        |(counts, buf), (words, first)| {
            let records = edges.block(first..first + words.len() as u64, buf)?;
            for (place, word) in words.iter_mut().enumerate() {
                let part = part_of(records, place, first + place as u64);
                *word = T::from_part(part);
                if let Some(count) = counts.get_mut(part as usize) {
                    *count += 1;
                }
            }
            run.advance(records.len() as u64)
        },
    );
    edges.check_unchanged()?;
    let mut total = vec![0; counted as usize];
    for (counts, _) in states? {
        total.iter_mut().zip(counts).for_each(|(total, count): (_, u64)| *total += count);
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_keeps_parts_and_the_mark() {
        let folder = tempfile::tempdir().unwrap();
        for k in [1, 255, 256, 32_767, 32_768, 1 << 20] {
            for out in [None, Some(folder.path().join("parts.npy"))] {
                let mut parts = EdgeParts::new(5, k, out.as_deref()).unwrap();
                parts.write(1, &[k - 1, NONE, 0]);
                assert_eq!(parts.read(0..5, &mut Vec::new()), [0, k - 1, NONE, 0, 0]);
                assert_eq!(parts.len(), 5);
            }
        }
    }
}
