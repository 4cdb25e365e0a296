//! The adjacency: against an oracle of ten lines, in memory and in files, for any number of threads.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{fs, ops::Range, sync::Arc};

use crate::common::children::{dir_of_child, most_taken};
use crate::common::{Graph, graphs, run};
use fastpart::internals::base::Random;
use fastpart::internals::base::Run;
use fastpart::internals::base::{Error, Result};
use fastpart::internals::edges::{EdgeFile, Io};
use fastpart::internals::edges::{EdgeStream, Record};
use fastpart::internals::generate;
use fastpart::internals::generate::Rmat;
use fastpart::internals::graph::degrees;
use fastpart::internals::graph::{AdjacencyCache, Csr, Packed, packed_len};
use proptest::prelude::*;
use tempfile::TempDir;

/// The neighbours of each vertex, ascending.
fn oracle(graph: &Graph, symmetric: bool) -> Vec<Vec<u32>> {
    let mut lists = vec![vec![]; graph.n as usize];
    for &[u, v] in graph.records.iter().filter(|[u, v]| u != v) {
        lists[u as usize].push(v);
        if !symmetric {
            lists[v as usize].push(u);
        }
    }
    lists.iter_mut().for_each(|list| list.sort_unstable());
    lists
}

/// A folder on a disk, which the one of the system need not be.
fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A run whose budget keeps only the vertices in memory.
fn tight(edges: &dyn EdgeStream, symmetric: bool, threads: usize, dir: &Path) -> Run {
    let with = |budget| Run::new(Some(threads), Some(budget)).unwrap().with_tmp_dir(Some(dir.into()));
    with(Csr::memory(edges, false, symmetric, &with(0)))
}

fn check(graph: &Graph, csr: &Csr, symmetric: bool) {
    let lists = oracle(graph, symmetric);
    let total: usize = lists.iter().map(Vec::len).sum();
    assert_eq!((csr.num_vertices(), csr.num_entries()), (lists.len(), total as u64));
    assert_eq!(csr.is_symmetric(), symmetric);
    for (v, list) in lists.iter().enumerate() {
        assert_eq!((csr.neighbours(v as u32), csr.degree(v as u32)), (&list[..], list.len() as u32), "{v}");
    }
    let known = degrees::identify(graph, &run(1)).unwrap();
    let identity = csr.graph();
    assert_eq!((identity.n, identity.m, identity.loops), (graph.n, graph.m(), known.loops));
    assert_eq!(identity.checksum, known.checksum);
    check_packed(csr);
}

/// Packed, it has the same lists, whichever is read when, and takes as much as was foretold.
fn check_packed(csr: &Csr) {
    let n = csr.num_vertices();
    let whole = || std::iter::once(0..n as u32);
    let list = |v| (csr.neighbours(v), None);
    let packed = Packed::of(n, false, whole, list, u64::MAX, &run(2)).unwrap().unwrap();
    for v in (0..n).map(|index| (index * 7919 % n) as u32) {
        let mut list = vec![];
        packed.each(v, |u, w| list.push((u, w)));
        assert!(list.iter().map(|&(u, _)| u).eq(csr.neighbours(v).iter().copied()));
        assert!(list.iter().all(|&(_, w)| w == 1));
    }
    let places = 8 * (n.div_ceil(8) + 1) as u64;
    assert_eq!(packed.len() - places, packed_len(csr, None, &run(3)).unwrap());
    // What would not get shorter is left.
    assert!(Packed::of(n, false, whole, list, packed.len(), &run(1)).unwrap().is_none());
}

