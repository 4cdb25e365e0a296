//! LDG and Fennel against a scan over all parts, and what must hold on every graph.

use std::num::NonZeroU64;

use crate::common::spring::{any_graph, share};
use crate::common::{Graph, OfVertices, run};
use fastpart::internals::algorithms::fennel::Refennel;
use fastpart::internals::algorithms::ldg::Ldg;
use fastpart::internals::algorithms::streams::vertices::{Rule, VertexStream};
use fastpart::internals::base::Error;
use fastpart::internals::base::Run;
use fastpart::internals::capacity::BalanceOn;
use fastpart::internals::generate::{Generator, Rmat, records};
use fastpart::internals::graph::Csr;
use fastpart::internals::partition::VertexPartition;
use proptest::collection::vec;
use proptest::prelude::*;

const RULES: [Rule; 2] = [Rule::Ldg, Rule::Fennel];

fn stream(rule: Rule, k: u32, balance: f64, passes: u32, batch: Option<u64>) -> VertexStream {
    VertexStream { rule, balance, passes, batch: batch.and_then(NonZeroU64::new), ..Ldg::new(k).stream() }
}

/// The neighbours of every vertex.
fn adjacency(graph: &Graph) -> Vec<Vec<usize>> {
    let mut neighbours = vec![Vec::new(); graph.n as usize];
    for &[u, v] in graph.records.iter().filter(|[u, v]| u != v) {
        neighbours[u as usize].push(v as usize);
        neighbours[v as usize].push(u as usize);
    }
    neighbours
}

/// The part of each vertex by the sequential rule, every part scored for every vertex.
fn oracle(graph: &Graph, stream: &VertexStream) -> Vec<i32> {
    let (neighbours, k, n) = (adjacency(graph), stream.k as usize, graph.n as usize);
    let edges = neighbours.iter().map(Vec::len).sum::<usize>() as f64 / 2.0;
    let cap = share(stream.balance, graph.n, stream.k).ceil();
    let alpha_gamma = 1.5 * f64::from(stream.k).sqrt() * edges / (n as f64 * (n as f64).sqrt());
    let score = |near: usize, load: usize| match stream.rule {
        Rule::Ldg => near as f64 * (cap - load as f64),
        Rule::Fennel => near as f64 - alpha_gamma * (load as f64).sqrt(),
    };
    let mut part_of = vec![None; n];
    let mut loads = vec![0; k];
    for _ in 0..stream.passes {
        loads.fill(0);
        for v in 0..n {
            let near = |part| neighbours[v].iter().filter(|&&u| part_of[u] == Some(part)).count();
            let open = (0..k).filter(|&part| (loads[part] as f64) < cap);
            let key = |part| (score(near(part), loads[part]), -(loads[part] as i64), -(part as i64));
            let best = open.max_by(|&a, &b| key(a).partial_cmp(&key(b)).unwrap());
            part_of[v] = best;
            loads[best.unwrap()] += 1;
        }
    }
    part_of.into_iter().map(|part| part.unwrap() as i32).collect()
}

/// Partitions with 1, 2, 3 and 8 threads, which must agree, and checks what holds for every result.
fn partition(graph: &Graph, stream: &VertexStream) -> VertexPartition {
    let csr = Csr::build(graph, false, &run(1)).unwrap();
    let [one, rest @ ..] = [1, 2, 3, 8].map(|threads| stream.partition(&csr, &run(threads)).unwrap());
    for other in rest {
        assert!(one.assignment[..] == other.assignment[..], "threads change the result: {stream:?}");
    }
    let mut loads = vec![0; stream.k as usize];
    one.assignment.iter().for_each(|&part| loads[usize::try_from(part).unwrap()] += 1);
    assert_eq!((one.assignment.len() as u64, &one.loads), (graph.n, &loads));
    let cap = share(stream.balance, graph.n, stream.k).ceil() as u64;
    assert_eq!(one.cap, Some(cap));
    assert!(loads.iter().all(|&load| load <= cap), "loads {loads:?} above the cap {cap}");
    assert_eq!((one.graph.n, one.graph.m), (graph.n, graph.m()));
    one
}

