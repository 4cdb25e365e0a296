//! How much memory this process may still take.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// 80 % of the least of: available memory, what the control groups leave, what `ulimit -v` leaves.
pub fn available() -> u64 {
    let least =
        [meminfo_available(), cgroup_headroom(), address_space_headroom()].into_iter().flatten().min();
    // Unknown systems report nothing: then only the allocation itself can be refused.
    least.map_or(u64::MAX, |bytes| bytes / 5 * 4)
}

fn meminfo_available() -> Option<u64> {
    kilobytes(Path::new("/proc/meminfo"), "MemAvailable:")
}

fn kilobytes(path: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kb| kb * 1024)
}

/// What is left below the tightest limit between this process's control group and the root.
fn cgroup_headroom() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut tightest = None;
    for line in own.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (mount, limit, usage) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
            _ => continue,
        };
        let mut relative = PathBuf::from(path.trim_start_matches('/'));
        loop {
            let group = Path::new(mount).join(&relative);
            let left = number(&group.join(limit)).map(|limit| {
                // Page cache counts as usage and is given back under pressure.
                let cache = statistic(&group.join("memory.stat"), "file").unwrap_or(0);
                limit.saturating_sub(number(&group.join(usage)).unwrap_or(0).saturating_sub(cache))
            });
            tightest = [tightest, left].into_iter().flatten().min();
            if !relative.pop() {
                break;
            }
        }
    }
    tightest
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn statistic(path: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
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

/// Whether what is written to `dir` takes memory: a file system in memory is mounted there.
pub fn lies_in_memory(dir: &Path) -> bool {
    #[cfg(target_os = "linux")]
    if let Ok(path) = CString::new(dir.as_os_str().as_bytes()) {
        /// Those of tmpfs and ramfs. The type of the number depends on the platform.
        const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];
        let mut stats = std::mem::MaybeUninit::<libc::statfs>::uninit();
        // SAFETY: the path ends with a zero, and `stats` is a place for the answer, which is there on success.
        return unsafe {
            libc::statfs(path.as_ptr(), stats.as_mut_ptr()) == 0
                && IN_MEMORY.contains(&(stats.assume_init().f_type as u32))
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_memory() {
        assert!(!Path::new("/dev/shm").exists() || lies_in_memory(Path::new("/dev/shm")));
        assert!(!lies_in_memory(Path::new("/proc")) && !lies_in_memory(Path::new("/nowhere")));
    }

    #[test]
    fn something_is_available_and_less_than_all() {
        let bytes = available();
        assert!(bytes > 1 << 20);
        if let Some(total) = kilobytes(Path::new("/proc/meminfo"), "MemTotal:") {
            assert!(bytes < total);
        }
    }
}
