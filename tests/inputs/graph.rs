//! The library as its users see it: graphs that are opened, and partitioned by name.

use std::fs;

use fastpart::partitioners::{Dbh, Fennel, Ldg, Multilevel};
use fastpart::{Directedness, Error, Graph, Run, cut};

/// Two triangles and an edge between them.
const EDGES: [[u32; 2]; 7] = [[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [2, 3]];

fn run() -> Run {
    Run::new(Some(2), Some(1 << 28)).unwrap()
}

#[test]
fn a_file_and_a_list_of_edges_are_the_same_graph() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.bin");
    fs::write(&path, EDGES.iter().flatten().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>()).unwrap();
    let graphs = [Graph::open(&path, &run()).unwrap(), Graph::from_edges(6, EDGES.to_vec()).unwrap()];
    for graph in &graphs {
        assert_eq!((graph.num_vertices(), graph.num_edges()), (6, 7));
        let parts = graph.partition(&Multilevel::new(2), &run()).unwrap().partition.vertices().unwrap();
        assert_eq!(parts.loads, [3, 3]);
        assert_eq!(cut(graph.edges(), &parts.assignment, 2, &run()).unwrap().cut, [1, 1]);
    }
}

#[test]
fn what_is_no_graph_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("g.bin");
    assert!(matches!(Graph::open(&path, &run()), Err(Error::Io { .. })));
    fs::write(&path, [0; 12]).unwrap();
    assert!(Graph::open(&path, &run()).is_err(), "one record and a half");
    match Graph::from_edges(6, vec![[0, 1], [5, 6]]) {
        Err(Error::IdOutOfRange { record, id, n, .. }) => assert_eq!((record, id, n), (1, 6, 6)),
        other => panic!("{:?}", other.err()),
    }
    assert_eq!(Graph::from_edges(0, vec![]).unwrap().num_vertices(), 0);
}

#[test]
fn the_adjacency_is_built_once() {
    let graph = Graph::from_edges(6, EDGES.to_vec()).unwrap();
    let taken = |run: &Run| (1 << 28) - run.budget();
    let (first, second, third) = (run(), run(), run());
    graph.partition(&Ldg::new(2), &first).unwrap();
    assert!(taken(&first) > 0);
    graph.partition(&Fennel::new(2), &second).unwrap();
    assert_eq!(taken(&second), 0, "memory in use already");
    graph.forget_adjacency();
    graph.partition(&Ldg::new(2), &third).unwrap();
    assert_eq!(taken(&third), taken(&first));
}

#[test]
fn both_directions_are_one_edge_if_the_graph_says_so() {
    let both = EDGES.iter().flat_map(|&[u, v]| [[u, v], [v, u]]).collect();
    let graph = Graph::from_edges(6, both).unwrap().with_directedness(Directedness::Symmetric);
    let once = Graph::from_edges(6, EDGES.to_vec()).unwrap();
    let [one, other] = [&graph, &once].map(|graph| {
        graph.partition(&Ldg::new(2), &run()).unwrap().partition.vertices().unwrap().assignment.to_vec()
    });
    assert_eq!(one, other);
    let lonely = Graph::from_edges(6, EDGES.to_vec()).unwrap().with_directedness(Directedness::Symmetric);
    assert!(lonely.partition(&Multilevel::new(2), &run()).is_err(), "the other directions are missing");
}

#[test]
fn a_result_of_the_other_kind_is_an_error() {
    let graph = Graph::from_edges(6, EDGES.to_vec()).unwrap();
    assert!(graph.partition(&Dbh::new(2), &run()).unwrap().partition.vertices().is_err());
}
