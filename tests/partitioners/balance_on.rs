//! The second cap against an oracle that assigns in the most obvious way, and what must hold on every graph.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroU64;

use crate::common::spring::{any_graph, clusters, partition, share};
use crate::common::{Graph, OfVertices, run};
use fastpart::internals::algorithms::spring::Spring;
use fastpart::internals::base::Buffer;
use fastpart::internals::base::Error;
use fastpart::internals::base::Run;
use fastpart::internals::capacity::{BalanceOn, Placing};
use fastpart::internals::partition::VertexPartition;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The largest load of a part, in vertices and in weight.
fn caps(balance: f64, k: u32, weights: &[u64], ratio: f64) -> [u64; 2] {
    let total: u64 = weights.iter().sum();
    let largest = weights.iter().copied().max().unwrap_or(0);
    let shared = share(ratio, total, k).ceil() as u64;
    let least = if largest <= 1 { 0 } else { total.div_ceil(u64::from(k)) + largest };
    [share(balance, weights.len() as u64, k).ceil() as u64, shared.max(least)]
}

/// An assignment in the making, and the loads of its parts.
struct Assignment<'a> {
    weights: &'a [u64],
    cap: [u64; 2],
    part_of: Vec<Option<usize>>,
    loads: Vec<[u64; 2]>,
}

impl<'a> Assignment<'a> {
    fn new(weights: &'a [u64], k: u32, cap: [u64; 2]) -> Self {
        Self { weights, cap, part_of: vec![None; weights.len()], loads: vec![[0; 2]; k as usize] }
    }

    /// The larger relative load, times the number of all vertices and their weight.
    fn relative(&self, part: usize) -> u128 {
        let total: u64 = self.weights.iter().sum();
        let [vertices, weight] = self.loads[part].map(u128::from);
        (vertices * u128::from(total.max(1))).max(weight * self.weights.len() as u128)
    }

    /// Gives vertices to the least loaded part that has room for all of them.
    fn place(&mut self, vertices: &[usize]) -> bool {
        let item = [vertices.len() as u64, vertices.iter().map(|&vertex| self.weights[vertex]).sum()];
        let fits = |part: &usize| (0..2).all(|d| self.loads[*part][d] + item[d] <= self.cap[d]);
        let feasible = (0..self.loads.len()).filter(fits);
        let Some(part) = feasible.min_by_key(|&part| (self.relative(part), part)) else { return false };
        (0..2).for_each(|d| self.loads[part][d] += item[d]);
        vertices.iter().for_each(|&vertex| self.part_of[vertex] = Some(part));
        true
    }

    /// The same; one by one where that fails.
    fn place_or_split(&mut self, vertices: &[usize]) {
        if !self.place(vertices) {
            for &vertex in vertices {
                self.place(&[vertex]);
            }
        }
    }

    /// Lets the vertices that have no part change places; false if one cannot.
    fn exchange(&mut self) -> bool {
        let mut homes = vec![BTreeSet::new(); self.loads.len()];
        let mut left = BTreeSet::new();
        for (vertex, part) in self.part_of.iter().enumerate() {
            match *part {
                Some(part) => homes[part].insert((self.weights[vertex], vertex)),
                None => left.insert((Reverse(self.weights[vertex]), vertex)),
            };
        }
        for (Reverse(weight), x) in left {
            let lightest = |part: &usize| (self.loads[*part][1], *part);
            let b = (0..self.loads.len()).min_by_key(lightest).unwrap();
            let open = (0..self.loads.len()).filter(|&part| self.loads[part][0] < self.cap[0]);
            let a = open.min_by_key(lightest).unwrap();
            let Some((light, y)) = homes[b].pop_first() else { return false };
            if self.loads[a][1] + light > self.cap[1] {
                return false;
            }
            (self.part_of[x], self.part_of[y]) = (Some(b), Some(a));
            self.loads[b][1] += weight - light;
            self.loads[a] = [self.loads[a][0] + 1, self.loads[a][1] + light];
        }
        true
    }
    fn finish(mut self) -> (Vec<i32>, Way) {
        let way = if self.part_of.iter().all(Option::is_some) {
            Way::Placed
        } else if self.exchange() {
            Way::Exchanged
        } else {
            let mut order: Vec<usize> = (0..self.weights.len()).collect();
            order.sort_by_key(|&vertex| (Reverse(self.weights[vertex]), vertex));
            for (turn, vertex) in order.into_iter().enumerate() {
                self.part_of[vertex] = Some(turn % self.loads.len());
            }
            Way::Dealt
        };
        (self.part_of.into_iter().map(|part| part.unwrap() as i32).collect(), way)
    }
}

