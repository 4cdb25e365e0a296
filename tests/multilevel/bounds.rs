//! The multilevel partitioner under 1 to 8 bounds, and with a least number of vertices.

use fastpart::internals::algorithms::multilevel::{Bound, Goal, Multilevel};
use fastpart::internals::base::{Error, Random};
use fastpart::internals::capacity::{BalanceOn, cap};
use fastpart::internals::generate::{Generator, Grid, Planted, Rmat, records};
use fastpart::internals::graph::Csr;
use fastpart::internals::partition::{Capacity, VertexPartition};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{Graph, graphs, run};

fn many(k: u32, balance: f64, bounds: Vec<Bound>) -> Goal {
    Goal { balance, bounds, ..Goal::new(k) }
}

fn weights(weights: Vec<u32>, ratio: f64) -> Bound {
    Bound::Weights(BalanceOn::new(weights, ratio).unwrap())
}

/// Partitions with some numbers of threads, which must agree, and checks what holds for every result.
fn partition(graph: &Graph, goal: &Goal, threads: &[usize]) -> VertexPartition {
    let csr = Csr::build(graph, false, &run(1)).unwrap();
    let with = |&threads: &usize| Multilevel::from(goal.clone()).partition(&csr, &run(threads)).unwrap();
    let mut made: Vec<VertexPartition> = threads.iter().map(with).collect();
    let one = made.pop().unwrap();
    for other in &made {
        assert!(one.assignment[..] == other.assignment[..], "threads change the result");
        assert_eq!((&one.weights, &one.volume), (&other.weights, &other.volume));
    }
    let k = goal.k as usize;
    let mut loads = vec![0; k];
    one.assignment.iter().for_each(|&part| loads[part as usize] += 1);
    assert_eq!(one.loads, loads);
    let most = cap(goal.balance, graph.n, goal.k);
    assert_eq!(one.cap, Some(most));
    assert!(loads.iter().all(|&load| load <= most), "{loads:?} above {most}");
    if let Some(ratio) = goal.min_balance.filter(|&ratio| ratio > 0.0) {
        let least = ((ratio * graph.n as f64 / k as f64) as u64).max(1);
        assert!(loads.iter().all(|&load| load >= least), "{loads:?} below {least}");
    }
    let mut of_weights = one.weights.iter();
    for (index, bound) in goal.bounds.iter().enumerate() {
        let of = |v: u32| match bound {
            Bound::Volume(_) => u64::from(csr.degree(v)) + 1,
            Bound::Weights(on) => on.weight(v),
        };
        let (capacity, nominal) = match bound {
            Bound::Volume(ratio) => {
                (one.volume.as_ref().unwrap(), cap(*ratio, graph.n + csr.num_entries(), goal.k))
            }
            Bound::Weights(on) => (of_weights.next().unwrap(), on.cap(goal.k)),
        };
        let mut loads = vec![0; k];
        (0..).zip(&*one.assignment).for_each(|(v, &part)| loads[part as usize] += of(v));
        let reached = loads.iter().copied().max().unwrap();
        assert_eq!(capacity, &Capacity::new(loads, nominal, nominal.max(reached)));
        let (total, heaviest) =
            (0..graph.n as u32).map(of).fold((0, 0), |(sum, most), w| (sum + w, most.max(w)));
        let always: u64 = total.div_ceil(k as u64) + heaviest;
        if index == 0 && goal.min_balance.is_none() {
            assert!(reached <= nominal.max(always), "{reached} above {nominal} and {always}");
        }
    }
    assert!(of_weights.next().is_none());
    one
}

