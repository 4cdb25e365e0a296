//! Refinement of given partitions: never worse, within the bounds, and the same for any number of threads.

use std::collections::BTreeSet;
use std::time::Duration;

use fastpart::internals::algorithms::multilevel::refine::Refine;
use fastpart::internals::algorithms::multilevel::update::Update;
use fastpart::internals::algorithms::multilevel::{Bound, Effort, Goal, Objective};
use fastpart::internals::base::{Error, Random, Run};
use fastpart::internals::capacity::{BalanceOn, cap};
use fastpart::internals::generate::{Generator, Planted, Rmat, records};
use fastpart::internals::graph::Csr;
use fastpart::internals::partition::{Shape, VertexPartition};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{Graph, graphs, run};

fn cut(csr: &Csr, part_of: &[u32]) -> usize {
    let crossing =
        |v: u32| csr.neighbours(v).iter().filter(move |&&u| part_of[u as usize] != part_of[v as usize]);
    (0..csr.num_vertices() as u32).map(|v| crossing(v).count()).sum::<usize>() / 2
}

/// The sum over all vertices of the number of parts that hold them or a neighbour.
fn halo(csr: &Csr, part_of: &[u32]) -> usize {
    let around =
        |v: u32| csr.neighbours(v).iter().chain([&v]).map(|&u| part_of[u as usize]).collect::<BTreeSet<_>>();
    (0..csr.num_vertices() as u32).map(|v| around(v).len()).sum()
}

fn objective(goal: &Goal, csr: &Csr, part_of: &[u32]) -> usize {
    if goal.objective == Objective::Halo { halo(csr, part_of) } else { cut(csr, part_of) }
}

/// What `v` weighs under each bound.
fn weigh(goal: &Goal, csr: &Csr, v: u32) -> Vec<u64> {
    let of = |bound: &Bound| match bound {
        Bound::Volume(_) => u64::from(csr.degree(v)) + 1,
        Bound::Weights(on) => on.weight(v),
    };
    [1].into_iter().chain(goal.bounds.iter().map(of)).collect()
}

/// The caps that are asked for.
fn caps(goal: &Goal, csr: &Csr) -> Vec<u64> {
    let n = csr.num_vertices() as u64;
    let of = |bound: &Bound| match bound {
        Bound::Volume(ratio) => cap(*ratio, n + csr.num_entries(), goal.k),
        Bound::Weights(on) => on.cap(goal.k),
    };
    [cap(goal.balance, n, goal.k)].into_iter().chain(goal.bounds.iter().map(of)).collect()
}

/// Whether parts keep every bound.
fn is_within(goal: &Goal, csr: &Csr, part_of: &[u32]) -> bool {
    let (caps, n, k) = (caps(goal, csr), csr.num_vertices() as u64, goal.k as usize);
    let mut loads = vec![vec![0; caps.len()]; k];
    for (v, &part) in (0..).zip(part_of) {
        loads[part as usize].iter_mut().zip(weigh(goal, csr, v)).for_each(|(load, weight)| *load += weight);
    }
    let least = match goal.min_balance.filter(|&ratio| ratio > 0.0) {
        Some(ratio) => ((ratio * n as f64 / k as f64) as u64).max(1),
        None => 0,
    };
    loads.iter().all(|load| load[0] >= least && load.iter().zip(&caps).all(|(load, cap)| load <= cap))
}

/// Refines as long as that pays.
fn refine(graph: &Graph, goal: &Goal, start: &[u32], threads: &[usize]) -> (Vec<u32>, u64) {
    refine_by(graph, &Refine::new(goal.clone(), start.to_vec()), threads)
}

