//! Checkpoints of the multilevel partitioner: killed runs, damaged files, full disks.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path as Folder, PathBuf};
use std::process::Command;

mod common;

use common::children::{dir_of_child, in_child};
use common::{Graph, run};

use fastpart::algorithms::multilevel::{Bound, Multilevel, Path};
use fastpart::base::error::Error;
use fastpart::generate::{Generator, Rmat, records};
use fastpart::graph::csr::Csr;

/// The steps of a partition with levels in files, in their order, but for those after which so little is left to do that
/// all may be removed before the signal comes.
const STEPS: [[&str; 5]; 2] = [
    ["clusters-0", "lists-0", "parts-1", "", ""],
    ["clusters-0", "lists-0", "clusters-1", "lists-1", "parts-2"],
];

fn step(dir: &Folder, name: &str) -> PathBuf {
    dir.join(format!("checkpoint-{name}.bin"))
}

fn by(path: Path) -> Multilevel {
    Multilevel { path: Some(path), sample: Some(0.2), ..Multilevel::new(8) }
}

fn kept(path: Path, dir: &Folder) -> Multilevel {
    Multilevel { checkpoints: Some(dir.into()), ..by(path) }
}

/// The graph that checkpoints are tested with: a step takes a tenth of a second at least.
fn graph_of_steps() -> Graph {
    rmat(300_000)
}

fn rmat(m: u64) -> Graph {
    let model = Rmat::new(1 << 14, m, 3).unwrap();
    Graph::new(model.num_vertices(), records(&model, 0..m, &run(1)).unwrap())
}

/// Kills a child as soon as it has made a step.
fn kill_after(name: &str, path: Path, dir: &Folder) {
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program);
    child.args(["--exact", "killed_after_a_step", "--ignored", "--nocapture"]);
    let output = child.env("DIR", dir).env("STEP", name).env("LEVELS", path.name()).output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
#[ignore = "kills its process; run by a_killed_run_goes_on"]
fn killed_after_a_step() {
    let file = step(&dir_of_child(), &std::env::var("STEP").unwrap());
    let path = std::env::var("LEVELS").unwrap();
    let path = if path == "one_level" { Path::OneLevel } else { Path::TwoLevels };
    let csr = Csr::build(&graph_of_steps(), false, &run(1)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !file.exists() {
                std::thread::sleep(std::time::Duration::from_micros(20));
            }
            // SAFETY: a signal to this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        });
        kept(path, &dir_of_child()).partition(&csr, &run(2)).unwrap();
        unreachable!("not killed");
    });
}

/// The files of the steps that are there: one that is made again is another file.
fn files_of(steps: &[&str], dir: &Folder) -> Vec<u64> {
    steps.iter().filter_map(|name| fs::metadata(step(dir, name)).ok()).map(|file| file.ino()).collect()
}

#[test]
fn a_killed_run_goes_on() {
    let csr = Csr::build(&graph_of_steps(), false, &run(1)).unwrap();
    for (path, steps) in [Path::OneLevel, Path::TwoLevels].into_iter().zip(STEPS) {
        let whole = by(path).partition(&csr, &run(1)).unwrap();
        let together = tempfile::tempdir().unwrap();
        for (index, name) in steps.into_iter().filter(|name| !name.is_empty()).enumerate() {
            let before = files_of(&steps[..index], together.path());
            assert_eq!(before.len(), index);
            let alone = tempfile::tempdir().unwrap();
            // Each step once from the start, and once after the one before.
            for dir in [alone.path(), together.path()] {
                kill_after(name, path, dir);
            }
            assert_eq!(files_of(&steps[..index], together.path()), before, "a step was made again");
            let watched = run(2).watched();
            let made = kept(path, alone.path()).partition(&csr, &watched).unwrap();
            assert!(made.assignment[..] == whole.assignment[..], "{name}");
            assert_eq!(fs::read_dir(alone.path()).unwrap().count(), 0);
            assert!(watched.take_notes()[0].contains("goes on"));
            for step in watched.steps() {
                assert_eq!(step.progress.done, step.progress.total, "{name}: {:?}", step.progress);
            }
        }
        let made = kept(path, together.path()).partition(&csr, &run(1)).unwrap();
        assert!(made.assignment[..] == whole.assignment[..]);
    }
}

