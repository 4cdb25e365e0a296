//! SPRING against an oracle that does each step in the most obvious way, and what must hold on every graph.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;

use common::{Graph, graphs, run};
use fastpart::edges::file::{EdgeFile, Io};
use fastpart::edges::{EdgeStream, Record};
use fastpart::error::Error;
use fastpart::generate::{self, Generator, Rmat};
use fastpart::partition::{VertexPartition, VertexPartitioner};
use fastpart::run::Run;
use fastpart::spring::Spring;
use proptest::prelude::*;
use proptest::sample::select;

/// The clustering state of the oracle, and the rules that do not change.
#[derive(Clone, PartialEq)]
struct Clustering {
    degree: Vec<u64>,
    tau: f64,
    cluster: Vec<Option<usize>>,
    volume: Vec<u64>,
    richest: Vec<Option<usize>>,
}

impl Clustering {
    fn new(graph: &Graph, k: u32) -> Self {
        let n = graph.n as usize;
        let mut degree = vec![0; n];
        for &[u, v] in graph.records.iter().filter(|[u, v]| u != v) {
            degree[u as usize] += 1;
            degree[v as usize] += 1;
        }
        let tau = 0.1 * degree.iter().sum::<u64>() as f64 / f64::from(k);
        Self { degree, tau, cluster: vec![None; n], volume: Vec::new(), richest: vec![None; n] }
    }

    /// One pass; with batches, a record that moves nothing in the state before its batch is dropped.
    fn pass(&mut self, records: &[Record], batch: usize) {
        records.iter().for_each(|&record| self.meet(record));
        if batch == 1 {
            return records.iter().for_each(|&record| self.follow(record));
        }
        for batch in records.chunks(batch) {
            let frozen = self.clone();
            for &record in batch {
                let mut changed = frozen.clone();
                changed.follow(record);
                if changed != frozen {
                    self.follow(record);
                }
            }
        }
    }

    fn follow(&mut self, [u, v]: Record) {
        let (u, v) = (u as usize, v as usize);
        if u == v {
            return;
        }
        for vertex in [u, v] {
            if self.cluster[vertex].is_none() {
                self.cluster[vertex] = Some(self.volume.len());
                self.volume.push(self.degree[vertex]);
            }
        }
        let (a, b) = (self.cluster[u].unwrap(), self.cluster[v].unwrap());
        if a != b && self.volume[a] as f64 <= self.tau && self.volume[b] as f64 <= self.tau {
            let (mover, from, to) = if self.volume[a] <= self.volume[b] { (u, a, b) } else { (v, b, a) };
            self.cluster[mover] = Some(to);
            self.volume[from] -= self.degree[mover];
            self.volume[to] += self.degree[mover];
        }
    }

    fn meet(&mut self, [u, v]: Record) {
        let (u, v) = (u as usize, v as usize);
        if u == v {
            return;
        }
        for (vertex, other) in [(u, v), (v, u)] {
            let better = match self.richest[vertex] {
                None => true,
                Some(old) if self.degree[old] == self.degree[other] => other < old,
                Some(old) => self.degree[old] < self.degree[other],
            };
            if better {
                self.richest[vertex] = Some(other);
            }
        }
    }

    /// Degree of the richest neighbour.
    fn wealth(&self, vertex: usize) -> u64 {
        self.degree[self.richest[vertex].unwrap()]
    }
}

/// The clusters as sets of vertices, merged.
fn merge(mut state: Clustering, limit: f64) -> Vec<BTreeSet<usize>> {
    let mut members = vec![BTreeSet::new(); state.volume.len()];
    for (vertex, cluster) in state.cluster.iter().enumerate() {
        if let Some(cluster) = *cluster {
            members[cluster].insert(vertex);
        }
    }
    let best = |members: &BTreeSet<usize>| {
        let mut best = *members.first().unwrap();
        for &vertex in members {
            if state.wealth(vertex) > state.wealth(best) {
                best = vertex;
            }
        }
        best
    };
    let mut representative: Vec<usize> =
        members.iter().map(|members| if members.is_empty() { usize::MAX } else { best(members) }).collect();
    let mut queue: BTreeSet<(usize, usize)> = members
        .iter()
        .enumerate()
        .map(|(id, members)| (members.len(), id))
        .filter(|&(size, _)| size > 0)
        .collect();
    while let Some((size, id)) = queue.pop_first() {
        let target = state.cluster[state.richest[representative[id]].unwrap()].unwrap();
        let old = members[target].len();
        if target == id || (size + old) as f64 > limit {
            continue;
        }
        queue.remove(&(old, target));
        for vertex in std::mem::take(&mut members[id]) {
            state.cluster[vertex] = Some(target);
            members[target].insert(vertex);
        }
        if state.wealth(representative[id]) > state.wealth(representative[target]) {
            representative[target] = representative[id];
        }
        queue.insert((size + old, target));
    }
    members
}