/// How all vertices found places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Placed,
    Exchanged,
    Dealt,
}

/// The part of each vertex.
fn oracle(graph: &Graph, spring: &Spring, weights: &[u64], ratio: f64) -> (Vec<i32>, Way) {
    let clusters = clusters(graph, spring, weights, share(ratio, weights.iter().sum(), spring.k));
    let isolated: Vec<usize> = (0..weights.len())
        .filter(|vertex| !clusters.iter().any(|members| members.contains(vertex)))
        .collect();
    let mut order: Vec<(usize, BTreeSet<usize>)> = clusters.into_iter().enumerate().collect();
    order.retain(|(_, members)| !members.is_empty());
    order.sort_by_key(|(id, members)| (Reverse(members.len()), *id));
    let mut found = Assignment::new(weights, spring.k, caps(spring.balance, spring.k, weights, ratio));
    order.into_iter().for_each(|(_, members)| found.place_or_split(&Vec::from_iter(members)));
    isolated.into_iter().for_each(|vertex| found.place_or_split(&[vertex]));
    found.finish()
}

/// Partitions under both caps, and checks what holds for every result.
fn balanced(graph: &Graph, spring: &Spring, weights: &[u32], ratio: f64) -> VertexPartition {
    let spring =
        Spring { balance_on: Some(weights.to_vec().into()), balance_on_ratio: ratio, ..spring.clone() };
    let found = partition(graph, &spring);
    let mut loads = vec![0; spring.k as usize];
    for (&part, &weight) in found.assignment.iter().zip(weights) {
        loads[part as usize] += u64::from(weight);
    }
    let wide: Vec<u64> = weights.iter().map(|&weight| weight.into()).collect();
    let [_, cap] = caps(spring.balance, spring.k, &wide, ratio);
    assert_eq!(found.weights[0].cap, cap);
    assert!(loads.iter().all(|&load| load <= cap), "loads {loads:?} above the cap {cap}");
    assert_eq!(found.weights[0].loads, loads);
    assert!(!found.dealt || weights.iter().any(|&weight| weight > 1), "a mask never needs the last resort");
    found
}

/// Compares with the oracle; the way that it took.
fn compare(graph: &Graph, spring: &Spring, weights: &[u32], ratio: f64) -> Way {
    let wide: Vec<u64> = weights.iter().map(|&weight| weight.into()).collect();
    let (expected, way) = oracle(graph, spring, &wide, ratio);
    let found = balanced(graph, spring, weights, ratio);
    assert_eq!(&found.assignment[..], expected, "{way:?}");
    assert_eq!(found.dealt, way == Way::Dealt);
    way
}

fn ratios() -> impl Strategy<Value = f64> {
    prop_oneof![Just(1.05), Just(1.0), 1.0..3.0, Just(1e308)]
}

fn parameters() -> impl Strategy<Value = Spring> {
    let k = prop_oneof![1_u32..=8, 9_u32..=70];
    (k, ratios(), 1_u32..=2, select(vec![1, 7])).prop_map(|(k, balance, passes, batch)| Spring {
        balance,
        passes,
        batch: NonZeroU64::new(batch),
        ..Spring::new(k)
    })
}

/// Weights of up to 60 vertices: none at all, masks, a few values, some large ones, one huge one.
fn weights() -> impl Strategy<Value = Vec<u32>> {
    let n = 60;
    let sparse = |most| vec(prop_oneof![3 => Just(0), 1 => 0..=most], n);
    let huge = (0..n, vec(0_u32..=1, n)).prop_map(|(vertex, mut weights)| {
        weights[vertex] = u32::MAX;
        weights
    });
    prop_oneof![
        Just(vec![0; n]),
        Just(vec![1; n]),
        vec(0_u32..=1, n),
        sparse(1),
        vec(1_u32..=3, n),
        sparse(9),
        sparse(u32::MAX),
        huge
    ]
}

