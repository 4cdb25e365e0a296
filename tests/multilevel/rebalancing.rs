//! Rebalancing: the same moves for any division of the vertices, caps that can be met, and what never moves.

use std::sync::atomic::{AtomicU64, Ordering};

use fastpart::internals::algorithms::multilevel::model;
use fastpart::internals::algorithms::multilevel::model::{Assignment, Problem};
use fastpart::internals::algorithms::multilevel::refinement::balance::overload::{Histogram, Offer, Relief};
use fastpart::internals::algorithms::multilevel::refinement::{Rebalance, Refiner};
use fastpart::internals::base::{Buffer, NONE, Random};
use fastpart::internals::graph::Csr;
use proptest::prelude::*;

use crate::common::{Graph, graphs, run};

/// What vertices weigh, and the caps of k parts: a tenth and some more above the mean.
struct Loads {
    weights: Vec<[u64; 2]>,
    caps: Vec<[u64; 2]>,
}

impl Loads {
    fn of(csr: &Csr, k: u64) -> Self {
        let weights: Vec<[u64; 2]> =
            (0..csr.num_vertices() as u32).map(|v| [1, u64::from(csr.degree(v)) + 1]).collect();
        let sum = |bound: usize| weights.iter().map(|weight| weight[bound]).sum::<u64>();
        let most = weights.iter().map(|weight| weight[1]).max().unwrap_or(0);
        let cap = [(11 * sum(0)).div_ceil(10 * k) + 1, (11 * sum(1)).div_ceil(10 * k) + 2 * most];
        Self { weights, caps: vec![cap; k as usize] }
    }
}

/// Parts that are the fuller the lower their number.
fn skewed(n: u64, k: u64, seed: u64) -> Buffer<u32> {
    let (mut random, mut parts) = (Random::new(seed, 0), Buffer::zeroed(n as usize, "parts").unwrap());
    parts.iter_mut().for_each(|part: &mut u32| *part = random.below(k).min(random.below(k)) as u32);
    parts
}

/// One round, with the vertices divided among so many shards: the offers and the parts after it.
fn round(
    finest: &model::Graph<2>,
    loads: &Loads,
    start: &[u32],
    shards: u32,
    threads: usize,
) -> (Vec<Offer>, Vec<u32>) {
    let (run, n, k) = (run(threads), finest.len() as u32, loads.caps.len());
    let mut part_of: Buffer<u32> = Buffer::zeroed(start.len(), "parts").unwrap();
    part_of.copy_from_slice(start);
    let mut assignment = Assignment::new(finest, part_of, k, &run).unwrap();
    let relief = Relief::new(finest, &loads.caps);
    let shares = relief.shares(&assignment, true);
    let of_shards: Vec<_> = (0..shards)
        .map(|shard| n * shard / shards..n * (shard + 1) / shards)
        .map(|range| relief.prices(&assignment, range, (&shares, 7), &|_| None, &run).unwrap())
        .collect();
    let mut histogram = Histogram::default();
    of_shards.iter().rev().for_each(|(_, of_shard)| histogram.add(of_shard));
    let limits = relief.limits(&assignment, &histogram);
    let offers = |(ranks, _)| relief.offers(&assignment, ranks, &limits, &|_| None, &run).unwrap();
    let offers: Vec<Offer> =
        of_shards.iter().map(|(ranks, histogram)| (ranks, histogram)).flat_map(offers).collect();
    let moved = relief.commit(&mut assignment, &offers, 7, &run).unwrap();
    assert_eq!(moved == 0, histogram.is_empty());
    (offers, assignment.part_of.to_vec())
}

proptest! {
    #[test]
    fn any_division_into_shards_makes_the_same_moves(graph in graphs(200, 500), k in 2_u64..9, seed in 0_u64..99) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let loads = Loads::of(&csr, k);
        let weight = |v: u32| loads.weights[v as usize];
        let fixed: Vec<u32> = (0..graph.n as u32).map(|v| if v % 5 == 0 { v % 2 } else { NONE }).collect();
        let finest = model::Graph::finest(&csr, &weight, &run(1)).unwrap().with_fixed(Some(&fixed));
        let mut start = skewed(graph.n, k, seed);
        (0..).zip(start.iter_mut()).filter(|&(v, _)| fixed[v] != NONE).for_each(|(v, part)| *part = fixed[v]);
        let whole = round(&finest, &loads, &start, 1, 1);
        for (shards, threads) in [(1, 2), (3, 1), (8, 2)] {
            prop_assert_eq!(&round(&finest, &loads, &start, shards, threads), &whole);
        }
        let mut before = vec![[0; 2]; k as usize];
        start.iter().zip(&loads.weights).for_each(|(&part, weight)| {
            before[part as usize] = [0, 1].map(|bound| before[part as usize][bound] + weight[bound]);
        });
        for (v, (&from, &to)) in start.iter().zip(&whole.1).enumerate().filter(|(_, (from, to))| from != to) {
            let is_over = (0..2).any(|bound| before[from as usize][bound] > loads.caps[0][bound]);
            prop_assert!(is_over && fixed[v] == NONE, "{v} moved from {from} to {to}");
        }
    }

    #[test]
    fn caps_that_can_be_met_are_met(graph in graphs(100, 300), k in 2_u64..9, seed in 0_u64..99, dealt in any::<bool>()) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let loads = Loads::of(&csr, k);
        let weight = |v: u32| loads.weights[v as usize];
        let finest = model::Graph::finest(&csr, &weight, &run(1)).unwrap();
        let start = if dealt { skewed(graph.n, k, seed) } else { Buffer::zeroed(graph.n as usize, "parts").unwrap() };
        let mut assignment = Assignment::new(&finest, start, k as usize, &run(1)).unwrap();
        Rebalance.refine(&Problem::new(&finest, &loads.caps, seed, &run(1)), &mut assignment).unwrap();
        prop_assert!(assignment.is_within(&loads.caps), "{:?} above {:?}", assignment.loads, loads.caps[0]);
        let again = Assignment::new(&finest, assignment.part_of, k as usize, &run(1)).unwrap();
        prop_assert_eq!(again.loads, assignment.loads);
    }
}