/// The part of each vertex.
fn assign(graph: &Graph, clusters: Vec<BTreeSet<usize>>, k: u32, cap: Option<u64>) -> Vec<i32> {
    let mut order: Vec<(usize, &BTreeSet<usize>)> = clusters.iter().enumerate().collect();
    order.sort_by_key(|&(id, members)| (usize::MAX - members.len(), id));
    let mut loads = vec![0_u64; k as usize];
    let mut assignment = vec![-1; graph.n as usize];
    let least = |loads: &[u64]| (0..k as usize).min_by_key(|&part| (loads[part], part)).unwrap();
    for (_, members) in order {
        let part = least(&loads);
        let fits = cap.is_none_or(|cap| loads[part] + members.len() as u64 <= cap);
        let mut part_now = part;
        for &vertex in members {
            if !fits && loads[part_now] >= cap.unwrap() {
                part_now = least(&loads);
            }
            assignment[vertex] = part_now as i32;
            loads[part_now] += 1;
        }
    }
    for part in assignment.iter_mut().filter(|part| **part < 0) {
        *part = least(&loads) as i32;
        loads[*part as usize] += 1;
    }
    assignment
}

fn share(spring: &Spring, n: u64) -> f64 {
    spring.balance.min(f64::from(spring.k)) * n as f64 / f64::from(spring.k)
}

fn oracle(graph: &Graph, spring: &Spring) -> Vec<i32> {
    let mut state = Clustering::new(graph, spring.k);
    for _ in 0..spring.passes {
        state.pass(&graph.records, spring.batch.unwrap() as usize);
    }
    let share = share(spring, graph.n);
    assign(graph, merge(state, share), spring.k, spring.strict.then_some(share.ceil() as u64))
}

/// Partitions with 1, 2, 3 and 8 threads, which must agree, and checks what holds for every result.
fn partition(graph: &Graph, spring: &Spring) -> VertexPartition {
    let [one, rest @ ..] = [1, 2, 3, 8].map(|threads| spring.partition(graph, &run(threads)).unwrap());
    for other in rest {
        assert!(one.assignment[..] == other.assignment[..], "threads change the result: {spring:?}");
        assert_eq!(one.graph, other.graph);
    }
    assert_eq!(one.assignment.len() as u64, graph.n);
    let mut loads = vec![0; spring.k as usize];
    one.assignment.iter().for_each(|&part| loads[usize::try_from(part).unwrap()] += 1);
    assert_eq!(one.loads, loads);
    let cap = share(spring, graph.n).ceil() as u64;
    assert_eq!(one.cap, spring.strict.then_some(cap));
    if spring.strict {
        assert!(loads.iter().all(|&load| load <= cap), "loads {loads:?} above the cap {cap}");
    }
    assert_eq!((one.graph.n, one.graph.m), (graph.n, graph.m()));
    assert_eq!(one.graph.loops, graph.records.iter().filter(|[u, v]| u == v).count() as u64);
    one
}

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

/// Small graphs of any density: many records make dense ones, few make many components.
fn any_graph() -> impl Strategy<Value = Graph> {
    prop_oneof![graphs(60, 300), graphs(60, 60), graphs(12, 100)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sequential_rule(graph in any_graph(), spring in parameters()) {
        let spring = Spring { batch: Some(1), k: spring.k.min(70), ..spring };
        prop_assert_eq!(&partition(&graph, &spring).assignment[..], oracle(&graph, &spring));
        // Small graphs are partitioned by the sequential rule, unless it is said otherwise.
        let chosen = Spring { batch: None, ..spring.clone() };
        prop_assert_eq!(&partition(&graph, &chosen).assignment[..], oracle(&graph, &spring));
    }

    #[test]
    fn batched_rule(graph in any_graph(), spring in parameters(), batch in select(vec![2, 7, 64, 299, 305])) {
        let spring = Spring { batch: Some(batch), k: spring.k.min(70), ..spring };
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
            let spring = Spring { strict, passes, batch, ..Spring::new(k) };
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
        let sequential = partition(&graph, &Spring { batch: Some(1), ..spring.clone() });
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
    assert_eq!(named(Spring { batch: Some(0), ..Spring::new(2) }), "batch");
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