/// Builds it in every way there is, and holds each against the oracle.
fn check_all(graph: &Graph) {
    let folder = folder();
    for symmetric in [false, true] {
        for threads in 1..=3 {
            let plenty = run(threads);
            let csr = Csr::build(graph, symmetric, &plenty).unwrap();
            assert_eq!(csr.bytes(), 8 * (graph.n + 1) + 4 * csr.num_entries());
            check(graph, &csr, symmetric);
            let tight = tight(graph, symmetric, threads, folder.path());
            let csr = Csr::build(graph, symmetric, &tight).unwrap();
            assert_eq!(csr.bytes(), 8 * (graph.n + 1), "it lies in a file");
            check(graph, &csr, symmetric);
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn it_is_what_the_oracle_says(graph in graphs(60, 300)) {
        check_all(&graph);
    }

    /// Of so few buckets that some hold several vertices, and hubs that have more entries than a bucket holds.
    #[test]
    fn hubs_are_sorted(n in 1..3000_u32, hubs in 1..4_u32, m in 0..9000_u64, few in 1..3000_u32) {
        let mut random = Random::new(u64::from(n), m);
        let records = (0..m).map(|r| [r as u32 % hubs % n, random.below(u64::from(few.min(n))) as u32]);
        check_all(&Graph::new(u64::from(n), records.collect()));
    }
}

#[test]
fn edge_cases() {
    check_all(&Graph::new(0, vec![]));
    check_all(&Graph::new(1, vec![[0, 0]; 9]));
    check_all(&Graph::new(200_000, vec![[199_999, 3], [70_000, 199_999], [5, 5], [70_000, 3]]));
    // One pair, so often that its two lists are longer than a bucket and all of one digit.
    check_all(&Graph::new(2, vec![[1, 0]; 20_000]));
    // A star whose centre is met in no order, beyond one digit.
    let mut random = Random::new(1, 1);
    check_all(&Graph::new(300_000, (0..100_000).map(|_| [7, random.below(300_000) as u32]).collect()));
}

#[test]
fn several_blocks_on_several_threads() {
    let model = Rmat::new(5000, 400_000, 3).unwrap();
    check_all(&Graph::new(5000, generate::records(&model, 0..400_000, &run(2)).unwrap()));
}

#[test]
fn too_small_a_budget_is_refused_before_anything_is_read() {
    let graph = Graph::new(1000, vec![[1, 2]; 1000]);
    let folder = folder();
    let needed = tight(&graph, false, 2, folder.path()).budget();
    let run = |budget| Run::new(Some(2), Some(budget)).unwrap().with_tmp_dir(Some(folder.path().into()));
    let error = Csr::build(&graph, false, &run(needed - 1)).unwrap_err();
    assert!(error.to_string().starts_with("the neighbours of 1000 vertices needs"), "{error}");
    // In memory from twice the need on: the other half is for those who work with it.
    let need = Csr::memory(&graph, false, false, &crate::common::run(2));
    let at = |budget| Csr::memory(&graph, false, false, &run(budget));
    assert_eq!((at(2 * need), at(2 * need - 1)), (need, needed));
}

#[test]
fn files_in_memory_count_as_memory() {
    let graph = Graph::new(1000, vec![[1, 2]; 1000]);
    let (disk, memory) = (folder(), Path::new("/dev/shm"));
    if !memory.exists() {
        return;
    }
    let needed = tight(&graph, false, 2, memory).budget();
    assert_eq!(needed, tight(&graph, false, 2, disk.path()).budget() + 6 * 2 * graph.m());
    let csr = Csr::build(&graph, false, &tight(&graph, false, 2, memory)).unwrap();
    assert_eq!(csr.bytes(), 8 * (graph.n + 1) + 4 * csr.num_entries());
    let run = Run::new(Some(2), Some(needed - 1)).unwrap().with_tmp_dir(Some(memory.into()));
    let error = Csr::build(&graph, false, &run).unwrap_err().to_string();
    assert!(error.contains("12.0 kB of temporary files in /dev/shm, which is memory (tmp_dir="), "{error}");
}

#[test]
fn a_cancelled_run_stops_and_a_missing_folder_is_named() {
    let graph = Graph::new(1000, vec![[1, 2]; 1000]);
    let folder = folder();
    let absent = folder.path().join("absent");
    let error = Csr::build(&graph, false, &tight(&graph, false, 1, &absent)).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path.starts_with(&absent)), "{error}");
    let run = run(2);
    run.cancel();
    assert!(matches!(Csr::build(&graph, false, &run), Err(Error::Cancelled)));
}

/// Records that are others when they are read again, as those of an array that somebody writes to.
struct Changing {
    before: Graph,
    after: Graph,
    blocks: AtomicU64,
}

// SAFETY: both graphs check their ids, and have the same number of vertices.
unsafe impl EdgeStream for Changing {
    fn num_vertices(&self) -> u64 {
        self.before.n
    }

    fn num_edges(&self) -> u64 {
        self.before.m()
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        let first = self.blocks.fetch_add(1, Relaxed) == 0;
        if first { &self.before } else { &self.after }.block(range, buf)
    }
}

