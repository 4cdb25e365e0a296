//! Rows of a file that memory does not hold, read past the page cache.
//!
//! **Requirements.** A file system that takes `O_DIRECT`. Where it does not, rows are read from the map
//! ([`DirectFile::open`]).
//!
//! **Why.** A map brings one page at a time and thread, and those around it: with a readahead of 8 MB a batch
//! of 40 MB reads a file of 3.2 GB as a whole. Disks answer many reads at a time about as fast as one.
//!
//! **Algorithm.** The rows of a batch come in the order of the files. Rows whose blocks of [`BLOCK`] bytes
//! touch are one read of at most [`LONGEST`] bytes. [`DEPTH`] reads are under way, each into a buffer of its
//! own, from which its rows are handed out in order. The buffers are aligned, as the operating system
//! demands, and the rows are not.
//!
//! **Memory.** [`DEPTH`] buffers of at most [`LONGEST`] bytes for each batch that is being read, up to 8 MiB,
//! and 40 bytes per read.
//!
//! **Parallelism.** One thread per batch has all reads under way ([`Reads`]), and waits for the first one of
//! them.
//!
//! **Complexity.** O(rows), after they were sorted.
//!
//! Source: Park et al., "Ginex: SSD-enabled Billion-scale Graph Neural Network Training on a Single Machine
//! via Provably Optimal In-memory Caching", VLDB 2022.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};

use crate::base::system::{FileExt as _, Reads, open_direct};
use crate::base::{Buffer, Error, Result, shown};
use crate::sampling::topology::row_numbers::RowId;

/// Bytes that reads begin and end at multiples of. Disks ask for 512 or 4096.
pub(crate) const BLOCK: u64 = 4096;

/// Bytes of the longest read of several rows.
const LONGEST: u64 = 64 << 10;

/// Bytes of a piece of consecutive rows.
const PIECE: u64 = 4 << 20;

/// Reads under way at a time.
pub(crate) const DEPTH: usize = 128;

/// Bytes in memory that begin at a multiple of [`BLOCK`].
#[derive(Clone, Copy, Debug)]
#[repr(C, align(4096))]
pub(crate) struct Block([u8; BLOCK as usize]);

// SAFETY: plain bytes, as many as the alignment, so without padding.
unsafe impl Zeroable for Block {}
// SAFETY: as above.
unsafe impl Pod for Block {}

/// A file of rows, open past the page cache.
#[derive(Debug)]
pub(crate) struct DirectFile {
    path: PathBuf,
    file: File,
    /// Offset of the first row.
    start: u64,
    row_bytes: u64,
}

impl DirectFile {
    /// Opens a file whose rows begin at `start`. None: its file system reads through the page cache only.
    pub(crate) fn open(path: &Path, start: u64, row_bytes: usize) -> Option<Self> {
        let file = open_direct(path)?;
        // Some take the flag, and then refuse the reads.
        let mut block = [Block::zeroed()];
        file.read_at(bytemuck::cast_slice_mut(&mut block), 0).ok()?;
        Some(Self { path: path.into(), file, start, row_bytes: row_bytes as u64 })
    }

    /// The blocks of a row: from where to where.
    fn blocks(&self, row: u64) -> (u64, u64) {
        let from = self.start + row * self.row_bytes;
        (from / BLOCK * BLOCK, (from + self.row_bytes).next_multiple_of(BLOCK))
    }