/// Bounds of every kind for graphs of up to `n` vertices, none of them in reach for sure.
fn bounds(n: usize) -> impl Strategy<Value = Vec<(u32, Vec<u32>)>> {
    let weight = prop_oneof![Just(1_u32), Just(3), Just(u32::MAX)];
    let one = weight.prop_flat_map(move |most| {
        let values = prop_oneof![3 => Just(0), 2 => 0..=most.min(9), 1 => Just(most)];
        (Just(most), vec(values, n))
    });
    vec(one, 0..=7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn caps_hold_or_are_raised_to_what_was_reached(
        graph in graphs(50, 160), arrays in bounds(50), by_volume in any::<bool>(),
        k in prop_oneof![1_u32..9, Just(70)], balance in 1.0..1.3,
        least in prop_oneof![Just(None), (0.0..=1.0).prop_map(Some)],
    ) {
        let volume = by_volume.then_some(Bound::Volume(balance));
        let arrays = arrays.into_iter().map(|(_, array)| weights(array[..graph.n as usize].to_vec(), balance));
        let bounds = volume.into_iter().chain(arrays).take(7).collect();
        let min_balance = least.filter(|&ratio| ratio == 0.0 || graph.n >= u64::from(k));
        partition(&graph, &Goal { min_balance, ..many(k, balance, bounds) }, &[1, 3]);
    }
}

fn generated(model: &dyn Generator) -> Vec<[u32; 2]> {
    records(model, 0..model.num_edges(), &run(1)).unwrap()
}

/// A planted graph with `count` random masks of the tenth of its vertices, and three that share all of them.
fn planted(n: u64, count: u64) -> (Graph, Vec<Vec<u32>>) {
    let graph = Graph::new(n, generated(&Planted::new(n, 8 * n, 16, 0, 1).unwrap()));
    let mask = |seed| {
        let mut random = Random::new(seed, 0);
        (0..n).map(|_| u32::from(random.below(10) == 0)).collect()
    };
    let mut masks: Vec<Vec<u32>> = (0..count).map(mask).collect();
    for third in 0..3 {
        masks.push((0..n as u32).map(|v| u32::from(v % 3 == third)).collect());
    }
    (graph, masks)
}

#[test]
fn masks_are_shared_evenly_under_every_number_of_bounds() {
    let (graph, masks) = planted(3000, 4);
    for count in 0..=masks.len() {
        let bounds = masks[..count].iter().map(|mask| weights(mask.clone(), 1.1)).collect();
        let made = partition(&graph, &many(8, 1.05, bounds), &[1]);
        assert!(made.weights.iter().all(|weight| weight.cap == weight.nominal), "{:?}", made.weights);
        assert!(!made.dealt);
    }
}

#[test]
fn threads_do_not_matter() {
    let (graph, masks) = planted(20_000, 1);
    let masks = masks.into_iter().map(|mask| weights(mask, 1.05));
    let bounds = [Bound::Volume(1.1)].into_iter().chain(masks).collect();
    let goal = Goal { min_balance: Some(0.98), ..many(16, 1.03, bounds) };
    partition(&graph, &goal, &[1, 2, 3, 8]);
}

#[test]
fn a_vertex_above_a_cap_raises_that_cap_only() {
    // A hub of volume 3000, in a grid whose vertices have 5 at most.
    let mut edges = generated(&Grid::new(50, 60).unwrap());
    edges.extend((0..2995).map(|v| [v, 2999]));
    let graph = Graph::new(3000, edges);
    let mask = |third| weights((0..3000).map(|v| u32::from(v % 3 == third)).collect(), 1.1);
    let bounds = vec![Bound::Volume(1.0), mask(0), mask(1), mask(2)];
    for min_balance in [None, Some(0.8)] {
        let made = partition(&graph, &Goal { min_balance, ..many(10, 1.1, bounds.clone()) }, &[1, 2]);
        let volume = made.volume.unwrap();
        assert!(volume.cap > volume.nominal);
        assert!(made.weights.iter().all(|weight| weight.cap == weight.nominal), "{:?}", made.weights);
    }
}

#[test]
fn every_part_gets_its_least_number_of_vertices() {
    // Cliques that nobody wants to cut, more of them than parts.
    let cliques =
        (0..12).flat_map(|c| (0..20).flat_map(move |u| (0..u).map(move |v| [20 * c + u, 20 * c + v])));
    let graph = Graph::new(240, cliques.collect());
    let free = partition(&graph, &many(8, 2.0, vec![]), &[1]);
    assert!(free.loads.iter().any(|&load| load < 24));
    for ratio in [0.0, 0.1, 0.8, 1.0] {
        let goal = Goal { min_balance: Some(ratio), ..many(8, 2.0, vec![]) };
        partition(&graph, &goal, &[1, 3]);
    }
    // The parts that are too small grow along the edges.
    let grid = Graph::new(900, generated(&Grid::new(30, 30).unwrap()));
    let cut = |made: &VertexPartition| {
        let part = |v: u32| made.assignment[v as usize];
        grid.records.iter().filter(|&&[u, v]| part(u) != part(v)).count()
    };
    let exact = partition(&grid, &Goal { min_balance: Some(1.0), ..many(4, 1.2, vec![]) }, &[1]);
    assert_eq!(exact.loads, [225; 4]);
    assert!(cut(&exact) <= 90, "{}", cut(&exact));
}

#[test]
fn extreme_graphs() {
    let star = (1..200).map(|v| [0, v]).collect();
    for graph in [Graph::new(200, star), Graph::new(500, vec![]), Graph::new(0, vec![])] {
        let n = graph.n as u32;
        let all = |ratio| -> Vec<Bound> {
            let some = (0..3).map(|s| weights((0..n).map(|v| (v + s) % 5 * s).collect(), ratio));
            [Bound::Volume(ratio)].into_iter().chain(some).collect()
        };
        for k in [1, 2, 7, 64, 1000] {
            partition(&graph, &many(k, 1.0, all(1.0)), &[1, 2]);
        }
        let zeros = vec![weights(vec![0; n as usize], 1.0), weights(vec![u32::MAX; n as usize], 1.0)];
        partition(&graph, &many(3, 1.0, zeros), &[1]);
    }
}

#[test]
fn a_loose_bound_costs_nothing_where_parts_keep_it_anyway() {
    let graph = Graph::new(4000, generated(&Planted::new(4000, 32_000, 16, 0, 1).unwrap()));
    let free = partition(&graph, &many(4, 1.03, vec![]), &[1]);
    let loose = partition(&graph, &many(4, 1.03, vec![Bound::Volume(2.0)]), &[1, 2]);
    assert!(free.assignment[..] == loose.assignment[..]);
    let tight = partition(&graph, &many(4, 1.03, vec![Bound::Volume(1.24)]), &[1]);
    assert!(free.assignment[..] != tight.assignment[..], "the bound is there from the start on");
}

#[test]
fn a_loose_bound_holds_where_parts_would_not_keep_it() {
    let graph = Graph::new(1 << 11, generated(&Rmat::new(1 << 11, 30_000, 1).unwrap()));
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let volumes = |p: &VertexPartition| {
        let mut volumes = vec![0; 8];
        (0..)
            .zip(&*p.assignment)
            .for_each(|(v, &part)| volumes[part as usize] += u64::from(csr.degree(v)) + 1);
        volumes.into_iter().max().unwrap()
    };
    let most = |ratio| cap(ratio, graph.n + csr.num_entries(), 8);
    let free = partition(&graph, &many(8, 1.03, vec![]), &[1]);
    assert!(volumes(&free) > most(2.0));
    let all = partition(&graph, &many(8, 1.03, vec![Bound::Volume(8.0)]), &[1]);
    assert!(free.assignment[..] == all.assignment[..], "no round where nothing has to be mended");
    for ratio in [1.25, 1.5, 2.0] {
        for others in [vec![], vec![weights((0..graph.n as u32).map(|v| v % 3).collect(), 1.05)]] {
            let bounds = [vec![Bound::Volume(ratio)], others].concat();
            let made = partition(&graph, &many(8, 1.03, bounds), &[1, 2]);
            assert!(volumes(&made) <= most(ratio), "{ratio}: {} above {}", volumes(&made), most(ratio));
        }
    }
}

#[test]
fn refusals() {
    let graph = Graph::new(3, vec![[0, 1], [1, 2]]);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let refused = |goal: Goal| Multilevel::from(goal).partition(&csr, &run(1)).unwrap_err();
    let ones = |count| (0..count).map(|_| weights(vec![1; 3], 1.0)).collect::<Vec<_>>();
    for (bounds, name) in [
        (ones(8), "balance_on"),
        ([vec![Bound::Volume(1.1)], ones(7)].concat(), "balance_on"),
        (vec![Bound::Volume(1.1), Bound::Volume(1.1)], "volume_balance"),
        (vec![Bound::Volume(0.9)], "volume_balance"),
        (vec![weights(vec![1; 3], 1.0), weights(vec![1; 4], 1.0)], "balance_on"),
    ] {
        let error = refused(many(2, 1.0, bounds));
        assert!(matches!(error, Error::Parameter { name: found, .. } if found == name), "{error:?}");
    }
    let least = |k, ratio| Goal { min_balance: Some(ratio), ..many(k, 1.0, vec![]) };
    for ratio in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert!(matches!(refused(least(2, ratio)), Error::Parameter { name: "min_balance", .. }));
    }
    assert!(matches!(refused(least(4, 0.1)), Error::Capacity(_)));
    assert!(Multilevel::from(least(4, 0.0)).partition(&csr, &run(1)).is_ok());
    assert_eq!(partition(&graph, &least(3, 0.1), &[1]).loads, [1; 3]);
}
