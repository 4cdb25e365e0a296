//! The objectives of the multilevel partitioner: gains against a slow recount, caps, threads.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fastpart::internals::algorithms::multilevel::model::{
    Assignment, Connections, Connectivity, Prices, Problem,
};
use fastpart::internals::algorithms::multilevel::refinement::{GainTable, Jet, Refiner};
use fastpart::internals::algorithms::multilevel::{Bound, Effort, Goal, Multilevel, Objective, model};
use fastpart::internals::base::{Buffer, Error, Random, Run};
use fastpart::internals::generate::{Generator, Planted, Rmat, records};
use fastpart::internals::graph::Csr;
use fastpart::internals::sets::SparseSums;
use proptest::prelude::*;

use crate::common::{Graph, graphs, run};

/// The sum over all vertices of the number of parts that hold them or a neighbour.
fn halo(csr: &Csr, part_of: &[u32]) -> i64 {
    let copies = |v: u32| {
        let around = csr.neighbours(v).iter().chain([&v]).map(|&u| part_of[u as usize]);
        around.collect::<BTreeSet<_>>().len() as i64
    };
    (0..csr.num_vertices() as u32).map(copies).sum()
}

fn parts(multilevel: &Multilevel, csr: &Csr, threads: usize) -> Vec<u32> {
    let made = multilevel.partition(csr, &run(threads)).unwrap();
    made.assignment.iter().map(|&part| part as u32).collect()
}

fn rmat(n: u64, m: u64) -> Graph {
    let rmat = Rmat::new(n, m, 1).unwrap();
    Graph::new(rmat.num_vertices(), records(&rmat, 0..m, &run(1)).unwrap())
}

/// That for the halo, beside that for the cut.
fn both(k: u32, second: Option<Bound>) -> [Multilevel; 2] {
    let cut = Goal { bounds: second.into_iter().collect(), ..Goal::new(k) };
    [Goal { objective: Objective::Halo, ..cut.clone() }, cut].map(Multilevel::from)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gains_are_what_a_recount_says(graph in graphs(25, 90), k in 1_usize..9, seed in 0_u64..1000) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let weighted = model::Graph::finest(&csr, &|_| [1], &run(1)).unwrap();
        let mut random = Random::new(seed, 0);
        let mut part_of: Vec<u32> = (0..graph.n).map(|_| random.below(k as u64) as u32).collect();
        let mut connectivity = Connectivity::new(&weighted, &part_of, k, &run(1)).unwrap();
        let mut gains = SparseSums::new(k as u32).unwrap();
        for _ in 0..if graph.n > 0 { 30 } else { 0 } {
            let before = halo(&csr, &part_of);
            prop_assert_eq!(connectivity.halo() as i64, before);
            let v = random.below(graph.n) as u32;
            let own = part_of[v as usize];
            let around: BTreeSet<u32> = csr.neighbours(v).iter().map(|&u| part_of[u as usize]).collect();
            prop_assert_eq!(connectivity.on_boundary(v, own), around.iter().any(|&part| part != own));
            let found: Vec<_> = connectivity.gains(&weighted, &part_of, v, &mut gains).collect();
            let named: Vec<u32> = found.iter().map(|&(part, _)| part).collect();
            prop_assert_eq!(named, around.into_iter().filter(|&part| part != own).collect::<Vec<_>>());
            for to in (0..k as u32).filter(|&part| part != own) {
                let gain = connectivity.gain(&weighted, &part_of, v, to);
                part_of[v as usize] = to;
                prop_assert_eq!(gain, before - halo(&csr, &part_of));
                part_of[v as usize] = own;
                prop_assert!(found.iter().all(|&(part, known)| part != to || known == gain));
            }
            let to = random.below(k as u64) as u32;
            if to != own {
                let gain = connectivity.gain(&weighted, &part_of, v, to);
                connectivity.shift(&weighted, v, [own, to], gain);
                part_of[v as usize] = to;
            }
        }
    }

    #[test]
    fn the_halo_is_never_above_that_of_the_cut(graph in graphs(60, 250), k in 1_u32..9, volume in any::<bool>()) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let [halved, cut] = both(k, volume.then_some(Bound::Volume(1.1)));
        let made = halved.partition(&csr, &run(1)).unwrap();
        prop_assert!(made.loads.iter().all(|&load| load <= made.cap.unwrap()));
        if let Some(volume) = &made.volume {
            prop_assert!(volume.loads.iter().all(|&load| load <= volume.cap));
        } else {
            prop_assert!(halo(&csr, &parts(&halved, &csr, 1)) <= halo(&csr, &parts(&cut, &csr, 1)));
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let graph = rmat(4000, 60_000);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    for (k, second) in [(8, None), (70, None), (8, Some(Bound::Volume(1.1)))] {
        let [wanted, cut] = both(k, second);
        let one = parts(&wanted, &csr, 1);
        for threads in [2, 3, 8] {
            assert!(one == parts(&wanted, &csr, threads), "{threads} threads change the result");
        }
        let (less, more) = (halo(&csr, &one), halo(&csr, &parts(&cut, &csr, 1)));
        assert!(less < more, "{less} copies, {more} where cuts count");
    }
}

