//! Edge partitions made of vertex partitions, and the refinement of edge partitions: never more replicas, no part above
//! the cap, and the same for any number of threads.
use std::collections::{BTreeSet, HashSet};

use crate::common::{Graph, OfEdges, graphs, run};
use fastpart::internals::algorithms::edges_of::EdgesOf;
use fastpart::internals::algorithms::hep::Hep;
use fastpart::internals::algorithms::sigma::edge::SigmaEdge;
use fastpart::internals::algorithms::streams::edges::refining::Refining;
use fastpart::internals::base::Error;
use fastpart::internals::base::Random;
use fastpart::internals::base::Run;
use fastpart::internals::capacity::cap;
use fastpart::internals::generate::{Planted, Rmat, records};
use fastpart::internals::graph::Csr;
use fastpart::internals::partition::{EdgePartition, Partitioner, Shape};
use proptest::prelude::*;

fn assignment(partition: &EdgePartition) -> Vec<u32> {
    let mut parts = Vec::new();
    partition.parts.read(0..partition.parts.len(), &mut parts);
    parts
}

/// Every vertex in every part that has a record of it. Loads and cap are checked on the way.
fn replicas(graph: &Graph, partition: &EdgePartition) -> HashSet<(u32, u32)> {
    let parts = assignment(partition);
    assert_eq!(parts.len(), graph.records.len());
    let mut loads = vec![0; partition.k as usize];
    parts.iter().for_each(|&part| loads[part as usize] += 1);
    assert_eq!(loads, partition.loads);
    assert!(loads.iter().max() <= partition.cap.as_ref());
    graph.records.iter().zip(parts).flat_map(|(&[u, v], part)| [(u, part), (v, part)]).collect()
}

fn random_parts(n: u64, k: u32, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed, 7);
    (0..n).map(|_| random.below(k.into()) as u32).collect()
}

fn edges_of(graph: &Graph, start: &[u32], k: u32, passes: u32, threads: usize) -> EdgePartition {
    let mut of = EdgesOf { partition: start.to_vec(), ..EdgesOf::new(k) };
    of.passes = passes;
    of.partition(graph, None, &run(threads)).unwrap()
}

/// A graph with communities, and a loop now and then.
fn planted(n: u64, m: u64) -> Graph {
    let planted = Planted::new(n, m, 16, 4, 1).unwrap();
    let mut records = records(&planted, 0..m, &run(1)).unwrap();
    records.iter_mut().step_by(97).for_each(|record| record[1] = record[0]);
    Graph::new(n, records)
}

/// One pass, with sets and lists: the parts after it.
fn refined(graph: &Graph, parts: &[u32], k: u32, cap: u64, backwards: bool) -> Vec<u32> {
    let all: Vec<usize> = (0..parts.len()).collect();
    let sets = |chosen: &[usize]| {
        let mut sets = vec![BTreeSet::new(); graph.n as usize];
        for &index in chosen {
            graph.records[index].iter().for_each(|&end| _ = sets[end as usize].insert(parts[index]));
        }
        sets
    };
    let present = sets(&all);
    let common = |index: usize| {
        let [u, v] = graph.records[index].map(|end| &present[end as usize]);
        u.intersection(v).copied().collect::<Vec<_>>()
    };
    let (mut free, fixed): (Vec<usize>, Vec<_>) = all.into_iter().partition(|&index| common(index).len() > 1);
    if backwards {
        free.reverse();
    }
    let (mut held, mut parts, k) = (sets(&fixed), parts.to_vec(), k as usize);
    let mut loads = [vec![0.0; k], vec![0.0; k]];
    parts.iter().for_each(|&part| loads[0][part as usize] += 1.0);
    held.iter().flatten().for_each(|&part| loads[1][part as usize] += 1.0);
    let mut most = [0.0; 2];
    for index in free {
        for (most, loads) in most.iter_mut().zip(&loads) {
            *most = loads.iter().copied().fold(*most, f64::max);
        }
        loads[0][parts[index] as usize] -= 1.0;
        let term = |part: usize, i: usize| {
            (most[i] - loads[i][part]) * if most[i] > 0.0 { 0.5 / most[i] } else { 0.0 }
        };
        let score = |part: u32| {
            let ends = graph.records[index].map(|end| u32::from(held[end as usize].contains(&part)));
            f64::from(ends[0] + ends[1]) + (term(part as usize, 0) + term(part as usize, 1))
        };
        let open = |&part: &u32| loads[0][part as usize] < cap as f64;
        let best =
            common(index).into_iter().filter(open).rev().max_by(|&a, &b| score(a).total_cmp(&score(b)));
        parts[index] = best.unwrap();
        loads[0][parts[index] as usize] += 1.0;
        for end in graph.records[index] {
            if held[end as usize].insert(parts[index]) {
                loads[1][parts[index] as usize] += 1.0;
            }
        }
    }
    parts
}