    /// Reads consecutive rows in one piece. `memory` grows as needed.
    pub(crate) fn consecutive<'a>(&self, rows: &Range<u32>, memory: &'a mut Vec<Block>) -> Result<&'a [u8]> {
        let (from, last) =
            (self.blocks(u64::from(rows.start)).0, self.start + u64::from(rows.end) * self.row_bytes);
        memory.resize((last - from).div_ceil(BLOCK) as usize, Block::zeroed());
        let buffer = bytemuck::cast_slice_mut(memory);
        let found = self.read(from, buffer)?;
        let first = (self.start + u64::from(rows.start) * self.row_bytes - from) as usize;
        buffer[..found]
            .get(first..(last - from) as usize)
            .ok_or_else(|| self.missing(u64::from(rows.end) - 1))
    }

    /// Hands out the bytes of consecutive rows, which are read in long pieces. Returns the bytes that were
    /// read: no block twice.
    pub(crate) fn stream(
        &self,
        rows: Range<u32>,
        mut visit: impl FnMut(&[u8]),
        check: &dyn Fn() -> Result<()>,
    ) -> Result<u64> {
        let (row, end) = (self.row_bytes as usize, self.start + u64::from(rows.end) * self.row_bytes);
        let (first, end) = (self.blocks(u64::from(rows.start)).0, end.next_multiple_of(BLOCK));
        // A row that a piece cuts off goes before the next piece.
        let before = row.next_multiple_of(BLOCK as usize);
        let (mut left, piece) = (rows.len(), PIECE.min(end - first));
        let mut memory = vec![Block::zeroed(); ((before as u64 + piece) / BLOCK) as usize];
        let buffer: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
        let mut from = before + (self.start + u64::from(rows.start) * self.row_bytes - first) as usize;
        for at in (first..end).step_by(PIECE as usize) {
            let found = self.read(at, &mut buffer[before..][..PIECE.min(end - at) as usize])?;
            let whole = buffer[from..before + found].chunks_exact(row).take(left);
            left -= whole.len();
            let used = whole.len() * row;
            whole.for_each(&mut visit);
            // Only a row that is cut off is left, and less than a row fits before the piece.
            let rest = from + used..before + found;
            from = before.saturating_sub(rest.len());
            buffer.copy_within(rest, from);
            check()?;
        }
        if left > 0 {
            return Err(self.missing(u64::from(rows.end) - 1));
        }
        Ok(end - first)
    }

    /// The error of a file that has no such row.
    fn missing(&self, row: u64) -> Error {
        Error::format(shown(&self.path), format!("row {row} is missing. The file became shorter"))
    }

    /// An error of the file.
    pub(crate) fn error(&self, error: std::io::Error) -> Error {
        Error::io(&self.path, error)
    }

    /// Begins a read, as [`Reads::begin`] does.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn begin(
        &self,
        queue: &mut Reads,
        number: usize,
        from: u64,
        into: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        // SAFETY: the caller vouches for it.
        unsafe { queue.begin(number, &self.file, from, into, bytes) }.map_err(|error| self.error(error))
    }

    /// Reads as many bytes as there are, at most as many as `buffer` holds.
    pub(crate) fn read(&self, from: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], from + done as u64) {
                Ok(0) => break,
                Ok(more) => done += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(error)),
            }
            if !(done as u64).is_multiple_of(BLOCK) {
                break; // the last block of the file is a short one
            }
        }
        Ok(done)
    }
}

/// A read of one file, and the rows that it brings.
#[derive(Debug)]
struct Read {
    from: u64,
    to: u64,
    /// The range of the rows.
    first: usize,
    end: usize,
}

/// Some rows of a file, in ascending order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a, R> {
    pub(crate) file: &'a DirectFile,
    /// Number of the first row of the file among all rows.
    pub(crate) base: u64,
    /// All rows of the batch.
    pub(crate) rows: &'a [R],
    /// Places in `rows` of the rows of this file.
    pub(crate) places: &'a [u32],
}

