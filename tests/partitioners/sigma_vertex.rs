//! SIGMA of vertices against an oracle that scores every part for every vertex, and what must hold on every graph.

use std::num::NonZeroU64;

use crate::common::sigma::{Oracle, Outcome};
use crate::common::{Graph, OfVertices, graphs, run};
use fastpart::internals::algorithms::sigma::Sigma;
use fastpart::internals::algorithms::sigma::vertex::Objective;
use fastpart::internals::base::Buffer;
use fastpart::internals::base::Error;
use fastpart::internals::base::Run;
use fastpart::internals::generate;
use fastpart::internals::generate::{Generator, Rmat};
use fastpart::internals::graph::Csr;
use fastpart::internals::partition::{Of, VertexPartition};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn preference(parts: &[u32]) -> Buffer<u32> {
    let mut preferred = Buffer::zeroed(parts.len(), "preferred parts").unwrap();
    preferred.copy_from_slice(parts);
    preferred
}

fn place(graph: &Graph, sigma: &Sigma, preferred: &[u32], threads: usize) -> VertexPartition {
    let csr = Csr::build(graph, false, &run(threads)).unwrap();
    let found = sigma.place(&csr, preference(preferred), &run(threads)).unwrap();
    check(graph, sigma, &found);
    found
}

/// What holds for every result.
fn check(graph: &Graph, sigma: &Sigma, found: &VertexPartition) {
    let oracle = Oracle::new(graph, sigma);
    let mut loads = vec![[0_u64; 2]; sigma.k as usize];
    assert_eq!(found.assignment.len() as u64, graph.n);
    for (v, &part) in found.assignment.iter().enumerate() {
        let load = &mut loads[part as usize];
        *load = [load[0] + 1, load[1] + oracle.item(v)[1]];
    }
    assert_eq!(found.loads, loads.iter().map(|load| load[0]).collect::<Vec<_>>());
    if !sigma.strict {
        assert!(found.cap.is_none() && found.volume.is_none() && !found.dealt);
        return;
    }
    let volume = found.volume.as_ref().unwrap();
    assert_eq!(volume.loads, loads.iter().map(|load| load[1]).collect::<Vec<_>>());
    assert_eq!((found.cap, volume.nominal), (Some(oracle.caps[0]), oracle.caps[1]));
    assert!(loads.iter().all(|load| load[0] <= oracle.caps[0] && load[1] <= volume.cap), "{loads:?}");
    let (total, largest) = (0..graph.n as usize)
        .map(|v| oracle.item(v)[1])
        .fold((0, 0), |(sum, most), item| (sum + item, most.max(item)));
    let bound = total.div_ceil(u64::from(sigma.k)) + largest;
    assert!(volume.cap <= volume.nominal.max(bound), "{} above {bound}", volume.cap);
    if volume.cap > volume.nominal {
        assert_eq!(volume.loads.iter().max(), Some(&volume.cap), "raised more than needed");
    }
}

/// Compares with the oracle.
fn compare(graph: &Graph, sigma: &Sigma, preferred: &[u32]) -> Outcome {
    let expected = Oracle::new(graph, sigma).run(preferred, sigma.batch.map_or(1, NonZeroU64::get) as usize);
    for threads in [1, 2] {
        let found = place(graph, sigma, preferred, threads);
        assert_eq!(&found.assignment[..], expected.parts);
        assert_eq!(found.volume.map(|volume| (volume.cap, found.dealt)), expected.volume);
    }
    expected
}

