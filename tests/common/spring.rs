//! SPRING in the most obvious way, from its description and not from the code.

use std::collections::BTreeSet;

use fastpart::internals::algorithms::spring::Spring;
use fastpart::internals::edges::Record;
use fastpart::internals::partition::VertexPartition;
use proptest::prelude::*;

use super::{Graph, OfVertices, graphs, run};

/// The clustering state of the oracle, and the rules that do not change.
#[derive(Clone, PartialEq)]
pub struct Clustering {
    pub degree: Vec<u64>,
    tau: f64,
    cluster: Vec<Option<usize>>,
    volume: Vec<u64>,
    richest: Vec<Option<usize>>,
}

impl Clustering {
    pub fn new(graph: &Graph, k: u32) -> Self {
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

/// The clusters as sets of vertices, merged up to `limit` vertices and a limit of weight.
fn merge(mut state: Clustering, limit: f64, weights: &[u64], weight_limit: f64) -> Vec<BTreeSet<usize>> {
    let weigh = |members: &BTreeSet<usize>| members.iter().map(|&vertex| weights[vertex]).sum::<u64>() as f64;
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
        let weight = weigh(&members[id]) + weigh(&members[target]);
        if target == id || (size + old) as f64 > limit || weight > weight_limit {
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

/// `ratio * items / k`.
pub fn share(ratio: f64, items: u64, k: u32) -> f64 {
    ratio.min(f64::from(k)) * items as f64 / f64::from(k)
}

/// The merged clusters.
pub fn clusters(graph: &Graph, spring: &Spring, weights: &[u64], weight_limit: f64) -> Vec<BTreeSet<usize>> {
    let mut state = Clustering::new(graph, spring.k);
    for _ in 0..spring.passes {
        state.pass(&graph.records, spring.batch.unwrap().get() as usize);
    }
    merge(state, share(spring.balance, graph.n, spring.k), weights, weight_limit)
}

/// The part of each vertex, without weights.
pub fn oracle(graph: &Graph, spring: &Spring) -> Vec<i32> {
    let clusters = clusters(graph, spring, &vec![0; graph.n as usize], 0.0);
    let cap = share(spring.balance, graph.n, spring.k).ceil() as u64;
    assign(graph, clusters, spring.k, spring.strict.then_some(cap))
}

/// Partitions with 1, 2, 3 and 8 threads, which must agree, and checks what holds for every result.
pub fn partition(graph: &Graph, spring: &Spring) -> VertexPartition {
    let [one, rest @ ..] = [1, 2, 3, 8].map(|threads| spring.partition(graph, &run(threads)).unwrap());
    for other in rest {
        assert!(one.assignment[..] == other.assignment[..], "threads change the result: {spring:?}");
        assert_eq!(one.graph, other.graph);
    }
    assert_eq!(one.assignment.len() as u64, graph.n);
    let mut loads = vec![0; spring.k as usize];
    one.assignment.iter().for_each(|&part| loads[usize::try_from(part).unwrap()] += 1);
    assert_eq!(one.loads, loads);
    let cap = share(spring.balance, graph.n, spring.k).ceil() as u64;
    assert_eq!(one.cap, spring.strict.then_some(cap));
    if spring.strict {
        assert!(loads.iter().all(|&load| load <= cap), "loads {loads:?} above the cap {cap}");
    }
    assert_eq!((one.graph.n, one.graph.m), (graph.n, graph.m()));
    assert_eq!(one.graph.loops, graph.records.iter().filter(|[u, v]| u == v).count() as u64);
    one
}

/// Small graphs of any density: many records make dense ones, few make many components.
pub fn any_graph() -> impl Strategy<Value = Graph> {
    prop_oneof![graphs(60, 300), graphs(60, 60), graphs(12, 100)]
}
