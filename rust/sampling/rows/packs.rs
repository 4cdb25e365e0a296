//! Rows of batches that are known before they are made, one behind the other in a file (*pack*).
//!
//! **Requirements.** The distinct rows of every batch, in ascending order. Samples are functions of a key, so
//! the topology is enough to know them. Disk for all rows of all batches.
//!
//! **Why.** A batch needs few rows of each of many blocks of the disk: 11 times its bytes are read for rows
//! of 400 bytes in blocks of 4096. In a pack its rows lie behind each other, and nothing else is read.
//!
//! **Algorithm.** To write packs, the features are read once, in their order, chunk by chunk. Each chunk goes
//! to its places in all batches. To read a batch, its rows are sorted. Row number i of the distinct ones is
//! number i of its piece of the pack, which is read from its begin to its end. A piece has a checksum of its
//! rows, their numbers and their bytes. It is taken of the bytes that were read, so that a batch of other
//! samples and a damaged piece are refused.
//!
//! **Memory.** Writing takes a chunk and the largest piece of it for each thread. Reading takes a piece of 4
//! MiB, and 12 bytes per row of the batch.
//!
//! **Parallelism.** Writing: over the chunks, which are written to different places. Reading: over the
//! batches.
//!
//! **Complexity.** Writing takes O(n + rows), and a search per chunk and batch. Reading takes O(rows log
//! rows), with the sort.
//!
//! Source: Liu et al., "DiskGNN: Bridging I/O Efficiency and Model Accuracy for Out-of-Core GNN Training",
//! SIGMOD 2025.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytemuck::Zeroable;
use xxhash_rust::xxh3::xxh3_64;

use super::Features;
use super::direct_reads::{self, Block, DirectFile};
use crate::base::system::{FileExt as _, allocate};
use crate::base::{Error, Result, Run, npy, shown};
use crate::exec::scan;
use crate::sampling::topology::RowId;
use crate::sampling::topology::arrays::MappedRows;

/// Minimum and maximum of the bytes of a chunk.
const CHUNK: Range<u64> = 1 << 23..1 << 28;

/// 1/SHARE of the memory is for chunks and their pieces.
const SHARE: u64 = 4;

/// A pack to build.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The file, an array in `.npy`.
    pub path: &'a Path,
    /// Where the rows of each batch begin, and the number of all.
    pub offsets: &'a [i64],
    /// Distinct rows of each batch. They ascend.
    pub rows: &'a [u32],
}

impl Target<'_> {
    fn batches(&self) -> impl Iterator<Item = &[u32]> {
        self.offsets.windows(2).map(|ends| &self.rows[ends[0] as usize..ends[1] as usize])
    }

    fn check(&self, n: u32) -> Result<()> {
        let ends = (self.offsets.first(), self.offsets.last());
        if !self.offsets.is_sorted() || ends != (Some(&0), Some(&(self.rows.len() as i64))) {
            let what =
                format!("expected numbers that ascend from 0 to {}, the number of rows", self.rows.len());
            return Err(Error::parameter("offsets", what));
        }
        if self.rows.len() > u32::MAX as usize {
            return Err(Error::parameter("rows", "a pack holds less than 2^32 rows. Plan fewer epochs"));
        }
        let ascend = |rows: &[u32]| {
            rows.is_sorted_by(|low, high| low < high) && rows.last().is_none_or(|&last| last < n)
        };
        if !self.batches().all(ascend) {
            return Err(Error::parameter(
                "rows",
                format!("expected rows below {n} that ascend in each batch"),
            ));
        }
        Ok(())
    }
}

/// A pack that is written.
struct Output<'a> {
    target: Target<'a>,
    file: File,
    /// Offset of the first row.
    start: u64,
    /// The checksum of the rows of each batch, as far as they are written.
    checksums: Vec<AtomicU64>,
}

impl<'a> Output<'a> {
    /// Creates the file and takes the disk that it needs, so that a full disk is found before the work.
    fn create(target: Target<'a>, features: &Features) -> Result<Self> {
        let io = |error| Error::io(target.path, error);
        let shape: Vec<u64> = std::iter::once(target.rows.len() as u64)
            .chain(features.row_shape.iter().map(|&size| size as u64))
            .collect();
        let (head, bytes) = (npy::header(&features.descr, &shape), target.rows.len() * features.row_bytes);
        let file = File::create(target.path).map_err(io)?;
        file.write_all_at(&head, 0).map_err(io)?;
        let start = head.len() as u64;
        match allocate(&file, 0..(head.len() + bytes) as u64) {
            Err(full) if full.kind() == std::io::ErrorKind::StorageFull => Err(io(full)),
            // Some file systems cannot take disk before it is written.
            _ => Ok(Self {
                target,
                file,
                start,
                checksums: target.batches().map(|_| AtomicU64::new(0)).collect(),
            }),
        }
    }

