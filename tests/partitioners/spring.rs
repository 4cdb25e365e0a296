//! SPRING against an oracle that does each step in the most obvious way, and what must hold on every graph.

use std::num::NonZeroU64;

use std::fs::File;
use std::io::Write;

use crate::common::spring::{Clustering, any_graph, oracle, partition};
use crate::common::{Graph, OfVertices, run};
use fastpart::internals::algorithms::spring::Spring;
use fastpart::internals::base::Error;
use fastpart::internals::base::Run;
use fastpart::internals::edges::{EdgeFile, Io};
use fastpart::internals::edges::{EdgeStream, Record};
use fastpart::internals::generate;
use fastpart::internals::generate::{Generator, Rmat};
use proptest::prelude::*;
use proptest::sample::select;

fn parameters() -> impl Strategy<Value = Spring> {
    let k = prop_oneof![1_u32..=8, 9_u32..=70, Just(1 << 20)];
    let balance = prop_oneof![Just(1.05), Just(1.0), 1.0..3.0, Just(1e308)];
    (k, balance, 1_u32..=2, any::<bool>()).prop_map(|(k, balance, passes, strict)| Spring {
        balance,
        passes,
        strict,
        ..Spring::new(k)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sequential_rule(graph in any_graph(), spring in parameters()) {
        let spring = Spring { batch: NonZeroU64::new(1), k: spring.k.min(70), ..spring };
        prop_assert_eq!(&partition(&graph, &spring).assignment[..], oracle(&graph, &spring));
        // Small graphs are partitioned by the sequential rule, unless it is said otherwise.
        let chosen = Spring { batch: None, ..spring.clone() };
        prop_assert_eq!(&partition(&graph, &chosen).assignment[..], oracle(&graph, &spring));
    }

    #[test]
    fn batched_rule(graph in any_graph(), spring in parameters(), batch in select(vec![2, 7, 64, 299, 305])) {
        let spring = Spring { batch: NonZeroU64::new(batch), k: spring.k.min(70), ..spring };
        prop_assert_eq!(&partition(&graph, &spring).assignment[..], oracle(&graph, &spring));
    }

    #[test]
    fn given_degrees_change_nothing(graph in any_graph(), spring in parameters()) {
        let degrees = Clustering::new(&graph, 1).degree.iter().map(|&degree| degree as u32).collect();
        let given = Spring { degrees: Some(degrees), ..spring.clone() };
        let (counted, given) = (partition(&graph, &spring), partition(&graph, &given));
        prop_assert_eq!(&counted.assignment[..], &given.assignment[..]);
        prop_assert_eq!(counted.graph, given.graph);
    }
}

/// Runs every batch size, two passes, both rules and some numbers of parts; the sequential rule also by the oracle.
fn try_all(n: u64, records: Vec<Record>) {
    let graph = Graph::new(n, records);
    let m = graph.m();
    for (k, strict, passes) in [(1, true, 1), (2, false, 2), (8, true, 1), (8, false, 1), (33, true, 2)] {
        for batch in [Some(1), Some(7), Some(64), Some(m.max(1)), Some(m + 5), None] {
            let spring = Spring { strict, passes, batch: batch.and_then(NonZeroU64::new), ..Spring::new(k) };
            let found = partition(&graph, &spring);
            // For batches the oracle is slow.
            if batch == Some(1) {
                assert!(found.assignment[..] == oracle(&graph, &spring), "{spring:?}");
            }
        }
    }
}

#[test]
fn empty_graph() {
    try_all(0, Vec::new());
    try_all(17, Vec::new());
}

#[test]
fn one_vertex_one_edge() {
    try_all(1, vec![[0, 0]]);
    try_all(2, vec![[1, 0]]);
    try_all(2, vec![[0, 1], [1, 0], [0, 1]]);
}

#[test]
fn all_loops() {
    try_all(100, (0..100).map(|v| [v, v]).collect());
}

#[test]
fn star_out_of_and_into_its_centre() {
    try_all(500, (1..500).map(|v| [0, v]).collect());
    try_all(500, (0..499).map(|v| [v, 499]).collect());
}

#[test]
fn clique() {
    try_all(40, (0..40).flat_map(|u| (0..u).map(move |v| [u, v])).collect());
}

#[test]
fn path_in_order_and_scattered() {
    try_all(1000, (1..1000).map(|v| [v - 1, v]).collect());
    try_all(1000, (0..999).map(|i| i * 617 % 999).map(|v| [v, v + 1]).collect());
}

#[test]
fn complete_bipartite() {
    try_all(60, (0..20).flat_map(|u| (20..60).map(move |v| [u, v])).collect());
}

#[test]
fn more_parts_than_vertices() {
    try_all(5, vec![[0, 1], [1, 2], [2, 3], [3, 4]]);
}

#[test]
fn only_two_ids_far_apart() {
    try_all(1_000_001, vec![[0, 1_000_000]]);
}

#[test]
fn hundred_thousand_components() {
    try_all(200_000, (0..100_000).map(|pair| [2 * pair + 1, 2 * pair]).collect());
}

#[test]
fn hub_with_half_the_records() {
    let ring = (1..1000).map(|v| [v, v % 999 + 1]);
    try_all(1000, ring.flat_map(|edge| [[0, edge[0]], edge]).collect());
}

/// Large enough for the batches that are chosen by default; from memory, a mapped file and a file that is read.
#[test]
fn large_graph_from_everywhere() {
    let rmat = Rmat::new(50_000, (1 << 18) + 12_345, 11).unwrap();
    let graph =
        Graph::new(rmat.num_vertices(), generate::records(&rmat, 0..rmat.num_edges(), &run(2)).unwrap());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let bytes: Vec<u8> = graph.records.iter().flatten().flat_map(|id| id.to_le_bytes()).collect();
    file.write_all(&bytes).unwrap();
    for spring in [Spring::new(8), Spring { passes: 2, strict: false, ..Spring::new(100) }] {
        let expected = partition(&graph, &spring);
        for (io, threads) in [(Io::Map, 1), (Io::Map, 3), (Io::Read, 1), (Io::Read, 3)] {
            let mut edges = EdgeFile::open(file.path(), None, None, io).unwrap();
            edges.set_num_vertices(graph.n);
            let found = spring.partition(&edges, &run(threads)).unwrap();
            assert!(found.assignment[..] == expected.assignment[..], "{io:?}, {threads} threads");
            assert_eq!(found.graph, expected.graph);
        }
        let sequential = partition(&graph, &Spring { batch: NonZeroU64::new(1), ..spring.clone() });
        assert!(sequential.assignment[..] != expected.assignment[..], "the default should work in batches");
    }
}

#[test]
fn refusals() {
    let graph = Graph::new(3, vec![[0, 1], [1, 2]]);
    let refused = |spring: Spring, run: &Run| spring.partition(&graph, run).unwrap_err();
    let named = |spring: Spring| match refused(spring, &run(1)) {
        Error::Parameter { name, .. } => name,
        other => panic!("{other}"),
    };
    assert_eq!(named(Spring::new(0)), "k");
    assert_eq!(named(Spring::new((1 << 20) + 1)), "k");
    for balance in [0.5, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(named(Spring { balance, ..Spring::new(2) }), "balance");
    }
    assert_eq!(named(Spring { passes: 0, ..Spring::new(2) }), "passes");
    assert_eq!(named(Spring { degrees: Some(vec![1, 2]), ..Spring::new(2) }), "degrees");
    assert_eq!(named(Spring { degrees: Some(vec![1, 2, 2]), ..Spring::new(2) }), "degrees");
    let tight = Run::new(Some(1), Some(1000)).unwrap();
    assert!(matches!(refused(Spring::new(2), &tight), Error::MemoryBudget { .. }));
    let cancelled = run(2);
    cancelled.cancel();
    assert!(matches!(refused(Spring::new(2), &cancelled), Error::Cancelled));
}

/// A file that is cut off between two passes is noticed, and yields no result.
#[test]
fn changed_file() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let bytes: Vec<u8> = (0..1000_u32).flat_map(|id| (id % 50).to_le_bytes()).collect();
    file.write_all(&bytes).unwrap();
    let mut edges = EdgeFile::open(file.path(), None, None, Io::Read).unwrap();
    edges.set_num_vertices(50);
    assert_eq!(edges.num_edges(), 500);
    File::options().write(true).open(file.path()).unwrap().set_len(3992).unwrap();
    assert!(matches!(Spring::new(4).partition(&edges, &run(2)), Err(Error::FileChanged { .. })));
}
