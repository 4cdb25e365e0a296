//! Checkpoints of the multilevel partitioner: killed runs, damaged files, full disks.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path as Folder, PathBuf};
use std::process::Command;
use std::sync::Arc;

use fastpart::internals::algorithms::multilevel::{Bound, Goal, Multilevel, Path};
use fastpart::internals::base::Error;
use fastpart::internals::generate::{Generator, Rmat, records};
use fastpart::internals::graph::Csr;

use crate::common::children::{dir_of_child, in_child};
use crate::common::{Graph, run};

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
    child.args(["--exact", "checkpoints::killed_after_a_step", "--ignored", "--nocapture"]);
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
            assert!(names(alone.path()).is_empty());
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
    for (goal, what) in [
        (Goal::new(9), "k=8 there, k=9 here"),
        (Goal { seed: 1, ..Goal::new(8) }, "seed=0 there, seed=1 here"),
        (Goal { bounds: vec![Bound::Volume(1.1)], ..Goal::new(8) }, "bounds=0 there"),
    ] {
        refused(&Multilevel { goal, ..same.clone() }, what);
    }
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
    assert!(names(folder.path()).is_empty());
}

#[test]
fn checkpoints_of_other_machines_are_refused() {
    let csr = Csr::build(&graph_of_steps(), false, &run(1)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    kill_after("lists-0", Path::TwoLevels, folder.path());
    let before = names(folder.path());
    let mut other = kept(Path::TwoLevels, folder.path());
    (other.path, other.sample, other.goal.machines) = (None, None, Some(vec![4, 4]));
    let error = other.partition(&csr, &run(1)).unwrap_err();
    assert!(error.to_string().contains("machines=None there, machines=Some([4, 4]) here"), "{error}");
    assert_eq!(names(folder.path()), before, "the steps of the killed run");
    // The killed run still goes on.
    kept(Path::TwoLevels, folder.path()).partition(&csr, &run(1)).unwrap();
}

#[test]
fn machines_are_never_planned_out_of_memory() {
    let mut asked = by(Path::TwoLevels);
    asked.goal.machines = Some(vec![4, 4]);
    let plans = asked.plans(1 << 20, 1 << 24);
    assert!(plans.iter().all(|(plan, _)| plan.path == Path::Memory), "{plans:?}");
}

/// The names in a folder.
fn names(dir: &Folder) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A graph of which a partition takes little time.
fn small() -> Arc<Csr> {
    Csr::build(&rmat(20_000), false, &run(1)).unwrap()
}

#[test]
fn files_and_folders_of_others_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let others = [
        "checkpoint_epoch3.pt",
        "checkpoint-best.bin",
        "checkpoint-lists-.bin",
        "checkpoint-lists-0.bin.bak",
    ];
    for name in others {
        fs::write(folder.path().join(name), name).unwrap();
    }
    fs::create_dir(folder.path().join("checkpoint-500")).unwrap();
    fs::write(folder.path().join("checkpoint-500/model.pt"), "weights").unwrap();
    let run = run(1);
    kept(Path::TwoLevels, folder.path()).partition(&small(), &run).unwrap();
    assert!(run.take_notes().iter().all(|note| !note.contains("stays")));
    for name in others {
        assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), name);
    }
    assert_eq!(fs::read(folder.path().join("checkpoint-500/model.pt")).unwrap(), b"weights");
    let mut all = [&others[..], &["checkpoint-500"]].concat();
    all.sort();
    assert_eq!(names(folder.path()), all);
}

#[test]
fn a_file_with_the_name_of_a_step_and_no_list_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = step(folder.path(), "lists-0");
    fs::write(&file, "of somebody else").unwrap();
    let error = kept(Path::TwoLevels, folder.path()).partition(&small(), &run(1)).unwrap_err();
    assert!(error.to_string().contains("checkpoint-lists-0.bin would be overwritten"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), b"of somebody else");
    assert!(!error.to_string().contains("remove"), "{error}");
}

#[test]
fn a_partition_is_there_even_if_its_checkpoints_cannot_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (csr, run) = (small(), run(1));
    let list = folder.path().join("checkpoint.txt");
    let whole = by(Path::TwoLevels).partition(&csr, &run).unwrap();
    let made = std::thread::scope(|scope| {
        scope.spawn(|| {
            // The list becomes a folder while the run is at work.
            while !step(folder.path(), "clusters-0").exists() {
                std::thread::yield_now();
            }
            fs::remove_file(&list).unwrap();
            fs::create_dir(&list).unwrap();
        });
        kept(Path::TwoLevels, folder.path()).partition(&csr, &run)
    });
    assert!(made.unwrap().assignment[..] == whole.assignment[..]);
    let notes = run.take_notes();
    assert!(notes.iter().any(|note| note.contains("partition is done") && note.contains("checkpoint.txt")));
    assert_eq!(names(folder.path()), ["checkpoint.lock", "checkpoint.txt"]);
}

#[test]
fn what_is_no_file_is_refused_by_name_and_never_waited_for() {
    let csr = small();
    let lists = [("checkpoint.txt", false), ("checkpoint.lock", false), ("checkpoint-clusters-0.bin", true)];
    for (name, begun) in lists {
        for kind in ["fifo", "socket", "device", "folder", "loop", "link", "dangling"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            let elsewhere = tempfile::tempdir().unwrap();
            let other = elsewhere.path().join("other");
            if begun {
                begin(folder.path(), &csr);
            }
            let _socket = match kind {
                "fifo" => {
                    let name = CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
                    // SAFETY: the name ends with a zero and outlives the call.
                    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
                    None
                }
                "socket" => Some(UnixListener::bind(&path).unwrap()),
                "device" => symlink("/dev/zero", &path).map(|()| None).unwrap(),
                "folder" => fs::create_dir(&path).map(|()| None).unwrap(),
                "link" => {
                    fs::write(&other, "").unwrap();
                    symlink(&other, &path).map(|()| None).unwrap()
                }
                "dangling" => symlink(&other, &path).map(|()| None).unwrap(),
                _ => symlink(&path, &path).map(|()| None).unwrap(),
            };
            let error = kept(Path::TwoLevels, folder.path()).partition(&csr, &run(1)).unwrap_err();
            assert!(error.to_string().contains(name), "{kind}: {error}");
            assert!(fs::symlink_metadata(&path).is_ok(), "{kind} at {name}");
            assert_eq!(other.exists(), kind == "link", "{name}");
        }
    }
}

/// Leaves the checkpoints of a run that was stopped before its first step.
fn begin(dir: &Folder, csr: &Csr) {
    let run = run(1);
    let stop = Multilevel { checkpoints: Some(dir.into()), ..by(Path::TwoLevels) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !dir.join("checkpoint.txt").exists() {
                std::thread::yield_now();
            }
            run.cancel();
        });
        assert!(matches!(stop.partition(csr, &run), Err(Error::Cancelled)));
    });
    let _ = fs::remove_file(step(dir, "clusters-0"));
}

#[test]
fn a_run_in_memory_leaves_nothing_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let asked = Multilevel { checkpoints: Some(folder.path().into()), ..Multilevel::new(8) };
    asked.partition(&small(), &run(1)).unwrap();
    assert!(names(folder.path()).is_empty());
}

#[test]
fn checkpoints_on_a_full_disk_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    in_child("checkpoints::checkpoints_in_small_files", folder.path(), "trap '' XFSZ && ulimit -f 512");
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