    /// Writes the rows of a chunk, which are those of `range` and begin at `chunk`.
    fn put(&self, range: &Range<u32>, chunk: &[u8], row_bytes: usize, piece: &mut Vec<u8>) -> Result<()> {
        let mut first = 0;
        for (rows, checksums) in self.target.batches().zip(&self.checksums) {
            let here =
                rows.partition_point(|&row| row < range.start)..rows.partition_point(|&row| row < range.end);
            piece.clear();
            let mut sum = 0_u64;
            for &number in &rows[here.clone()] {
                let row = &chunk[(number - range.start) as usize * row_bytes..][..row_bytes];
                sum = sum.wrapping_add(checksum(number, row));
                piece.extend_from_slice(row);
            }
            checksums.fetch_add(sum, Relaxed);
            let at = self.start + ((first + here.start) * row_bytes) as u64;
            self.file.write_all_at(piece, at).map_err(|error| Error::io(self.target.path, error))?;
            first += rows.len();
        }
        Ok(())
    }
}

impl Features {
    /// Writes packs, in one pass over the features as they are stored. Returns the checksum of each batch of
    /// each pack.
    pub fn pack(&self, targets: &[Target<'_>], run: &Run) -> Result<Vec<Vec<u64>>> {
        let n = self.space().count_u32()?;
        if !self.has_all() || self.coding().is_some() {
            return Err(Error::parameter(
                "pack",
                "the features of all parts have to lie on this machine, as they are stored",
            ));
        }
        targets.iter().try_for_each(|target| target.check(n))?;
        let outputs =
            targets.iter().map(|&target| Output::create(target, self)).collect::<Result<Vec<_>>>()?;
        let row_bytes = self.row_bytes.max(1) as u64;
        let share = run.budget() / SHARE / run.threads() as u64 / 2;
        let rows = (share.clamp(CHUNK.start, CHUNK.end) / row_bytes).max(1) as u32;
        let each = 2 * u64::from(rows) * row_bytes + 2 * direct_reads::BLOCK;
        let workers = run.workers(usize::MAX, 0, each, "packs of rows")?;
        run.begin("rows", u64::from(n));
        let init = || Ok(Default::default());
        scan(run, workers, self.chunks(rows).into_iter(), init, |scratch: &mut Scratch, (part, range)| {
            let chunk = self.chunk(part, &range, &mut scratch.chunk)?;
            for output in &outputs {
                output.put(&range, chunk, self.row_bytes, &mut scratch.piece)?;
                run.check()?;
            }
            run.advance(range.len() as u64)
        })?;
        for Output { target, file, .. } in &outputs {
            file.sync_data().map_err(|error| Error::io(target.path, error))?;
        }
        let sums = |output: Output<'_>| output.checksums.into_iter().map(AtomicU64::into_inner).collect();
        Ok(outputs.into_iter().map(sums).collect())
    }

    /// Ranges of at most `rows` rows, and the part of each.
    fn chunks(&self, rows: u32) -> Vec<(usize, Range<u32>)> {
        let of_part = |(part, ends): (usize, &[u64])| {
            let (first, end) = (ends[0] as u32, ends[1] as u32);
            let range = move |from: u32| (part, from..end.min(from.saturating_add(rows)));
            (first..end).step_by(rows as usize).map(range)
        };
        self.space().starts().windows(2).enumerate().flat_map(of_part).collect()
    }

    /// Reads consecutive rows of a part.
    fn chunk<'a>(&self, part: usize, rows: &Range<u32>, memory: &'a mut Vec<Block>) -> Result<&'a [u8]> {
        let base = self.space().starts()[part] as u32;
        if let Some(file) = self.direct(part) {
            return file.consecutive(&(rows.start - base..rows.end - base), memory);
        }
        let bytes = rows.len() * self.row_bytes;
        memory.resize((bytes as u64).div_ceil(direct_reads::BLOCK) as usize, Block::zeroed());
        let memory: &mut [u8] = bytemuck::cast_slice_mut(memory);
        if let Some(start) = self.address(rows.start) {
            // SAFETY: the map has these rows, whose bytes are copied as they are.
            unsafe { std::ptr::copy_nonoverlapping(start, memory.as_mut_ptr(), bytes) };
        }
        Ok(&memory[..bytes])
    }
}