/// Refines with some numbers of threads, which must agree, and checks what holds for every result.
fn refine_by(graph: &Graph, refinement: &Refine, threads: &[usize]) -> (Vec<u32>, u64) {
    let csr = Csr::build(graph, false, &run(1)).unwrap();
    let Refine { goal, start, effort } = refinement;
    let with = |&threads: &usize| {
        let (made, rounds) = refinement.partition(&csr, &run(threads)).unwrap();
        check_caps(&made, goal, &csr);
        (made.assignment.iter().map(|&part| part as u32).collect::<Vec<_>>(), rounds)
    };
    let mut made: Vec<_> = threads.iter().map(with).collect();
    let one = made.pop().unwrap();
    assert!(made.iter().all(|other| *other == one), "threads change the result");
    assert!(one.1 <= effort.rounds());
    if is_within(goal, &csr, start) {
        assert!(is_within(goal, &csr, &one.0));
        assert!(objective(goal, &csr, &one.0) <= objective(goal, &csr, start));
    }
    one
}

/// The caps of a result are kept. They are those that were asked for, or raised; that on vertices never is.
fn check_caps(made: &VertexPartition, goal: &Goal, csr: &Csr) {
    let asked = caps(goal, csr);
    assert_eq!(made.cap, Some(asked[0]));
    assert!(made.loads.iter().all(|load| *load <= asked[0]));
    let mut of_weights = made.weights.iter();
    for (bound, asked) in goal.bounds.iter().zip(&asked[1..]) {
        let capacity = match bound {
            Bound::Volume(_) => made.volume.as_ref().unwrap(),
            Bound::Weights(_) => of_weights.next().unwrap(),
        };
        assert_eq!(capacity.nominal, *asked);
        assert!(capacity.cap >= *asked && capacity.loads.iter().all(|load| *load <= capacity.cap));
    }
}

/// Refinement under these bounds.
fn goal(k: u32, balance: f64, bounds: Vec<Bound>, seed: u64) -> Goal {
    Goal { balance, bounds, seed, ..Goal::new(k) }
}

fn random_parts(n: u64, k: u32, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed, 7);
    (0..n).map(|_| random.below(k.into()) as u32).collect()
}

fn planted(n: u64, m: u64) -> Graph {
    let planted = Planted::new(n, m, 16, 4, 1).unwrap();
    Graph::new(planted.num_vertices(), records(&planted, 0..m, &run(1)).unwrap())
}

