//! The multilevel partitioner with levels in files: contraction against the one in memory, plans, memory, full disks.

use std::fs;
use std::ops::Range;

use fastpart::internals::algorithms::multilevel::coarsening::{Clustering, LEAST_DEGREE, Sample, in_files};
use fastpart::internals::algorithms::multilevel::model::Graph as Weighted;
use fastpart::internals::algorithms::multilevel::{
    Bound, Costs, Effort, Goal, Hubs, Multilevel, Path, Plan, coarsening,
};
use fastpart::internals::base::{Buffer, Error, Meter, Random, Result, Run};
use fastpart::internals::edges::{EdgeFile, EdgeStream, Io, Record};
use fastpart::internals::generate::{self, Generator, Rmat, records};
use fastpart::internals::graph::Csr;
use fastpart::internals::partition::{Input, Value, VertexPartition, partition as partition_by};
use proptest::prelude::*;

use crate::common::children::{dir_of_child, in_child, most_taken};
use crate::common::spring::share;
use crate::common::{Graph, graphs, run};

const ALL: Sample = Sample { entries: u64::MAX, seed: 0 };

type Lists = Vec<(Vec<[u32; 2]>, [u64; 2])>;

fn lists(graph: &Weighted<2>) -> Lists {
    let of = |v| {
        let mut list = Vec::new();
        graph.each(v, |u, w| list.push([u, w]));
        (list, graph.weight(v))
    };
    (0..graph.len() as u32).map(of).collect()
}

/// The vertices in clusters, few of which have most of them.
fn clustering(n: u64, count: u64, seed: u64) -> Clustering {
    let mut random = Random::new(seed, 0);
    let mut cluster_of: Buffer<u32> = Buffer::zeroed(n as usize, "clusters").unwrap();
    cluster_of
        .iter_mut()
        .for_each(|cluster| *cluster = (random.below(count) * random.below(count) / count) as u32);
    Clustering { cluster_of, count: count as usize }
}