proptest! {
    #[test]
    fn a_pass_takes_the_part_of_the_largest_score(
        graph in graphs(20, 100), k in prop_oneof![2..9_u32, Just(65), Just(520)], balance in prop_oneof![Just(1.0), Just(1.2), Just(9.0)],
        seed: u64, threads in 1..4_usize,
    ) {
        let mut of = EdgesOf { partition: random_parts(graph.n, k, seed), ..EdgesOf::new(k) };
        of.balance = balance;
        of.passes = 0;
        let mut made = of.partition(&graph, None, &run(1)).unwrap();
        let before = assignment(&made);
        let once = refined(&graph, &before, k, made.cap.unwrap(), false);
        Refining { passes: 1, ..Refining::DEFAULT }.refine(&graph, &mut made, &run(threads)).unwrap();
        prop_assert_eq!(assignment(&made), once.clone());
        let mut again = of.partition(&graph, None, &run(1)).unwrap();
        Refining { passes: 2, ..Refining::DEFAULT }.refine(&graph, &mut again, &run(threads)).unwrap();
        // There is a second pass if the first one found anything.
        if replicas(&graph, &made).len() < replicas(&graph, &of.partition(&graph, None, &run(1)).unwrap()).len() {
            prop_assert_eq!(assignment(&again), refined(&graph, &once, k, made.cap.unwrap(), true));
        }
    }

    #[test]
    fn refinement_never_makes_a_replica(
        graph in graphs(30, 80), k in prop_oneof![1..9_u32, Just(64), Just(65), Just(300), Just(700)],
        balance in prop_oneof![Just(1.0), Just(1.1), Just(3.0)], passes in 1..7_u32, seed: u64,
    ) {
        let start = random_parts(graph.n, k, seed);
        let mut of = EdgesOf { partition: start, ..EdgesOf::new(k) };
        of.balance = balance;
        of.passes = 0;
        let before = of.partition(&graph, None, &run(1)).unwrap();
        of.passes = passes;
        let after = of.partition(&graph, None, &run(2)).unwrap();
        prop_assert_eq!(after.cap, Some(cap(balance, graph.m(), k)));
        prop_assert!(replicas(&graph, &after).is_subset(&replicas(&graph, &before)));
        let alone = of.partition(&graph, None, &run(1)).unwrap();
        prop_assert_eq!(assignment(&alone), assignment(&after));
    }

    #[test]
    fn partitioners_refine_within_their_bounds(graph in graphs(30, 80), k in 1..9_u32) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let sigma = |passes| SigmaEdge { passes, ..SigmaEdge::new(k) }.partition(&graph, &csr, None, &run(2)).unwrap();
        prop_assert!(replicas(&graph, &sigma(5)).is_subset(&replicas(&graph, &sigma(0))));
        let hep = |refine| Hep { refine, ..Hep::new(k) }.partition(&graph, None, &run(2)).unwrap();
        prop_assert!(replicas(&graph, &hep(true)).is_subset(&replicas(&graph, &hep(false))));
    }
}

#[test]
fn records_within_a_part_stay_there() {
    let graph = planted(2000, 20_000);
    let start: Vec<u32> = (0..2000).map(|v| v * 4 / 2000).collect();
    let mut of = EdgesOf { partition: start.clone(), ..EdgesOf::new(4) };
    of.balance = 4.0;
    of.passes = 0;
    let made = assignment(&of.partition(&graph, None, &run(1)).unwrap());
    for (&[u, v], part) in graph.records.iter().zip(made) {
        let [of_u, of_v] = [u, v].map(|end| start[end as usize]);
        assert!(u == v || of_u != of_v || part == of_u);
    }
}