/// Memory of a thread.
#[derive(Default)]
struct Scratch {
    chunk: Vec<Block>,
    piece: Vec<u8>,
}

/// The term of a row in the checksum of rows. The checksum is the sum of all terms, since rows are packed in
/// any order.
#[inline]
pub(crate) fn checksum(number: u32, row: &[u8]) -> u64 {
    // The number also goes to the high bits. So the sum changes if two rows exchange their numbers.
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    (xxh3_64(row) ^ u64::from(number).wrapping_mul(ODD)).wrapping_mul(ODD)
}

/// The rows of the batches of an epoch.
#[derive(Debug)]
pub struct Pack {
    rows: MappedRows,
    direct: Option<DirectFile>,
    offsets: Vec<u32>,
    checksums: Vec<u64>,
}

impl Pack {
    /// Opens a pack of rows of `row_bytes` bytes. The rows of each batch begin at its `offsets`, whose last
    /// one is the number of all rows.
    pub fn open(path: &Path, row_bytes: usize, offsets: &[i64], checksums: Vec<u64>) -> Result<Self> {
        let rows = MappedRows::open(path)?;
        let fits = offsets.is_sorted()
            && offsets.first() == Some(&0)
            && offsets.last() == Some(&(rows.len() as i64))
            && rows.len() <= u32::MAX as usize
            && offsets.len() == checksums.len() + 1
            && rows.row_bytes() == row_bytes;
        if !fits {
            let what = format!("{} rows of {} bytes are not those of the plan", rows.len(), rows.row_bytes());
            return Err(Error::format(shown(path), what));
        }
        let direct = if rows.row_bytes() == 0 {
            None
        } else {
            DirectFile::open(path, rows.offset(), rows.row_bytes())
        };
        Ok(Self { rows, direct, offsets: offsets.iter().map(|&offset| offset as u32).collect(), checksums })
    }

