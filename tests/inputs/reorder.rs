//! Shuffling and dropping repeated pairs, against the obvious way to do either.

use std::collections::HashSet;
use std::path::Path;

use crate::common::text::{Case, THREE};
use crate::common::{Graph, graphs, run};
use fastpart::internals::base::Run;
use fastpart::internals::base::{Error, Result};
use fastpart::internals::convert::Convert;
use fastpart::internals::convert::dedup;
use fastpart::internals::edges::TempRecords;
use fastpart::internals::edges::{EdgeStream, Record};
use fastpart::internals::exec::{key, shuffle};
use proptest::prelude::*;
use tempfile::TempDir;

fn shuffled(edges: &dyn EdgeStream, seed: u64, run: &Run) -> Result<Vec<Record>> {
    let (home, mut all) = (TempDir::new().unwrap(), Vec::new());
    shuffle(edges, seed, home.path(), run, |records| {
        assert!(is_empty(home.path()));
        all.extend_from_slice(records);
        Ok(())
    })?;
    Ok(all)
}

fn deduped(edges: &dyn EdgeStream, run: &Run) -> Result<Vec<Record>> {
    let (home, mut all) = (TempDir::new().unwrap(), Vec::new());
    let dropped = dedup(edges, home.path(), run, |records| {
        assert!(is_empty(home.path()));
        all.extend_from_slice(records);
        Ok(())
    })?;
    assert_eq!(dropped, edges.num_edges() - all.len() as u64);
    Ok(all)
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// All records sorted by key.
fn by_key(records: &[Record], seed: u64) -> Vec<Record> {
    let mut indexed: Vec<(u64, Record)> = (0..).zip(records.iter().copied()).collect();
    indexed.sort_by_key(|&(index, _)| key(seed, index));
    indexed.into_iter().map(|(_, record)| record).collect()
}

/// The records whose pair was not seen.
fn first_of_each(records: &[Record]) -> Vec<Record> {
    let mut seen = HashSet::new();
    records.iter().copied().filter(|&[u, v]| seen.insert([u.min(v), u.max(v)])).collect()
}

/// More buckets than one, and repeated pairs in each.
fn large() -> Graph {
    let m = 1_300_000_u64;
    let record = |r: u64| [key(1, r) as u32 % 3000, key(2, r) as u32 % 300];
    Graph::new(3000, (0..m).map(record).collect())
}

#[test]
fn many_buckets_are_one_order_whatever_the_threads_and_the_budget() {
    let graph = large();
    let (order, kept) = (by_key(&graph.records, 7), first_of_each(&graph.records));
    for (threads, budget) in [(1, 1 << 34), (3, 1 << 34), (3, 30 << 20)] {
        let run = Run::new(Some(threads), Some(budget)).unwrap();
        assert!(shuffled(&graph, 7, &run).unwrap() == order, "{threads} threads, {budget} bytes");
        assert_eq!(run.progress().done, run.progress().total);
        assert!(deduped(&graph, &run).unwrap() == kept, "{threads} threads, {budget} bytes");
        assert_eq!(run.progress().done, run.progress().total);
    }
}

#[test]
fn one_pair_that_fills_the_file_needs_no_memory() {
    let graph = Graph::new(10, (0..2_000_000).map(|r| if r % 2 == 0 { [3, 9] } else { [9, 3] }).collect());
    let run = Run::new(Some(2), Some(30 << 20)).unwrap();
    assert_eq!(deduped(&graph, &run).unwrap(), [[3, 9]]);
}

/// Each of the 24 orders of four records comes up for about one in 24 of the seeds.
#[test]
fn all_orders_are_equally_likely() {
    let order = |seed: u64| {
        let mut order = [0, 1, 2, 3];
        order.sort_by_key(|&index| key(seed, index));
        order
    };
    let mut counts = std::collections::HashMap::new();
    for seed in 0..24_000 {
        *counts.entry(order(seed)).or_insert(0_u32) += 1;
    }
    assert_eq!(counts.len(), 24);
    // The standard deviation is 31.
    assert!(counts.values().all(|count| count.abs_diff(1000) < 150), "{counts:?}");
}

#[test]
fn neighbours_in_the_file_are_apart_afterwards() {
    let records: Vec<Record> = (0..100_000).map(|r| [r, r]).collect();
    let shuffled = shuffled(&Graph::new(100_000, records), 0, &run(2)).unwrap();
    let near = shuffled.windows(2).filter(|pair| pair[0][0].abs_diff(pair[1][0]) < 100).count();
    // 200 of 100,000 by chance.
    assert!((100..300).contains(&near), "{near}");
}

#[test]
fn budget_cancellation_and_a_full_disk_are_errors() {
    let graph = large();
    let small = Run::new(Some(1), Some(1 << 20)).unwrap();
    let cancelled = run(2);
    cancelled.cancel();
    assert!(matches!(shuffled(&graph, 0, &small), Err(Error::MemoryBudget { .. })));
    assert!(matches!(deduped(&graph, &small), Err(Error::MemoryBudget { .. })));
    assert!(matches!(shuffled(&graph, 0, &cancelled), Err(Error::Cancelled)));
    assert!(matches!(deduped(&graph, &cancelled), Err(Error::Cancelled)));
    let absent = shuffle(&graph, 0, Path::new("/absent"), &run(1), |_| Ok(()));
    assert!(matches!(absent, Err(Error::Io { .. })));
    let mut calls = 0;
    let full = |_: &[Record]| {
        calls += 1;
        Err(Error::io(Path::new("g.bin"), std::io::Error::from_raw_os_error(libc::ENOSPC)))
    };
    let home = TempDir::new().unwrap();
    assert!(matches!(shuffle(&graph, 0, home.path(), &run(2), full), Err(Error::Io { .. })));
    assert_eq!(calls, 1);
    assert!(is_empty(home.path()));
}

#[test]
fn temporary_records_are_a_stream() {
    let home = TempDir::new().unwrap();
    let mut temp = TempRecords::create(home.path()).unwrap();
    assert!(is_empty(home.path()));
    assert_eq!((temp.num_vertices(), temp.num_edges()), (0, 0));
    let graph = large();
    for records in [&graph.records[..5], &[], &graph.records[5..]] {
        temp.append(records).unwrap();
    }
    assert_eq!((temp.num_vertices(), temp.num_edges()), (3000, graph.m()));
    let mut buf = Vec::new();
    for range in [0..3, 4..4, 100_000..180_000, graph.m() - 1..graph.m() + 7, graph.m() + 5..graph.m() + 9] {
        let expected = &graph.records[range.start.min(graph.m()) as usize..range.end.min(graph.m()) as usize];
        assert_eq!(temp.block(range, &mut buf).unwrap(), expected);
    }
    // Whoever reads a stream indexes by its ids.
    let damaged = TempRecords::of_size(home.path(), 3, 2).unwrap();
    damaged.write(0, &[[2, 0], [1, 3]]).unwrap();
    assert_eq!(damaged.block(0..1, &mut buf).unwrap(), [[2, 0]]);
    assert!(matches!(damaged.block(0..2, &mut buf), Err(Error::Format { .. })));
}

/// What `convert` makes of the graph with these options.
fn converted(records: &[Record], options: &Convert) -> (Vec<Record>, u64, u64) {
    let text: String = records.iter().map(|[u, v]| format!("{u} {v}\n")).collect();
    let case = Case::new("g.txt", text.as_bytes());
    let done = case.convert(options).unwrap();
    assert_eq!(case.names().len(), if options.relabel { 3 } else { 2 });
    let written = case.records();
    assert_eq!(done.m, written.len() as u64);
    assert_eq!(done.loops, written.iter().filter(|[u, v]| u == v).count() as u64);
    // A first record may happen to count the others, which has nothing to do with what is left out.
    let notes = done.notes.iter().filter(|note| !note.contains("counts the lines behind it")).count();
    (written, done.n, notes as u64)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shuffling_sorts_by_key(graph in graphs(50, 200), seed: u64) {
        prop_assert_eq!(shuffled(&graph, seed, &THREE).unwrap(), by_key(&graph.records, seed));
    }

    #[test]
    fn the_first_of_each_pair_stays(graph in graphs(20, 200)) {
        prop_assert_eq!(deduped(&graph, &THREE).unwrap(), first_of_each(&graph.records));
    }

    #[test]
    fn loops_first_then_pairs_then_order(
        graph in graphs(20, 100),
        drop_loops: bool,
        dedup: bool,
        relabel: bool,
        seed in proptest::option::of(any::<u64>()),
    ) {
        let mut expected = graph.records.clone();
        if relabel {
            let mut ids = Vec::new();
            for id in expected.iter_mut().flatten() {
                let dense = ids.iter().position(|known| known == id);
                let dense = dense.unwrap_or_else(|| { ids.push(*id); ids.len() - 1 });
                *id = dense as u32;
            }
        }
        let n = expected.iter().flatten().max().map_or(0, |&id| u64::from(id) + 1);
        let mut notes = 0;
        if drop_loops {
            let before = expected.len();
            expected.retain(|[u, v]| u != v);
            notes += u64::from(expected.len() < before);
        }
        if dedup {
            let before = expected.len();
            expected = first_of_each(&expected);
            notes += u64::from(expected.len() < before);
        }
        if let Some(seed) = seed {
            expected = by_key(&expected, seed);
        }
        let options = Convert { relabel, drop_loops, dedup, shuffle: seed, ..Convert::default() };
        prop_assert_eq!(converted(&graph.records, &options), (expected, n, notes));
    }
}
