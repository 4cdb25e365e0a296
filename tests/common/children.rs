//! Tests that run in a process of their own: under a limit, measured, or killed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Runs an ignored test of the program at hand, named with its module, in a process of its own, in a shell that has done `setup`.
pub fn in_child(name: &str, dir: &Path, setup: &str) {
    let program = std::env::current_exe().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{setup} && exec \"$0\" \"$@\"")]).arg(program);
    let output = shell.args(["--exact", name, "--ignored", "--nocapture"]).env("DIR", dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

/// The folder that it was given.
pub fn dir_of_child() -> PathBuf {
    std::env::var_os("DIR").unwrap().into()
}

/// Most bytes of anonymous memory that the process takes more while it works.
pub fn most_taken(work: impl FnOnce()) -> u64 {
    let anonymous = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap().to_owned();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    };
    let (before, done) = (anonymous(), AtomicU64::new(0));
    let most = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut most = 0;
            while done.load(Relaxed) == 0 {
                most = anonymous().max(most);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            most
        });
        let ended = Ended(&done);
        work();
        drop(ended);
        watch.join().unwrap()
    });
    most.saturating_sub(before)
}

/// Ends the watch, also where the work panics.
struct Ended<'a>(&'a AtomicU64);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(1, Relaxed);
    }
}