impl<R: RowId> Wanted<'_, R> {
    fn row(&self, index: usize) -> u64 {
        self.rows[self.places[index] as usize].number() - self.base
    }

    /// Bytes of the blocks that are read to bring the rows.
    pub(crate) fn bytes(&self) -> u64 {
        self.reads().iter().map(|read| read.to - read.from).sum()
    }

    /// The reads that bring the rows.
    fn reads(&self) -> Vec<Read> {
        let mut reads: Vec<Read> = Vec::new();
        for index in 0..self.places.len() {
            let (from, to) = self.file.blocks(self.row(index));
            match reads.last_mut() {
                Some(last) if from <= last.to && to - last.from <= LONGEST => {
                    (last.to, last.end) = (to, index + 1)
                }
                _ => reads.push(Read { from, to, first: index, end: index + 1 }),
            }
        }
        reads
    }

    /// Hands out the rows of a read, whose bytes are `found`.
    fn hand_out(&self, read: &Read, found: &[u8], visit: &mut dyn FnMut(u32, &[u8])) -> Result<()> {
        let bytes = self.file.row_bytes as usize;
        for index in read.first..read.end {
            let at = (self.file.start + self.row(index) * self.file.row_bytes - read.from) as usize;
            let Some(row) = found.get(at..at + bytes) else { return Err(self.file.missing(self.row(index))) };
            visit(self.places[index], row);
        }
        Ok(())
    }
}

