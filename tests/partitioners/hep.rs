//! HEP: the expansion against the most obvious way, and what must hold for every result.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::edge_streams::{Oracle, Rule};
use crate::common::{Graph, OfEdges, graphs, run};
use fastpart::internals::algorithms::hep::{Hep, Tau};
use fastpart::internals::base::Error;
use fastpart::internals::base::Permutation;
use fastpart::internals::base::Run;
use fastpart::internals::capacity::cap;
use fastpart::internals::convert::{Convert, convert};
use fastpart::internals::edges::{EdgeFile, Io};
use fastpart::internals::edges::{EdgeStream, Record};
use fastpart::internals::measure::replicas;
use fastpart::internals::partition::{EdgePartition, Input, Value, partition};
use proptest::prelude::*;
use proptest::sample::select;

/// The expansion, with everything computed anew from the records without a part.
struct Slow<'a> {
    graph: &'a Graph,
    low: Vec<bool>,
    cap: usize,
    parts: Vec<Option<usize>>,
    loads: Vec<usize>,
    home: Vec<Option<usize>>,
    part: usize,
    members: Vec<usize>,
    /// Who waits, and when the number of neighbours outside changed last.
    waiting: BTreeMap<usize, usize>,
    clock: usize,
}

impl Slow<'_> {
    /// Records of `v` without a part, with their other ends, ascending: those between low ends, or the others.
    fn open(&self, v: usize, other_low: bool) -> Vec<(usize, usize)> {
        let ends = self.graph.records.iter().map(|record| record.map(|id| id as usize)).enumerate();
        let others = ends.filter(|(_, ends)| ends[0] != ends[1] && ends.contains(&v));
        let mut open: Vec<_> = others.map(|(index, ends)| (ends[0] + ends[1] - v, index)).collect();
        open.retain(|&(u, index)| self.low[u] == other_low && self.parts[index].is_none());
        open.sort_unstable();
        open
    }

    fn outside(&self, v: usize) -> usize {
        self.open(v, true).iter().filter(|(u, _)| !self.members.contains(u)).count()
    }

    /// Gives the records to the part, if they fit.
    fn take(&mut self, records: &[(usize, usize)]) -> bool {
        let fits = self.loads[self.part] + records.len() <= self.cap;
        if fits {
            records.iter().for_each(|&(_, index)| self.parts[index] = Some(self.part));
            self.loads[self.part] += records.len();
        }
        fits
    }

    fn join(&mut self, v: usize) -> bool {
        let mut inside = self.open(v, true);
        inside.retain(|(u, _)| self.members.contains(u));
        let fits = self.take(&inside);
        if fits {
            self.members.push(v);
            for u in inside.iter().map(|&(u, _)| u).chain([v]) {
                self.clock += 1;
                if u == v || self.waiting.contains_key(&u) {
                    self.waiting.insert(u, self.clock);
                }
            }
        }
        fits
    }

    /// False if the part is full.
    fn expand(&mut self, v: usize) -> bool {
        for (u, _) in self.open(v, true) {
            if !self.members.contains(&u) && !self.join(u) {
                return false;
            }
        }
        self.settle(v)
    }

    fn settle(&mut self, v: usize) -> bool {
        let fits = self.take(&self.open(v, false));
        if fits {
            self.home[v] = Some(self.part);
        }
        fits
    }

    fn grow(&mut self, target: usize, seeds: &[(usize, usize)], next: &mut usize) {
        while self.loads[self.part] < target {
            let first = self.waiting.iter().min_by_key(|&(&v, &time)| (self.outside(v), usize::MAX - time));
            let v = match first.map(|(&v, _)| v) {
                Some(v) => v,
                None => {
                    let begins = |(v, most): (usize, usize)| {
                        (1..=most).contains(&self.open(v, true).len()) && !self.members.contains(&v)
                    };
                    while *next < seeds.len() && !begins(seeds[*next]) {
                        *next += 1;
                    }
                    let Some(&(v, _)) = seeds.get(*next) else { return };
                    self.members.push(v);
                    v
                }
            };
            self.waiting.remove(&v);
            if !self.expand(v) {
                return;
            }
        }
    }

    fn run(&mut self, k: usize, mean: usize, order: &[usize]) {
        let first = order.iter().map(|&v| (v, mean));
        let seeds: Vec<_> = first.chain(order.iter().map(|&v| (v, usize::MAX))).collect();
        let mut next = 0;
        for part in 0..k {
            let rest: Vec<usize> =
                order.iter().copied().filter(|&v| !self.open(v, true).is_empty()).collect();
            let left: usize =
                rest.iter().map(|&v| self.open(v, true).len() + 2 * self.open(v, false).len()).sum::<usize>()
                    / 2;
            (self.part, self.waiting) = (part, BTreeMap::new());
            self.members.clear();
            if part == k - 1 && left <= self.cap {
                for v in rest {
                    self.take(&self.open(v, true));
                    self.settle(v);
                }
                return;
            }
            self.grow(left.div_ceil(k - part).min(self.cap), &seeds, &mut next);
            for v in self.members.clone() {
                if self.open(v, true).is_empty() && self.home[v].is_none() {
                    self.settle(v);
                }
            }
        }
    }
}