#[test]
fn records_that_change_between_the_passes_are_refused() {
    let before: Vec<Record> = (0..900).map(|r| [r % 30, 30 + r % 7]).collect();
    let mut moved = before.clone();
    moved[5] = [1, 2];
    for after in [vec![[3, 3]; 900], vec![[0, 1]; 900], moved] {
        for threads in 1..=2 {
            let [before, after] = [&before, &after].map(|records| Graph::new(40, records.clone()));
            let graph = Changing { before, after, blocks: AtomicU64::new(0) };
            let error = Csr::build(&graph, false, &run(threads)).unwrap_err();
            assert!(error.to_string().contains("changed while they were being read"), "{error}");
        }
    }
}

/// Records that may change without notice.
struct Array<'a>(&'a Graph);

// SAFETY: the graph checks its ids.
unsafe impl EdgeStream for Array<'_> {
    fn num_vertices(&self) -> u64 {
        self.0.n
    }

    fn num_edges(&self) -> u64 {
        self.0.m()
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        self.0.block(range, buf)
    }

    fn may_change(&self) -> bool {
        true
    }
}

#[test]
fn it_is_kept_until_the_records_change() {
    let [before, after] = [[[0, 1], [1, 2]], [[0, 1], [2, 0]]].map(|records| Graph::new(3, records.to_vec()));
    let (cache, run) = (AdjacencyCache::default(), run(2));
    let get = |graph: &Graph, may_change, symmetric| {
        let array = Array(graph);
        let edges: &dyn EdgeStream = if may_change { &array } else { graph };
        cache.get(edges, None, symmetric, &run).unwrap()
    };
    let first = get(&before, true, false);
    assert_eq!(run.budget(), (1 << 34) - first.bytes(), "it stays in use");
    assert!(Arc::ptr_eq(&first, &get(&before, true, false)));
    assert!(Arc::ptr_eq(&first, &get(&after, false, false)), "a file says itself that it changed");
    assert_eq!(run.budget(), (1 << 34) - first.bytes(), "and is counted once");
    check(&after, &get(&after, true, false), false);
    check(&after, &get(&after, true, true), true);
    check(&after, &get(&after, true, false), false);
    check(&before, &first, false);
    cache.forget();
    let again = get(&before, false, false);
    check(&before, &again, false);
    assert!(!Arc::ptr_eq(&first, &again));
}

/// Records that say when they are being read, and that wait for a word.
struct Waiting {
    graph: Graph,
    reading: AtomicU64,
    go: AtomicU64,
}

// SAFETY: the graph checks its ids.
unsafe impl EdgeStream for Waiting {
    fn num_vertices(&self) -> u64 {
        self.graph.n
    }

    fn num_edges(&self) -> u64 {
        self.graph.m()
    }

    fn block<'a>(&'a self, range: Range<u64>, buf: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        self.reading.fetch_add(1, Relaxed);
        while self.go.load(Relaxed) == 0 {
            std::thread::yield_now();
        }
        self.graph.block(range, buf)
    }
}

#[test]
fn a_call_that_waits_for_another_can_be_cancelled() {
    let graph = Graph::new(3, vec![[0, 1], [1, 2]]);
    let edges = Waiting { graph, reading: AtomicU64::new(0), go: AtomicU64::new(0) };
    let cache = AdjacencyCache::default();
    std::thread::scope(|scope| {
        let builder = scope.spawn(|| cache.get(&edges, None, false, &run(1)).unwrap());
        while edges.reading.load(Relaxed) == 0 {
            std::thread::yield_now();
        }
        let impatient = run(1);
        impatient.cancel();
        assert!(matches!(cache.get(&edges, None, false, &impatient), Err(Error::Cancelled)));
        let patient = scope.spawn(|| cache.get(&edges, None, false, &run(1)).unwrap());
        edges.go.store(1, Relaxed);
        assert!(Arc::ptr_eq(&builder.join().unwrap(), &patient.join().unwrap()));
    });
    assert_eq!(edges.reading.load(Relaxed), 2, "two passes, of the first call");
}

/// Where the setup of a child may mount.
const OWN_MOUNTS: &[&str] = &["unshare", "-rm", "sh", "-c"];
const SHELL: &[&str] = &["sh", "-c"];

