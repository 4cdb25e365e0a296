//! The blocks of ByteGNN against searches from every centre, its room for parts against a search for an assignment, and
//! what must hold on every graph.

use std::ops::Range;

use crate::common::{Graph, graphs, run};
use fastpart::internals::algorithms::bytegnn::blocks::Blocks;
use fastpart::internals::algorithms::bytegnn::slack::{Piece, Slack, total};
use fastpart::internals::algorithms::bytegnn::{ByteGnn, Rule};
use fastpart::internals::base::Run;
use fastpart::internals::base::{Error, Result};
use fastpart::internals::capacity::cap;
use fastpart::internals::edges::{Directedness, EdgeStream, Record};
use fastpart::internals::generate::{Generator, Rmat, records};
use fastpart::internals::partition::{Input, VertexPartition, partition};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A graph that nobody may read.
struct Unread<'a>(&'a Graph);

// SAFETY: it gives no records.
unsafe impl EdgeStream for Unread<'_> {
    fn num_vertices(&self) -> u64 {
        self.0.n
    }

    fn num_edges(&self) -> u64 {
        self.0.m()
    }

    fn block<'a>(&'a self, _: Range<u64>, _: &'a mut Vec<Record>) -> Result<&'a [Record]> {
        panic!("read before the memory was asked for")
    }
}

fn solve(parameters: &ByteGnn, input: &Input, run: &Run) -> Result<VertexPartition> {
    partition(parameters, input, run)?.partition.vertices()
}

/// The number of hops over which each vertex can be drawn from `centre`, up to `hops`.
fn distances(graph: &Graph, directed: bool, centre: u32, hops: u32) -> Vec<Option<u32>> {
    let mut distance = vec![None; graph.n as usize];
    distance[centre as usize] = Some(0);
    for hop in 1..=hops {
        for &[u, v] in &graph.records {
            for (from, to) in [(v, u), (u, v)].into_iter().take(if directed { 1 } else { 2 }) {
                let (from, to) = (from as usize, to as usize);
                if distance[from] == Some(hop - 1) && distance[to].is_none() {
                    distance[to] = Some(hop);
                }
            }
        }
    }
    distance
}

/// The distance and the centre of each vertex: the nearest, of several the lowest.
fn nearest(graph: &Graph, directed: bool, splits: &[u32], hops: u32) -> Vec<Option<(u32, u32)>> {
    let mut nearest = vec![None; graph.n as usize];
    for centre in (0..graph.n as u32).filter(|&v| splits[v as usize] != 0) {
        for (nearest, distance) in nearest.iter_mut().zip(distances(graph, directed, centre, hops)) {
            let known = distance.map(|distance| (distance, centre));
            *nearest = [*nearest, known].into_iter().flatten().min();
        }
    }
    nearest
}

/// Splits of some vertices, of which `per_vertex` says which each may be in.
fn splits(per_vertex: &'static [u32]) -> impl Strategy<Value = Vec<u32>> {
    vec(select(per_vertex), 60)
}

const DISJOINT: &[u32] = &[0, 0, 1, 2, 4];
const OVERLAPPING: &[u32] = &[0, 0, 1, 2, 3, 5, 6, 7];

