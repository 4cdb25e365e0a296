//! Counts of vertex partitions against brute force: sets and loops.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Graph, graphs, run};
use fastpart::internals::base::Error;
use fastpart::internals::base::splitmix64;
use fastpart::internals::generate::{Generator, Rmat};
use fastpart::internals::graph::degrees;
use fastpart::internals::measure::SparseMatrix;
use fastpart::internals::{generate, measure};
use proptest::prelude::*;

/// A number of parts that takes each way of counting: private and shared matrices, none; one halo pass and several.
fn parts() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 1_u32..=200, 1 => Just(256), 1 => 257_u32..=300, 1 => 4097_u32..=5000]
}

/// A graph, a number of parts, and seeds for an assignment (few parts are used, so that some records are internal).
fn cases() -> impl Strategy<Value = (Graph, u32, Vec<i32>)> {
    (graphs(60, 300), parts(), any::<u64>(), 1_u64..200).prop_map(|(graph, k, seed, used)| {
        let part = |v: u64| {
            let choice = splitmix64(seed ^ v) % used.min(u64::from(k));
            // Spread over all of 0..k, so that the last parts are met, too.
            (splitmix64(choice ^ seed) % u64::from(k)) as i32
        };
        let assignment = (0..graph.n).map(part).collect();
        (graph, k, assignment)
    })
}

/// Non-loop records by unordered pair of parts.
fn pairs(graph: &Graph, assignment: &[i32]) -> BTreeMap<(u32, u32), u64> {
    let mut pairs = BTreeMap::new();
    for &[u, v] in graph.records.iter().filter(|&&[u, v]| u != v) {
        let (p, q) = (assignment[u as usize] as u32, assignment[v as usize] as u32);
        *pairs.entry((p.min(q), p.max(q))).or_default() += 1;
    }
    pairs
}

fn halos(graph: &Graph, assignment: &[i32], k: u32) -> Vec<u64> {
    let mut halos = vec![BTreeSet::new(); k as usize];
    for &[u, v] in &graph.records {
        let (p, q) = (assignment[u as usize], assignment[v as usize]);
        if p != q {
            halos[p as usize].insert(v);
            halos[q as usize].insert(u);
        }
    }
    halos.iter().map(|halo| halo.len() as u64).collect()
}

/// Components by labels that fall along the records inside parts until none falls any more.
fn components(graph: &Graph, assignment: &[i32], k: u32) -> Vec<u64> {
    let mut lowest: Vec<u32> = (0..graph.n as u32).collect();
    let inside = |&&[u, v]: &&[u32; 2]| assignment[u as usize] == assignment[v as usize];
    let ends = graph.records.iter().filter(inside).map(|record| record.map(|v| v as usize));
    while ends.clone().any(|[u, v]| lowest[u] != lowest[v]) {
        for [u, v] in ends.clone() {
            let least = lowest[u].min(lowest[v]);
            (lowest[u], lowest[v]) = (least, least);
        }
    }
    let mut counts = vec![0; k as usize];
    let roots = (0..graph.n as usize).filter(|&v| lowest[v] as usize == v);
    roots.for_each(|v| counts[assignment[v] as usize] += 1);
    counts
}

/// Half the sum of the differences between the shares of each label.
fn skew(assignment: &[i32], labels: &[i64], part: i32) -> f64 {
    let labelled: Vec<(i32, i64)> =
        assignment.iter().copied().zip(labels.iter().copied()).filter(|&(_, label)| label >= 0).collect();
    let classes: BTreeSet<i64> = labelled.iter().map(|&(_, label)| label).collect();
    let share = |label: i64, among: &[(i32, i64)]| {
        among.iter().filter(|&&(_, other)| other == label).count() as f64 / among.len() as f64
    };
    let own: Vec<(i32, i64)> = labelled.iter().copied().filter(|&(p, _)| p == part).collect();
    if own.is_empty() {
        return f64::NAN;
    }
    classes.iter().map(|&label| (share(label, &own) - share(label, &labelled)).abs()).sum::<f64>() / 2.0
}

