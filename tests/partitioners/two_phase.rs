//! Two-phase streaming: its clusters against the most obvious way, and what must hold for every result.

use std::num::NonZeroU64;
use std::path::Path;

use crate::common::{Graph, OfEdges, graphs, run};
use fastpart::internals::algorithms::dbh::Dbh;
use fastpart::internals::algorithms::two_phase::{Scoring, TwoPhase};
use fastpart::internals::base::NONE;
use fastpart::internals::base::Run;
use fastpart::internals::base::{Error, Result};
use fastpart::internals::capacity::cap;
use fastpart::internals::clustering::BoundedClustering;
use fastpart::internals::edges::Record;
use fastpart::internals::graph::degrees;
use fastpart::internals::measure::home_parts;
use fastpart::internals::measure::replicas;
use fastpart::internals::partition::EdgePartition;
use proptest::prelude::*;
use proptest::sample::select;

/// The cluster of each vertex, and the volumes; a record that changes nothing before its batch is dropped.
#[derive(Clone, PartialEq)]
struct Oracle {
    degree: Vec<u64>,
    cluster: Vec<Option<usize>>,
    volume: Vec<u64>,
    bound: u64,
}

impl Oracle {
    fn follow(&mut self, [u, v]: Record) {
        let (u, v) = (u as usize, v as usize);
        if u == v {
            return;
        }
        for end in [u, v] {
            if self.cluster[end].is_none() {
                self.cluster[end] = Some(self.volume.len());
                self.volume.push(self.degree[end]);
            }
        }
        let rest = |end: usize| self.volume[self.cluster[end].unwrap()] - self.degree[end];
        let (mover, other) = if rest(u) <= rest(v) { (u, v) } else { (v, u) };
        let (from, to) = (self.cluster[mover].unwrap(), self.cluster[other].unwrap());
        if from != to && self.volume[to] + self.degree[mover] <= self.bound {
            self.volume[from] -= self.degree[mover];
            self.volume[to] += self.degree[mover];
            self.cluster[mover] = Some(to);
        }
    }

    fn of(graph: &Graph, bound: u64, batch: usize) -> Self {
        let mut degree = vec![0; graph.n as usize];
        for &[u, v] in graph.records.iter().filter(|[u, v]| u != v) {
            degree[u as usize] += 1;
            degree[v as usize] += 1;
        }
        let mut state = Self { degree, cluster: vec![None; graph.n as usize], volume: Vec::new(), bound };
        for batch in graph.records.chunks(batch) {
            let frozen = state.clone();
            let changes = |&&record: &&Record| {
                let mut changed = frozen.clone();
                changed.follow(record);
                changed != frozen || batch.len() == 1
            };
            batch.iter().filter(changes).for_each(|&record| state.follow(record));
        }
        state
    }
}

fn parts(partition: &EdgePartition, m: u64) -> Vec<u32> {
    partition.parts.read(0..m, &mut Vec::new()).to_vec()
}

type Algorithm = Box<dyn Fn(&Graph, Option<&Path>, &Run) -> Result<EdgePartition>>;