fn weighted() -> impl Strategy<Value = (Graph, Vec<u32>)> {
    (any_graph(), weights()).prop_map(|(graph, mut weights)| {
        weights.truncate(graph.n as usize);
        (graph, weights)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn both_caps((graph, weights) in weighted(), spring in parameters(), ratio in ratios()) {
        compare(&graph, &spring, &weights, ratio);
    }

    /// Tight caps, where vertices change places or are dealt.
    #[test]
    fn tight_caps((graph, weights) in weighted(), k in 2_u32..=9) {
        compare(&graph, &Spring { balance: 1.0, batch: NonZeroU64::new(1), ..Spring::new(k) }, &weights, 1.0);
    }
}

/// Disjoint paths of the lengths given.
fn paths(lengths: &[u32]) -> Graph {
    let mut records = Vec::new();
    let mut n = 0;
    for &length in lengths {
        records.extend((1..length).map(|v| [n + v - 1, n + v]));
        n += length;
    }
    Graph::new(n.into(), records)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// The step that all vertex partitioners share: any groups of vertices, in any order.
    #[test]
    fn any_groups(
        order in Just(Vec::from_iter(0..60_u32)).prop_shuffle(),
        size in select(vec![1, 2, 9, 31]),
        weights in weights(),
        k in 1_u32..=9,
        balance in select(vec![1.0, 1.05, 2.0]),
        ratio in select(vec![1.0, 1.05, 2.0]),
    ) {
        let on = BalanceOn::new(weights.clone(), ratio).unwrap();
        let weights: Vec<u64> = weights.into_iter().map(u64::from).collect();
        let cap = caps(balance, k, &weights, ratio);
        let run = run(2);
        let mut expected = Assignment::new(&weights, k, cap);
        let mut found = Placing::new(Buffer::zeroed(60, "parts").unwrap(), k, cap[0], &on, &run).unwrap();
        for group in order.chunks(size) {
            let wide: Vec<usize> = group.iter().map(|&vertex| vertex as usize).collect();
            expected.place_or_split(&wide);
            found.place(group, wide.iter().map(|&vertex| weights[vertex]).sum()).unwrap();
        }
        let ((expected, way), found) = (expected.finish(), found.finish().unwrap());
        prop_assert_eq!(&found.assignment[..], expected);
        prop_assert_eq!(found.dealt, way == Way::Dealt);
        let mut loads = vec![[0; 2]; k as usize];
        for (&part, weight) in found.assignment.iter().zip(weights) {
            let load: &mut [u64; 2] = &mut loads[part as usize];
            *load = [load[0] + 1, load[1] + weight];
        }
        prop_assert!(loads.iter().all(|load| load[0] <= cap[0] && load[1] <= cap[1]));
        prop_assert_eq!(found.loads, loads);
    }
}

#[test]
fn each_way_is_taken() {
    let spring = Spring { balance: 1.0, batch: NonZeroU64::new(1), ..Spring::new(2) };
    let isolated = paths(&[1; 4]);
    assert_eq!(compare(&isolated, &spring, &[1, 1, 0, 0], 1.0), Way::Placed);
    // Part 0 gets vertex 0, part 1 the next two: there is room for another vertex here, for its weight there.
    assert_eq!(compare(&isolated, &spring, &[1, 0, 0, 1], 1.0), Way::Exchanged);
    // Eight vertices of weight 1 fill a part, seven of weight 2 reach the other's cap of 24 / 2 + 2: no room for 1 more.
    let weights = [[1; 8], [2; 8]].concat();
    assert_eq!(compare(&paths(&[8, 7, 1]), &spring, &weights, 1.0), Way::Dealt);
}

/// From all vertices in one path to none: batches, threads and more parts than vertices.
#[test]
fn shapes() {
    for graph in
        [paths(&[]), paths(&[1]), paths(&[50]), paths(&[20, 20, 10]), paths(&[2; 40]), paths(&[1; 30])]
    {
        let n = graph.n as usize;
        let weights = [vec![0; n], vec![1; n], (0..n as u32).collect(), vec![u32::MAX; n]];
        for (weights, k) in weights.iter().flat_map(|weights| [1, 2, 7, 100].map(|k| (weights, k))) {
            compare(&graph, &Spring { batch: NonZeroU64::new(1), ..Spring::new(k) }, weights, 1.05);
        }
    }
    let graph = paths(&[20, 20, 10]);
    balanced(&graph, &Spring::new(1 << 20), &[3; 50], 1.0);
}

#[test]
fn refusals() {
    let graph = paths(&[3]);
    let spring = |weights: &[u32]| Spring { balance_on: Some(weights.to_vec().into()), ..Spring::new(2) };
    let refused = |spring: Spring, run: &Run| spring.partition(&graph, run).unwrap_err();
    for wrong in [spring(&[1, 2]), Spring { strict: false, ..spring(&[1, 1, 1]) }] {
        assert!(matches!(refused(wrong, &run(1)), Error::Parameter { name: "balance_on", .. }));
    }
    let cancelled = run(2);
    cancelled.cancel();
    assert!(matches!(refused(spring(&[1, 1, 1]), &cancelled), Error::Cancelled));
    // Weights need more memory than none.
    let tight = Run::new(Some(1), Some((8 << 20) + 200)).unwrap();
    assert!(Spring::new(2).partition(&graph, &tight).is_ok());
    assert!(matches!(refused(spring(&[1, 1, 1]), &tight), Error::MemoryBudget { .. }));
}
