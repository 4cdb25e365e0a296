//! Weighted records: sums against an oracle, the scale of weights in the adjacency, and what multilevel makes of them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::common::{Graph, graphs, run};
use fastpart::internals::algorithms::multilevel::{Goal, Multilevel, Objective};
use fastpart::internals::base::npy;
use fastpart::internals::base::{Error, Run};
use fastpart::internals::edges::{EdgeStream, Io, Record, Weights};
use fastpart::internals::generate::{Generator, Rmat, records};
use fastpart::internals::graph::extent;
use fastpart::internals::graph::{AdjacencyCache, Csr};
use fastpart::internals::measure::weighted_cut;
use proptest::collection::vec;
use proptest::prelude::*;

/// The weights of a vector that outlives them.
fn of(weights: &[u32]) -> Weights {
    // SAFETY: the tests keep the slice alive and unchanged.
    unsafe { Weights::in_memory(weights.as_ptr().cast(), weights.len() as u64) }
}

fn csr(graph: &Graph, weights: &[u32], threads: usize) -> Arc<Csr> {
    Csr::build_weighted(graph, Some(&of(weights)), false, &run(threads)).unwrap()
}

/// Weights by pair of vertices, as entries have them.
fn sums(csr: &Csr) -> HashMap<Record, u64> {
    let mut sums = HashMap::new();
    for v in 0..csr.num_vertices() as u32 {
        let first = csr.offsets()[v as usize] as usize;
        for (&u, &weight) in csr.neighbours(v).iter().zip(&csr.weights().unwrap()[first..]) {
            assert!(weight > 0, "no entry weighs 0");
            *sums.entry([v, u]).or_default() += u64::from(weight);
        }
    }
    sums
}

fn rmat(m: u64) -> Graph {
    let rmat = Rmat::new(1 << 10, m, 3).unwrap();
    let records = records(&rmat, 0..rmat.num_edges(), &run(1)).unwrap();
    Graph::new(rmat.num_vertices(), records)
}

proptest! {
    #[test]
    fn entries_and_cuts_agree_with_an_oracle(
        graph in graphs(20, 60),
        mut weights in prop::collection::vec(1..1000_u32, 60),
        mut parts in prop::collection::vec(0..3_i32, 20),
    ) {
        weights.truncate(graph.records.len());
        parts.truncate(graph.n as usize);
        let uniform = weights.iter().all(|weight| *weight == weights[0]);
        let mut expected: HashMap<Record, u64> = HashMap::new();
        let (mut internal, mut cut) = (vec![0; 3], vec![0; 3]);
        for (&[u, v], &weight) in graph.records.iter().zip(&weights).filter(|([u, v], _)| u != v) {
            let weight = u64::from(weight);
            *expected.entry([u, v]).or_default() += weight;
            *expected.entry([v, u]).or_default() += weight;
            let [p, q] = [u, v].map(|end| parts[end as usize] as usize);
            if p == q {
                internal[p] += weight;
            } else {
                cut[p] += weight;
                cut[q] += weight;
            }
        }
        for threads in [1, 3] {
            if !uniform {
                prop_assert_eq!(&sums(&csr(&graph, &weights, threads)), &expected);
            }
            let found = weighted_cut(&graph, &of(&weights), &parts, 3, &run(threads)).unwrap();
            prop_assert_eq!((&found.internal, &found.cut), (&internal, &cut));
        }
    }

    #[test]
    fn weights_of_1_change_nothing(graph in graphs(60, 200), k in 1..5_u32) {
        let ones = vec![1; graph.records.len()];
        let multilevel = Multilevel::new(k);
        let without = multilevel.partition(&Csr::build(&graph, false, &run(1)).unwrap(), &run(1)).unwrap();
        let with = multilevel.partition(&csr(&graph, &ones, 2), &run(2)).unwrap();
        prop_assert!(without.assignment[..] == with.assignment[..]);
    }
}

