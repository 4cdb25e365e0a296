//! The memory that Linux leaves this process.

use std::fs;
use std::path::{Path, PathBuf};

/// The least of: available memory, what the control groups leave, what `ulimit -v` leaves.
pub(crate) fn memory_left() -> Option<u64> {
    [meminfo_available(), cgroup_headroom(), address_space_headroom()].into_iter().flatten().min()
}

fn meminfo_available() -> Option<u64> {
    kilobytes(Path::new("/proc/meminfo"), "MemAvailable:")
}

fn kilobytes(path: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kb| kb * 1024)
}

/// Bytes left below the tightest limit between this process's control group and the root.
///
/// Pages of written files are free once they are on the disk. The operating system writes them when memory is
/// short, but not before. So if they take more than is left, this waits until they are written.
fn cgroup_headroom() -> Option<u64> {
    let tightest = tightest_group()?;
    if tightest.unwritten <= tightest.free {
        return Some(tightest.free);
    }
    // SAFETY: a call without arguments and without a result.
    unsafe { libc::sync() };
    tightest_group().map(|group| group.free)
}

/// Bytes that the limit of a control group leaves.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Left {
    /// Bytes that are free, or can be given back at once.
    free: u64,
    /// Bytes of files that are not on a disk yet.
    unwritten: u64,
}

fn tightest_group() -> Option<Left> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut tightest = None;
    for line in own.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (mount, version) = match controllers {
            "" => ("/sys/fs/cgroup", &V2),
            "memory" => ("/sys/fs/cgroup/memory", &V1),
            _ => continue,
        };
        let mut relative = PathBuf::from(path.trim_start_matches('/'));
        loop {
            let left = version.left(&Path::new(mount).join(&relative));
            tightest = [tightest, left].into_iter().flatten().min();
            if !relative.pop() {
                break;
            }
        }
    }
    tightest
}

/// Names of the files and keys in which a version of control groups gives the limit and the usage of a group.
struct Version {
    limit: &'static str,
    usage: &'static str,
    /// The page cache in `memory.stat`, of the group and those below it.
    cache: &'static str,
    /// The part of the page cache that is files in memory.
    shared: &'static str,
    /// The part of the page cache that is not on a disk yet.
    unwritten: &'static [&'static str],
}

const V1: Version = Version {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cache: "total_cache",
    shared: "total_shmem",
    unwritten: &["total_dirty", "total_writeback"],
};

const V2: Version = Version {
    limit: "memory.max",
    usage: "memory.current",
    cache: "file",
    shared: "shmem",
    unwritten: &["file_dirty", "file_writeback"],
};

impl Version {
    /// Bytes that the limit of a group leaves. Clean page cache counts as usage there, but gives way to any
    /// use of memory. None for a group without a limit.
    fn left(&self, group: &Path) -> Option<Left> {
        let limit = number(&group.join(self.limit))?;
        let usage = number(&group.join(self.usage)).unwrap_or(0);
        let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let unwritten: u64 = self.unwritten.iter().map(|key| statistic(&stat, key)).sum();
        let kept = unwritten + statistic(&stat, self.shared);
        let clean = statistic(&stat, self.cache).saturating_sub(kept);
        Some(Left { free: limit.saturating_sub(usage.saturating_sub(clean)), unwritten })
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn statistic(text: &str, key: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(value).unwrap_or(0)
}

fn address_space_headroom() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for the answer.
    let answered = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    if !answered || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let used = kilobytes(Path::new("/proc/self/status"), "VmSize:").unwrap_or(0);
    Some(limit.rlim_cur.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_page_cache_of_a_group_is_free() {
        let group = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
        let stat =
            "cache 1\ntotal_cache 700\ntotal_shmem 100\ntotal_dirty 50\ntotal_writeback 5\ntotal_cached 9";
        write("memory.stat", stat);
        assert_eq!(V1.left(group.path()), None);
        write("memory.limit_in_bytes", "1000\n");
        write("memory.usage_in_bytes", "900\n");
        assert_eq!(
            V1.left(group.path()),
            Some(Left { free: 1000 - (900 - (700 - 100 - 50 - 5)), unwritten: 55 })
        );
        write(
            "memory.stat",
            "anon 200\nfile 700\nfile_mapped 600\nshmem 100\nfile_dirty 40\nfile_writeback 10",
        );
        write("memory.max", "1000\n");
        write("memory.current", "900\n");
        assert_eq!(
            V2.left(group.path()),
            Some(Left { free: 1000 - (900 - (700 - 100 - 40 - 10)), unwritten: 50 })
        );
        // Numbers that are not of the same moment, and a group without a limit.
        write("memory.current", "10\n");
        assert_eq!(V2.left(group.path()).map(|left| left.free), Some(1000));
        write("memory.max", "max\n");
        assert_eq!(V2.left(group.path()), None);
    }

    #[test]
    fn something_is_left_and_less_than_all() {
        let bytes = memory_left().unwrap();
        assert!(bytes > 1 << 20);
        if let Some(total) = kilobytes(Path::new("/proc/meminfo"), "MemTotal:") {
            assert!(bytes < total);
        }
    }
}