proptest! {
    #[test]
    fn cut_matrix_and_sums((graph, k, assignment) in cases(), threads in 1_usize..=3) {
        let run = run(threads);
        let cut = measure::cut(&graph, &assignment, k, &run).unwrap();
        let mut volume = vec![0; k as usize];
        for &[u, v] in graph.records.iter().filter(|&&[u, v]| u != v) {
            volume[assignment[u as usize] as usize] += 1;
            volume[assignment[v as usize] as usize] += 1;
        }
        prop_assert_eq!(cut.volume(), volume);
        let pairs = pairs(&graph, &assignment);
        let among = |p: u32, q: u32| pairs.get(&(p.min(q), p.max(q))).copied().unwrap_or(0);
        let internal: Vec<u64> = (0..k).map(|p| among(p, p)).collect();
        prop_assert_eq!(&cut.internal, &internal);
        let records: u64 = pairs.iter().filter(|((p, q), _)| p != q).map(|(_, &records)| records).sum();
        prop_assert_eq!(cut.cut.iter().sum::<u64>(), 2 * records);
        prop_assert_eq!(cut.loops, graph.records.iter().filter(|[u, v]| u == v).count() as u64);
        prop_assert_eq!(cut.matrix.is_some(), k <= 4096);
        if let Some(matrix) = &cut.matrix {
            let all = (0..k).flat_map(|p| (0..k).map(move |q| (p, q)));
            let expected: Vec<u64> = all.map(|(p, q)| among(p, q)).collect();
            prop_assert_eq!(&matrix[..], &expected[..]);
        }
        prop_assert_eq!(cut.checksum, degrees::scan(&graph, &run).unwrap().graph.checksum);
    }

    #[test]
    fn sparse_matrix((graph, k, assignment) in cases(), threads in 1_usize..=3) {
        let SparseMatrix { first, second, records } =
            measure::sparse_matrix(&graph, &assignment, k, &run(threads)).unwrap();
        let found: Vec<_> = first.into_iter().zip(second).zip(records).collect();
        prop_assert_eq!(found, pairs(&graph, &assignment).into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn halo_sizes((graph, k, assignment) in cases(), threads in 1_usize..=3) {
        let found = measure::halo_sizes(&graph, &assignment, k, &run(threads)).unwrap();
        prop_assert_eq!(found, halos(&graph, &assignment, k));
    }

    #[test]
    fn halo_sizes_of_some_parts((graph, k, assignment) in cases(), first: u32, count: u32) {
        let first = first % k;
        let end = first + 1 + count % (k - first);
        let types = [graph.n];
        let found =
            measure::halo_sizes_of_types(&graph, &assignment, k, first..end, &types, &run(2)).unwrap();
        prop_assert_eq!(&found[0], &halos(&graph, &assignment, k)[first as usize..end as usize]);
    }

    #[test]
    fn components_of_parts((graph, k, assignment) in cases(), threads in 1_usize..=3) {
        let found = measure::components(&graph, &assignment, k, &run(threads)).unwrap();
        prop_assert_eq!(found, components(&graph, &assignment, k));
    }

    #[test]
    fn replicas(graph in graphs(60, 300), k in 1_i32..=200, seed: u64, threads in 1_usize..=3) {
        let assignment: Vec<i32> = (0..graph.m()).map(|r| (splitmix64(seed ^ r) % k as u64) as i32).collect();
        let found = measure::replicas(&graph, &assignment, k as u32, &run(threads)).unwrap();
        let mut members = vec![BTreeSet::<u32>::new(); k as usize];
        for (record, &part) in graph.records.iter().zip(&assignment) {
            members[part as usize].extend(record);
        }
        prop_assert_eq!(found.sizes, members.iter().map(|members| members.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(found.touched, members.iter().flatten().collect::<BTreeSet<_>>().len() as u64);
        prop_assert_eq!(found.loops, graph.records.iter().filter(|[u, v]| u == v).count() as u64);
        prop_assert_eq!(found.checksum, degrees::identify(&graph, &run(threads)).unwrap().checksum);
    }

    #[test]
    fn sizes_and_splits((graph, k, assignment) in cases(), seed: u64, threads in 1_usize..=3) {
        let run = run(threads);
        let count = |selected: &dyn Fn(u64) -> bool| {
            let mut counts = vec![0; k as usize];
            (0..graph.n).filter(|&v| selected(v)).for_each(|v| counts[assignment[v as usize] as usize] += 1);
            counts
        };
        prop_assert_eq!(measure::part_sizes(&assignment, k, &run).unwrap(), count(&|_| true));
        let selected = |v: u64| splitmix64(seed ^ v).is_multiple_of(3);
        // In reverse, and every id twice: a split is a set.
        let ids: Vec<i64> = (0..graph.n).rev().filter(|&v| selected(v)).flat_map(|v| [v as i64; 2]).collect();
        prop_assert_eq!(measure::split_counts(&assignment, &ids, k, &run).unwrap(), count(&selected));
    }

    #[test]
    fn label_skew((_, k, assignment) in cases(), seed: u64, classes in 1_u64..20, threads in 1_usize..=3) {
        // Some unlabelled, and one label as large as they come.
        let label = |v: u64| match splitmix64(seed ^ v) % (classes + 1) {
            0 => -1,
            1 => i64::MAX,
            label => label as i64,
        };
        let labels: Vec<i64> = (0..assignment.len() as u64).map(label).collect();
        let found = measure::label_skew(&assignment, &labels, k, &run(threads)).unwrap();
        prop_assert_eq!(found.len(), k as usize);
        for (part, found) in (0..).zip(found) {
            let expected = skew(&assignment, &labels, part);
            prop_assert!((found - expected).abs() < 1e-12 || found.is_nan() && expected.is_nan(), "{found} {expected}");
        }
    }
}

/// Many blocks, units and workers: all counts agree for 1, 2 and 3 threads, and among each other.
#[test]
fn large_graphs_agree_for_all_threads() {
    let rmat = Rmat::new(100_000, (5 << 18) + 7, 3).unwrap();
    let graph =
        Graph::new(rmat.num_vertices(), generate::records(&rmat, 0..rmat.num_edges(), &run(2)).unwrap());
    for k in [3, 150, 400, 5000] {
        let assignment: Vec<i32> = (0..graph.n).map(|v| (splitmix64(v) % u64::from(k)) as i32).collect();
        let labels: Vec<i64> = (0..graph.n).map(|v| (splitmix64(v + 1) % 50) as i64 - 1).collect();
        let all = |threads: usize| {
            let run = run(threads);
            let cut = measure::cut(&graph, &assignment, k, &run).unwrap();
            let halo = if k < 1000 {
                measure::halo_sizes(&graph, &assignment, k, &run).unwrap()
            } else {
                Vec::new()
            };
            let skew = measure::label_skew(&assignment, &labels, k, &run).unwrap();
            let bits: Vec<u64> = skew.iter().map(|skew| skew.to_bits()).collect();
            let matrix = cut.matrix.map(|matrix| matrix.to_vec());
            let sizes = measure::part_sizes(&assignment, k, &run).unwrap();
            let sparse = measure::sparse_matrix(&graph, &assignment, k, &run).unwrap();
            (cut.internal, cut.cut, cut.loops, cut.checksum, matrix, halo, bits, sizes, sparse)
        };
        let one = all(1);
        assert_eq!(one.8.records.iter().sum::<u64>() + one.2, graph.m());
        assert!(one == all(2) && one == all(3), "k = {k}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let records: Vec<[u32; 2]> = (0..100_000).map(|r| [r, (r * 7 + 1) % 100_000]).collect();
    let graph = Graph::new(100_000, records);
    let assignment: Vec<i32> = (0..100_000).collect();
    let tight = |budget| fastpart::internals::base::Run::new(Some(2), Some(budget)).unwrap();
    for (error, needs) in [
        (
            measure::cut(&graph, &vec![0; 100_000], 4096, &tight(1 << 26)).unwrap_err(),
            "cut matrix of 4096 parts",
        ),
        (measure::cut(&graph, &assignment, 1 << 20, &tight(1 << 20)).unwrap_err(), "cut counts"),
        (
            measure::sparse_matrix(&graph, &assignment, 1 << 20, &tight(1 << 20)).unwrap_err(),
            "sparse cut matrix",
        ),
        (measure::halo_sizes(&graph, &assignment, 1 << 20, &tight(1 << 20)).unwrap_err(), "halo counts"),
        (
            measure::label_skew(&vec![0; 100_000], &(0..100_000).collect::<Vec<_>>(), 1, &tight(1 << 20))
                .unwrap_err(),
            "label counts",
        ),
    ] {
        assert!(matches!(error, Error::MemoryBudget { .. }) && error.to_string().contains(needs), "{error}");
    }
    let error = measure::cut(&graph, &assignment, 99_999, &run(2)).unwrap_err().to_string();
    assert_eq!(error, "assignment: vertex 99999 has part 99999, outside 0..99999");
    let error = measure::halo_sizes(&graph, &assignment[1..], 1 << 20, &run(2)).unwrap_err().to_string();
    assert!(error.contains("99999 entries for 100000 vertices"), "{error}");
}