/// Runs the ignored test `name` in a process of its own, with `setup`, a shell and a script, before it; false if that
/// is not allowed.
fn in_child(name: &str, dir: &Path, setup: Option<(&[&str], &str)>) -> bool {
    let program = std::env::current_exe().unwrap();
    let mut child = match setup {
        None => Command::new(&program),
        Some((shell, setup)) => {
            let shell = |script: &str| {
                let mut command = Command::new(shell[0]);
                command.args(&shell[1..]).arg(script).arg(dir).arg(&program);
                command
            };
            if !shell(setup).output().is_ok_and(|output| output.status.success()) {
                return false;
            }
            shell(&format!("{setup} && exec \"$@\""))
        }
    };
    let output = child.args(["--exact", name, "--ignored", "--nocapture"]).env("DIR", dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    true
}

#[test]
fn a_full_disk_is_an_error() {
    let folder = folder();
    if !in_child(
        "csr::on_a_small_disk",
        folder.path(),
        Some((OWN_MOUNTS, "mount -t tmpfs -o size=1m none \"$0\"")),
    ) {
        eprintln!("skipped: nobody here may mount a small disk");
    }
}

#[test]
#[ignore = "needs a disk of 1 MB; run by a_full_disk_is_an_error"]
fn on_a_small_disk() {
    let dir = dir_of_child();
    // Targets of 1.6 MB do not fit; those of 800 kB do, but not the sources beside them.
    for m in [200_000, 100_000] {
        let graph = Graph::new(1000, vec![[1, 2]; m]);
        let built = Csr::build(&graph, false, &tight(&graph, false, 2, &dir));
        let Err(Error::Io { path, source }) = built else { panic!("{m} records fit") };
        assert!(path.starts_with(&dir) && source.kind() == std::io::ErrorKind::StorageFull, "{source}");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }
    // 600 kB fit, since nothing is left of the others.
    let graph = Graph::new(1000, vec![[1, 2]; 100_000]);
    check(&graph, &Csr::build(&graph, true, &tight(&graph, true, 2, &dir)).unwrap(), true);
}

#[test]
fn a_file_that_may_not_grow_is_an_error() {
    let folder = folder();
    // Files of up to 1 MB; whoever writes beyond is told instead of killed.
    assert!(in_child("csr::in_small_files", folder.path(), Some((SHELL, "trap '' XFSZ && ulimit -f 2048"))));
}

#[test]
#[ignore = "needs a limit on files of 1 MB; run by a_file_that_may_not_grow_is_an_error"]
fn in_small_files() {
    let dir = dir_of_child();
    for threads in [1, 2] {
        let graph = Graph::new(1000, vec![[1, 2]; 200_000]);
        let built = Csr::build(&graph, false, &tight(&graph, false, threads, &dir));
        let Err(Error::Io { path, source }) = built else { panic!("targets of 1.6 MB fit") };
        assert!(path.starts_with(&dir) && source.kind() == std::io::ErrorKind::FileTooLarge, "{source}");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }
    let graph = Graph::new(1000, vec![[1, 2]; 100_000]);
    check(&graph, &Csr::build(&graph, false, &tight(&graph, false, 2, &dir)).unwrap(), false);
}

#[test]
fn out_of_core_memory_is_bounded_by_the_estimate() {
    let folder = folder();
    let edges = Rmat::new(1 << 16, 4_000_000, 1).unwrap();
    generate::write(&edges, &folder.path().join("g.bin"), &run(2)).unwrap();
    assert!(in_child("csr::memory_of_a_child", folder.path(), None));
}

#[test]
#[ignore = "measures its process; run by out_of_core_memory_is_bounded_by_the_estimate"]
fn memory_of_a_child() {
    let dir = dir_of_child();
    let mut edges = EdgeFile::open(&dir.join("g.bin"), None, None, Io::Map).unwrap();
    edges.set_num_vertices(1 << 16);
    let run = tight(&edges, false, 2, &dir);
    let taken = most_taken(|| {
        let csr = Csr::build(&edges, false, &run).unwrap();
        assert!(csr.num_entries() * 4 > 3 * run.budget(), "it could lie in memory");
    });
    // 1 MB for stacks, and for what the allocator keeps.
    assert!(taken < run.budget() + (1 << 20), "{taken} of {}", run.budget());
}

#[test]
fn a_file_that_changed_is_refused() {
    let folder = folder();
    let path = folder.path().join("g.bin");
    fs::write(&path, vec![0; 8000]).unwrap();
    let mut edges = EdgeFile::open(&path, None, None, Io::Read).unwrap();
    edges.set_num_vertices(10);
    fs::write(&path, vec![0; 8008]).unwrap();
    assert!(matches!(Csr::build(&edges, false, &run(1)), Err(Error::FileChanged { .. })));
}