/// Contracts twice in files, as in memory, and samples the second time.
fn contract(graph: &Graph, counts: [u64; 2], sample: Sample, threads: usize) {
    let csr = Csr::build(graph, false, &run(1)).unwrap();
    let weight = |v| [1, u64::from(v)];
    let finest = Weighted::finest(&csr, &weight, &run(1)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let one = clustering(graph.n, counts[0], 1);
    let in_memory = coarsening::contract(&finest, &one, &run(1)).unwrap();
    let contract = |graph: &Weighted<2>, clustering: &Clustering, sample| {
        in_files::contract(graph, clustering, sample, folder.path(), 0, &run(threads)).unwrap()
    };
    let in_files = contract(&finest, &one, ALL);
    assert_eq!(lists(&in_files), lists(&in_memory));
    assert_eq!((in_files.total(), in_files.heaviest()), (in_memory.total(), in_memory.heaviest()));
    let two = clustering(counts[0], counts[1], 2);
    let all = lists(&coarsening::contract(&in_memory, &two, &run(1)).unwrap());
    assert_eq!(lists(&contract(&in_files, &two, ALL)), all);
    // Packed, it is the same graph.
    let before = (lists(&in_files), in_files.edge_weight(), in_files.num_entries());
    let in_files = in_files.packed(0, &run(threads)).unwrap();
    assert_eq!((lists(&in_files), in_files.edge_weight(), in_files.num_entries()), before);
    assert_eq!(lists(&contract(&in_files, &two, ALL)), all);
    let sampled = contract(&in_files, &two, sample);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let count = |lists: &Lists| lists.iter().map(|(list, _)| list.len()).sum::<usize>() as u64;
    let (sampled, most) = (lists(&sampled), sample.entries.max(LEAST_DEGREE * counts[1]));
    assert!(count(&sampled) <= most + most / 10 + 20 || count(&sampled) == count(&all));
    for (v, ((list, weight), (whole, known))) in (0..).zip(sampled.iter().zip(&all)) {
        assert_eq!(weight, known);
        for &[u, w] in list {
            assert!(sampled[u as usize].0.contains(&[v, w]), "{v} has {u}, and {u} not {v}");
            assert!(whole.iter().any(|&[other, least]| other == u && least <= w));
        }
    }
}

fn rmat(scale: u32, m: u64) -> Graph {
    let model = Rmat::new(1 << scale, m, 3).unwrap();
    Graph::new(model.num_vertices(), records(&model, 0..m, &run(1)).unwrap())
}

fn by(path: Path, sample: f64, k: u32) -> Multilevel {
    Multilevel { path: Some(path), sample: Some(sample), ..Multilevel::new(k) }
}

/// Partitions with 1, 2 and 3 threads, which must agree, and checks the caps.
fn partition(csr: &Csr, multilevel: &Multilevel) -> VertexPartition {
    let [one, two, three] = [1, 2, 3].map(|threads| multilevel.partition(csr, &run(threads)).unwrap());
    assert!(one.assignment[..] == two.assignment[..] && two.assignment[..] == three.assignment[..]);
    let (mut loads, mut volumes) = (vec![0; multilevel.goal.k as usize], vec![0; multilevel.goal.k as usize]);
    for (v, &part) in (0..).zip(&*one.assignment) {
        loads[part as usize] += 1;
        volumes[part as usize] += u64::from(csr.degree(v)) + 1;
    }
    let cap = share(multilevel.goal.balance, csr.num_vertices() as u64, multilevel.goal.k).ceil() as u64;
    assert!(one.cap == Some(cap) && one.loads == loads && loads.iter().all(|&load| load <= cap));
    if let Some(volume) = &one.volume {
        assert!(volume.loads == volumes && volumes.iter().all(|&load| load <= volume.cap));
    }
    one
}

fn cut(csr: &Csr, assignment: &[i32]) -> usize {
    let of = |v: u32| {
        let own = assignment[v as usize];
        csr.neighbours(v).iter().filter(|&&u| assignment[u as usize] != own).count()
    };
    (0..csr.num_vertices() as u32).map(of).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn contraction_in_files_is_that_in_memory(
        graph in graphs(60, 300),
        counts in [1_u64..40, 1_u64..20],
        entries in 0_u64..200,
    ) {
        contract(&graph, counts, Sample { entries, seed: 5 }, 2);
    }

    #[test]
    fn caps_hold_on_every_path(graph in graphs(60, 200), k in 1_u32..9, sample in 0.01..1.0) {
        let csr = Csr::build(&graph, false, &run(1)).unwrap();
        for path in [Path::OneLevel, Path::TwoLevels] {
            partition(&csr, &by(path, sample, k));
            let goal = Goal { bounds: vec![Bound::Volume(1.1)], ..Goal::new(k) };
            partition(&csr, &Multilevel { goal, ..by(path, sample, k) });
        }
    }
}

#[test]
fn contraction_of_many_buckets_and_units() {
    // A hub's cluster has more entries than a bucket, and there are several units.
    contract(&rmat(13, 700_000), [3000, 900], Sample { entries: 50_000, seed: 1 }, 3);
}

#[test]
fn paths_come_close_to_each_other() {
    let graph = rmat(13, 60_000);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let in_memory = cut(&csr, &Multilevel::new(8).partition(&csr, &run(2)).unwrap().assignment);
    for (path, sample) in
        [(Path::OneLevel, 1.0), (Path::OneLevel, 0.2), (Path::TwoLevels, 1.0), (Path::TwoLevels, 0.1)]
    {
        let made = partition(&csr, &by(path, sample, 8));
        assert!(cut(&csr, &made.assignment) * 100 <= in_memory * 106, "{path:?}, {sample}");
        let goal = Goal { bounds: vec![Bound::Volume(1.1)], ..Goal::new(8) };
        let made = partition(&csr, &Multilevel { goal, ..by(path, sample, 8) });
        assert!(made.volume.is_some_and(|volume| volume.cap == volume.nominal));
    }
}

#[test]
fn a_limit_picks_the_first_plan_that_fits() {
    let (n, entries) = (1 << 20, 1 << 25);
    let multilevel = Multilevel::new(8);
    let plans = multilevel.plans(n, entries);
    assert_eq!(plans[0], (Plan::default(), multilevel.needed(n, entries, 1)));
    assert!(plans.len() > 3 && plans.is_sorted_by(|a, b| a.1 > b.1));
    let with = |limit| Run::new(Some(2), Some(limit)).unwrap();
    for &(plan, memory) in &plans {
        assert_eq!(multilevel.plan(n, entries, &with(memory)).unwrap(), plan);
        // What is given explicitly stays.
        let given = Multilevel { path: Some(plan.path), sample: Some(plan.sample), ..Multilevel::new(8) };
        assert_eq!(given.plan(n, entries, &with(1 << 40)).unwrap(), plan);
        assert!(given.plan(n, entries, &with(memory - 1)).is_err());
    }
    let &(least, memory) = plans.last().unwrap();
    let error = multilevel.plan(n, entries, &with(memory - 1)).unwrap_err();
    let Error::MemoryBudget { what, needed, .. } = &error else { panic!("{error}") };
    assert!(*needed == memory && what.contains(least.path.name()), "{what}");
    // Beyond 4 bytes per edge and 24 per vertex there is a plan, the offsets of the adjacency included.
    assert!(multilevel.plan(n, entries, &with(2 * entries + 16 * n)).is_ok());
}

/// The path of the result, and what was told on the way.
fn solve(multilevel: &Multilevel, input: &Input, run: &Run) -> (String, Vec<String>) {
    let outcome = partition_by(multilevel, input, run).unwrap();
    let (_, path) = outcome.chosen.iter().find(|(name, _)| *name == "path").unwrap().clone();
    let Value::Text(path) = path else { panic!("{path:?}") };
    (path.into(), run.take_notes())
}

#[test]
fn costs_say_which_limit_leads_where() {
    let graph = rmat(13, 100_000);
    let input = Input::new(&graph);
    for multilevel in [Multilevel::new(8), Multilevel::new(100), by(Path::TwoLevels, 0.25, 8)] {
        let costs = multilevel.costs(&input, Hubs::default(), &run(2));
        assert!(costs.is_sorted_by(|a, b| a.memory < b.memory) && !costs.is_empty());
        for (index, costs) in costs.iter().enumerate() {
            let has_files = costs.outside || costs.plan.path != Path::Memory;
            assert!(costs.files > 0 && costs.written > 0 || !has_files, "{costs:?}");
            assert!(costs.seconds > 0.0 && costs.seconds_at(1e30) - costs.seconds < 1e-9);
            assert!(costs.seconds_at(2e9) < costs.seconds_at(0.5e9));
            let io = costs.seconds_at(1e6) - costs.seconds;
            assert!((io - (costs.read + costs.written) as f64 / 1e6).abs() < 1e-6);
            let limited = Run::new(Some(2), Some(costs.memory)).unwrap();
            let (path, mut notes) = solve(&multilevel, &input, &limited);
            notes.retain(|note| !note.contains("1 of 2 threads work"));
            assert_eq!(path, costs.plan.path.name(), "{index}");
            assert!(notes.len() == usize::from(has_files) && notes.iter().all(|note| note.contains(&path)));
        }
        let least = Run::new(Some(2), Some(costs[0].memory / 2)).unwrap();
        assert!(partition_by(&multilevel, &input, &least).is_err());
    }
    // More threads take less time, and no more bytes.
    let [one, four] =
        [1, 4].map(|threads| Multilevel::new(8).costs(&input, Hubs::default(), &run(threads)).pop().unwrap());
    assert!(four.seconds < one.seconds && four.read == one.read);
}

/// All plans, the best first.
fn rank(costs: &Costs, multilevel: &Multilevel, entries: u64, n: u64) -> usize {
    multilevel.plans(n, entries).iter().position(|&(plan, _)| plan == costs.plan).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_larger_limit_never_leads_to_a_worse_plan(
        (n, m) in (1_u64..1 << 22, 0_u64..1 << 26), k in 1_u32..300, threads in 1_usize..9, volume: bool,
    ) {
        let graph = Sizes(n, m);
        let bounds = if volume { vec![Bound::Volume(1.1)] } else { vec![] };
        let (multilevel, input) = (Multilevel::from(Goal { bounds, ..Goal::new(k) }), Input::new(&graph));
        let run = run(threads);
        let costs = multilevel.costs(&input, Hubs::default(), &run);
        let ranks: Vec<usize> = costs.iter().map(|costs| rank(costs, &multilevel, 2 * m, n)).collect();
        prop_assert!(ranks.is_sorted_by(|a, b| a >= b), "{costs:?}");
        let last = costs.last().unwrap();
        prop_assert!(ranks.last() == Some(&0) && !last.outside);
        // Between two limits of the list nothing changes, and whatever a limit chooses fits into it.
        for limit in (0..400).map(|step| (20.0 + f64::from(step) / 30.0).exp2() as u64) {
            let within = multilevel.costs_within(limit, &input, &run);
            let listed = costs.iter().rfind(|costs| costs.memory <= limit);
            prop_assert_eq!(
                within.map(|costs| (costs.plan, costs.outside)), listed.map(|costs| (costs.plan, costs.outside))
            );
            let lists = |costs: &Costs| if costs.outside { 0 } else { 8 * m };
            prop_assert!(within.is_none_or(|costs| costs.beside + lists(&costs) + 8 * n <= limit));
        }
    }
}

/// A graph of which only the size is known.
struct Sizes(u64, u64);

// SAFETY: there are no ids.
unsafe impl EdgeStream for Sizes {
    fn num_vertices(&self) -> u64 {
        self.0
    }

    fn num_edges(&self) -> u64 {
        self.1
    }

    fn block<'a>(&'a self, _: Range<u64>, _: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        Err(Error::Internal("no records".into()))
    }
}