#[test]
fn threads_and_files_change_nothing() {
    let rmat = Rmat::new(4000, 150_000, 1).unwrap();
    let rmat = Graph::new(4000, records(&rmat, 0..150_000, &run(1)).unwrap());
    let folder = tempfile::tempdir().unwrap();
    for (graph, k) in [(&planted(4000, 150_000), 8), (&rmat, 32), (&rmat, 130), (&rmat, 600)] {
        let start = random_parts(graph.n, k, 1);
        let plain = replicas(graph, &edges_of(graph, &start, k, 0, 1)).len();
        let one = edges_of(graph, &start, k, 5, 1);
        assert!(replicas(graph, &one).len() < plain * 99 / 100, "k = {k}");
        for threads in [2, 3, 8] {
            assert_eq!(assignment(&edges_of(graph, &start, k, 5, threads)), assignment(&one), "{threads}");
        }
        let out = folder.path().join("parts.npy");
        let in_file =
            EdgesOf { partition: start, ..EdgesOf::new(k) }.partition(graph, Some(&out), &run(2)).unwrap();
        assert_eq!(assignment(&in_file), assignment(&one));
        assert!(in_file.parts.in_memory().is_none());
    }
}

#[test]
fn groups_of_records_move_together() {
    let graph = Graph::new(4, vec![[0, 1], [0, 1], [0, 2], [1, 2], [0, 1], [0, 1], [0, 3]]);
    let partition =
        || EdgesOf { partition: vec![0; 4], ..EdgesOf::new(2) }.partition(&graph, None, &run(1)).unwrap();
    let mut made = partition();
    made.parts.write(0, &[1, 1, 0, 0, 0, 0, 1]);
    (made.loads, made.cap) = (vec![4, 3], Some(6));
    // 0 and 1 are in both parts, and of their two records in part 1 neither gains anything alone.
    Refining::DEFAULT.refine(&graph, &mut made, &run(1)).unwrap();
    assert_eq!(assignment(&made), [0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(made.loads, [6, 1]);
}

#[test]
fn empty_graphs_and_more_parts_than_records() {
    for (n, records) in [(0, vec![]), (5, vec![]), (3, vec![[0, 1], [2, 2]])] {
        let graph = Graph::new(n, records);
        let made = edges_of(&graph, &vec![6; n as usize], 7, 5, 2);
        assert!(replicas(&graph, &made).len() <= 3);
    }
}

#[test]
fn refusals() {
    let graph = planted(1000, 5000);
    let of = |partition: Vec<u32>| EdgesOf { partition, ..EdgesOf::new(4) };
    let refused = |start: Vec<u32>, run: &Run| of(start).partition(&graph, None, run).unwrap_err();
    for start in [vec![0; 999], vec![4; 1000]] {
        assert!(matches!(refused(start, &run(1)), Error::Parameter { name, .. } if name == "partition"));
    }
    // What the contract says is what a run asks for, even where counting degrees takes the most.
    let shape = Shape { n: 1000, m: 5000, symmetric: false, in_file: false };
    for threads in [1, 4] {
        let needed = of(vec![0; 1000]).memory(&shape, &run(threads)).least;
        let tight = |budget: u64| Run::new(Some(threads), Some(budget)).unwrap();
        let error = refused(vec![0; 1000], &tight(needed - 1));
        assert!(matches!(error, Error::MemoryBudget { needed: asked, .. } if asked == needed), "{error}");
        of(vec![0; 1000]).partition(&graph, None, &tight(needed)).unwrap();
    }
    let large = EdgesOf::new(1).memory(&Shape { n: 1 << 20, m: 1, ..shape }, &run(4)).least;
    assert!(large >= 12 << 20, "4 bytes per vertex of the parts, and 8 of degrees: {large}");
    let small = Run::new(Some(1), Some(10_000)).unwrap();
    let error = refused(vec![0; 1000], &small);
    assert!(error.to_string().contains("edges_of on 1000 vertices and 5000 records, 4 parts"), "{error}");
}
