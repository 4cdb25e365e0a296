//! The multilevel partitioner: caps, gains and cuts recounted, tiny graphs against all their partitions.

use std::time::Duration;

use fastpart::internals::algorithms::multilevel::coarsening::{Clusterer, Clustering, contract};
use fastpart::internals::algorithms::multilevel::model::{Assignment, Problem};
use fastpart::internals::algorithms::multilevel::refinement::{GainTable, Jet, Rebalance, Refiner};
use fastpart::internals::algorithms::multilevel::{Bound, Effort, Goal, Multilevel, Rating, Scheme, model};
use fastpart::internals::base::{Buffer, Error, Random};
use fastpart::internals::capacity::BalanceOn;
use fastpart::internals::generate::{Generator, Grid, Rmat, records};
use fastpart::internals::graph::Csr;
use fastpart::internals::partition::VertexPartition;
use proptest::prelude::*;

use crate::common::spring::share;
use crate::common::{Graph, graphs, run};

fn cut(graph: &Graph, part_of: &[i32]) -> usize {
    graph.records.iter().filter(|[u, v]| part_of[*u as usize] != part_of[*v as usize]).count()
}

/// Partitions with 1 and 3 threads, which must agree, and checks what holds for every result.
fn partition(graph: &Graph, goal: &Goal) -> VertexPartition {
    let csr = Csr::build(graph, false, &run(1)).unwrap();
    let [one, three] =
        [1, 3].map(|threads| Multilevel::from(goal.clone()).partition(&csr, &run(threads)).unwrap());
    assert!(one.assignment[..] == three.assignment[..], "threads change the result");
    let k = goal.k as usize;
    let (mut loads, mut seconds) = (vec![0; k], vec![0; k]);
    for (v, &part) in (0..).zip(&*one.assignment) {
        loads[part as usize] += 1;
        seconds[part as usize] += match &goal.bounds[..] {
            [Bound::Weights(on)] => on.weight(v),
            _ => u64::from(csr.degree(v)) + 1,
        };
    }
    assert_eq!(one.loads, loads);
    assert_eq!(one.cap, Some(share(goal.balance, graph.n, goal.k).ceil() as u64));
    assert!(loads.iter().all(|&load| load <= one.cap.unwrap()), "{loads:?} above {:?}", one.cap);
    match &goal.bounds[..] {
        [Bound::Volume(_)] => {
            let volume = one.volume.as_ref().unwrap();
            assert_eq!(volume.loads, seconds);
            assert!(volume.cap >= volume.nominal && seconds.iter().all(|&load| load <= volume.cap));
        }
        [Bound::Weights(_)] => {
            assert_eq!(one.weights[0].loads, seconds);
            assert!(seconds.iter().all(|&load| load <= one.weights[0].cap));
        }
        _ => assert!(one.volume.is_none() && one.weights.is_empty()),
    }
    one
}