#[test]
fn a_surplus_takes_the_cheapest_vertices() {
    // Two cliques of 40 with parts of their own, and 8 loose vertices in the first part: these leave.
    let clique = |first: u32| (first..first + 40).flat_map(move |u| (first..u).map(move |v| [u, v]));
    let graph = Graph::new(88, clique(0).chain(clique(48)).collect());
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let finest = model::Graph::finest(&csr, &|_| [1], &run(1)).unwrap();
    let mut start: Buffer<u32> = Buffer::zeroed(88, "parts").unwrap();
    start[48..].fill(1);
    let mut assignment = Assignment::new(&finest, start, 2, &run(1)).unwrap();
    Rebalance.refine(&Problem::new(&finest, &[[44]; 2], 3, &run(1)), &mut assignment).unwrap();
    assert_eq!(assignment.loads, [[44]; 2]);
    assert_eq!(assignment.cut(&finest, &run(1)).unwrap(), 0);
}

#[test]
fn full_parts_exchange_vertices() {
    // Both are full in vertices, and one is too heavy. Several threads look for pairs.
    let n = 140_000;
    let graph = Graph::new(n, vec![]);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let weight = |v: u32| [1, if v < n as u32 / 2 && v.is_multiple_of(7000) { 21 } else { 20 }];
    let finest = model::Graph::finest(&csr, &weight, &run(1)).unwrap();
    let caps = [[n / 2, 10 * n + 5]; 2];
    let parts = [1, 2].map(|threads| {
        let mut start: Buffer<u32> = Buffer::zeroed(n as usize, "parts").unwrap();
        start[n as usize / 2..].fill(1);
        let run = run(threads);
        let mut assignment = Assignment::new(&finest, start, 2, &run).unwrap();
        Rebalance.refine(&Problem::new(&finest, &caps, 3, &run), &mut assignment).unwrap();
        assert!(assignment.is_within(&caps), "{:?}", assignment.loads);
        assignment.part_of.to_vec()
    });
    assert_eq!(parts[0], parts[1]);
}

#[test]
fn a_small_surplus_is_met_by_a_sample() {
    // A ring of two halves, of which one is 0.5 % above its caps.
    let (n, surplus) = (200_000, 500);
    let graph = Graph::new(n, (0..n as u32).map(|v| [v, (v + 1) % n as u32]).collect());
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let loads = Loads { weights: vec![[1, 3]; n as usize], caps: vec![[n / 2, 3 * n / 2]; 2] };
    let weight = |v: u32| loads.weights[v as usize];
    let finest = model::Graph::finest(&csr, &weight, &run(1)).unwrap();
    let mut start: Buffer<u32> = Buffer::zeroed(n as usize, "parts").unwrap();
    start[(n / 2 + surplus) as usize..].fill(1);
    let whole = round(&finest, &loads, &start, 1, 1);
    for (shards, threads) in [(1, 2), (3, 1), (8, 8)] {
        assert_eq!(round(&finest, &loads, &start, shards, threads), whole);
    }
    let priced = AtomicU64::new(0);
    let known = |_| {
        priced.fetch_add(1, Ordering::Relaxed);
        None
    };
    let mut assignment = Assignment::new(&finest, start, 2, &run(1)).unwrap();
    let relief = Relief::new(&finest, &loads.caps);
    for (is_sampled, most) in [(true, n / 8), (false, n)] {
        let shares = relief.shares(&assignment, is_sampled);
        priced.store(0, Ordering::Relaxed);
        relief.prices(&assignment, 0..n as u32, (&shares, 7), &known, &run(1)).unwrap();
        let priced = priced.load(Ordering::Relaxed);
        assert!((most / 2..most).contains(&priced), "{priced} vertices, sampled: {is_sampled}");
    }
    Rebalance.refine(&Problem::new(&finest, &loads.caps, 3, &run(1)), &mut assignment).unwrap();
    assert!(assignment.is_within(&loads.caps), "{:?}", assignment.loads);
}
