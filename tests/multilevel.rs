//! The multilevel partitioner: caps, gains and cuts recounted, tiny graphs against all their partitions.

#![allow(clippy::unwrap_used)]

mod common;

use common::spring::share;
use common::{Graph, graphs, run};
use fastpart::algorithms::multilevel::coarsening::{Coarsening, Rating};
use fastpart::algorithms::multilevel::state::{Quality, State};
use fastpart::algorithms::multilevel::{Multilevel, Scheme, Second, graph};
use fastpart::base::buffer::Buffer;
use fastpart::base::error::Error;
use fastpart::base::random::Random;
use fastpart::capacity::BalanceOn;
use fastpart::generate::{Generator, Grid, Rmat, records};
use fastpart::graph::csr::Csr;
use fastpart::partition::VertexPartition;
use proptest::prelude::*;

fn cut(graph: &Graph, part_of: &[i32]) -> usize {
    graph.records.iter().filter(|[u, v]| part_of[*u as usize] != part_of[*v as usize]).count()
}

/// Partitions with 1 and 3 threads, which must agree, and checks what holds for every result.
fn partition(graph: &Graph, multilevel: &Multilevel) -> VertexPartition {
    let csr = Csr::build(graph, false, &run(1)).unwrap();
    let [one, three] = [1, 3].map(|threads| multilevel.partition(&csr, &run(threads)).unwrap());
    assert!(one.assignment[..] == three.assignment[..], "threads change the result");
    let k = multilevel.k as usize;
    let (mut loads, mut seconds) = (vec![0; k], vec![0; k]);
    for (v, &part) in (0..).zip(&*one.assignment) {
        loads[part as usize] += 1;
        seconds[part as usize] += match &multilevel.second {
            Some(Second::Weights(on)) => on.weight(v),
            _ => u64::from(csr.degree(v)) + 1,
        };
    }
    assert_eq!(one.loads, loads);
    assert_eq!(one.cap, Some(share(multilevel.balance, graph.n, multilevel.k).ceil() as u64));
    assert!(loads.iter().all(|&load| load <= one.cap.unwrap()), "{loads:?} above {:?}", one.cap);
    match &multilevel.second {
        None => assert!(one.volume.is_none() && one.weight_cap.is_none()),
        Some(Second::Volume(_)) => {
            let volume = one.volume.as_ref().unwrap();
            assert_eq!(volume.loads, seconds);
            assert!(volume.cap >= volume.nominal && seconds.iter().all(|&load| load <= volume.cap));
        }
        Some(Second::Weights(_)) => {
            assert_eq!(one.weight_loads.as_ref(), Some(&seconds));
            assert!(seconds.iter().all(|&load| load <= one.weight_cap.unwrap()));
        }
    }
    one
}

fn many(k: u32, balance: f64, second: Option<Second>) -> Multilevel {
    Multilevel { balance, second, ..Multilevel::new(k) }
}

/// The least cut of all partitions within the cap.
fn optimum(graph: &Graph, k: u32, cap: u64) -> usize {
    let n = graph.n as u32;
    let all = (0..u64::from(k).pow(n)).filter_map(|mut code| {
        let (mut loads, mut part_of) = (vec![0; k as usize], Vec::new());
        for _ in 0..n {
            let part = (code % u64::from(k)) as usize;
            code /= u64::from(k);
            loads[part] += 1;
            part_of.push(part as i32);
        }
        loads.iter().all(|&load| load <= cap).then(|| cut(graph, &part_of))
    });
    all.min().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn caps_hold(graph in graphs(60, 200), k in prop_oneof![1_u32..9, Just(70), Just(200)], balance in 1.0..1.3) {
        partition(&graph, &many(k, balance, None));
        partition(&graph, &many(k, balance, Some(Second::Volume(balance))));
        let weights = (0..graph.n as u32).map(|v| v % 3).collect();
        let on = BalanceOn::new(weights, balance).unwrap();
        partition(&graph, &many(k, balance, Some(Second::Weights(on))));
    }

    #[test]
    fn ties_loads_and_cut_follow_moves(graph in graphs(30, 100), k in 2_usize..6, seed in 0_u64..1000) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let weighted = graph::Graph::of(&csr, |v| [1, u64::from(csr.degree(v))], &run(1)).unwrap();
        let caps = vec![[graph.n / 2, 50]; k];
        let start = Buffer::zeroed(graph.n as usize, "parts").unwrap();
        let mut state = State::new(&weighted, start, &caps, &run(1)).unwrap();
        let mut random = Random::new(seed, 0);
        for _ in 0..if graph.n > 0 { 50 } else { 0 } {
            state.shift(random.below(graph.n) as u32, random.below(k as u64) as usize);
        }
        let parts: Vec<i32> = state.part_of.iter().map(|&part| part as i32).collect();
        prop_assert_eq!(state.cut as usize, cut(&graph, &parts));
        prop_assert_eq!(state.quality(), Quality::of(&weighted, &state.part_of, &caps, &run(1)).unwrap());
        for v in 0..graph.n as u32 {
            let mut ties = vec![0; k];
            csr.neighbours(v).iter().for_each(|&u| ties[parts[u as usize] as usize] += 1);
            prop_assert_eq!(state.ties(v), &ties[..]);
            if let Some((part, gain)) = state.best_move(v) {
                let mut moved = parts.clone();
                moved[v as usize] = part as i32;
                prop_assert_eq!(cut(&graph, &moved) as i64, cut(&graph, &parts) as i64 - gain);
            }
        }
    }
}