/// Reads the rows, and calls `visit` with the place and the bytes of each, in the order that they are wanted
/// in. Returns the bytes of the blocks that were read.
pub(crate) fn read<R: RowId>(
    wanted: &[Wanted<'_, R>],
    visit: &mut dyn FnMut(u32, &[u8]),
    check: &dyn Fn() -> Result<()>,
) -> Result<u64> {
    let reads: Vec<(&Wanted<'_, R>, Read)> =
        wanted.iter().flat_map(|of| of.reads().into_iter().map(move |read| (of, read))).collect();
    let Some(longest) = reads.iter().map(|(_, read)| read.to - read.from).max() else { return Ok(0) };
    let total = reads.iter().map(|(_, read)| read.to - read.from).sum();
    let (most, blocks) = (DEPTH.min(reads.len()), (longest / BLOCK) as usize);
    let mut memory = Buffer::<Block>::zeroed(most * blocks, "rows that are read")?;
    let mut buffers: Vec<&mut [u8]> = memory.chunks_mut(blocks).map(bytemuck::cast_slice_mut).collect();
    let Ok(mut queue) = Reads::new(most) else {
        // The operating system has no more queues.
        for (of, read) in &reads {
            let bytes = of.file.read(read.from, &mut buffers[0][..(read.to - read.from) as usize])?;
            of.hand_out(read, &buffers[0][..bytes], visit)?;
            check()?;
        }
        return Ok(total);
    };
    // Read i is into buffer i % most. Reads are begun, and handed out, in order.
    let (mut handed_out, mut begun, mut done) = (0, 0, vec![None; most]);
    while handed_out < reads.len() {
        while begun < reads.len().min(handed_out + most) {
            let (of, read) = &reads[begun];
            let (buffer, bytes) = (begun % most, (read.to - read.from) as usize);
            let start = buffers[buffer].as_mut_ptr();
            // SAFETY: the buffer is long enough, and nobody uses it before the read is done. The queue is
            // dropped, and so its reads end, before the buffers.
            unsafe { of.file.begin(&mut queue, buffer, read.from, start, bytes) }?;
            begun += 1;
        }
        check()?;
        let file = reads[handed_out].0.file;
        for (buffer, bytes) in queue.wait(most / 4).map_err(|error| file.error(error))? {
            done[buffer] = Some(bytes.map_err(|error| file.error(error))?);
        }
        while handed_out < begun
            && let Some(bytes) = done[handed_out % most].take()
        {
            let (of, read) = &reads[handed_out];
            let buffer = &mut buffers[handed_out % most][..(read.to - read.from) as usize];
            // The end of the file, or a read that the operating system cut short.
            let bytes = if bytes < buffer.len() { of.file.read(read.from, buffer)? } else { bytes };
            of.hand_out(read, &buffer[..bytes], visit)?;
            handed_out += 1;
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Files of 50 rows of `row_bytes` bytes behind a head of 70 bytes, or None where direct reads are
    /// refused.
    fn file(folder: &Path, row_bytes: usize) -> Option<(DirectFile, Vec<u8>)> {
        let (path, rows) =
            (folder.join("rows"), (0..50 * row_bytes).map(|at| (at % 251) as u8).collect::<Vec<_>>());
        fs::write(&path, [vec![9; 70], rows.clone()].concat()).unwrap();
        let file = DirectFile::open(&path, 70, row_bytes);
        if file.is_none() {
            eprintln!("skipped: the file system of {} refuses direct reads", folder.display());
        }
        Some((file?, rows))
    }

    fn found(file: &DirectFile, rows: &[u32], row_bytes: usize) -> Result<Vec<u8>> {
        let mut places: Vec<u32> = (0..rows.len() as u32).collect();
        places.sort_unstable_by_key(|&place| rows[place as usize]);
        let (mut found, rows) =
            (vec![0; rows.len() * row_bytes], rows.iter().map(|row| row + 7).collect::<Vec<_>>());
        let wanted = [Wanted { file, base: 7, rows: &rows, places: &places }];
        let mut order = Vec::new();
        let mut copy = |place: u32, row: &[u8]| {
            found[place as usize * row_bytes..][..row_bytes].copy_from_slice(row);
            order.push(place);
        };
        let bytes = read(&wanted, &mut copy, &|| Ok(()))?;
        assert_eq!(bytes, wanted[0].bytes());
        assert_eq!(order, places);
        Ok(found)
    }

    #[test]
    fn rows_of_any_width_are_those_of_the_file() {
        for row_bytes in [1, 400, 4096, 5000, 100_000] {
            let folder = tempfile::tempdir().unwrap();
            let Some((file, rows)) = file(folder.path(), row_bytes) else { return };
            let wanted: Vec<u32> = (0..80).map(|index| index * 37 % 50).collect();
            let expected: Vec<u8> = wanted
                .iter()
                .flat_map(|&row| rows[row as usize * row_bytes..][..row_bytes].to_vec())
                .collect();
            assert_eq!(found(&file, &wanted, row_bytes).unwrap(), expected);
            assert!(found(&file, &[], row_bytes).unwrap().is_empty());
        }
    }

    #[test]
    fn consecutive_rows_come_in_order_whatever_the_pieces() {
        for row_bytes in [1, 100, 4096, 300_000] {
            let folder = tempfile::tempdir().unwrap();
            let Some((file, rows)) = file(folder.path(), row_bytes) else { return };
            for range in [0..50, 3..4, 49..50, 7..7, 20..50] {
                let mut found = Vec::new();
                let bytes =
                    file.stream(range.clone(), |row| found.extend_from_slice(row), &|| Ok(())).unwrap();
                let expected = range.start as usize * row_bytes..range.end as usize * row_bytes;
                let blocks = (70 + expected.start as u64) / BLOCK..(70 + expected.end as u64).div_ceil(BLOCK);
                assert_eq!(found, rows[expected]);
                assert!(bytes == (blocks.end - blocks.start) * BLOCK || range.is_empty());
            }
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let Some((file, _)) = file(folder.path(), 400) else { return };
        File::options().write(true).open(&file.path).unwrap().set_len(10_000).unwrap();
        let error = found(&file, &[3, 49], 400).unwrap_err().to_string();
        assert!(error.contains("rows: row 49 is missing. The file became shorter"), "{error}");
        let error = file.stream(3..50, |_| (), &|| Ok(())).unwrap_err().to_string();
        assert!(error.contains("rows: row 49 is missing"), "{error}");
    }

    #[test]
    fn neighbouring_blocks_are_one_read() {
        let folder = tempfile::tempdir().unwrap();
        let Some((file, _)) = file(folder.path(), 4096) else { return };
        let (rows, places): (Vec<u32>, Vec<u32>) = ((0..50).collect(), (0..50).collect());
        let reads = Wanted { file: &file, base: 0, rows: &rows, places: &places }.reads();
        assert!(reads.iter().all(|read| read.to - read.from <= LONGEST));
        assert_eq!(reads.iter().map(|read| read.end - read.first).sum::<usize>(), 50);
        assert!(reads.len() <= 4);
    }
}
