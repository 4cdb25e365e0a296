//! Size and checksum of files, by which rotten bytes are noticed.
//!
//! The checksum is XXH3-128 of the content, so that `xxhsum -H2` prints the same. Files are hashed in
//! parallel, each by one thread that reads [`BLOCK`] bytes at a time: a file that changes or is cut meanwhile
//! is read as it is, and nothing is mapped. Memory: one block per thread.

use std::io::Read;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::base::regular_file::open_regular;
use crate::base::{Error, Result, Run};
use crate::exec::map;

/// Bytes read at once: larger than what a disk likes, smaller than a cache.
const BLOCK: usize = 1 << 18;

/// The identity of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHash {
    /// Bytes.
    pub size: u64,
    /// XXH3-128, as 32 hexadecimal digits.
    pub xxh3: String,
}

/// Hashes files, in their order.
pub fn of_files(files: &[PathBuf], run: &Run) -> Result<Vec<FileHash>> {
    let sizes = files.iter().map(|file| std::fs::metadata(file).map_or(0, |found| found.len()));
    run.begin("checksums", sizes.sum());
    map(run, usize::MAX, files.len(), || Ok(()), |(), index| of_file(&files[index], run))
}

/// XXH3-128 of bytes in memory, as 32 hexadecimal digits.
pub fn of_bytes(content: &[u8]) -> String {
    digits(xxh3_128(content))
}

fn digits(hash: u128) -> String {
    format!("{hash:032x}")
}

fn of_file(path: &Path, run: &Run) -> Result<FileHash> {
    let failed = |error| Error::io(path, error);
    let (mut file, _) = open_regular(path)?;
    let (mut hasher, mut size, mut block) = (Xxh3::new(), 0, vec![0; BLOCK]);
    loop {
        let count = file.read(&mut block).map_err(failed)?;
        if count == 0 {
            return Ok(FileHash { size, xxh3: digits(hasher.digest128()) });
        }
        hasher.update(&block[..count]);
        size += count as u64;
        run.advance(count as u64)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_of_the_whole_content_in_the_order_of_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let contents = [vec![], vec![7; 3], vec![1; 3 * BLOCK + 1]];
        let files: Vec<_> = (0..3).map(|index| folder.path().join(index.to_string())).collect();
        files.iter().zip(&contents).for_each(|(file, content)| std::fs::write(file, content).unwrap());
        let run = Run::new(Some(2), None).unwrap();
        let found = of_files(&files, &run).unwrap();
        for (hash, content) in found.iter().zip(&contents) {
            assert_eq!(hash.size, content.len() as u64);
            assert_eq!(hash.xxh3, of_bytes(content));
            assert_eq!(hash.xxh3.len(), 32);
        }
        let error = of_files(&[folder.path().join("none")], &run).unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
    }
}
