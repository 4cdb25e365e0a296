//! HDRF, the greedy rule and SIGMA of edges against oracles that score every part.
use std::collections::HashSet;

use crate::common::edge_streams::{Oracle, Rule};
use crate::common::{Graph, OfEdges, graphs, run};
use fastpart::internals::algorithms::edges_of::EdgesOf;
use fastpart::internals::algorithms::greedy::Greedy;
use fastpart::internals::algorithms::hdrf::Hdrf;
use fastpart::internals::algorithms::sigma::Sigma;
use fastpart::internals::algorithms::sigma::edge::SigmaEdge;
use fastpart::internals::base::Buffer;
use fastpart::internals::base::Error;
use fastpart::internals::base::Random;
use fastpart::internals::base::Run;
use fastpart::internals::generate;
use fastpart::internals::generate::Rmat;
use fastpart::internals::graph::Csr;
use fastpart::internals::graph::degrees;
use fastpart::internals::partition::{EdgePartition, Input, Of, Partitioner};
use proptest::prelude::*;

/// Numbers of parts that are searched in every way: all at once, in any number of registers, or by a tree.
fn parts() -> impl Strategy<Value = u32> {
    prop_oneof![
        1..=9_u32,
        Just(16),
        Just(17),
        Just(33),
        Just(64),
        Just(65),
        Just(130),
        Just(254),
        Just(300),
        Just(512),
        Just(513),
        Just(700)
    ]
}

fn balances() -> impl Strategy<Value = f64> {
    prop_oneof![Just(1.0), Just(1.1), Just(2.0), Just(1e308)]
}

fn assignment(partition: &EdgePartition) -> Vec<u32> {
    let mut parts = Vec::new();
    partition.parts.read(0..partition.parts.len(), &mut parts);
    parts
}

fn streamed(graph: &Graph, k: u32, cap: u64, rule: Rule) -> Vec<u32> {
    let mut oracle = Oracle::new(graph.n, &graph.records, k, rule);
    for (index, &record) in graph.records.iter().enumerate().filter(|(_, [u, v])| u != v) {
        let part = oracle.best(record, cap);
        oracle.put(index, record, part);
    }
    oracle.loops(&graph.records, cap);
    oracle.finish()
}

/// What holds of every partition.
fn check(graph: &Graph, partition: &EdgePartition) -> Result<(), TestCaseError> {
    let parts = assignment(partition);
    prop_assert_eq!(parts.len(), graph.records.len());
    let mut loads = vec![0; partition.k as usize];
    parts.iter().for_each(|&part| loads[part as usize] += 1);
    prop_assert_eq!(&loads, &partition.loads);
    prop_assert!(loads.iter().max() <= partition.cap.as_ref());
    Ok(())
}

/// The band of a record: by how much of the sum of all degrees lies clearly below the lower one of its ends.
fn band(degrees: &[u32], ends: [u32; 2], count: u32) -> usize {
    let lower = ends.map(|id| degrees[id as usize]).into_iter().min().unwrap();
    let shift = lower.max(1).ilog2().saturating_sub(4);
    let below = degrees.iter().filter(|&&degree| degree >> shift < lower >> shift);
    let total: u32 = degrees.iter().sum();
    let share = f64::from(below.sum::<u32>()) / f64::from(total);
    (1..count).filter(|&i| share >= 1.0 - (1.0 - f64::from(i) / f64::from(count)).sqrt()).count()
}

/// SIGMA of edges over preferred parts, with sets and lists.
fn sigma(graph: &Graph, preferred: &[u32], sigma: &SigmaEdge) -> Vec<u32> {
    let cap = fastpart::internals::capacity::cap(sigma.balance, graph.m(), sigma.k);
    let mut oracle = Oracle::new(graph.n, &graph.records, sigma.k, Rule::Sigma(sigma.lambda));
    let mut deferred = Vec::new();
    for (index, &[u, v]) in graph.records.iter().enumerate().filter(|(_, [u, v])| u != v) {
        let part = preferred[u as usize];
        if part == preferred[v as usize] && oracle.loads[part as usize] < cap {
            oracle.put(index, [u, v], part as usize);
        } else {
            deferred.push(index);
        }
    }
    let degrees = degrees::scan(graph, &run(1)).unwrap().degree;
    deferred.sort_by_key(|&index| band(&degrees, graph.records[index], sigma.bands));
    let fullest = *oracle.loads.iter().max().unwrap() as f64;
    let start = if cap > 0 { (fullest / cap as f64).max(0.9) } else { 1.0 };
    for (streamed, &index) in deferred.iter().enumerate() {
        let t = (streamed as f64 / deferred.len() as f64).sqrt();
        let limit = (cap as f64 * (start + (1.0 - start) * t)).ceil().min(cap as f64) as u64;
        let part = oracle.best(graph.records[index], limit);
        oracle.put(index, graph.records[index], part);
    }
    oracle.loops(&graph.records, cap);
    oracle.finish()
}