fn many(k: u32, balance: f64, second: Option<Bound>) -> Goal {
    Goal { balance, bounds: second.into_iter().collect(), ..Goal::new(k) }
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
        partition(&graph, &many(k, balance, Some(Bound::Volume(balance))));
        let weights = (0..graph.n as u32).map(|v| v % 3).collect();
        let on = BalanceOn::new(weights, balance).unwrap();
        partition(&graph, &many(k, balance, Some(Bound::Weights(on))));
    }

    #[test]
    fn the_table_of_gains_follows_moves(graph in graphs(30, 100), k in 2_usize..6, seed in 0_u64..1000) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let weight = |v| [1, u64::from(csr.degree(v))];
        let weighted = model::Graph::finest(&csr, &weight, &run(1)).unwrap();
        let caps = vec![[graph.n / 2, 50]; k];
        let start = Buffer::zeroed(graph.n as usize, "parts").unwrap();
        let mut assignment = Assignment::new(&weighted, start, k, &run(1)).unwrap();
        let mut table = GainTable::new(&weighted, &mut assignment, &caps, &run(1)).unwrap();
        let mut random = Random::new(seed, 0);
        for _ in 0..if graph.n > 0 { 50 } else { 0 } {
            table.shift(random.below(graph.n) as u32, random.below(k as u64) as usize);
        }
        let parts: Vec<i32> = table.assignment.part_of.iter().map(|&part| part as i32).collect();
        prop_assert_eq!(table.cut as usize, cut(&graph, &parts));
        prop_assert_eq!(table.quality(), table.assignment.quality(&weighted, &caps, &run(1)).unwrap());
        for v in 0..graph.n as u32 {
            let mut connections = vec![0; k];
            csr.neighbours(v).iter().for_each(|&u| connections[parts[u as usize] as usize] += 1);
            prop_assert_eq!(table.connections(v), &connections[..]);
            if let Some((part, gain)) = table.best_move(v) {
                let mut moved = parts.clone();
                moved[v as usize] = part as i32;
                prop_assert_eq!(cut(&graph, &moved) as i64, cut(&graph, &parts) as i64 - gain);
            }
        }
    }

    #[test]
    fn contraction_sums_the_edges_between_clusters(graph in graphs(40, 150), count in 1_u32..9, seed in 0_u64..99) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let weight = |v| [1, u64::from(v)];
        let finest = model::Graph::finest(&csr, &weight, &run(1)).unwrap();
        let mut random = Random::new(seed, 0);
        let mut cluster_of: Buffer<u32> = Buffer::zeroed(graph.n as usize, "clusters").unwrap();
        cluster_of.iter_mut().for_each(|cluster| *cluster = random.below(count.into()) as u32);
        let (mut sums, mut weights) = (vec![[0_u32; 9]; count as usize], vec![[0; 2]; count as usize]);
        for [u, v] in graph.records.iter().filter(|[u, v]| u != v) {
            let [a, b] = [u, v].map(|v| cluster_of[*v as usize] as usize);
            if a != b {
                sums[a][b] += 1;
                sums[b][a] += 1;
            }
        }
        for (v, &cluster) in (0..).zip(cluster_of.iter()) {
            weights[cluster as usize] = [weights[cluster as usize][0] + 1, weights[cluster as usize][1] + v];
        }
        let clustering = Clustering { cluster_of, count: count as usize };
        let coarse = contract(&finest, &clustering, &run(2)).unwrap();
        prop_assert_eq!(coarse.len(), count as usize);
        for cluster in 0..count {
            prop_assert_eq!(coarse.weight(cluster), weights[cluster as usize]);
            let mut row = [0; 9];
            coarse.each(cluster, |other, w| row[other as usize] += w);
            prop_assert_eq!(row, sums[cluster as usize]);
        }
    }

    #[test]
    fn rebalancing_meets_caps_that_can_be_met(graph in graphs(60, 200), k in 2_u32..9, seed in 0_u64..99) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let finest = model::Graph::finest(&csr, &|_| [1], &run(1)).unwrap();
        let caps = vec![[graph.n.div_ceil(k.into())]; k as usize];
        // All vertices in one part, which is as far from balance as can be.
        let start = Buffer::zeroed(graph.n as usize, "parts").unwrap();
        let mut assignment = Assignment::new(&finest, start, k as usize, &run(1)).unwrap();
        Rebalance.refine(&Problem::new(&finest, &caps, seed, &run(1)), &mut assignment).unwrap();
        prop_assert!(assignment.is_within(&caps), "{:?} above {:?}", assignment.loads, caps);
        let again = Assignment::new(&finest, assignment.part_of, k as usize, &run(1)).unwrap();
        prop_assert_eq!(again.loads, assignment.loads);
    }

    #[test]
    fn jet_never_ends_worse_than_it_began(graph in graphs(60, 300), k in 2_u32..6, good in any::<bool>(), seed in 0_u64..99) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let finest = model::Graph::finest(&csr, &|_| [1], &run(1)).unwrap();
        let caps = vec![[graph.n.div_ceil(k.into()) + 1]; k as usize];
        let mut start: Buffer<u32> = Buffer::zeroed(graph.n as usize, "parts").unwrap();
        // From a good start most states on the way are worse.
        let found = Multilevel::from(many(k, 1.0, None)).partition(&csr, &run(1)).unwrap().assignment;
        let part_of = |v: u32| if good { found[v as usize] as u32 } else { v % k };
        (0..).zip(start.iter_mut()).for_each(|(v, part)| *part = part_of(v));
        let mut assignment = Assignment::new(&finest, start, k as usize, &run(1)).unwrap();
        let before = assignment.quality(&finest, &caps, &run(1)).unwrap();
        let (jet, one) = (Jet { iterations: 3, slack: 0.5, lenience: 2.0, patience: 1 }, run(1));
        let problem = Problem::new(&finest, &caps, seed, &one);
        let after = jet.refine(&problem, &mut assignment).unwrap().unwrap();
        prop_assert!(after.excess == 0.0 && after.cut <= before.cut);
        prop_assert_eq!(after, assignment.quality(&finest, &caps, &run(1)).unwrap());
        let parts: Vec<i32> = assignment.part_of.iter().map(|&part| part as i32).collect();
        prop_assert_eq!(after.cut as usize, cut(&graph, &parts));
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
            partition(&graph, &many(k, 1.0, Some(Bound::Volume(1.0))));
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
fn many_parts_and_shares() {
    let rmat = Rmat::new(5000, 40_000, 1).unwrap();
    let graph = Graph::new(rmat.num_vertices(), records(&rmat, 0..40_000, &run(1)).unwrap());
    partition(&graph, &many(200, 1.03, Some(Bound::Volume(1.1))));
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let finest = model::Graph::finest(&csr, &|_| [1], &run(1)).unwrap();
    // One side has twice the room of the other.
    let caps = [[3400], [1700]];
    let scheme = Scheme::new(1, Effort::Default);
    let ((sides, quality), rounds) = scheme.partition(&Problem::new(&finest, &caps, 0, &run(2))).unwrap();
    let second = sides.iter().filter(|&&side| side == 1).count();
    assert!((1600..=1700).contains(&second) && quality.excess == 0.0 && rounds == 0);
    let assignment = Assignment::new(&finest, sides, 2, &run(1)).unwrap();
    assert_eq!(quality, assignment.quality(&finest, &caps, &run(1)).unwrap());
}

