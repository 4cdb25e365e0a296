//! Everything that differs between operating systems. No other module asks which one it runs on.
//!
//! fastpart is made for Linux, and tested there. Calls that other operating systems lack have plain stand-ins
//! here. Results are the same. Only speed is lost, or a message comes later.
//!
//! | what | Linux | elsewhere |
//! |---|---|---|
//! | exchange of two names | `renameat2` | refused, so that two renames do it |
//! | the disk that a file needs | taken at once by `posix_fallocate` | the file gets its length only |
//! | files without a name | `O_TMPFILE` | the name is removed once the file is open |
//! | reads past the page cache | `O_DIRECT`, many at a time | none: rows are read from maps |
//! | memory that is left | free memory and limits of control groups | free memory, or a part of what the machine has |
//! | free pages of heaps | given back between the steps of long work | kept |
//! | bytes read from storage and written to it | counted | not known |
//! | advice about accesses | taken | some of it, on Windows none |
//!
//! `linux.rs`, with `memory.rs` and `aio.rs`, has the calls of Linux, and `other.rs` the stand-ins. `unix.rs`
//! has the calls of all operating systems except Windows, and `windows.rs` the same for Windows. The code for
//! macOS and Windows is checked by the compiler and was never run.

#[cfg(target_os = "linux")]
mod aio;
pub(crate) mod budget;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(crate) use self::aio::Reads;
#[cfg(target_os = "linux")]
pub(crate) use self::linux::{
    allocate, counted_io, exchange, expect_random, lies_in_memory, nameless, open_direct, trim_heaps,
};
#[cfg(target_os = "linux")]
pub(crate) use self::memory::memory_left;
#[cfg(not(target_os = "linux"))]
pub(crate) use self::other::{
    Reads, allocate, counted_io, exchange, expect_random, lies_in_memory, nameless, open_direct, trim_heaps,
};
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use self::unix::memory_left;
#[cfg(unix)]
pub(crate) use self::unix::{
    FileExt, advise, has_no_name, is_unsupported, kind_of, most_open_files, open_dir, open_to_sync, private,
    processor_time, same_file, sync_dir, without_links, without_waiting,
};
#[cfg(windows)]
pub(crate) use self::windows::{
    FileExt, advise, has_no_name, is_unsupported, kind_of, memory_left, most_open_files, open_dir,
    open_to_sync, private, processor_time, same_file, sync_dir, without_links, without_waiting,
};

/// How bytes in memory are going to be accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// In no way that is known.
    Normal,
    /// From front to back.
    Sequential,
    /// At random places: pages beside a page of a file are not read with it.
    Random,
    /// Soon: the pages of a file are read now.
    Soon,
    /// Anywhere in much memory: large pages make that faster.
    HugePages,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn an_allocated_file_is_as_long_and_keeps_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"abc").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        allocate(&file, 2..9).unwrap();
        allocate(&file, 0..4).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"abc\0\0\0\0\0\0");
    }

    #[test]
    fn one_file_under_two_names_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, other] = ["one", "two", "other"].map(|name| folder.path().join(name));
        fs::write(&one, b"same").unwrap();
        fs::write(&other, b"same").unwrap();
        fs::hard_link(&one, &two).unwrap();
        let known = fs::metadata(&one).unwrap();
        assert!(same_file(&known, &one, &one));
        assert_eq!(same_file(&known, &one, &two), cfg!(unix));
        assert!(!same_file(&known, &one, &other) && !same_file(&known, &one, &folder.path().join("absent")));
    }

    #[test]
    fn advice_changes_nothing() {
        let items: Vec<u8> = (0..20_000).map(|at| at as u8).collect();
        for access in [Access::Random, Access::Sequential, Access::Soon, Access::HugePages, Access::Normal] {
            advise(items[7..].as_ptr(), 12_000, access);
        }
        assert!(items.iter().enumerate().all(|(at, &item)| item == at as u8));
    }

    #[test]
    fn the_time_of_the_processor_goes_on() {
        let before = processor_time();
        while processor_time() == before {}
        assert!(processor_time() > before);
    }
}
