//! Records in several files, one behind the other.

use std::ops::Range;
use std::path::PathBuf;

use super::{EdgeFile, EdgeStream, IdType, Io, Record};
use crate::base::Result;

/// The records of several files of raw u32 pairs, in their order.
pub struct EdgeShards {
    files: Vec<EdgeFile>,
    /// The number of the first record of each file, and behind it that of all records.
    starts: Vec<u64>,
    n: u64,
}

impl EdgeShards {
    /// Opens the files, whose ids must be below `n`.
    pub fn open(paths: &[PathBuf], n: u64, io: Io) -> Result<Self> {
        let (mut files, mut starts) = (Vec::new(), vec![0]);
        for path in paths {
            let mut file = EdgeFile::open(path, Some(IdType::U32), None, io)?;
            file.set_num_vertices(n);
            starts.push(starts[files.len()] + file.num_edges());
            files.push(file);
        }
        Ok(Self { files, starts, n })
    }
}

// SAFETY: each file compares its ids with `n` whenever it reads them.
unsafe impl EdgeStream for EdgeShards {
    fn num_vertices(&self) -> u64 {
        self.n
    }

    fn num_edges(&self) -> u64 {
        self.starts[self.files.len()]
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        let first = self.starts.partition_point(|&start| start <= range.start).saturating_sub(1);
        let within = |file: usize| {
            let (start, end) = (range.start.max(self.starts[file]), range.end.min(self.starts[file + 1]));
            start - self.starts[file]..end.max(start) - self.starts[file]
        };
        // Cuts are multiples of a block's length, so that nearly all blocks lie in one file.
        if first < self.files.len() && range.end <= self.starts[first + 1] {
            return self.files[first].block(within(first), buf);
        }
        let (mut whole, mut part) = (Vec::new(), Vec::new());
        for file in (first..self.files.len()).take_while(|&file| self.starts[file] < range.end) {
            whole.extend_from_slice(self.files[file].block(within(file), &mut part)?);
        }
        *buf = whole;
        Ok(buf)
    }

    fn may_change(&self) -> bool {
        self.files.iter().any(EdgeStream::may_change)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.files.iter().try_for_each(EdgeStream::check_unchanged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_go_over_the_ends_of_files() {
        let folder = tempfile::tempdir().unwrap();
        let records: Vec<Record> = (0..20).map(|id| [id, 2 * id]).collect();
        let paths: Vec<PathBuf> = [0..7, 7..7, 7..8, 8..20]
            .into_iter()
            .enumerate()
            .map(|(number, range)| {
                let path = folder.path().join(number.to_string());
                std::fs::write(&path, bytemuck::cast_slice::<Record, u8>(&records[range])).unwrap();
                path
            })
            .collect();
        let shards = EdgeShards::open(&paths, 40, Io::Read).unwrap();
        assert_eq!((shards.num_vertices(), shards.num_edges()), (40, 20));
        let mut buf = Vec::new();
        for start in 0..20 {
            for end in start..=20 {
                let expected = &records[start as usize..end as usize];
                assert_eq!(shards.block(start..end, &mut buf).unwrap(), expected);
            }
        }
        let small = EdgeShards::open(&paths, 20, Io::Map).unwrap();
        assert!(small.block(0..20, &mut buf).is_err());
    }
}