fn rmat(n: u64, m: u64) -> Graph {
    let rmat = Rmat::new(n, m, 1).unwrap();
    Graph::new(rmat.num_vertices(), records(&rmat, 0..m, &run(1)).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn never_worse_and_within_the_bounds(
        graph in graphs(50, 160), arrays in vec(vec(0_u32..9, 50), 0..=4), by_volume in any::<bool>(),
        k in prop_oneof![1_u32..9, Just(70)], balance in 1.0..1.3,
        least in prop_oneof![Just(None), (0.0..=1.0).prop_map(Some)],
        by_halo in any::<bool>(), machines in any::<bool>(), rounds in 0_u64..4, seed in 0_u64..1000,
    ) {
        let on = |array: Vec<u32>| Bound::Weights(BalanceOn::new(array[..graph.n as usize].to_vec(), balance).unwrap());
        let volume = by_volume.then_some(Bound::Volume(balance));
        let bounds = volume.into_iter().chain(arrays.into_iter().map(on)).collect();
        let goal = Goal {
            min_balance: least.filter(|_| graph.n >= k.into()),
            objective: if by_halo { Objective::Halo } else { Objective::Cut },
            ..goal(k, balance, bounds, seed)
        };
        let effort = Effort::Best { rounds: Some(rounds), time_limit: None };
        let start = random_parts(graph.n, k, seed);
        let refinement = Refine { goal: goal.clone(), start: start.clone(), effort };
        let (once, _) = refine_by(&graph, &refinement, &[1, 2, 3]);
        refine(&graph, &goal, &once, &[1]);
        if machines && !by_halo && k > 1 {
            let goal = Goal { machines: Some(vec![1, k - 1]), ..goal };
            let csr = Csr::build(&graph, false, &run(1)).unwrap();
            let made = Refine { goal: goal.clone(), ..refinement }.partition(&csr, &run(2)).unwrap();
            check_caps(&made.0, &goal, &csr);
        }
    }

    /// No single move within the caps improves the result, since the descent would have found it.
    #[test]
    fn a_start_that_can_gain_does(graph in graphs(40, 120), k in 2_u32..6, balance in 1.0..1.4, seed in 0_u64..1000) {
        let bounds = vec![Bound::Volume(balance), Bound::Weights(BalanceOn::new(vec![1; graph.n as usize], balance).unwrap())];
        let goal = goal(k, balance, bounds, seed);
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let start = random_parts(graph.n, k, seed);
        prop_assume!(is_within(&goal, &csr, &start));
        let before = cut(&csr, &start);
        let gains = (0..graph.n as usize).any(|v| (0..k).any(|part| {
            let mut moved = start.clone();
            moved[v] = part;
            cut(&csr, &moved) < before && is_within(&goal, &csr, &moved)
        }));
        let (made, _) = refine(&graph, &goal, &start, &[1]);
        prop_assert!(!gains || cut(&csr, &made) < before);
    }
}

#[test]
fn threads_never_matter_on_larger_graphs() {
    for graph in [planted(20_000, 150_000), rmat(16_384, 120_000)] {
        let on = BalanceOn::new((0..graph.n).map(|v| u32::from(v % 5 == 0)).collect(), 1.05).unwrap();
        let second = vec![Bound::Volume(1.1)];
        let many = vec![Bound::Volume(1.5), Bound::Weights(on)];
        for bounds in [vec![], second, many] {
            for for_what in [Objective::Cut, Objective::Halo] {
                let goal = Goal { objective: for_what, ..goal(8, 1.05, bounds.clone(), 3) };
                let start: Vec<u32> = (0..graph.n as u32).map(|v| v % 8).collect();
                let csr = Csr::build(&graph, false, &run(1)).unwrap();
                let effort = Effort::Best { rounds: Some(2), time_limit: None };
                let refinement = Refine { goal: goal.clone(), start: start.clone(), effort };
                let (made, _) = refine_by(&graph, &refinement, &[1, 2, 3, 8]);
                assert!(objective(&goal, &csr, &made) < objective(&goal, &csr, &start));
            }
        }
    }
}

#[test]
fn rounds_stand_for_the_result() {
    let graph = planted(5_000, 40_000);
    let start: Vec<u32> = (0..5_000).map(|v| v % 8).collect();
    let refine = |rounds, time_limit, threads| {
        let effort = Effort::Best { rounds: Some(rounds), time_limit };
        let refinement = Refine { effort, ..Refine::new(goal(8, 1.03, vec![], 1), start.clone()) };
        refine_by(&graph, &refinement, &[threads])
    };
    let (made, rounds) = refine(16, None, 1);
    assert!(rounds > 1);
    assert_eq!(refine(rounds, None, 2), (made, rounds));
    assert_eq!(refine(0, None, 1), (start.clone(), 0));
    assert_eq!(refine(16, Some(Duration::ZERO), 1), (start.clone(), 0));
}

#[test]
fn a_start_that_breaks_its_bounds_is_repaired() {
    let graph = planted(4_000, 40_000);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let goal = Goal { min_balance: Some(0.9), ..goal(8, 1.03, vec![Bound::Volume(1.1)], 0) };
    for start in [vec![0; 4_000], vec![7; 4_000], (0..4_000).map(|v| v % 3).collect()] {
        let (made, _) = refine(&graph, &goal, &start, &[1, 3]);
        assert!(is_within(&goal, &csr, &made));
    }
}

#[test]
fn a_start_in_one_part_is_dealt_in_runs() {
    // Around a circle, runs of vertices cut one edge for each part.
    let n = 1 << 12;
    let circle = Graph::new(n, (0..n as u32).map(|v| [v, (v + 1) % n as u32]).collect());
    let csr = Csr::build(&circle, false, &run(1)).unwrap();
    for (k, start) in [(2, vec![1; 1 << 12]), (8, vec![0; 1 << 12]), (8, vec![5; 1 << 12])] {
        for bounds in [vec![], vec![Bound::Volume(1.1)]] {
            let goal = goal(k, 1.03, bounds, 0);
            let (made, _) = refine(&circle, &goal, &start, &[1, 2]);
            assert!(is_within(&goal, &csr, &made) && cut(&csr, &made) <= k as usize, "{}", cut(&csr, &made));
        }
    }
}

#[test]
fn small_and_odd_graphs() {
    let one = Graph::new(1, vec![[0, 0]]);
    assert_eq!(refine(&one, &goal(3, 1.03, vec![], 0), &[2], &[1, 2]).0, [2]);
    assert!(refine(&Graph::new(0, vec![]), &goal(3, 1.03, vec![], 0), &[], &[1]).0.is_empty());
    let isolated = Graph::new(6, vec![[1, 1], [2, 2]]);
    let start = [0, 1, 0, 1, 0, 1];
    assert_eq!(refine(&isolated, &goal(2, 1.0, vec![], 0), &start, &[1]).0, start);
    // Every vertex is alone, and the edges must be cut.
    let path = Graph::new(3, vec![[0, 1], [1, 2], [1, 2]]);
    refine(&path, &goal(9, 1.0, vec![], 0), &[8, 4, 0], &[1, 2]);
}

#[test]
fn wrong_starts_and_too_little_memory_are_refused() {
    let graph = planted(1_000, 5_000);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let refused = |start: Vec<u32>, goal: Goal| {
        let error = Refine::new(goal, start).partition(&csr, &run(1)).unwrap_err();
        let Error::Parameter { name, what } = error else { panic!("{error}") };
        (name, what)
    };
    let two = || goal(2, 1.03, vec![], 0);
    let (name, what) = refused(vec![0; 999], two());
    assert_eq!((name, &what[..]), ("partition", "999 parts for 1000 vertices. Give one per vertex"));
    let mut start = vec![0; 1_000];
    start[17] = 2;
    let (name, what) = refused(start.clone(), two());
    assert_eq!((name, &what[..]), ("partition", "vertex 17 has part 2, outside 0..1 (k=2)"));
    start[17] = u32::MAX;
    assert_eq!(refused(start, two()).0, "partition");
    let machines = Some(vec![1, 1]);
    let halo = Goal { machines, objective: Objective::Halo, ..two() };
    assert_eq!(refused(vec![0; 1_000], halo).0, "objective");
    let shape = Shape { n: 1_000_000, m: 0, symmetric: false, in_file: false };
    assert_eq!(Refine::new(two(), vec![]).memory(&shape, &run(1)).least / shape.n, 72);
}

#[test]
fn old_parts_of_numbers_that_no_partition_has_are_refused() {
    let csr = Csr::build(&planted(1_000, 5_000), false, &run(1)).unwrap();
    let mut start = vec![0; 1_000];
    start[3] = (1 << 31) - 2;
    let refused = |goal| Update::new(goal, start.clone()).partition(&csr, &run(1)).unwrap_err().to_string();
    let halo = refused(Goal { objective: Objective::Halo, ..Goal::new(2) });
    assert!(halo.contains("an update lowers the cut"), "{halo}");
    let error = refused(Goal::new(2));
    assert!(error.contains("vertex 3 has part 2147483646. There may be at most 1048576 parts"), "{error}");
}

#[test]
fn it_can_be_cancelled() {
    let graph = planted(2_000, 20_000);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let start = (0..2_000).map(|v| v % 4).collect();
    let run = Run::new(Some(2), None).unwrap();
    run.cancel();
    let refused = Refine::new(goal(4, 1.03, vec![], 0), start).partition(&csr, &run);
    assert!(matches!(refused, Err(Error::Cancelled)));
}
