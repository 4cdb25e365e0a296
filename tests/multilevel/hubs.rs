//! Vertices with lists that all threads sum up: the same results as of one thread, and memory within the statement for any
//! number of threads.

use fastpart::internals::algorithms::multilevel::coarsening::{Clusterer, Clustering, Sample, in_files};
use fastpart::internals::algorithms::multilevel::model::Graph as Weighted;
use fastpart::internals::algorithms::multilevel::refine::Refine;
use fastpart::internals::algorithms::multilevel::update::Update;
use fastpart::internals::algorithms::multilevel::{Effort, Goal, Multilevel, Path, Rating, coarsening};
use fastpart::internals::base::{Buffer, Random, Run};
use fastpart::internals::graph::Csr;
use fastpart::internals::partition::{Partitioner, Shape};
use rustc_hash::FxHashMap;

use crate::common::children::{dir_of_child, in_child, most_taken};
use crate::common::{Graph, run};

/// Random edges, and hubs with a quarter of the vertices around each.
fn graph(n: u64, m: usize, hubs: u32) -> Graph {
    let mut random = Random::new(7, 0);
    let mut any = || random.below(n) as u32;
    let mut records: Vec<[u32; 2]> = (0..m).map(|_| [any(), any()]).collect();
    (0..hubs).for_each(|hub| records.extend((0..n / 4 + 10).map(|_| [hub * 97, any()])));
    Graph::new(n, records)
}

/// The coarse lists by their definition: clusters in the order in which they come first, and what their edges weigh.
fn expected(csr: &Csr, clustering: &Clustering) -> Vec<Vec<[u32; 2]>> {
    let mut lists: Vec<Vec<[u32; 2]>> = vec![Vec::new(); clustering.count];
    let mut places: FxHashMap<(u32, u32), usize> = FxHashMap::default();
    for v in 0..csr.num_vertices() as u32 {
        let own = clustering.cluster_of[v as usize];
        for &u in csr.neighbours(v) {
            let other = clustering.cluster_of[u as usize];
            if other != own {
                let list = &mut lists[own as usize];
                let place = *places.entry((own, other)).or_insert(list.len());
                list.resize(list.len().max(place + 1), [other, 0]);
                list[place][1] += 1;
            }
        }
    }
    lists
}

fn lists(graph: &Weighted<1>) -> Vec<Vec<[u32; 2]>> {
    let of = |v| {
        let mut list = Vec::new();
        graph.each(v, |u, w| list.push([u, w]));
        list
    };
    (0..graph.len() as u32).map(of).collect()
}

#[test]
fn long_lists_are_clustered_and_contracted_as_short_ones() {
    // More clusters than a table has slots of their own, lists of more than 2^14 entries, and clusters with as many.
    let graph = graph(70_001, 150_000, 5);
    let csr = Csr::build(&graph, false, &run(1)).unwrap();
    let weight = |_| [1];
    let finest = Weighted::finest(&csr, &weight, &run(1)).unwrap();
    for rating in [Rating::Weight, Rating::Density] {
        let clusterer = Clusterer { rating, cap: [3000], rounds: 2, seed: 3 };
        let [one, two, many] =
            [1, 2, 5].map(|threads| clusterer.cluster(&finest, None, &run(threads)).unwrap());
        assert_eq!(one.cluster_of[..], two.cluster_of[..]);
        assert_eq!(one.cluster_of[..], many.cluster_of[..]);
        let communities: Vec<u32> = (0..graph.n as u32).map(|v| v % 3).collect();
        let within =
            [1, 5].map(|threads| clusterer.cluster(&finest, Some(&communities), &run(threads)).unwrap());
        assert_eq!(within[0].cluster_of[..], within[1].cluster_of[..]);
    }
    let mut random = Random::new(1, 0);
    let clusters = |count: u64, random: &mut Random| {
        let mut cluster_of: Buffer<u32> = Buffer::zeroed(graph.n as usize, "clusters").unwrap();
        cluster_of.iter_mut().for_each(|cluster| *cluster = random.below(count) as u32);
        (0..count).for_each(|cluster| cluster_of[cluster as usize] = cluster as u32);
        Clustering { cluster_of, count: count as usize }
    };
    for count in [40_000, 900, 1] {
        let clustering = clusters(count, &mut random);
        let known = expected(&csr, &clustering);
        for threads in [1, 4] {
            let coarse = coarsening::contract(&finest, &clustering, &run(threads)).unwrap();
            assert_eq!(lists(&coarse), known);
            let folder = tempfile::tempdir().unwrap();
            let all = Sample { entries: u64::MAX, seed: 0 };
            let run = run(threads);
            let in_files = in_files::contract(&finest, &clustering, all, folder.path(), 0, &run);
            assert_eq!(lists(&in_files.unwrap()), known);
        }
    }
}

#[test]
fn memory_is_within_the_statement_for_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    in_child("hubs::memory_of_threads", folder.path(), "true");
}

/// Pages that heaps round up to, and a huge page that is used in part.
const ROUNDING: u64 = 4 << 20;

#[test]
#[ignore = "measures its process; run by memory_is_within_the_statement_for_any_number_of_threads"]
fn memory_of_threads() {
    for (hubs, k) in [(0, 4), (12, 4), (12, 1 << 11)] {
        let graph = graph(1 << 17, 200_000, hubs);
        let with =
            |threads, limit| Run::new(Some(threads), Some(limit)).unwrap().with_tmp_dir(Some(dir_of_child()));
        let csr = Csr::build(&graph, false, &run(2)).unwrap();
        let (n, entries) = (csr.num_vertices() as u64, csr.most_entries());
        let check = |what: &str, memory: &dyn Fn(usize) -> u64, work: &dyn Fn(&Run) -> Vec<i32>| {
            let mut results = Vec::new();
            for (threads, limit) in [(32, memory(1)), (32, memory(32)), (1, memory(1))] {
                let run = with(threads, limit);
                let taken = most_taken(|| results.push(work(&run)));
                assert!(
                    taken <= limit + ROUNDING,
                    "{what}, {hubs} hubs, k={k}, {threads} threads: {taken} of {limit}"
                );
            }
            assert!(results.iter().all(|result| *result == results[0]), "{what}");
        };
        let of = |path, sample| Multilevel {
            effort: Effort::Fast,
            path: Some(path),
            sample,
            ..Multilevel::new(k)
        };
        for (path, sample) in [(Path::OneLevel, 0.5), (Path::TwoLevels, 0.1)] {
            let multilevel = of(path, Some(sample));
            let plan = multilevel.plans(n, entries)[0].0;
            let memory = |threads| plan.memory(&multilevel, n, entries, threads);
            check("multilevel", &memory, &|run| multilevel.partition(&csr, run).unwrap().assignment.to_vec());
        }
        let start: Vec<u32> = (0..n as u32).map(|v| v % k).collect();
        let goal = Goal::new(k);
        let refine = Refine {
            effort: Effort::Best { rounds: Some(1), time_limit: None },
            ..Refine::new(goal.clone(), start.clone())
        };
        let update = Update::new(goal, start);
        let shape = Shape { n, m: entries / 2, symmetric: false, in_file: false };
        let memory = |threads| refine.memory(&shape, &with(threads, u64::MAX)).beside;
        check("refine", &memory, &|run| refine.partition(&csr, run).unwrap().0.assignment.to_vec());
        let memory = |threads| Partitioner::memory(&update, &shape, &with(threads, u64::MAX)).beside;
        check("update", &memory, &|run| update.partition(&csr, run).unwrap().0.assignment.to_vec());
    }
}