/// The part of each record: the slow expansion, then HDRF over what is left, then loops.
fn expected(graph: &Graph, hep: &Hep, tau: f64) -> Vec<u32> {
    let (n, k) = (graph.n as usize, hep.k as usize);
    let mut degrees = vec![0_usize; n];
    let no_loops = graph.records.iter().filter(|[u, v]| u != v);
    no_loops.flatten().for_each(|&id| degrees[id as usize] += 1);
    let cap = cap(hep.balance, graph.m(), hep.k) as usize;
    let mean = degrees.iter().sum::<usize>() as f64 / n.max(1) as f64;
    let order = Permutation::new(hep.seed, graph.n);
    let mut slow = Slow {
        graph,
        low: degrees.iter().map(|&degree| degree as f64 <= tau * mean && degree <= cap).collect(),
        cap,
        parts: vec![None; graph.records.len()],
        loads: vec![0; k],
        home: vec![None; n],
        part: 0,
        members: Vec::new(),
        waiting: BTreeMap::new(),
        clock: 0,
    };
    let order = (0..graph.n).map(|index| order.of(index) as usize);
    let order: Vec<usize> = order.filter(|&v| slow.low[v]).collect();
    slow.run(k, mean as usize, &order);
    let mut oracle = Oracle::new(graph.n, &graph.records, hep.k, Rule::Hdrf(1.0));
    let placed = slow.parts.iter().zip(&graph.records).enumerate();
    placed.for_each(|(index, (part, &record))| {
        part.iter().for_each(|&part| oracle.put(index, record, part));
    });
    for (index, &record) in graph.records.iter().enumerate().filter(|(_, [u, v])| u != v) {
        if oracle.parts[index].is_none() {
            let part = oracle.best(record, cap as u64);
            oracle.put(index, record, part);
        }
    }
    oracle.loops(&graph.records, cap as u64);
    oracle.finish()
}

fn parts(partition: &EdgePartition) -> Vec<u32> {
    partition.parts.read(0..partition.graph.m, &mut Vec::new()).to_vec()
}

/// The parts, after a look at loads and caps.
fn checked(edges: &dyn EdgeStream, hep: &Hep, run: &Run) -> Vec<u32> {
    let made = hep.partition(edges, None, run).unwrap();
    let found = parts(&made);
    let mut loads = vec![0; hep.k as usize];
    found.iter().for_each(|&part| loads[part as usize] += 1);
    assert_eq!(loads, made.loads);
    assert_eq!(made.cap, Some(cap(hep.balance, edges.num_edges(), hep.k)));
    assert!(loads.iter().all(|&load| load <= made.cap.unwrap()));
    found
}

fn taus() -> impl Strategy<Value = f64> {
    select(vec![0.0, 0.5, 1.0, 1.5, 2.5, 10.0, f64::INFINITY])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_rule(
        graph in prop_oneof![graphs(30, 60), graphs(12, 150), graphs(60, 60)],
        k in prop_oneof![1_u32..=9, select(vec![20, 70, 300])],
        balance in select(vec![1.0, 1.05, 1.5]),
        tau in taus(),
        seed in 0_u64..3,
    ) {
        let hep = Hep { k, balance, tau: Tau::Value(tau), refine: false, seed };
        let found = checked(&graph, &hep, &run(1));
        prop_assert_eq!(&found, &expected(&graph, &hep, tau));
        for threads in [2, 3] {
            prop_assert_eq!(&found, &checked(&graph, &hep, &run(threads)));
        }
    }

    #[test]
    fn a_refusal_names_a_tau_that_fits(graph in graphs(60, 400), k in 1_u32..=9) {
        let all = Hep { tau: Tau::Value(f64::INFINITY), ..Hep::new(k) };
        let with = |budget| Run::new(Some(2), Some(budget)).unwrap();
        let fits = |budget: &u64| all.partition(&graph, None, &with(*budget)).is_ok();
        let (mut refused, mut enough) = (0, 1 << 30);
        while enough - refused > 1 {
            let middle = (refused + enough) / 2;
            *(if fits(&middle) { &mut enough } else { &mut refused }) = middle;
        }
        for budget in [refused, refused.saturating_sub(200), refused.saturating_sub(1000)] {
            let error = all.partition(&graph, None, &with(budget)).unwrap_err();
            let over = matches!(error, Error::MemoryBudget { .. });
            prop_assert!(over);
            let text = error.to_string();
            let fit = partition(&Hep { tau: Tau::Fit, ..all }, &Input::new(&graph), &with(budget));
            if text.contains("even with tau = 0") {
                prop_assert!(fit.is_err());
                continue;
            }
            let (_, named) = text.split_once("(tau = ").unwrap();
            let tau: f64 = named.split_once(' ').unwrap().0.parse().unwrap();
            let named = Hep { tau: Tau::Value(tau), ..all }.partition(&graph, None, &with(budget)).unwrap();
            let fit = fit.unwrap();
            prop_assert_eq!(fit.chosen, [("tau", Value::Number(tau))]);
            prop_assert_eq!(parts(&fit.partition.edges().unwrap()), parts(&named));
        }
        // With enough of it, all records that may be are in memory.
        let fit = Hep { tau: Tau::Fit, ..all }.partition(&graph, None, &with(1 << 30)).unwrap();
        prop_assert_eq!(parts(&fit), checked(&graph, &all, &run(1)));
    }
}