    /// Calls `put` with the bytes of the rows at some places of a batch, and with the place. The rows at
    /// these places ascend, and are all that the pack has of the batch. Returns the bytes that were read.
    pub(crate) fn read<R: RowId>(
        &self,
        step: usize,
        rows: &[R],
        places: &[u32],
        put: &impl Fn(*const u8, usize),
        check: &dyn Fn() -> Result<()>,
    ) -> Result<u64> {
        // The places of row number i of the batch are `places[firsts[i]..firsts[i + 1]]`.
        let (mut distinct, mut firsts) =
            (Vec::with_capacity(places.len()), Vec::with_capacity(places.len() + 1));
        for (index, &place) in places.iter().enumerate() {
            let row = rows[place as usize].number() as u32; // packs are of fewer than 2^32 rows
            if distinct.last() != Some(&row) {
                distinct.push(row);
                firsts.push(index);
            }
        }
        firsts.push(places.len());
        let range =
            self.offsets.get(step).zip(self.offsets.get(step + 1)).map_or(0..0, |(&from, &to)| from..to);
        let refused = |what: &str| {
            let what = format!("step {step}: {what}. The plan is of other samples or damaged. Make it again");
            Err(Error::format(shown(self.rows.path()), what))
        };
        if range.len() != distinct.len() {
            return refused(&format!("needs {} rows, but {} were packed", distinct.len(), range.len()));
        }
        let (mut index, mut sum) = (0, 0_u64);
        let mut visit = |row: &[u8]| {
            sum = sum.wrapping_add(checksum(distinct[index], row));
            let places = &places[firsts[index]..firsts[index + 1]];
            places.iter().for_each(|&place| put(row.as_ptr(), place as usize));
            index += 1;
        };
        let bytes = match &self.direct {
            Some(file) if !range.is_empty() => file.stream(range, visit, check)?,
            _ => {
                let mut copy = vec![0; self.rows.row_bytes()];
                for number in range.clone() {
                    self.rows.copy(number as usize, &mut copy);
                    visit(&copy);
                }
                check()?;
                (range.len() * copy.len()) as u64
            }
        };
        if self.checksums.get(step) != Some(&sum) {
            return refused("its rows are not those that were packed");
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::*;
    use crate::sampling::{Io, Pack, Part, Topology};

    /// Two parts with 30 and 20 rows of 3 bytes.
    fn features(folder: &Path, io: Io) -> (Features, Vec<u8>) {
        let rows: Vec<u8> = (0..150).collect();
        let (mut parts, mut files) = (Vec::new(), Vec::new());
        for (part, range) in [0..30_u32, 30..50].into_iter().enumerate() {
            let (vertices, indptr): (Vec<i64>, Vec<i64>) =
                (range.clone().map(i64::from).collect(), vec![0; range.len() + 1]);
            let (vertices, indptr) = (Box::leak(Box::new(vertices)), Box::leak(Box::new(indptr)));
            // SAFETY: the arrays live for ever.
            parts.push(unsafe { Part::in_memory(vertices, indptr, &[], Box::new(())) }.unwrap());
            let (file, own) =
                (folder.join(format!("{part}.npy")), 3 * range.start as usize..3 * range.end as usize);
            fs::write(&file, [npy::header("|u1", &[range.len() as u64, 3]), rows[own].to_vec()].concat())
                .unwrap();
            files.push(Some(file));
        }
        let topology = Arc::new(Topology::of(parts).unwrap());
        (Features::open(&files, topology, None, Some(io)).unwrap(), rows)
    }

    #[test]
    fn a_packed_batch_is_that_of_the_files() {
        for io in [Io::Mmap, Io::Direct] {
            let folder = tempfile::tempdir().unwrap();
            let (features, rows) = features(folder.path(), io);
            let run = Run::new(Some(2), None).unwrap();
            let (pack, cache) = (folder.path().join("pack.npy"), folder.path().join("cache.npy"));
            let (batches, ids) = ([2, 31, 49, 0, 29, 30], [5, 40]);
            let checksums = features
                .pack(
                    &[
                        Target { path: &pack, offsets: &[0, 3, 3, 6], rows: &batches },
                        Target { path: &cache, offsets: &[0, 2], rows: &ids },
                    ],
                    &run,
                )
                .unwrap();
            let error = features.with_cache(&ids, &cache, checksums[1][0] + 1).unwrap_err().to_string();
            assert!(error.contains("cache.npy: its rows are not those that were packed"), "{error}");
            let features = features.with_cache(&ids, &cache, checksums[1][0]).unwrap();
            let packed = Pack::open(&pack, 3, &[0, 3, 3, 6], checksums[0].clone()).unwrap();
            for (step, wanted) in
                [vec![49, 5, 2, 31, 49], vec![40], vec![30, 0, 29, 0, 5, 40]].iter().enumerate()
            {
                let mut found = vec![0; 3 * wanted.len()];
                // SAFETY: it holds all rows.
                let gather = |step, found: &mut Vec<u8>| unsafe {
                    features.gather(wanted, Some((&packed, step)), found.as_mut_ptr(), &|| Ok(()))
                };
                gather(step, &mut found).unwrap();
                let expected: Vec<u8> =
                    wanted.iter().flat_map(|&row: &u32| rows[3 * row as usize..][..3].to_vec()).collect();
                assert_eq!(found, expected);
                let error = gather((step + 1) % 3, &mut found).unwrap_err().to_string();
                assert!(error.contains("The plan is of other samples or damaged"), "{error}");
            }
            let other = [49, 3, 2, 31].as_slice(); // as many rows as step 0 has, but others
            let mut found = vec![0; 3 * other.len()];
            // SAFETY: it holds all rows.
            let read = |found: &mut Vec<u8>, wanted: &[u32]| unsafe {
                features.gather(wanted, Some((&packed, 0)), found.as_mut_ptr(), &|| Ok(()))
            };
            assert!(read(&mut found, other).is_err());
            let whole = fs::read(&pack).unwrap();
            for (place, &byte) in whole.iter().enumerate().rev().skip(9).take(9) {
                // Written in place: the pack has the file open.
                let flip = |byte: u8| {
                    File::options()
                        .write(true)
                        .open(&pack)
                        .unwrap()
                        .write_all_at(&[byte], place as u64)
                        .unwrap()
                };
                flip(byte ^ 1);
                let error = read(&mut found, &[49, 2, 31]).unwrap_err().to_string();
                assert!(
                    error.contains("pack.npy: step 0: its rows are not those that were packed"),
                    "{error}"
                );
                flip(byte);
                read(&mut found, &[49, 2, 31]).unwrap();
            }
        }
    }

    #[test]
    fn lists_that_are_none_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (features, _) = features(folder.path(), Io::Mmap);
        let run = Run::new(Some(1), None).unwrap();
        let path = folder.path().join("pack.npy");
        for (offsets, rows) in
            [(vec![0, 2], vec![7, 7]), (vec![0, 1], vec![50]), (vec![0, 1], vec![1, 2]), (vec![], vec![])]
        {
            let target = Target { path: &path, offsets: &offsets, rows: &rows };
            assert!(features.pack(&[target], &run).is_err());
        }
    }
}