#[test]
fn weights_of_1_change_nothing_on_a_larger_graph() {
    let graph = rmat(20_000);
    let ones = vec![1; graph.records.len()];
    for multilevel in [
        Multilevel::new(8),
        Multilevel::from(Goal { objective: Objective::Halo, ..Goal::new(4) }),
        Multilevel::from(Goal { machines: Some(vec![2, 2]), ..Goal::new(4) }),
    ] {
        let without = multilevel.partition(&Csr::build(&graph, false, &run(2)).unwrap(), &run(2)).unwrap();
        for threads in [1, 2, 3] {
            let with = multilevel.partition(&csr(&graph, &ones, threads), &run(threads)).unwrap();
            assert!(without.assignment[..] == with.assignment[..]);
        }
    }
}

#[test]
fn large_weights_are_halved_and_zeros_count_a_little() {
    let graph = Graph::new(4, vec![[0, 1], [1, 2], [2, 3], [3, 0], [0, 1]]);
    let most = u32::MAX;
    let halved = csr(&graph, &[most, most, most, 2, 1], 2);
    let found = sums(&halved);
    assert!(halved.weights().unwrap().iter().map(|&weight| u64::from(weight)).sum::<u64>() <= 1 << 32);
    assert_eq!(found[&[1, 2]], found[&[2, 3]]);
    assert_eq!(found[&[0, 1]], found[&[1, 2]] + 1, "what is above 0 stays above 0");
    let zeros = csr(&graph, &[5, 0, 7, 0, 0], 1);
    let found = sums(&zeros);
    assert_eq!((found[&[1, 2]], found[&[3, 0]]), (1, 1));
    assert_eq!(found[&[2, 3]] / 7, (found[&[0, 1]] - 1) / 5, "the others keep their ratio");
    assert!(found[&[2, 3]] > 1 << 20);
}

#[test]
fn huge_weights_partition_on_any_number_of_threads() {
    let graph = rmat(10_000);
    let weights: Vec<u32> = (0..graph.m() as u32).map(|r| u32::MAX - r % 7).collect();
    let [one, two, three] = [1, 2, 3]
        .map(|threads| Multilevel::new(4).partition(&csr(&graph, &weights, threads), &run(threads)).unwrap());
    assert!(one.assignment[..] == two.assignment[..] && one.assignment[..] == three.assignment[..]);
}

/// Records of all pairs of so many vertices, which say nothing, and weights that show two communities, odd and even.
fn planted(n: u32) -> (Graph, Vec<u32>) {
    let pairs = (0..n).flat_map(|u| (0..u).map(move |v| [u, v])).filter(|[u, v]| (u * 31 + v * 17) % 5 < 2);
    let records: Vec<Record> = pairs.collect();
    let weights = records.iter().map(|[u, v]| if u % 2 == v % 2 { 20 } else { 1 }).collect();
    (Graph::new(n.into(), records), weights)
}

#[test]
fn weights_alone_show_communities() {
    let (graph, weights) = planted(400);
    let cut = |csr: &Csr| {
        let found = Multilevel::new(2).partition(csr, &run(2)).unwrap();
        weighted_cut(&graph, &of(&weights), &found.assignment, 2, &run(2)).unwrap().cut[0]
    };
    let crossing = weights.iter().filter(|&&weight| weight == 1).count() as u64;
    assert_eq!(cut(&csr(&graph, &weights, 2)), crossing);
    assert!(cut(&Csr::build(&graph, false, &run(2)).unwrap()) > 3 * crossing);
}