#[test]
fn a_run_takes_the_plan_that_was_said() {
    // Loops, which need no entries, change nothing.
    let loops = (0..4000).map(|v| [v, v]);
    let graph = Graph::new(1 << 12, rmat(12, 40_000).records.iter().copied().chain(loops).collect());
    let input = Input::new(&graph);
    let multilevel = Multilevel { effort: Effort::Quick, ..Multilevel::new(8) };
    let steps = multilevel.costs(&input, Hubs::default(), &run(2));
    assert!(steps.len() > 1);
    for limit in steps.iter().flat_map(|costs| [costs.memory, costs.memory * 21 / 20]) {
        let limited = Run::new(Some(2), Some(limit)).unwrap();
        let said = multilevel.costs_within(limit, &input, &limited).unwrap();
        let outcome = partition_by(&multilevel, &input, &limited).unwrap();
        let chosen =
            |name| outcome.chosen.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        assert_eq!(chosen("path"), Some(Value::Text(said.plan.path.name().into())));
        let sample = (said.plan.path != Path::Memory).then_some(Value::Number(said.plan.sample));
        assert_eq!(chosen("sample"), sample);
    }
}

#[test]
fn refusals() {
    let graph = Graph::new(4, vec![[0, 1], [1, 2]]);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let goal = Goal { machines: Some(vec![1, 1]), ..Goal::new(2) };
    for (refused, name) in [
        (by(Path::OneLevel, 0.0, 2), "sample"),
        (by(Path::TwoLevels, f64::NAN, 2), "sample"),
        (by(Path::TwoLevels, 1.5, 2), "sample"),
        (by(Path::Memory, 0.5, 2), "sample"),
        (Multilevel { sample: Some(0.5), ..Multilevel::new(2) }, "sample"),
        (Multilevel { goal, sample: None, ..by(Path::OneLevel, 0.5, 2) }, "path"),
    ] {
        let error = refused.partition(&csr, &run(1)).unwrap_err();
        assert!(matches!(error, Error::Parameter { name: refused, .. } if refused == name), "{error}");
    }
    let cancelled = run(1);
    cancelled.cancel();
    let error = by(Path::TwoLevels, 0.5, 2).partition(&csr, &cancelled).unwrap_err();
    assert!(matches!(error, Error::Cancelled));
}