fn parameters() -> impl Strategy<Value = Sigma> {
    let ratio = || prop_oneof![Just(1.03), Just(1.0), Just(1.1), 1.0..3.0, Just(1e308)];
    let k = prop_oneof![1_u32..=8, 9_u32..=70];
    let objective = select(vec![Objective::Cut, Objective::Multi]);
    let weights = (select(vec![0.0, 0.5, 3.0]), select(vec![2.5, 1.2, 5.0]));
    (k, ratio(), ratio(), objective, weights, select(vec![None, Some(1), Some(2), Some(7)]), any::<bool>())
        .prop_map(|(k, balance, volume_balance, objective, (tau, gamma), batch, strict)| Sigma {
            balance: Some(balance),
            volume_balance,
            objective,
            tau,
            gamma,
            batch: batch.and_then(NonZeroU64::new),
            strict,
            ..Sigma::new(k)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_rule(graph in graphs(24, 60), sigma in parameters(), wishes in vec(any::<u32>(), 24)) {
        let preferred: Vec<u32> = wishes[..graph.n as usize].iter().map(|wish| wish % sigma.k).collect();
        compare(&graph, &sigma, &preferred);
    }

    /// All prefer one part: the preassignment fills it, the stream and the repair meet tight caps.
    #[test]
    fn tight_caps(graph in graphs(24, 60), sigma in parameters(), k in 2_u32..6, all in any::<bool>()) {
        let sigma = Sigma { k, balance: Some(1.0), volume_balance: 1.0, ..sigma };
        let preferred: Vec<u32> = (0..graph.n as u32).map(|v| if all { 0 } else { v % k }).collect();
        compare(&graph, &sigma, &preferred);
    }

    /// From the records on, with clusters.
    #[test]
    fn with_clusters(graph in graphs(40, 120), sigma in parameters()) {
        let whole = |threads| {
            let csr = Csr::build(&graph, false, &run(threads)).unwrap();
            sigma.partition_vertices(&csr, &run(threads)).unwrap()
        };
        let found = whole(1);
        check(&graph, &sigma, &found);
        prop_assert_eq!(&found.assignment[..], &whole(3).assignment[..]);
    }
}

/// Each way that the repair can end.
#[test]
fn each_end_of_the_repair() {
    let mut ends = [0; 3];
    let mut random = fastpart::internals::base::Random::new(1, 0);
    for _ in 0..3000 {
        let n = 4 + random.below(12) as u32;
        // Edges between few hubs and many others.
        let records = (0..random.below(40)).map(|_| [random.below(3) as u32, random.below(n.into()) as u32]);
        let graph = Graph::new(n.into(), records.collect());
        let k = 2 + random.below(3) as u32;
        let sigma = Sigma { balance: Some(1.0), volume_balance: 1.0, ..Sigma::new(k) };
        let preferred: Vec<u32> = (0..n).map(|_| random.below(k.into()) as u32).collect();
        let nominal = Oracle::new(&graph, &sigma).caps[1];
        match compare(&graph, &sigma, &preferred).volume.unwrap() {
            (_, true) => ends[2] += 1,
            (cap, _) if cap > nominal => ends[1] += 1,
            _ => ends[0] += 1,
        }
    }
    assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
}

/// Runs objectives, numbers of parts and batches.
fn try_all(n: u64, records: Vec<[u32; 2]>) {
    let graph = Graph::new(n, records);
    let csr = Csr::build(&graph, false, &run(2)).unwrap();
    for (k, strict) in [(1, true), (2, true), (8, false), (8, true), (33, true), (100, true)] {
        for objective in [Objective::Cut, Objective::Multi] {
            for batch in [None, Some(1), Some(7), Some(5000)] {
                let sigma =
                    Sigma { objective, batch: batch.and_then(NonZeroU64::new), strict, ..Sigma::new(k) };
                let found = sigma.partition_vertices(&csr, &run(1)).unwrap();
                check(&graph, &sigma, &found);
                let again = sigma.partition_vertices(&csr, &run(3)).unwrap();
                assert!(found.assignment[..] == again.assignment[..], "{sigma:?}");
            }
        }
    }
}

#[test]
fn shapes() {
    try_all(0, Vec::new());
    try_all(17, Vec::new());
    try_all(1, vec![[0, 0]]);
    try_all(2, vec![[0, 1], [1, 0], [0, 1]]);
    try_all(50, (0..50).map(|v| [v, v]).collect());
    try_all(300, (1..300).map(|v| [0, v]).collect());
    try_all(300, (0..299).map(|v| [v, 299]).collect());
    try_all(40, (0..40).flat_map(|u| (0..u).map(move |v| [u, v])).collect());
    try_all(500, (1..500).map(|v| [v - 1, v]).collect());
    try_all(60, (0..20).flat_map(|u| (20..60).map(move |v| [u, v])).collect());
    try_all(5, vec![[0, 1], [1, 2], [2, 3], [3, 4]]);
    try_all(2000, (0..1000).map(|pair| [2 * pair + 1, 2 * pair]).collect());
    let ring = (1..400).map(|v| [v, v % 399 + 1]);
    try_all(400, ring.flat_map(|edge| [[0, edge[0]], edge]).collect());
}

#[test]
fn a_large_graph_in_batches() {
    let rmat = Rmat::new(70_000, (1 << 18) + 12_345, 11).unwrap();
    let graph =
        Graph::new(rmat.num_vertices(), generate::records(&rmat, 0..rmat.num_edges(), &run(2)).unwrap());
    let csr = Csr::build(&graph, false, &run(2)).unwrap();
    for objective in [Objective::Cut, Objective::Multi] {
        let sigma = Sigma { objective, ..Sigma::new(8) };
        let found = sigma.partition_vertices(&csr, &run(1)).unwrap();
        check(&graph, &sigma, &found);
        let again = sigma.partition_vertices(&csr, &run(3)).unwrap();
        assert!(found.assignment[..] == again.assignment[..]);
        let sequential =
            Sigma { batch: NonZeroU64::new(1), ..sigma }.partition_vertices(&csr, &run(1)).unwrap();
        assert!(found.assignment[..] != sequential.assignment[..], "the default should work in batches");
    }
}

#[test]
fn refusals() {
    let graph = Graph::new(3, vec![[0, 1], [1, 2]]);
    let refused = |sigma: Sigma, run: &Run| sigma.partition(&graph, run).unwrap_err();
    let named = |sigma: Sigma| match refused(sigma, &run(1)) {
        Error::Parameter { name, .. } => name,
        other => panic!("{other}"),
    };
    let sigma = Sigma::new;
    assert_eq!(named(sigma(0)), "k");
    assert_eq!(named(sigma((1 << 20) + 1)), "k");
    for wrong in [0.5, f64::NAN, f64::INFINITY] {
        assert_eq!(named(Sigma { balance: Some(wrong), ..sigma(2) }), "balance");
        assert_eq!(named(Sigma { volume_balance: wrong, ..sigma(2) }), "volume_balance");
    }
    for wrong in [-0.1, f64::NAN, f64::INFINITY] {
        assert_eq!(named(Sigma { tau: wrong, ..sigma(2) }), "tau");
        assert_eq!(named(Sigma { gamma: wrong, ..sigma(2) }), "gamma");
    }
    assert_eq!(named(Sigma { gamma: 1.1, ..sigma(2) }), "gamma");
    for bands in [0, 65] {
        assert_eq!(named(Sigma { bands, of: Of::Edges, ..sigma(2) }), "bands");
    }
    let tight = Run::new(Some(1), Some(100)).unwrap();
    assert!(matches!(refused(sigma(2), &tight), Error::MemoryBudget { .. }));
    let cancelled = run(2);
    cancelled.cancel();
    assert!(matches!(refused(sigma(2), &cancelled), Error::Cancelled));
}