/// Whether vertices in these splits, with bits or 0, find parts under the caps.
fn find_room(splits: &[u32], loads: &mut [[u64; 4]], cap: [u64; 4]) -> bool {
    let Some((&first, rest)) = splits.split_first() else { return true };
    (0..loads.len()).any(|part| {
        let load = loads[part];
        for (bound, load) in loads[part].iter_mut().enumerate() {
            *load += u64::from(bound == 0 || first >> (bound - 1) & 1 == 1);
        }
        let fits = (0..4).all(|bound| loads[part][bound] <= cap[bound]) && find_room(rest, loads, cap);
        loads[part] = load;
        fits
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn each_vertex_is_in_the_block_of_its_nearest_centre(
        graph in graphs(60, 120), splits in splits(OVERLAPPING), hops in 0_u32..5, directed: bool,
    ) {
        let splits = &splits[..graph.n as usize];
        let nearest = nearest(&graph, directed, splits, hops);
        for threads in [1, 2, 3] {
            let blocks = Blocks::new(&graph, directed, splits, hops, &run(threads)).unwrap();
            let centres: Vec<u32> = (0..graph.n as u32).filter(|&v| splits[v as usize] != 0).collect();
            prop_assert_eq!(blocks.centres(), &centres);
            for (&centre, block) in centres.iter().zip(0..) {
                let mut expected: Vec<(u32, u32)> = (0..graph.n as u32)
                    .filter_map(|v| Some((nearest[v as usize]?, v)))
                    .filter(|&((_, own), _)| own == centre)
                    .map(|((distance, _), v)| (distance, v))
                    .collect();
                let mut members = blocks.members(block).to_vec();
                prop_assert!(members.is_sorted());
                blocks.sort(&mut members);
                expected.sort_unstable();
                prop_assert_eq!(members, expected.into_iter().map(|(_, v)| v).collect::<Vec<_>>());
            }
            prop_assert_eq!(blocks.all_members().len(), nearest.iter().flatten().count());
        }
    }

    /// A part has room exactly if a search finds parts for all that come later.
    #[test]
    fn room_is_left_for_what_comes_later(
        splits in vec(proptest::sample::select(DISJOINT), 1..9), k in 1_usize..4,
        choices in vec(0_usize..4, 9), sizes in vec(1_usize..4, 9), tight: bool,
    ) {
        // Vertices in no split come with those that are in one, as they do in blocks.
        let (mut centres, mut others): (Vec<u32>, Vec<u32>) = splits.iter().partition(|&&split| split != 0);
        let all = total(&splits, &run(1)).unwrap();
        let caps = all.load.map(|items| cap(if tight { 1.0 } else { 1.4 }, items, k as u32));
        let mut slack = Slack::new(k as u32, caps, &all).unwrap();
        for (choice, size) in choices.into_iter().zip(sizes) {
            let Some(split) = centres.pop() else { break };
            let size = size.min(1 + others.len());
            others.truncate(others.len() - (size - 1));
            let rest: Vec<u32> = centres.iter().chain(&others).copied().collect();
            let mut open = Vec::new();
            for part in 0..k as u32 {
                let piece = Piece { vertices: size as u64, splits: split };
                let mut loads = slack.loads().to_vec();
                loads[part as usize][0] += size as u64;
                (1..4).for_each(|bound| loads[part as usize][bound] += u64::from(split >> (bound - 1) & 1));
                let expected = (0..4).all(|bound| loads[part as usize][bound] <= caps[bound])
                    && find_room(&rest, &mut loads, caps);
                prop_assert_eq!(slack.fits(part, piece), expected, "{:?}, {:?} to come", slack.loads(), rest);
                open.extend(expected.then_some((part, piece)));
            }
            if open.is_empty() {
                break;
            }
            let (part, piece) = open[choice % open.len()];
            prop_assert_eq!(slack.most(part, Piece { vertices: piece.vertices, ..piece }), piece.vertices);
            slack.add(part, piece);
        }
    }

    #[test]
    fn caps_hold_and_threads_change_nothing(
        graph in graphs(60, 150), splits in splits(DISJOINT), k in 1_u32..9, hops in 0_u32..4,
        balance in 1.0..1.3, split_balance in 1.0..1.3, rule in select(vec![Rule::Balanced, Rule::Paper]), directed: bool,
    ) {
        let splits = splits[..graph.n as usize].to_vec();
        let parameters = ByteGnn {
            splits: Some(splits.clone()), hops, balance, split_balance, rule, ..ByteGnn::new(k)
        };
        let input = Input { directedness: if directed { Directedness::Directed } else { Directedness::Undirected }, ..Input::new(&graph) };
        let [one, rest @ ..] = [1, 2, 3].map(|threads| solve(&parameters, &input, &run(threads)).unwrap());
        for other in rest {
            prop_assert_eq!(&one.assignment[..], &other.assignment[..]);
        }
        for (bound, capacity) in one.weights.iter().enumerate() {
            let mut loads = vec![0; k as usize];
            for (&part, &split) in one.assignment.iter().zip(&splits) {
                loads[part as usize] += u64::from(split >> bound & 1);
            }
            let of_split = splits.iter().filter(|&&split| split >> bound & 1 == 1).count() as u64;
            prop_assert_eq!(&capacity.loads, &loads);
            prop_assert_eq!([capacity.nominal, capacity.cap], [cap(split_balance, of_split, k); 2]);
            prop_assert!(loads.iter().all(|&load| load <= capacity.cap));
        }
        let mut loads = vec![0; k as usize];
        one.assignment.iter().for_each(|&part| loads[part as usize] += 1);
        prop_assert_eq!(&one.loads, &loads);
        prop_assert!(loads.iter().all(|&load| load <= cap(balance, graph.n, k)));
    }
}

/// On a graph large enough for several blocks of records and for batches of the stream.
#[test]
fn threads_change_nothing_on_a_large_graph() {
    let model = Rmat::new(1 << 17, 1 << 19, 1).unwrap();
    let graph = Graph::new(model.num_vertices(), records(&model, 0..1 << 19, &run(2)).unwrap());
    let splits = (0..graph.n as u32).map(|v| [0, 0, 0, 1, 2, 4][v as usize * 7 % 61 % 6]).collect();
    let parameters = ByteGnn { splits: Some(splits), hops: 1, ..ByteGnn::new(6) };
    let input = Input { directedness: Directedness::Directed, ..Input::new(&graph) };
    let [one, two, three] = [1, 2, 3].map(|threads| solve(&parameters, &input, &run(threads)).unwrap());
    assert!(one.assignment[..] == two.assignment[..] && one.assignment[..] == three.assignment[..]);
}

#[test]
fn memory_is_asked_for_before_the_adjacency_is_built() {
    let graph = Graph::new(1000, vec![[0, 1]]);
    let parameters = ByteGnn { splits: Some(vec![1; 1000]), ..ByteGnn::new(2) };
    let unread = Unread(&graph);
    let input = Input::new(&unread);
    let small = Run::new(Some(1), Some(4000)).unwrap();
    let error = solve(&parameters, &input, &small).unwrap_err();
    assert!(matches!(error, Error::MemoryBudget { .. }), "{error}");
}

#[test]
fn refusals() {
    let graph = Graph::new(3, vec![[0, 1]]);
    let input = Input::new(&graph);
    let good = ByteGnn { splits: Some(vec![1, 0, 0]), ..ByteGnn::new(2) };
    for (wrong, parameter) in [
        (ByteGnn { k: 0, ..good.clone() }, "k"),
        (ByteGnn { balance: 0.9, ..good.clone() }, "balance"),
        (ByteGnn { split_balance: f64::NAN, ..good.clone() }, "split_balance"),
        (ByteGnn { weights: vec![0.5, 0.5], ..good.clone() }, "weights"),
        (ByteGnn { weights: vec![0.5, -0.1, 0.5], ..good.clone() }, "weights"),
        (ByteGnn { splits: None, ..good.clone() }, "splits"),
        (ByteGnn { splits: Some(vec![1]), ..good.clone() }, "splits"),
    ] {
        let error = solve(&wrong, &input, &run(1)).unwrap_err();
        assert!(matches!(error, Error::Parameter { name, .. } if name == parameter), "{error}");
    }
    let small = Run::new(Some(1), Some(100)).unwrap();
    assert!(matches!(solve(&good, &input, &small), Err(Error::MemoryBudget { .. })));
    let run = run(1);
    run.cancel();
    assert!(matches!(solve(&good, &input, &run), Err(Error::Cancelled)));
}

#[test]
fn an_empty_graph_and_more_parts_than_vertices() {
    for n in [0, 1, 3] {
        let graph = Graph::new(n, Vec::new());
        let parameters = ByteGnn { splits: Some(vec![1; n as usize]), ..ByteGnn::new(5) };
        let made = solve(&parameters, &Input::new(&graph), &run(2)).unwrap();
        assert_eq!(made.loads.iter().sum::<u64>(), n);
        assert!(made.loads.iter().all(|&load| load <= 1));
    }
}