#[test]
fn progress_ends_where_it_should() {
    let graph = rmat(13, 60_000);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    for (path, k) in [(Path::OneLevel, 8), (Path::TwoLevels, 8), (Path::TwoLevels, 6000)] {
        let watched = run(2).watched();
        by(path, 0.2, k).partition(&csr, &watched).unwrap();
        for step in watched.steps() {
            assert_eq!(step.progress.done, step.progress.total, "{path:?}, {:?}", step.progress);
        }
    }
}

#[test]
fn a_file_that_may_not_grow_is_an_error() {
    // Whoever writes beyond is told instead of killed.
    let folder = tempfile::tempdir().unwrap();
    in_child("semi_external::in_small_files", folder.path(), "trap '' XFSZ && ulimit -f 512");
}

#[test]
#[ignore = "needs a limit on files of 256 KiB; run by a_file_that_may_not_grow_is_an_error"]
fn in_small_files() {
    let csr = Csr::build(&rmat(12, 60_000), false, &run(1)).unwrap();
    for path in [Path::OneLevel, Path::TwoLevels] {
        let run = run(2).with_tmp_dir(Some(dir_of_child()));
        let error = by(path, 0.5, 4).partition(&csr, &run).unwrap_err();
        let Error::Io { path, source } = error else { panic!("{error}") };
        assert!(
            path.starts_with(dir_of_child()) && source.kind() == std::io::ErrorKind::FileTooLarge,
            "{source}"
        );
        assert_eq!(fs::read_dir(dir_of_child()).unwrap().count(), 0);
    }
}