#[test]
fn tiny_graphs_come_close_to_the_optimum() {
    let (mut found, mut best) = (0, 0);
    for seed in 0..200 {
        let mut random = Random::new(seed, 0);
        let n = 2 + random.below(8);
        let m = random.below(3 * n);
        let records = (0..m).map(|_| [random.below(n) as u32, random.below(n) as u32]).collect();
        let graph = Graph::new(n, records);
        for k in [2, 3] {
            let made = partition(&graph, &many(k, 1.2, None));
            let (cut, least) = (cut(&graph, &made.assignment), optimum(&graph, k, made.cap.unwrap()));
            assert!(cut >= least);
            (found, best) = (found + cut, best + least);
        }
    }
    assert!(found * 100 <= best * 106, "{found} cut in all, where {best} would do");
}

#[test]
fn extreme_graphs() {
    let star = (1..200).map(|v| [0, v]).collect();
    let clique = (0..30).flat_map(|u| (0..u).map(move |v| [u, v])).collect();
    let thick = (0..100).map(|i| [i % 2, (i + 1) % 2]).chain([[3, 3]]).collect();
    for graph in [
        Graph::new(200, star),
        Graph::new(30, clique),
        Graph::new(5, thick),
        Graph::new(1000, vec![]),
        Graph::new(0, vec![]),
    ] {
        for k in [1, 2, 7, 64, 65, 5000] {
            partition(&graph, &many(k, 1.0, None));
            partition(&graph, &many(k, 1.0, Some(Second::Volume(1.0))));
        }
    }
}

#[test]
fn communities_are_found() {
    let clique = |first: u32| (first..first + 20).flat_map(move |u| (first..u).map(move |v| [u, v]));
    let mut records: Vec<_> = (0..8).flat_map(|block| clique(20 * block)).collect();
    records.extend((0..8).map(|block| [20 * block, (20 * block + 21) % 160]));
    let graph = Graph::new(160, records);
    for k in [2, 4, 8] {
        let made = partition(&graph, &many(k, 1.03, None));
        assert_eq!(cut(&graph, &made.assignment), k as usize);
    }
}

#[test]
fn blocks_of_parts_and_shares() {
    let rmat = Rmat::new(5000, 40_000, 1).unwrap();
    let graph = Graph::new(rmat.num_vertices(), records(&rmat, 0..40_000, &run(1)).unwrap());
    partition(&graph, &many(200, 1.03, Some(Second::Volume(1.1))));
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let weighted = graph::Graph::of(&csr, |_| [1, 0], &run(1)).unwrap();
    // One side has twice the room of the other.
    let (sides, quality) =
        Scheme::default().partition(&weighted, &[[3400, u64::MAX], [1700, u64::MAX]], &run(2)).unwrap();
    let second = sides.iter().filter(|&&side| side == 1).count();
    assert!((1600..=1700).contains(&second) && quality.excess == 0.0);
    assert_eq!(
        quality,
        Quality::of(&weighted, &sides, &[[3400, u64::MAX], [1700, u64::MAX]], &run(1)).unwrap()
    );
}

#[test]
fn refusals() {
    let graph = Graph::new(4, vec![[0, 1], [1, 2]]);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    for (refused, name) in [
        (many(0, 1.0, None), "k"),
        (many(2, 0.9, None), "balance"),
        (many(2, 1.0, Some(Second::Volume(f64::NAN))), "volume_balance"),
        (many(2, 1.0, Some(Second::Weights(BalanceOn::new(vec![1], 1.0).unwrap()))), "balance_on"),
    ] {
        let error = refused.partition(&csr, &run(1)).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: refused, .. } if refused == name), "{error}");
    }
    let one_way = Csr::build(&graph, true, &run(1)).unwrap();
    let error = Multilevel::new(2).partition(&one_way, &run(1)).unwrap_err();
    assert!(matches!(error, Error::Parameter { name: "directedness", .. }));
    let small = fastpart::base::run::Run::new(Some(1), Some(100)).unwrap();
    assert!(matches!(Multilevel::new(2).partition(&csr, &small), Err(Error::MemoryBudget { .. })));
    let run = run(1);
    run.cancel();
    assert!(matches!(Multilevel::new(2).partition(&csr, &run), Err(Error::Cancelled)));
}

#[test]
fn meshes_are_matched_by_edges() {
    let grid = Grid::new(64, 64).unwrap();
    let edges = Graph::new(grid.num_vertices(), records(&grid, 0..grid.num_edges(), &run(1)).unwrap());
    let csr = Csr::build(&edges, false, &run(1)).unwrap();
    let graph = graph::Graph::of(&csr, |_| [1, 0], &run(1)).unwrap();
    let how = Coarsening { rating: Rating::Density, cap: [2, 0], rounds: 2, seed: 7 };
    let half: Vec<u32> = (0..4096).map(|v| v / 2048).collect();
    for cells in [None, Some(&half[..])] {
        let clustered = how.cluster(&graph, cells, &run(1)).unwrap();
        assert!(clustered.count < 4096 * 6 / 10, "{} of 4096 are left", clustered.count);
        let mut members = vec![Vec::new(); clustered.count];
        (0..4096_u32).for_each(|v| members[clustered.cluster_of[v as usize] as usize].push(v));
        for pair in members.iter().filter(|members| members.len() > 1) {
            assert!(pair.len() == 2 && csr.neighbours(pair[0]).contains(&pair[1]));
            assert!(cells.is_none_or(|cells| cells[pair[0] as usize] == cells[pair[1] as usize]));
        }
    }
}