fn place(sigma: &SigmaEdge, graph: &Graph, preferred: &[u32], threads: usize) -> EdgePartition {
    let run = run(threads);
    let known = degrees::scan(graph, &run).unwrap();
    sigma.place(graph, preferred, known.degree, known.graph, None, &run).unwrap()
}

proptest! {
    #[test]
    fn hdrf_and_greedy_take_the_part_of_the_largest_score(
        graph in graphs(30, 60), k in parts(), balance in balances(), lambda in prop_oneof![Just(0.0), Just(1.0), Just(3.5)],
        threads in 1..3_usize,
    ) {
        let cap = fastpart::internals::capacity::cap(balance, graph.m(), k);
        let hdrf = Hdrf { balance, balance_weight: lambda, ..Hdrf::new(k) }.partition(&graph, None, &run(threads)).unwrap();
        prop_assert_eq!(assignment(&hdrf), streamed(&graph, k, cap, Rule::Hdrf(lambda)));
        check(&graph, &hdrf)?;
        let greedy = Greedy { balance, ..Greedy::new(k) }.partition(&graph, None, &run(threads)).unwrap();
        prop_assert_eq!(assignment(&greedy), streamed(&graph, k, cap, Rule::Greedy));
        check(&graph, &greedy)?;
    }

    #[test]
    fn sigma_preassigns_and_takes_the_part_of_the_largest_score(
        graph in graphs(30, 60), k in parts(), balance in balances(), lambda in prop_oneof![Just(0.0), Just(1.0)],
        clusters in 1..12_u32, seed: u64, bands in prop_oneof![Just(1_u32), 2..10_u32, Just(64)], threads in 1..3_usize,
    ) {
        let mut random = Random::new(seed, 0);
        let preferred: Vec<u32> = (0..graph.n).map(|_| random.below(u64::from(clusters.min(k))) as u32).collect();
        let rule = SigmaEdge { k, balance, lambda, bands, passes: 0 };
        let made = place(&rule, &graph, &preferred, threads);
        prop_assert_eq!(assignment(&made), sigma(&graph, &preferred, &rule));
        check(&graph, &made)?;
    }

    #[test]
    fn bands_keep_the_promises(
        graph in graphs(40, 120), k in prop_oneof![1..5_u32, Just(250), Just(255), Just(256)], bands in 1..10_u32,
    ) {
        let run = run(2);
        let csr = Csr::build(&graph, false, &run).unwrap();
        let made = SigmaEdge { bands, ..SigmaEdge::new(k) }.partition(&graph, &csr, None, &run).unwrap();
        check(&graph, &made)?;
    }
}

/// A graph of R-MAT with a loop now and then.
fn rmat(n: u64, m: u64) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.bin");
    generate::write(&Rmat::new(n, m, 1).unwrap(), &path, &run(1)).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let id = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    Graph::new(
        n,
        (0..m as usize)
            .map(|r| if r % 97 == 0 { [id(8 * r); 2] } else { [id(8 * r), id(8 * r + 4)] })
            .collect(),
    )
}

#[test]
fn threads_and_files_change_nothing() {
    let graph = rmat(3000, 70_000);
    let folder = tempfile::tempdir().unwrap();
    let outs = ["hdrf.npy", "greedy.npy", "sigma.npy"].map(|name| folder.path().join(name));
    for k in [3, 32, 100, 255, 300] {
        let made = |threads, in_files: bool| {
            let run = run(threads);
            let csr = Csr::build(&graph, false, &run).unwrap();
            let [hdrf, greedy, sigma] = outs.each_ref().map(|out| in_files.then_some(out.as_path()));
            [
                Hdrf::new(k).partition(&graph, hdrf, &run).unwrap(),
                Greedy::new(k).partition(&graph, greedy, &run).unwrap(),
                SigmaEdge::new(k).partition(&graph, &csr, sigma, &run).unwrap(),
            ]
            .map(|made| {
                check(&graph, &made).unwrap();
                assignment(&made)
            })
        };
        let expected = made(1, false);
        assert_eq!(made(2, false), expected, "k = {k}");
        assert_eq!(made(3, true), expected, "k = {k}");
    }
}