#[test]
fn any_shape_and_any_number_of_parts() {
    let n = 300;
    let path: Vec<Record> = (1..n).map(|v| [v - 1, v]).collect();
    let star: Vec<Record> = (1..n).map(|v| [0, v]).collect();
    let clique: Vec<Record> = (0..40).flat_map(|v| (0..v).map(move |u| [u, v])).collect();
    let parallel: Vec<Record> = (0..500).map(|i| if i % 2 == 0 { [1, 2] } else { [2, 1] }).collect();
    let loops: Vec<Record> = (0..n).flat_map(|v| [[v, v], [v, v / 2]]).collect();
    for records in [vec![], path, star, clique, parallel, loops] {
        let graph = Graph::new(n.into(), records);
        for k in [1, 2, 7, 64, 1000, 1 << 15] {
            for tau in [0.0, 1.0, 10.0, f64::INFINITY] {
                let hep = Hep { tau: Tau::Value(tau), ..Hep::new(k) };
                let found = checked(&graph, &hep, &run(2));
                assert_eq!(found, checked(&graph, &hep, &run(1)));
            }
        }
    }
    let graph = Graph::new(5, vec![[0, 1], [1, 2], [2, 0], [3, 3]]);
    checked(&graph, &Hep::new(1 << 20), &run(1));
    checked(&Graph::new(0, vec![]), &Hep::new(3), &run(1));
}

/// Replicas per vertex.
fn replication(edges: &dyn EdgeStream, partition: EdgePartition) -> f64 {
    let k = partition.k;
    let assignment: Vec<i32> = parts(&partition).into_iter().map(|part| part as i32).collect();
    let replicas = replicas(edges, &assignment, k, &run(2)).unwrap();
    replicas.sizes.iter().sum::<u64>() as f64 / replicas.touched as f64
}

#[test]
fn files_are_partitioned_as_memory_is_and_as_well_as_the_published_program_does() {
    let folder = tempfile::tempdir().unwrap();
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("python/fastpart/datasets/amazon-computers.txt.gz");
    let path = folder.path().join("g.bin");
    let n = convert(&source, &path, &Convert::default(), &run(2)).unwrap().n;
    let mut edges = EdgeFile::open(&path, None, None, Io::Map).unwrap();
    edges.set_num_vertices(n);
    let mut read = EdgeFile::open(&path, None, None, Io::Read).unwrap();
    read.set_num_vertices(n);
    let records = edges.block(0..edges.num_edges(), &mut Vec::new()).unwrap().to_vec();
    let graph = Graph::new(n, records);
    for (k, published) in [(4, 1.35), (8, 1.59), (32, 2.30)] {
        let hep = Hep::new(k);
        let made = hep.partition(&edges, None, &run(1)).unwrap();
        let found = checked(&graph, &hep, &run(3));
        assert_eq!(parts(&made), found);
        assert_eq!(checked(&read, &hep, &run(2)), found);
        let out = folder.path().join("parts.npy");
        assert_eq!(parts(&hep.partition(&edges, Some(&out), &run(2)).unwrap()), found);
        let factor = replication(&edges, made);
        assert!(factor <= 1.02 * published, "k = {k}: {factor}");
    }
}

#[test]
fn refusals() {
    let graph = Graph::new(3, vec![[0, 1], [1, 2]]);
    let refused = |hep: Hep| match hep.partition(&graph, None, &run(1)) {
        Err(Error::Parameter { name, .. }) => name,
        _ => "nothing",
    };
    assert_eq!(refused(Hep::new(0)), "k");
    assert_eq!(refused(Hep { balance: 0.5, ..Hep::new(2) }), "balance");
    assert_eq!(refused(Hep { tau: Tau::Value(-1.0), ..Hep::new(2) }), "tau");
    assert_eq!(refused(Hep { tau: Tau::Value(f64::NAN), ..Hep::new(2) }), "tau");
    let cancelled = run(1);
    cancelled.cancel();
    assert!(matches!(Hep::new(2).partition(&graph, None, &cancelled), Err(Error::Cancelled)));
}