/// R-MAT, large enough that rounds are shared by all threads.
fn large() -> Graph {
    let rmat = Rmat::new(1 << 14, 300_000, 3).unwrap();
    Graph::new(rmat.num_vertices(), records(&rmat, 0..300_000, &run(1)).unwrap())
}

#[test]
fn threads_never_change_a_result() {
    let csr = Csr::build(&large(), false, &run(1)).unwrap();
    for (second, k) in [(None, 8), (Some(Bound::Volume(1.1)), 8), (None, 300)] {
        let multilevel = Multilevel::from(many(k, 1.03, second));
        let of = |threads| multilevel.partition(&csr, &run(threads)).unwrap().assignment;
        let one = of(1);
        for threads in [2, 3, 8] {
            assert!(one[..] == of(threads)[..], "{threads} threads, k = {k}");
        }
    }
}

#[test]
fn effort_and_rounds() {
    let graph = large();
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let of = |effort| Multilevel { effort, ..Multilevel::new(8) }.partition_in_rounds(&csr, &run(2)).unwrap();
    let best = |rounds, limit| of(Effort::Best { rounds: Some(rounds), time_limit: limit });
    let cut = |assignment: &[i32]| cut(&graph, assignment);
    let [quick, default] = [Effort::Quick, Effort::Default].map(|effort| of(effort).0.assignment);
    assert!(cut(&quick) <= 2 * cut(&default));
    // Without any time left it is the default.
    let (none, rounds) = best(8, Some(Duration::ZERO));
    assert!(rounds == 0 && none.assignment[..] == default[..]);
    let (all, rounds) = best(3, None);
    assert!((1..=3).contains(&rounds) && cut(&all.assignment) <= cut(&default));
    // The number of rounds stands for the result.
    let (same, again) = best(rounds, None);
    assert!(again == rounds && same.assignment[..] == all.assignment[..]);
    // Also that of a run that ends by itself, which is sooner.
    let (open, rounds) = of(Effort::Best { rounds: None, time_limit: None });
    let (same, again) = best(rounds.max(1), None);
    assert!((1..=16).contains(&rounds) && again == rounds && same.assignment[..] == open.assignment[..]);
}