fn rules() -> impl Strategy<Value = Rule> {
    proptest::sample::select(&RULES[..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_sequential_rule_is_that_of_a_full_scan(
        graph in any_graph(), rule in rules(), k in 1_u32..20, balance in 1.0..1.6, passes in 1_u32..4,
    ) {
        let stream = stream(rule, k, balance, passes, Some(1));
        prop_assert_eq!(&partition(&graph, &stream).assignment[..], &oracle(&graph, &stream)[..]);
    }

    #[test]
    fn batches_keep_the_cap_and_never_depend_on_threads(
        graph in any_graph(), rule in rules(), k in 1_u32..20, passes in 1_u32..4, batch in 2_u64..80,
    ) {
        partition(&graph, &stream(rule, k, 1.0, passes, Some(batch)));
    }

    #[test]
    fn both_directions_of_every_edge_are_the_same_graph(graph in any_graph(), rule in rules(), k in 1_u32..9) {
        let both = graph.records.iter().flat_map(|&[u, v]| [[u, v], [v, u]]).collect();
        let both = Graph::new(graph.n, both);
        let [one, other] = [(&graph, false), (&both, true)].map(|(graph, symmetric)| {
            let csr = Csr::build(graph, symmetric, &run(1)).unwrap();
            stream(rule, k, 1.1, 2, None).partition(&csr, &run(1)).unwrap()
        });
        prop_assert_eq!(&one.assignment[..], &other.assignment[..]);
    }

    #[test]
    fn both_caps_hold(
        graph in any_graph(),
        weights in prop_oneof![vec(0_u32..2, 60), vec(0_u32..100, 60), vec(prop_oneof![Just(0), 0..=u32::MAX], 60)],
        rule in rules(), k in 1_u32..9, passes in 1_u32..3, batch in prop_oneof![Just(1), Just(16)],
    ) {
        let weights = &weights[..graph.n as usize];
        let on = BalanceOn::new(weights.to_vec(), 1.05).unwrap();
        let cap = on.cap(k);
        let stream = VertexStream { balance_on: Some(on), ..stream(rule, k, 1.03, passes, Some(batch)) };
        let made = partition(&graph, &stream);
        let mut loads = vec![0; k as usize];
        made.assignment.iter().zip(weights).for_each(|(&part, &weight)| loads[part as usize] += u64::from(weight));
        prop_assert!(loads.iter().all(|&load| load <= cap), "{:?} above {}", loads, cap);
        prop_assert_eq!(&made.weights[0].loads, &loads);
        prop_assert!(!(made.dealt && weights.iter().all(|&weight| weight < 2)), "masks are never dealt");
    }

    /// Weights that never bind leave the choice by edges as it is, but where nobody's neighbour is in any part.
    #[test]
    fn equal_weights_change_nothing(graph in any_graph(), rule in rules(), k in 1_u32..9) {
        let on = BalanceOn::new(vec![1; graph.n as usize], 2.0).unwrap();
        let plain = stream(rule, k, 1.1, 2, Some(1));
        let weighted = VertexStream { balance_on: Some(on), ..plain.clone() };
        prop_assert_eq!(&partition(&graph, &plain).assignment[..], &partition(&graph, &weighted).assignment[..]);
    }
}

#[test]
fn a_star_a_clique_and_isolated_vertices() {
    let star = Graph::new(101, (1..=100).map(|v| [0, v]).collect());
    let clique = Graph::new(40, (0..40).flat_map(|u| (0..u).map(move |v| [u, v])).collect());
    let isolated = Graph::new(1000, vec![[0, 999]]);
    for rule in RULES {
        for (graph, k) in [(&star, 4), (&clique, 3), (&isolated, 7), (&isolated, 1200)] {
            for batch in [1, 8] {
                partition(graph, &stream(rule, k, 1.0, 2, Some(batch)));
            }
        }
        let loads = partition(&isolated, &stream(rule, 7, 1.1, 1, None)).loads;
        // The last vertex may follow its one neighbour into a part that is not the least loaded.
        assert!(loads.iter().max().unwrap() - loads.iter().min().unwrap() <= 2, "{loads:?}");
    }
}

/// What batches lose on a graph large enough to have them by default.
#[test]
fn batches_are_nearly_as_good_as_the_sequential_rule() {
    let model = Rmat::new(1 << 16, 1 << 19, 1).unwrap();
    let graph = Graph::new(model.num_vertices(), records(&model, 0..1 << 19, &run(2)).unwrap());
    let csr = Csr::build(&graph, false, &run(2)).unwrap();
    for rule in RULES {
        let cut = |batch| {
            let made = stream(rule, 16, 1.1, 1, batch).partition(&csr, &run(2)).unwrap();
            let parts = &made.assignment;
            graph.records.iter().filter(|[u, v]| parts[*u as usize] != parts[*v as usize]).count() as f64
        };
        let (sequential, default) = (cut(Some(1)), cut(None));
        assert_ne!(sequential, default);
        assert!(default <= 1.02 * sequential, "{rule:?}: {default} records cut instead of {sequential}");
    }
}

#[test]
fn refusals() {
    let graph = Graph::new(3, vec![[0, 1]]);
    let [fennel, zero] = [2, 0].map(Refennel::new);
    for (wrong, parameter) in [
        (zero, "k"),
        (Refennel { balance: 0.9, ..fennel.clone() }, "balance"),
        (Refennel { passes: 0, ..fennel.clone() }, "passes"),
        (Refennel { balance_on: Some(vec![1, 2].into()), ..fennel.clone() }, "balance_on"),
    ] {
        let error = wrong.partition(&graph, &run(1)).unwrap_err();
        assert!(matches!(error, Error::Parameter { name, .. } if name == parameter), "{error}");
    }
    let small = Run::new(Some(1), Some(100)).unwrap();
    assert!(matches!(fennel.partition(&graph, &small), Err(Error::MemoryBudget { .. })));
}

#[test]
fn a_cancelled_run_stops() {
    let graph = Graph::new(50_000, (0..49_999).map(|v| [v, v + 1]).collect());
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    for batch in [1, 64] {
        let run = run(1);
        run.cancel();
        let outcome = stream(Rule::Fennel, 4, 1.1, 1, Some(batch)).partition(&csr, &run);
        assert!(matches!(outcome, Err(Error::Cancelled)));
    }
}
