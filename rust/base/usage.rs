//! The cost of a run: time, bytes that were read from storage and written to it, and temporary files.
//!
//! Bytes are those of the whole process, as Linux counts them. Bytes from the page cache do not count as
//! read. Other calls at the same time are included.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use super::system::counted_io;
use super::temporary::{forget_most, most_used};

/// The cost of a run.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Seconds.
    pub seconds: f64,
    /// Bytes that were read from storage, and bytes that were written to it, if the operating system counts
    /// them.
    pub io: Option<[u64; 2]>,
    /// Most bytes of temporary files at one time.
    pub files: u64,
}

/// Measures a run from [`Meter::start`] on.
#[derive(Debug)]
pub struct Meter {
    start: Instant,
    io: Option<[u64; 2]>,
}

/// Meters at work. While there are several, they share the most that files took.
static METERS: AtomicUsize = AtomicUsize::new(0);

impl Meter {
    /// Begins.
    pub fn start() -> Self {
        if METERS.fetch_add(1, Relaxed) == 0 {
            forget_most();
        }
        Self { start: Instant::now(), io: counted_io() }
    }

    /// The cost so far.
    pub fn usage(&self) -> Usage {
        let io =
            self.io.zip(counted_io()).map(|(before, now)| [0, 1].map(|i| now[i].saturating_sub(before[i])));
        Usage { seconds: self.start.elapsed().as_secs_f64(), io, files: most_used() }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        METERS.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Buffer, TempFile};
    use super::*;

    #[test]
    fn temporary_files_count_while_they_live() {
        let folder = tempfile::tempdir().unwrap();
        let meter = Meter::start();
        let before = meter.usage().files;
        let file = TempFile::create(folder.path()).unwrap();
        file.write(1 << 20, &[1_u64]).unwrap();
        let size = (8 << 20) + 8;
        assert!(meter.usage().files >= before + size);
        // Cut, and then grown again to less than before: the most stays.
        let buffer: Buffer<u64> = Buffer::of_file(file, 10).unwrap();
        drop(buffer);
        let most = meter.usage().files;
        drop(Buffer::<u32>::in_file(100, folder.path()).unwrap());
        assert!(meter.usage().files >= most && meter.usage().seconds >= 0.0);
    }
}