#[test]
fn refusals() {
    let graph = Graph::new(4, vec![[0, 1], [1, 2]]);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    for (refused, name) in [
        (many(0, 1.0, None), "k"),
        (many(2, 0.9, None), "balance"),
        (many(2, 1.0, Some(Bound::Volume(f64::NAN))), "volume_balance"),
        (many(2, 1.0, Some(Bound::Weights(BalanceOn::new(vec![1], 1.0).unwrap()))), "balance_on"),
    ] {
        let error = Multilevel::from(refused).partition(&csr, &run(1)).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: refused, .. } if refused == name), "{error}");
    }
    let one_way = Csr::build(&graph, true, &run(1)).unwrap();
    let error = Multilevel::new(2).partition(&one_way, &run(1)).unwrap_err();
    assert!(matches!(error, Error::Parameter { name: "directedness", .. }));
    let small = fastpart::internals::base::Run::new(Some(1), Some(100)).unwrap();
    assert!(matches!(Multilevel::new(2).partition(&csr, &small), Err(Error::MemoryBudget { .. })));
    let run = run(1);
    run.cancel();
    assert!(matches!(Multilevel::new(2).partition(&csr, &run), Err(Error::Cancelled)));
}

#[test]
fn clusters_keep_their_cap_and_their_cells() {
    let grid = Grid::new(64, 64).unwrap();
    let mut all = records(&grid, 0..grid.num_edges(), &run(1)).unwrap();
    // Many leaves of one hub, and some vertices without edges.
    all.extend((4096..4396).map(|leaf| [0, leaf]));
    let edges = Graph::new(grid.num_vertices() + 600, all);
    let csr = Csr::build(&edges, false, &run(1)).unwrap();
    let finest = model::Graph::finest(&csr, &|_| [1], &run(1)).unwrap();
    let halves: Vec<u32> = (0..edges.n as u32).map(|v| v % 4096 / 2048).collect();
    for (rating, cap) in [(Rating::Density, 3), (Rating::Weight, 16)] {
        for cells in [None, Some(&halves[..])] {
            let how = Clusterer { rating, cap: [cap], rounds: 2, seed: 7 };
            let of = |threads| how.cluster(&finest, cells, &run(threads)).unwrap();
            let (one, three) = (of(1), of(3));
            assert!(one.count == three.count && one.cluster_of[..] == three.cluster_of[..]);
            assert!(one.count < edges.n as usize * 6 / 10, "{} of {} are left", one.count, edges.n);
            let mut members = vec![Vec::new(); one.count];
            (0..edges.n as u32).for_each(|v| members[one.cluster_of[v as usize] as usize].push(v));
            assert!(members.iter().all(|members| (1..=cap as usize).contains(&members.len())));
            let same_cell = |members: &[u32]| {
                cells.is_none_or(|cells| {
                    members.iter().all(|&v| cells[v as usize] == cells[members[0] as usize])
                })
            };
            assert!(members.iter().all(|members| same_cell(members)));
        }
    }
}
