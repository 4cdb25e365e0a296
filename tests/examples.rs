//! The programs of `examples/` run to their end.

#![allow(clippy::unwrap_used)]

use std::env::current_exe;
use std::process::Command;

#[test]
fn examples_run() {
    // Cargo builds them beside the folder of the tests.
    let folder = current_exe().unwrap().parent().unwrap().with_file_name("examples");
    for (example, line) in [
        ("partition", "edges are cut"),
        ("compare", "multilevel  cut ratio"),
        ("edge_partition", "edges of multilevel  copies of a vertex"),
        ("larger_than_memory", "Err(Cancelled)"),
    ] {
        let done = Command::new(folder.join(example)).output().expect("built by `cargo test`");
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(done.status.success() && text.contains(line), "{example}: {text}");
    }
}
