//! The speed of the disk of some files.
//!
//! **Requirements.** The requirements of [`direct_reads`](super::direct_reads). Where files are only read
//! through the page cache, there are no rates: the speed of memory would be measured.
//!
//! **Algorithm.** Reads of one length at random or consecutive places of the files, for a given time.
//! [`DEPTH`] random reads are under way, as for batches. Consecutive reads have 8 MiB under way.
//!
//! **Memory.** 8 MiB of buffers.
//!
//! **Parallelism.** One thread has all reads under way.
//!
//! **Complexity.** As many reads as fit into the time.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::direct_reads::{BLOCK, Block, DEPTH, DirectFile};
use crate::base::system::Reads;
use crate::base::{Buffer, Error, Random, Result};

/// Blocks of a consecutive read.
const PIECE: u64 = (1 << 20) / BLOCK;

/// Consecutive reads under way.
const PIECES: usize = 8;

/// The rates of a disk, per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskRates {
    /// Reads of a block at random places, many at a time.
    pub reads: f64,
    /// Bytes of consecutive reads.
    pub bytes: f64,
}

/// Measures reads of the files for about `time`. None: they are only read through the page cache, or have no
/// block.
pub fn disk_rates(
    files: &[PathBuf],
    time: Duration,
    check: &dyn Fn() -> Result<()>,
) -> Result<Option<DiskRates>> {
    let mut disk = Disk { files: Vec::new(), ends: Vec::new() };
    for path in files {
        let blocks = std::fs::metadata(path).map_err(|error| Error::io(path, error))?.len() / BLOCK;
        if blocks > 0 {
            let Some(file) = DirectFile::open(path, 0, BLOCK as usize) else { return Ok(None) };
            disk.ends.push(disk.blocks() + blocks);
            disk.files.push((file, blocks));
        }
    }
    if disk.files.is_empty() {
        return Ok(None);
    }
    let (mut random, blocks) = (Random::new(0, 0), disk.blocks());
    let reads = disk.rate(DEPTH, 1, time / 2, &mut || random.below(blocks), check)?;
    let mut next = random.below(blocks);
    let mut consecutive = || {
        next += PIECE;
        (next - PIECE) % blocks
    };
    let pieces = disk.rate(PIECES, PIECE, time / 2, &mut consecutive, check)?;
    Ok(Some(DiskRates { reads: reads / BLOCK as f64, bytes: pieces }))
}

/// Files, and the blocks of each behind those of the one before.
struct Disk {
    files: Vec<(DirectFile, u64)>,
    ends: Vec<u64>,
}

impl Disk {
    fn blocks(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// An error of any of the files: which one it was is not known.
    fn error(&self, error: std::io::Error) -> Error {
        self.files[0].0.error(error)
    }

    /// The file with a block, the offset there, and the bytes of a read of `blocks` blocks, which the end of
    /// the file may cut short.
    fn read(&self, block: u64, blocks: u64) -> (&DirectFile, u64, usize) {
        let index = self.ends.partition_point(|&end| end <= block);
        let (file, own) = &self.files[index];
        let from = block + own - self.ends[index];
        (file, from * BLOCK, ((own - from).min(blocks) * BLOCK) as usize)
    }

    /// Bytes per second of reads of `blocks` blocks that begin where `next` says, with `depth` reads under
    /// way.
    fn rate(
        &self,
        depth: usize,
        blocks: u64,
        time: Duration,
        next: &mut dyn FnMut() -> u64,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<f64> {
        let mut memory = Buffer::<Block>::zeroed(depth * blocks as usize, "reads that are measured")?;
        let mut buffers: Vec<&mut [u8]> =
            memory.chunks_mut(blocks as usize).map(bytemuck::cast_slice_mut).collect();
        let queue = Reads::new(depth);
        let (start, mut done) = (Instant::now(), 0);
        let Ok(mut queue) = queue else {
            while start.elapsed() < time {
                let (file, from, bytes) = self.read(next(), blocks);
                done += file.read(from, &mut buffers[0][..bytes])?;
                check()?;
            }
            return Ok(done as f64 / start.elapsed().as_secs_f64());
        };
        let mut free: Vec<usize> = (0..depth).collect();
        while start.elapsed() < time {
            while let Some(buffer) = free.pop() {
                let (file, from, bytes) = self.read(next(), blocks);
                let into = buffers[buffer].as_mut_ptr();
                // SAFETY: the buffer is long enough, and nobody uses it before the read is done. The queue is
                // dropped, and so its reads end, before the buffers.
                unsafe { file.begin(&mut queue, buffer, from, into, bytes) }?;
            }
            for (buffer, bytes) in queue.wait(depth / 4).map_err(|error| self.error(error))? {
                done += bytes.map_err(|error| self.error(error))?;
                free.push(buffer);
            }
            check()?;
        }
        Ok(done as f64 / start.elapsed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_whole_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let files = [5_u64, 0, 300].map(|blocks| {
            let path = folder.path().join(blocks.to_string());
            std::fs::write(&path, vec![7; (blocks * BLOCK + 9) as usize]).unwrap();
            path
        });
        let measured = |files: &[PathBuf]| disk_rates(files, Duration::from_millis(20), &|| Ok(()));
        let direct = DirectFile::open(&files[0], 0, 1).is_some();
        let found = measured(&files).unwrap();
        if !direct {
            eprintln!("no rates: the file system of {} refuses direct reads", folder.path().display());
        }
        assert_eq!(found.is_some(), direct);
        assert!(found.is_none_or(|rates| rates.reads > 0.0 && rates.bytes > 0.0));
        assert_eq!(measured(&files[1..2]).unwrap(), None);
        assert!(measured(&[folder.path().join("none")]).unwrap_err().to_string().contains("none"));
        let stopped = disk_rates(&files, Duration::MAX, &|| Err(Error::Cancelled));
        assert!(!direct || stopped.is_err());
    }

    #[test]
    fn reads_end_where_files_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        std::fs::write(&path, vec![0; 9 * BLOCK as usize]).unwrap();
        let open = || DirectFile::open(&path, 0, 1);
        let (Some(one), Some(other)) = (open(), open()) else {
            eprintln!("skipped: the file system of {} refuses direct reads", folder.path().display());
            return;
        };
        let disk = Disk { files: vec![(one, 9), (other, 4)], ends: vec![9, 13] };
        let at = |block| {
            let (file, from, bytes) = disk.read(block, 3);
            (std::ptr::eq(file, &disk.files[0].0), from / BLOCK, bytes as u64 / BLOCK)
        };
        assert_eq!([0, 6, 7, 8].map(at), [(true, 0, 3), (true, 6, 3), (true, 7, 2), (true, 8, 1)]);
        assert_eq!([9, 11, 12].map(at), [(false, 0, 3), (false, 2, 2), (false, 3, 1)]);
    }
}