#[test]
fn damaged_checkpoints_are_made_again_and_foreign_ones_refused() {
    let csr = Csr::build(&graph_of_steps(), false, &run(1)).unwrap();
    let path = Path::TwoLevels;
    let whole = by(path).partition(&csr, &run(1)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    kill_after("parts-2", path, folder.path());
    let refused = |other: &Multilevel, what: &str| {
        let error = other.partition(&csr, &run(1)).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "checkpoints", .. }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    let same = kept(path, folder.path());
    refused(&Multilevel { k: 9, ..same.clone() }, "k=8 there, k=9 here");
    refused(&Multilevel { seed: 1, ..same.clone() }, "seed=0 there, seed=1 here");
    refused(&Multilevel { bounds: vec![Bound::Volume(1.1)], ..same.clone() }, "bounds=0 there");
    refused(&Multilevel { sample: Some(0.3), ..same.clone() }, "sample=0.2 there");
    let other = Csr::build(&rmat(299_999), false, &run(1)).unwrap();
    let error = same.partition(&other, &run(1)).unwrap_err();
    assert!(error.to_string().contains("m=300000 there, m=299999 here"), "{error}");
    // Another run at work.
    let lock = fs::File::options().write(true).open(folder.path().join("checkpoint.lock")).unwrap();
    lock.try_lock().unwrap();
    refused(&same, "another run is at work");
    drop(lock);
    // Every step cut, changed, or emptied; those that are whole are read.
    for (name, damage) in
        [("clusters-0", 0), ("lists-0", 1), ("clusters-1", 2), ("lists-1", 3), ("parts-2", 1)]
    {
        let file = step(folder.path(), name);
        let mut bytes = fs::read(&file).unwrap();
        let len = bytes.len();
        match damage {
            0 => bytes.truncate(len - 1),
            1 => bytes[len / 2] ^= 1,
            2 => bytes.clear(),
            // A number of entries that no file has.
            _ => bytes[24..1000].fill(0xff),
        }
        fs::write(&file, bytes).unwrap();
    }
    // Plan and parts that were not asked for are those of the checkpoints.
    let run = run(2);
    let open = Multilevel { path: None, sample: None, ..same };
    let made = open.partition(&csr, &run).unwrap();
    assert!(made.assignment[..] == whole.assignment[..]);
    assert_eq!(run.take_notes().iter().filter(|note| note.contains("is damaged")).count(), 5);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn checkpoints_on_a_full_disk_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    in_child("checkpoints_in_small_files", folder.path(), "trap '' XFSZ && ulimit -f 512");
}

#[test]
#[ignore = "needs a limit on files of 256 KiB; run by checkpoints_on_a_full_disk_are_an_error"]
fn checkpoints_in_small_files() {
    let dir = dir_of_child();
    // Clusters take more than there is room for.
    let csr = Csr::build(&Graph::new(1 << 17, vec![[0, 1], [1, 2]]), false, &run(1)).unwrap();
    let error = kept(Path::OneLevel, &dir).partition(&csr, &run(1)).unwrap_err();
    let Error::Io { path, source } = error else { panic!("{error}") };
    assert!(
        path == step(&dir, "clusters-0") && source.kind() == std::io::ErrorKind::FileTooLarge,
        "{source}"
    );
    assert!(!path.exists() && fs::read_dir(&dir).unwrap().count() == 2);
    let absent = kept(Path::OneLevel, &dir.join("absent/folder")).partition(&csr, &run(1)).unwrap_err();
    assert!(matches!(absent, Error::Io { .. }), "{absent}");
}