#[test]
fn many_parts_are_searched_as_few_are() {
    let graph = rmat(500, 8000);
    for k in [64, 65, 200] {
        let cap = fastpart::internals::capacity::cap(1.1, graph.m(), k);
        let hdrf = Hdrf::new(k).partition(&graph, None, &run(1)).unwrap();
        assert_eq!(assignment(&hdrf), streamed(&graph, k, cap, Rule::Hdrf(1.0)), "k = {k}");
        let preferred: Vec<u32> = (0..500).map(|v| v % 7 * (k / 8)).collect();
        let rule = SigmaEdge { bands: 1, ..SigmaEdge::new(k) };
        assert_eq!(
            assignment(&place(&rule, &graph, &preferred, 1)),
            sigma(&graph, &preferred, &rule),
            "k = {k}"
        );
    }
}

#[test]
fn stars_and_cliques_meet_the_caps() {
    let star = Graph::new(1001, (1..=1000).map(|v| [0, v]).collect());
    let clique = Graph::new(50, (0..50).flat_map(|u| (0..u).map(move |v| [u, v])).collect());
    for graph in [star, clique] {
        let run = run(1);
        let csr = Csr::build(&graph, false, &run).unwrap();
        for k in [2, 7, 64, 2000] {
            for balance in [1.0, 1.1] {
                let made = [
                    Hdrf { balance, ..Hdrf::new(k) }.partition(&graph, None, &run).unwrap(),
                    Greedy { balance, ..Greedy::new(k) }.partition(&graph, None, &run).unwrap(),
                    SigmaEdge { balance, ..SigmaEdge::new(k) }.partition(&graph, &csr, None, &run).unwrap(),
                ];
                made.iter().for_each(|made| check(&graph, made).unwrap());
                let used: Vec<usize> = made
                    .iter()
                    .map(|made| assignment(made).into_iter().collect::<HashSet<_>>().len())
                    .collect();
                assert!(used.iter().all(|&used| used as u64 >= graph.m().min(u64::from(k)) / 2), "{used:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let graph = Graph::new(3, vec![[0, 1]]);
    let run = run(1);
    let name = |result: fastpart::internals::base::Result<EdgePartition>| match result {
        Err(Error::Parameter { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(name(Hdrf::new(0).partition(&graph, None, &run)), "k");
    assert_eq!(name(Greedy { balance: 0.9, ..Greedy::new(2) }.partition(&graph, None, &run)), "balance");
    for lambda in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            name(Hdrf { balance_weight: lambda, ..Hdrf::new(2) }.partition(&graph, None, &run)),
            "balance_weight"
        );
    }
}

#[test]
fn files_in_memory_count_as_memory() {
    let memory = std::path::Path::new("/dev/shm");
    if !memory.exists() {
        return;
    }
    let graph = rmat(3000, 70_000);
    let (start, k) = ((0..3000).map(|v| v % 8).collect(), 8);
    let edges_of = EdgesOf { partition: start, ..EdgesOf::new(k) };
    let with = |budget| Run::new(Some(1), Some(budget)).unwrap().with_tmp_dir(Some(memory.into()));
    let on_disk = edges_of.memory(&Input::new(&graph).shape(), &run(1));
    let needed = edges_of.memory(&Input::new(&graph).shape(), &with(1 << 30));
    assert!(needed.least > on_disk.least);
    let error = edges_of.partition(&graph, None, &with(needed.least - 1)).unwrap_err().to_string();
    assert!(error.contains("1.1 MB of temporary files in /dev/shm, which is memory (tmp_dir="), "{error}");
    let [tight, roomy] =
        [with(needed.least), run(1)].map(|run| edges_of.partition(&graph, None, &run).unwrap());
    assert_eq!(assignment(&tight), assignment(&roomy));
}

#[test]
fn budgets_and_cancellation_stop_them() {
    let graph = rmat(3000, 70_000);
    let poor = Run::new(Some(1), Some(50_000)).unwrap();
    assert!(matches!(Hdrf::new(8).partition(&graph, None, &poor), Err(Error::MemoryBudget { .. })));
    assert!(matches!(Greedy::new(8).partition(&graph, None, &poor), Err(Error::MemoryBudget { .. })));
    let stopped = run(2);
    let sigma = Sigma { of: Of::Edges, ..Sigma::new(8) };
    assert!(matches!(sigma.partition(&graph, None, &poor), Err(Error::MemoryBudget { .. })));
    stopped.cancel();
    assert!(matches!(Hdrf::new(8).partition(&graph, None, &stopped), Err(Error::Cancelled)));
    let known = degrees::scan(&graph, &run(1)).unwrap();
    let preferred: Buffer<u32> = Buffer::zeroed(3000, "").unwrap();
    let sigma = SigmaEdge::new(8).place(&graph, &preferred, known.degree, known.graph, None, &stopped);
    assert!(matches!(sigma, Err(Error::Cancelled)));
}