#[test]
fn symmetric_records_weigh_the_same_both_ways() {
    let graph = Graph::new(3, vec![[0, 1], [1, 0], [1, 2], [2, 1]]);
    let build = |weights: &[u32]| Csr::build_weighted(&graph, Some(&of(weights)), true, &run(1)).unwrap();
    let multilevel = Multilevel::from(Goal { balance: 1.5, ..Goal::new(2) });
    let found = multilevel.partition(&build(&[1, 1, 9, 9]), &run(1)).unwrap();
    assert_eq!(found.assignment[1], found.assignment[2]);
    let error = multilevel.partition(&build(&[1, 2, 9, 9]), &run(1)).unwrap_err().to_string();
    assert!(error.contains("from 0 to 1 and from 1 to 0 differ in weight"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_stream_is_symmetric_if_both_directions_of_its_edges_weigh_the_same(
        edges in vec((0..6_u32, 0..6_u32, 1..3_u32), 0..12),
        doubled in any::<bool>(),
        threads in 1..4_usize,
    ) {
        let back = edges.iter().filter(|_| doubled).map(|&(u, v, w)| (v, u, w));
        let all: Vec<(u32, u32, u32)> = edges.iter().copied().chain(back).collect();
        let graph = Graph::new(6, all.iter().map(|&(u, v, _)| [u, v]).collect());
        // One of each size, so that weights are kept as they are.
        let weights: Vec<u32> = all.iter().map(|&(_, _, w)| w).collect();
        let csr = Csr::build_weighted(&graph, Some(&of(&weights)), true, &run(threads)).unwrap();
        let lists = |turned: bool| {
            let kept = all.iter().filter(|(u, v, _)| u != v);
            let mut list: Vec<_> = kept.map(|&(u, v, w)| if turned { (v, u, w) } else { (u, v, w) }).collect();
            list.sort();
            list
        };
        let same = all.iter().all(|&(_, _, w)| w == all[0].2);
        let without = |turned| lists(turned).into_iter().map(|(u, v, _)| (u, v)).collect::<Vec<_>>();
        let symmetric = if same { without(false) == without(true) } else { lists(false) == lists(true) };
        let found = Multilevel::from(Goal { balance: 2.0, ..Goal::new(2) }).partition(&csr, &run(threads));
        prop_assert_eq!(found.is_ok(), symmetric);
        if let Err(error) = found {
            let text = error.to_string();
            let named = (0..6).flat_map(|u| (0..6).map(move |v| [u, v])).find(|[u, v]| {
                text.contains(&format!("list {u} to {v} more often than {v} to {u}."))
                    || text.contains(&format!("from {u} to {v} and from {v} to {u} differ in weight."))
            });
            let [u, v] = named.expect(&text);
            let of = |u: u32, v: u32| lists(false).into_iter().filter(|edge| (edge.0, edge.1) == (u, v)).map(|e| e.2).collect::<Vec<_>>();
            if text.contains("often") {
                prop_assert!(of(u, v).len() > of(v, u).len(), "{}", text);
            } else {
                prop_assert!(of(u, v).len() == of(v, u).len() && of(u, v) != of(v, u), "{}", text);
            }
        }
    }

    #[test]
    fn an_adjacency_knows_the_sum_of_its_weights(
        edges in vec((0..50_u32, 0..50_u32, 0..1000_u32), 0..200),
        symmetric in any::<bool>(),
    ) {
        let graph = Graph::new(50, edges.iter().map(|&(u, v, _)| [u, v]).collect());
        let weights: Vec<u32> = edges.iter().map(|&(_, _, w)| w).collect();
        let csr = Csr::build_weighted(&graph, Some(&of(&weights)), symmetric, &run(2)).unwrap();
        prop_assert_eq!(csr.weight(), csr.weights().unwrap().iter().map(|&w| u64::from(w)).sum::<u64>());
        let plain = Csr::build(&graph, symmetric, &run(2)).unwrap();
        prop_assert_eq!(plain.weight(), plain.num_entries());
    }
}

#[test]
fn the_cache_knows_the_weights() {
    let graph = Graph::new(3, vec![[0, 1], [1, 2]]);
    let (mut first, second) = (vec![1, 2], vec![3, 4]);
    let cache = AdjacencyCache::default();
    let get = |weights: Option<&[u32]>| cache.get(&graph, weights.map(of).as_ref(), false, &run(1)).unwrap();
    let plain = get(None);
    assert!(plain.weights().is_none());
    let weighted = get(Some(&first));
    assert!(weighted.weights().is_some() && Arc::ptr_eq(&weighted, &get(Some(&first))));
    assert!(Arc::ptr_eq(&weighted, &get(None)), "it serves both");
    assert_eq!(get(Some(&second)).weights().unwrap()[0], 3);
    first[0] = 9;
    assert_eq!(get(Some(&first)).weights().unwrap()[0], 9);
}

#[test]
fn adjacencies_with_weights_in_files_are_the_same() {
    let graph = rmat(20_000);
    let weights: Vec<u32> = (0..graph.m() as u32).map(|r| r % 100).collect();
    let tight = Run::new(Some(2), Some(Csr::memory(&graph, true, false, &run(2)))).unwrap();
    let files = Csr::build_weighted(&graph, Some(&of(&weights)), false, &tight).unwrap();
    let memory = csr(&graph, &weights, 2);
    assert_eq!(files.weights(), memory.weights());
    assert!(memory.bytes() >= 8 * memory.num_entries() && files.extent() == memory.extent());
}

fn npy_of(descr: &str, shape: &[u64], bytes: &[u8]) -> tempfile::TempPath {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, [npy::header(descr, shape), bytes.to_vec()].concat()).unwrap();
    file.into_temp_path()
}

#[test]
fn files_mapped_read_and_swapped_agree_with_memory() {
    let weights: Vec<u32> = (0..100_000_u32).map(|r| r.wrapping_mul(2_654_435_761)).collect();
    let expected = extent(&of(&weights), &run(2)).unwrap();
    assert_eq!(expected.least, *weights.iter().min().unwrap());
    assert_eq!(expected.most, *weights.iter().max().unwrap());
    assert_eq!(expected.total, weights.iter().map(|&weight| u64::from(weight)).sum::<u64>());
    let len = [weights.len() as u64];
    let big: Vec<u8> = weights.iter().flat_map(|weight| weight.to_be_bytes()).collect();
    for path in [npy_of("<u4", &len, bytemuck::cast_slice(&weights)), npy_of(">u4", &len, &big)] {
        for io in [Io::Map, Io::Read] {
            let file = Weights::open(&path, io).unwrap();
            assert_eq!(extent(&file, &run(1)).unwrap(), expected);
            let mut buf = Vec::new();
            assert_eq!(file.block(70_000..70_003, &mut buf).unwrap(), &weights[70_000..70_003]);
            assert!(file.block(100_000..100_007, &mut buf).unwrap().is_empty());
        }
    }
}

#[test]
fn refusals_name_file_count_and_remedy() {
    let refused = |path: &std::path::Path| Weights::open(path, Io::Map).unwrap_err().to_string();
    let error = refused(&npy_of("<f4", &[2], &[0; 8]));
    assert!(error.contains("dtype <f4. Weights are uint32"), "{error}");
    assert!(refused(&npy_of("<u4", &[2, 2], &[0; 16])).contains("shape [2, 2]"));
    assert!(refused(&npy_of("<u4", &[3], &[0; 8])).contains("do not hold the 3 weights"));
    let path = npy_of("<u4", &[3], &[0; 12]);
    let zeros = Weights::open(&path, Io::Map).unwrap();
    let error = zeros.check_len(4).unwrap_err().to_string();
    assert!(error.contains("3 weights for 4 records") && error.contains(path.to_str().unwrap()), "{error}");
    assert!(zeros.check_total(0).unwrap_err().to_string().contains("all weights are 0"));
    std::fs::write(&path, [0; 7]).unwrap();
    assert!(matches!(zeros.check_unchanged(), Err(Error::FileChanged { .. })));
    let graph = Graph::new(2, vec![[0, 1]]);
    assert!(Csr::build_weighted(&graph, Some(&of(&[1, 2])), false, &run(1)).is_err());
    assert!(weighted_cut(&graph, &of(&[]), &[0, 0], 1, &run(1)).is_err());
    assert_eq!(graph.num_edges(), 1);
}