fn algorithms(k: u32, balance: f64, batch: Option<u64>) -> Vec<Algorithm> {
    let two_phase = |scoring| -> Algorithm {
        let two_phase = TwoPhase { balance, scoring, seed: 1, batch: batch.and_then(NonZeroU64::new), k };
        Box::new(move |graph, out, run| two_phase.partition(graph, out, run))
    };
    let dbh = Dbh { k, seed: 1 };
    vec![
        two_phase(Scoring::Linear),
        two_phase(Scoring::Hdrf),
        Box::new(move |graph, out, run| dbh.partition(graph, out, run)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn clusters(graph in graphs(30, 120), bound in 0_u64..60, batch in select(vec![1, 2, 7, 64])) {
        let expected = Oracle::of(&graph, bound, batch);
        for threads in [1, 3] {
            let run = run(threads);
            let degree = degrees::scan(&graph, &run).unwrap().degree;
            let found = BoundedClustering::of(&graph, degree, bound, NonZeroU64::new(batch as u64), &run).unwrap();
            let none = graph.n as usize;
            let of: Vec<usize> = expected.cluster.iter().map(|cluster| cluster.unwrap_or(none)).collect();
            prop_assert_eq!(found.members.iter().map(|member| member.cluster as usize).collect::<Vec<_>>(), of);
            prop_assert_eq!(found.count as usize, expected.volume.len());
            prop_assert_eq!(&found.volumes[..expected.volume.len()], &expected.volume[..]);
            let alone = expected.degree.iter().copied().max().unwrap_or(0);
            prop_assert!(found.volumes.iter().all(|&volume| volume <= bound.max(alone)));
        }
    }

    #[test]
    fn every_record_has_one_part_and_caps_hold(
        graph in graphs(40, 200),
        k in prop_oneof![1_u32..=8, 60_u32..=70, Just(300)],
        balance in prop_oneof![Just(1.0), Just(1.05), 1.0..3.0],
        batch in select(vec![None, Some(1), Some(16)]),
    ) {
        for algorithm in algorithms(k, balance, batch) {
            let made = algorithm(&graph, None, &run(1)).unwrap();
            let found = parts(&made, graph.m());
            let mut loads = vec![0; k as usize];
            found.iter().for_each(|&part| loads[part as usize] += 1);
            prop_assert_eq!(&loads, &made.loads);
            prop_assert!(made.cap.is_none_or(|bound| bound == cap(balance, graph.m(), k)));
            prop_assert!(loads.iter().all(|&load| made.cap.is_none_or(|cap| load <= cap)));
            for threads in [2, 3, 8] {
                let other = algorithm(&graph, None, &run(threads)).unwrap();
                prop_assert_eq!(parts(&other, graph.m()), &found[..]);
                prop_assert_eq!(&other.loads, &made.loads);
            }
        }
    }

    #[test]
    fn homes(graph in graphs(40, 200), k in prop_oneof![1_u32..=8, 60_u32..=300]) {
        let made = Dbh { k, seed: 0 }.partition(&graph, None, &run(1)).unwrap();
        let of_records: Vec<i32> = parts(&made, graph.m()).into_iter().map(|part| part as i32).collect();
        let homes = home_parts(&graph, &of_records, k, &run(2)).unwrap();
        for v in 0..graph.n as usize {
            let of = |part: i32| {
                let records = graph.records.iter().zip(&of_records);
                records.filter(|&(ends, &own)| own == part && ends.contains(&(v as u32))).count()
            };
            let home = homes.assignment[v];
            for part in 0..k as i32 {
                prop_assert!(of(part) < of(home) || part >= home || of(home) == 0);
                prop_assert!(of(part) <= of(home));
            }
        }
    }
}

#[test]
fn parts_in_a_file_are_those_in_memory() {
    let records =
        (0..70_000_u32).map(|i| [i.wrapping_mul(2_654_435_761) % 5000, i.wrapping_mul(i) % 4999]).collect();
    let graph = Graph::new(5000, records);
    let folder = tempfile::tempdir().unwrap();
    for k in [5, 300] {
        for (index, algorithm) in algorithms(k, 1.05, None).into_iter().enumerate() {
            let out = folder.path().join(format!("{k}-{index}.npy"));
            let in_memory = algorithm(&graph, None, &run(2)).unwrap();
            let in_file = algorithm(&graph, Some(&out), &run(2)).unwrap();
            assert_eq!(parts(&in_memory, graph.m()), parts(&in_file, graph.m()));
            assert!(parts(&in_file, graph.m()).iter().all(|&part| part != NONE));
            assert!(in_file.parts.in_memory().is_none() && in_memory.parts.in_memory().is_some());
        }
    }
}

#[test]
fn scoring_all_parts_makes_fewer_replicas() {
    let records: Vec<Record> =
        (0..60_000_u64).map(|i| [i * i % 701, i * 7 % 1009].map(|id| id as u32 % 1000)).collect();
    let graph = Graph::new(1000, records);
    let total = |scoring| {
        let made = TwoPhase { scoring, ..TwoPhase::new(16) }.partition(&graph, None, &run(2)).unwrap();
        let parts: Vec<i32> = parts(&made, graph.m()).into_iter().map(|part| part as i32).collect();
        replicas(&graph, &parts, 16, &run(1)).unwrap().sizes.iter().sum::<u64>()
    };
    assert!(total(Scoring::Hdrf) < total(Scoring::Linear));
}

#[test]
fn refusals() {
    let graph = Graph::new(3, vec![[0, 1], [1, 2]]);
    let refused = |two_phase: TwoPhase| match two_phase.partition(&graph, None, &run(1)) {
        Err(Error::Parameter { name, .. }) => name,
        _ => "nothing",
    };
    assert_eq!(refused(TwoPhase::new(0)), "k");
    assert_eq!(refused(TwoPhase { balance: 0.5, ..TwoPhase::new(2) }), "balance");
    for algorithm in algorithms(2, 1.05, None) {
        let little = Run::new(Some(1), Some(1)).unwrap();
        assert!(matches!(algorithm(&graph, None, &little), Err(Error::MemoryBudget { .. })));
        let cancelled = run(1);
        cancelled.cancel();
        assert!(matches!(algorithm(&graph, None, &cancelled), Err(Error::Cancelled)));
    }
    let wrong = home_parts(&graph, &[0, 2], 2, &run(1)).unwrap_err().to_string();
    assert_eq!(wrong, "assignment: record 1 has part 2, outside 0..2");
    assert!(
        home_parts(&graph, &[0], 2, &run(1)).unwrap_err().to_string().contains("1 entries for 2 records")
    );
}