#[test]
fn memory_and_cancelling() {
    let graph = rmat(2000, 20_000);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let [wanted, _] = both(4, None);
    let small = Run::new(Some(1), Some(100)).unwrap();
    assert!(matches!(wanted.partition(&csr, &small), Err(Error::MemoryBudget { .. })));
    let run = run(1);
    run.cancel();
    assert!(matches!(wanted.partition(&csr, &run), Err(Error::Cancelled)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn machines_keep_the_caps(graph in graphs(60, 250), machines in proptest::collection::vec(1_u32..5, 1..5), halo in any::<bool>()) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let [wanted, cut] = both(machines.iter().sum(), None);
        let mut wanted = if halo { wanted } else { cut };
        wanted.goal.machines = Some(machines);
        let made = wanted.partition(&csr, &run(1)).unwrap();
        prop_assert!(made.loads.iter().all(|&load| load <= made.cap.unwrap()));
        prop_assert_eq!(parts(&wanted, &csr, 1), parts(&wanted, &csr, 3));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn prices_count_in_every_gain(
        graph in graphs(30, 100),
        machines in proptest::collection::vec(1_u32..4, 1..4),
        price in 1_u32..9,
        seed in 0_u64..1000,
    ) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        let weighted = model::Graph::finest(&csr, &|_| [1], &run(1)).unwrap();
        let k = machines.iter().sum::<u32>() as usize;
        let machine_of: Vec<usize> =
            machines.iter().enumerate().flat_map(|(machine, &parts)| vec![machine; parts as usize]).collect();
        let cost = |part_of: &[u32]| -> i64 {
            let costs = |[u, v]: [u32; 2]| match [u, v].map(|v| part_of[v as usize] as usize) {
                [a, b] if machine_of[a] != machine_of[b] => i64::from(price),
                [a, b] => i64::from(a != b),
            };
            graph.records.iter().map(|&record| costs(record)).sum()
        };
        let start = Buffer::zeroed(graph.n as usize, "parts").unwrap();
        let mut assignment = Assignment::new(&weighted, start, k, &run(1)).unwrap();
        assignment.prices = Some(Arc::new(Prices::new(&machines, price)));
        let caps = vec![[graph.n / 2 + 1]; k];
        let mut table = GainTable::new(&weighted, &mut assignment, &caps, &run(1)).unwrap();
        let mut random = Random::new(seed, 0);
        for _ in 0..if graph.n > 0 { 50 } else { 0 } {
            table.shift(random.below(graph.n) as u32, random.below(k as u64) as usize);
        }
        prop_assert_eq!(table.cut as i64, cost(&table.assignment.part_of));
        prop_assert_eq!(table.quality(), table.assignment.quality(&weighted, &caps, &run(1)).unwrap());
        let mut connections = Connections::new(table.assignment).unwrap();
        for v in 0..graph.n as u32 {
            connections.count(&weighted, table.assignment, v);
            for to in 0..k {
                prop_assert_eq!(table.connections(v)[to], connections.to(to as u32));
                let mut moved = table.assignment.part_of.to_vec();
                moved[v as usize] = to as u32;
                let gain = i64::from(connections.to(to as u32)) - i64::from(connections.to(table.part(v) as u32));
                prop_assert_eq!(cost(&moved), table.cut as i64 - gain);
            }
        }
        let before = table.quality();
        let (jet, two) = (Jet { iterations: 4, slack: 0.2, lenience: 0.5, patience: 1 }, run(2));
        let after = jet.refine(&Problem::new(&weighted, &caps, seed, &two), &mut assignment).unwrap().unwrap();
        prop_assert_eq!(after.cut as i64, cost(&assignment.part_of));
        prop_assert!(!before.beats(after));
    }
}

/// The edges between machines of so many parts each, and those between parts.
fn cuts(csr: &Csr, part_of: &[u32], parts: u32) -> [u64; 2] {
    let mut cuts = [0; 2];
    for v in 0..csr.num_vertices() as u32 {
        for &u in csr.neighbours(v) {
            let [a, b] = [u, v].map(|v| part_of[v as usize]);
            cuts[0] += u64::from(a / parts != b / parts);
            cuts[1] += u64::from(a != b);
        }
    }
    cuts.map(|ends| ends / 2)
}

#[test]
fn machines_lie_between_the_plain_and_the_flat_partition() {
    let planted = Planted::new(3000, 20_000, 12, 0, 5).unwrap();
    let blocks = Graph::new(planted.num_vertices(), records(&planted, 0..20_000, &run(1)).unwrap());
    for (graph, parts, second) in [
        (&blocks, 4, None),
        (&blocks, 8, None),
        (&rmat(2000, 20_000), 4, None),
        (&blocks, 4, Some(Bound::Volume(1.1))),
    ] {
        let csr = Csr::build(graph, false, &run(1)).unwrap();
        let [_, cut] = both(4 * parts, second);
        let wanted = Multilevel::from(Goal { machines: Some(vec![parts; 4]), ..cut.goal.clone() });
        let [between, total] = cuts(&csr, &self::parts(&wanted, &csr, 1), parts);
        let [plain, _] = cuts(&csr, &self::parts(&Goal { k: 4, ..cut.goal.clone() }.into(), &csr, 1), 1);
        let [_, flat] = cuts(&csr, &self::parts(&cut, &csr, 1), parts);
        assert!(100 * between <= 102 * plain, "{between} between machines, {plain} of a plain partition");
        assert!(100 * total <= 105 * flat, "{total} in all, {flat} of a flat partition");
    }
}

#[test]
fn rounds_of_machines_stand_for_the_result() {
    let graph = rmat(2000, 20_000);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let wanted = Multilevel::from(Goal { machines: Some(vec![2, 2, 2]), ..Goal::new(6) });
    let of = |effort, threads| {
        let wanted = Multilevel { effort, ..wanted.clone() };
        let (made, rounds) = wanted.partition_in_rounds(&csr, &run(threads)).unwrap();
        (made.assignment.to_vec(), rounds)
    };
    let best = |rounds, time_limit, threads| of(Effort::Best { rounds: Some(rounds), time_limit }, threads);
    assert_eq!(best(4, Some(Duration::ZERO), 2), of(Effort::Default, 1));
    let (made, rounds) = best(3, None, 1);
    assert!((1..=3).contains(&rounds));
    for threads in [2, 3, 8] {
        assert!(best(rounds, None, threads) == (made.clone(), rounds), "{threads} threads change the result");
    }
    let limited = best(16, Some(Duration::from_millis(50)), 1);
    assert!(limited.1 == 0 || best(limited.1, None, 2) == limited);
    assert!(of(Effort::Quick, 1) == of(Effort::Quick, 3));
}

#[test]
fn machines_get_what_belongs_together() {
    // Four blocks of two cliques each; two blocks have many edges between them, and so have the others.
    let clique = |first: u32| (first..first + 20).flat_map(move |u| (first..u).map(move |v| [u, v]));
    let mut records: Vec<_> = (0..8).flat_map(|block| clique(20 * block)).collect();
    for (a, b, edges) in [
        (0, 3, 12),
        (1, 2, 12),
        (4, 7, 12),
        (5, 6, 12),
        (0, 1, 10),
        (2, 3, 10),
        (4, 5, 10),
        (6, 7, 10),
        (0, 4, 1),
    ] {
        records.extend((0..edges).map(|i| [20 * a + i, 20 * b + i]));
    }
    let csr = Csr::build(&Graph::new(160, records), false, &run(1)).unwrap();
    for threads in [1, 2, 3, 8] {
        let wanted = Multilevel::from(Goal { machines: Some(vec![4, 4]), ..Goal::new(8) });
        let part_of = parts(&wanted, &csr, threads);
        for (v, &part) in part_of.iter().enumerate() {
            assert_eq!(part / 4 == part_of[0] / 4, v < 80, "{part_of:?}");
        }
    }
}

#[test]
fn machines_that_cannot_be() {
    let csr = Csr::build(&Graph::new(4, vec![[0, 1]]), false, &run(1)).unwrap();
    for machines in [vec![], vec![1], vec![0, 2], vec![1, 2]] {
        let wanted = Multilevel::from(Goal { machines: Some(machines), ..Goal::new(2) });
        let error = wanted.partition(&csr, &run(1)).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "machines", .. }), "{error}");
        assert!(error.to_string().contains("k is 2"), "{error}");
    }
}