/// Bytes that a process may take for an estimate: stacks, ends of pages and a huge page that is used in part come to it.
fn allowed(memory: u64) -> u64 {
    memory + memory / 8 + (3 << 20)
}

/// One heap, which gives back what is free. With one for each thread, what they keep depends on which thread did what.
const ONE_HEAP: &str = "export MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=65536 MALLOC_TRIM_THRESHOLD_=65536";

#[test]
fn memory_is_bounded_by_the_estimate() {
    let folder = tempfile::tempdir().unwrap();
    let edges = Rmat::new(1 << 15, 600_000, 1).unwrap();
    generate::write(&edges, &folder.path().join("g.bin"), &run(2)).unwrap();
    in_child("semi_external::memory_of_a_child", folder.path(), ONE_HEAP);
}

#[test]
#[ignore = "measures its process; run by memory_is_bounded_by_the_estimate"]
fn memory_of_a_child() {
    let mut edges = EdgeFile::open(&dir_of_child().join("g.bin"), None, None, Io::Map).unwrap();
    edges.set_num_vertices(1 << 15);
    let with = |limit| Run::new(Some(2), Some(limit)).unwrap().with_tmp_dir(Some(dir_of_child()));
    let csr = Csr::build(&edges, false, &with(Csr::memory(&edges, false, false, &with(0)))).unwrap();
    let (n, entries) = (csr.num_vertices() as u64, csr.num_entries());
    for bounds in [vec![], vec![Bound::Volume(1.1)]] {
        let multilevel = Multilevel::from(Goal { bounds, ..Goal::new(8) });
        for (plan, memory) in multilevel.plans(n, entries).into_iter().skip(1) {
            let run = with(memory);
            assert_eq!(multilevel.plan(n, entries, &run).unwrap(), plan);
            let meter = Meter::start();
            let files = meter.usage().files;
            let taken = most_taken(|| drop(multilevel.partition(&csr, &run).unwrap()));
            assert!(taken < allowed(memory), "{plan:?}: {taken} of {memory}");
            let written = meter.usage().files - files;
            assert!(written > 0 && written <= plan.files(n, entries), "{plan:?}: {written}");
        }
        for costs in multilevel.costs(&Input::new(&edges), Hubs::default(), &with(0)) {
            let run = with(costs.memory);
            let meter = Meter::start();
            let taken = most_taken(|| drop(solve(&multilevel, &Input::new(&edges), &run)));
            assert!(taken < allowed(costs.memory), "{costs:?}: {taken}");
            let written = meter.usage().files - 4 * csr.num_entries();
            assert!(written <= costs.files, "{costs:?}: {written}");
        }
    }
}
