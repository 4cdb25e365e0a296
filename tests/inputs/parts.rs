//! The parts of partitions against brute force, byte for byte.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::parts::{Files, i32s, i64s, named, written};
use crate::common::{Graph, graphs, run};
use fastpart::internals::base::Error;
use fastpart::internals::base::Run;
use fastpart::internals::base::splitmix64;
use fastpart::internals::edges::Directedness;
use fastpart::internals::generate::{Generator, Rmat};
use fastpart::internals::parts::{PartSizes, Portion};
use fastpart::internals::{generate, parts};
use proptest::prelude::*;
use tempfile::TempDir;

/// An edge (source, target, id), in record order.
type Edge = (u32, u32, u64);

fn directed_edges(graph: &Graph, directedness: Directedness) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (&[u, v], id) in graph.records.iter().zip(0..) {
        edges.push((u, v, id));
        if directedness == Directedness::Undirected && u != v {
            edges.push((v, u, graph.m() + id));
        }
    }
    edges
}

fn in_degree(edges: &[Edge], vertex: u32) -> i64 {
    edges.iter().filter(|&&(_, v, _)| v == vertex).count() as i64
}

/// `indptr`, `indices` and `edge_ids` of the first `rows` of the `local` vertices.
fn rows(edges: &[Edge], local: &[u32], rows: usize) -> Files {
    let (mut indptr, mut indices, mut ids) = (vec![0], Vec::new(), Vec::new());
    for &row in &local[..rows] {
        for &(u, _, id) in edges.iter().filter(|&&(_, v, _)| v == row) {
            indices.push(local.iter().position(|&v| v == u).unwrap() as i32);
            ids.push(id as i64);
        }
        indptr.push(ids.len() as i64);
    }
    named([("indptr.npy", i64s(indptr)), ("indices.npy", i32s(indices)), ("edge_ids.npy", i64s(ids))])
}

/// What the part of a vertex partition holds.
fn vertex_part(
    graph: &Graph,
    assignment: &[i32],
    part: i32,
    directedness: Directedness,
    hops: u32,
) -> (Files, PartSizes) {
    let all = directed_edges(graph, directedness);
    let owner = |v: u32| assignment[v as usize];
    let inner: Vec<u32> = (0..graph.n as u32).filter(|&v| owner(v) == part).collect();
    let (mut local, mut num_rows, mut num_halo) = (inner.clone(), inner.len(), [0; 2]);
    let mut edges: Vec<Edge> = all.clone();
    edges.retain(|&(u, v, _)| hops > 0 || owner(u) == owner(v));
    for num_halo in &mut num_halo[..hops as usize] {
        let halo: BTreeSet<u32> = edges
            .iter()
            .filter(|(u, v, _)| local.contains(v) && !local.contains(u))
            .map(|edge| edge.0)
            .collect();
        num_rows = local.len();
        *num_halo = halo.len() as u64;
        local.extend(halo);
    }
    let halo = || local[inner.len()..].iter().copied();
    let mut files = rows(&edges, &local, num_rows);
    let num_edges = edges.iter().filter(|(_, v, _)| local[..num_rows].contains(v)).count() as u64;
    files.extend(named([
        ("vertices.npy", i64s(local.iter().map(|&v| i64::from(v)))),
        ("degree.npy", i64s(local.iter().map(|&v| in_degree(&all, v)))),
        ("halo_parts.npy", i32s(halo().map(owner))),
        ("halo_rows.npy", i32s(halo().map(|v| (0..v).filter(|&u| owner(u) == owner(v)).count() as i32))),
    ]));
    let num_inner = inner.len() as u64;
    let sizes = PartSizes { num_inner, num_halo, num_rows: num_rows as u64, num_edges, ..Default::default() };
    (files, sizes)
}

/// The vertices of each part of an edge partition, and the root of each vertex.
fn copies_and_roots(graph: &Graph, assignment: &[i32], k: usize) -> (Vec<BTreeSet<u32>>, Vec<usize>) {
    let mut members = vec![BTreeSet::new(); k];
    for (record, &part) in graph.records.iter().zip(assignment) {
        members[part as usize].extend(record);
    }
    let holders: Vec<Vec<usize>> =
        (0..graph.n as u32).map(|v| (0..k).filter(|&p| members[p].contains(&v)).collect()).collect();
    let mut order: Vec<usize> = (0..graph.n as usize).collect();
    order.sort_by_key(|&v| if holders[v].is_empty() { usize::MAX } else { holders[v].len() });
    let (mut roots, mut loads) = (vec![0; graph.n as usize], vec![0; k]);
    for v in order {
        let among = if holders[v].is_empty() { (0..k).collect() } else { holders[v].clone() };
        roots[v] = among.into_iter().min_by_key(|&part| loads[part]).unwrap();
        loads[roots[v]] += 1;
        members[roots[v]].insert(v as u32);
    }
    (members, roots)
}

/// What the part of an edge partition holds.
fn edge_part(
    graph: &Graph,
    assignment: &[i32],
    k: usize,
    part: usize,
    directedness: Directedness,
) -> (Files, PartSizes) {
    let all = directed_edges(graph, directedness);
    let (members, roots) = copies_and_roots(graph, assignment, k);
    let local: Vec<u32> = members[part].iter().copied().collect();
    let mut edges = all.clone();
    edges.retain(|&(_, _, id)| assignment[(id % graph.m()) as usize] == part as i32);
    let mut files = rows(&edges, &local, local.len());
    let lists = |belongs: &dyn Fn(usize, u32) -> bool| {
        let (mut indptr, mut items) = (vec![0], Vec::new());
        for peer in 0..k {
            items.extend(
                (0..local.len()).filter(|&i| peer != part && belongs(peer, local[i])).map(|i| i as i32),
            );
            indptr.push(items.len() as i64);
        }
        (indptr, items)
    };
    let (send_indptr, send) = lists(&|peer, v| roots[v as usize] == peer);
    let (recv_indptr, recv) = lists(&|peer, v| roots[v as usize] == part && members[peer].contains(&v));
    let num_send = send.len() as u64;
    files.extend(named([
        ("vertices.npy", i64s(local.iter().map(|&v| i64::from(v)))),
        ("degree.npy", i64s(local.iter().map(|&v| in_degree(&all, v)))),
        ("root.npy", i32s(local.iter().map(|&v| roots[v as usize] as i32))),
        ("send_indptr.npy", i64s(send_indptr)),
        ("send.npy", i32s(send)),
        ("recv_indptr.npy", i64s(recv_indptr)),
        ("recv.npy", i32s(recv)),
    ]));
    let num_inner = local.len() as u64;
    let sizes = PartSizes {
        num_inner,
        num_rows: num_inner,
        num_edges: edges.len() as u64,
        num_roots: num_inner - num_send,
        num_send,
        ..Default::default()
    };
    (files, sizes)
}

/// Compares all folders with what is expected of each part.
fn check(
    folder: &Path,
    sizes: &[PartSizes],
    expected: impl Fn(usize) -> (Files, PartSizes),
) -> Result<(), TestCaseError> {
    let written = written(folder);
    let names: Vec<String> = (0..sizes.len()).map(|part| format!("part-{part:05}")).collect();
    prop_assert_eq!(written.keys().cloned().collect::<Vec<_>>(), names.clone());
    for (part, name) in names.iter().enumerate() {
        let (files, expected) = expected(part);
        prop_assert_eq!(sizes[part], expected, "part {}", part);
        let found = &written[name];
        prop_assert_eq!(found.keys().collect::<Vec<_>>(), files.keys().collect::<Vec<_>>());
        for (file, bytes) in &files {
            prop_assert!(
                &found[file] == bytes,
                "part {}, {}: {:?}, expected {:?}",
                part,
                file,
                found[file],
                bytes
            );
        }
    }
    Ok(())
}

fn directednesses() -> impl Strategy<Value = Directedness> {
    prop_oneof![Just(Directedness::Undirected), Just(Directedness::Symmetric), Just(Directedness::Directed)]
}

/// Numbers of parts: one, few, more than vertices, more than a mask has bits.
fn parts() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(1_u32), 10 => 2_u32..=8, 1 => 60_u32..=90]
}

/// `count` parts below `k`, of which at most `used` are used.
fn assign(count: u64, k: u32, used: u64, seed: u64) -> Vec<i32> {
    let part = |item: u64| {
        let choice = splitmix64(seed ^ item) % used.min(u64::from(k));
        (splitmix64(choice ^ seed) % u64::from(k)) as i32
    };
    (0..count).map(part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn vertex_parts(
        graph in graphs(40, 120), k in parts(), used in 1_u64..100, seed: u64, directedness in directednesses(), hops in 0_u32..=2,
        threads in 1_usize..=3,
    ) {
        let assignment = assign(graph.n, k, used, seed);
        let home = TempDir::new().unwrap();
        let sizes =
            parts::write_vertex_parts(&graph, &assignment, k, &directedness.into(), &Portion::whole(k, hops, home.path()), &run(threads)).unwrap();
        check(home.path(), &sizes, |part| vertex_part(&graph, &assignment, part as i32, directedness, hops))?;
    }

    #[test]
    fn portions_have_the_bytes_of_all_parts(
        graph in graphs(40, 120), k in parts(), used in 1_u64..100, seed: u64, directedness in directednesses(), hops in 0_u32..=2,
        cut in 0_u32..300,
    ) {
        let assignment = assign(graph.n, k, used, seed);
        let [whole, portions, temporary] = std::array::from_fn(|_| TempDir::new().unwrap());
        let write = |portion: &Portion| {
            parts::write_vertex_parts(&graph, &assignment, k, &directedness.into(), portion, &run(2)).unwrap()
        };
        let expected = write(&Portion::whole(k, hops, whole.path()));
        let cut = cut % (k + 1);
        let part = |parts| Portion { parts, halo_hops: hops, into: portions.path(), temporary: temporary.path() };
        let sizes = [write(&part(0..cut)), write(&part(cut..k))].concat();
        prop_assert_eq!(sizes, expected);
        prop_assert!(written(portions.path()) == written(whole.path()));
        prop_assert!(fs::read_dir(temporary.path()).unwrap().next().is_none());
    }

    #[test]
    fn edge_parts(
        graph in graphs(40, 120), k in parts(), used in 1_u64..100, seed: u64, directedness in directednesses(), threads in 1_usize..=3,
    ) {
        let assignment = assign(graph.m(), k, used, seed);
        let home = TempDir::new().unwrap();
        let sizes = parts::write_edge_parts(&graph, &assignment, k, directedness, home.path(), &run(threads)).unwrap();
        check(home.path(), &sizes, |part| edge_part(&graph, &assignment, k as usize, part, directedness))?;
    }
}

/// Many blocks, windows and shared buckets, a row beyond a window: equal for all threads, and for the largest part equal
/// to what sorting says.
#[test]
fn large_graphs_agree_for_all_threads() {
    let rmat = Rmat::new(30_000, 1 << 20, 3).unwrap();
    let mut records = generate::records(&rmat, 0..rmat.num_edges(), &run(2)).unwrap();
    records.extend((0..1_600_000).map(|id| [id % 30_000, 7]));
    let graph = Graph::new(30_000, records);
    let assignment: Vec<i32> = (0..graph.n).map(|v| (splitmix64(v) % 5).saturating_sub(2) as i32).collect();
    let of_records: Vec<u8> = (0..graph.m()).map(|r| (splitmix64(r) % 9).saturating_sub(4) as u8).collect();
    for (directedness, hops) in
        [(Directedness::Undirected, 1), (Directedness::Directed, 2), (Directedness::Symmetric, 0)]
    {
        let all = |threads: usize| {
            let (vertices, edges) = (TempDir::new().unwrap(), TempDir::new().unwrap());
            let run = run(threads);
            let sizes = parts::write_vertex_parts(
                &graph,
                &assignment,
                4,
                &directedness.into(),
                &Portion::whole(4, hops, vertices.path()),
                &run,
            )
            .unwrap();
            let edge_sizes =
                parts::write_edge_parts(&graph, &of_records, 6, directedness, edges.path(), &run).unwrap();
            (sizes, edge_sizes, written(vertices.path()), written(edges.path()))
        };
        let one = all(1);
        assert!(one == all(2) && one == all(3), "{directedness:?}");
        let total: u64 = one.1.iter().map(|sizes| sizes.num_edges).sum();
        assert_eq!(total, directed_edges(&graph, directedness).len() as u64);
        check_rows(
            &graph,
            directedness,
            &one.2["part-00000"],
            |u, v, _| assignment[v as usize] == 0 && (hops > 0 || assignment[u as usize] == 0),
            one.0[0].num_inner,
        );
        check_rows(
            &graph,
            directedness,
            &one.3["part-00000"],
            |_, _, id| of_records[(id % graph.m()) as usize] == 0,
            u64::MAX,
        );
    }
}

/// Compares the rows of a part's first vertices with its edges, sorted.
fn check_rows(
    graph: &Graph,
    directedness: Directedness,
    files: &Files,
    belongs: impl Fn(u32, u32, u64) -> bool,
    rows: u64,
) {
    let longs = |name: &str| -> Vec<i64> {
        files[name][128..].as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect()
    };
    let indices: Vec<i32> =
        files["indices.npy"][128..].as_chunks().0.iter().map(|&b| i32::from_le_bytes(b)).collect();
    let (vertices, indptr, ids) = (longs("vertices.npy"), longs("indptr.npy"), longs("edge_ids.npy"));
    let mut expected: Vec<_> =
        directed_edges(graph, directedness).into_iter().filter(|&(u, v, id)| belongs(u, v, id)).collect();
    expected.sort_by_key(|&(_, v, id)| (v, id % graph.m()));
    let mut found = Vec::new();
    for row in 0..(indptr.len() - 1).min(rows as usize) {
        for edge in indptr[row] as usize..indptr[row + 1] as usize {
            found.push((vertices[indices[edge] as usize] as u32, vertices[row] as u32, ids[edge] as u64));
        }
    }
    assert!(found == expected, "{directedness:?}");
}

fn sample() -> (Graph, Vec<i32>, Vec<i32>) {
    let rmat = Rmat::new(10_000, 300_000, 5).unwrap();
    let graph = Graph::new(10_000, generate::records(&rmat, 0..300_000, &run(2)).unwrap());
    let (vertices, records) = (assign(graph.n, 20, 20, 1), assign(graph.m(), 20, 20, 2));
    (graph, vertices, records)
}

#[test]
fn a_cancelled_run_leaves_no_temporary() {
    let (graph, vertices, records) = sample();
    let hidden = |folder: &Path| {
        fs::read_dir(folder)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().as_encoded_bytes()[0] == b'.')
            .count()
    };
    // Cancelled at every stage: when a progress of so much was made.
    for polls in 0..12 {
        for hops in [1, 2] {
            let home = TempDir::new().unwrap();
            let run = run(2);
            let outcome = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(std::time::Duration::from_millis(3 * polls));
                    run.cancel();
                });
                let parts = parts::write_vertex_parts(
                    &graph,
                    &vertices,
                    20,
                    &Directedness::Undirected.into(),
                    &Portion::whole(20, hops, home.path()),
                    &run,
                );
                let into = home.path().join("edges");
                fs::create_dir(&into).unwrap();
                parts
                    .and_then(|_| {
                        parts::write_edge_parts(&graph, &records, 20, Directedness::Undirected, &into, &run)
                    })
                    .map(|_| into)
            });
            assert!(matches!(outcome, Ok(_) | Err(Error::Cancelled)));
            assert_eq!(hidden(home.path()), 0);
            if let Ok(into) = outcome {
                assert_eq!(hidden(&into), 0);
            }
        }
    }
    let run = run(2);
    run.cancel();
    let home = TempDir::new().unwrap();
    let cancelled = parts::write_edge_parts(&graph, &records, 20, Directedness::Directed, home.path(), &run);
    assert!(matches!(cancelled, Err(Error::Cancelled)));
}

#[test]
fn what_does_not_fit_is_refused() {
    let (graph, vertices, records) = sample();
    let home = TempDir::new().unwrap();
    let write = |hops: u32, budget: u64| {
        let run = Run::new(Some(2), Some(budget)).unwrap();
        parts::write_vertex_parts(
            &graph,
            &vertices,
            20,
            &Directedness::Undirected.into(),
            &Portion::whole(20, hops, home.path()),
            &run,
        )
        .unwrap_err()
    };
    for hops in 0..=2 {
        let error = write(hops, 25 << 20);
        assert!(matches!(error, Error::MemoryBudget { .. }), "{error}");
        assert!(error.to_string().contains(&format!("10000 vertices (halo_hops={hops})")), "{error}");
    }
    let tight = Run::new(Some(2), Some(25 << 20)).unwrap();
    let error = parts::write_edge_parts(&graph, &records, 20, Directedness::Undirected, home.path(), &tight)
        .unwrap_err();
    assert!(matches!(error, Error::MemoryBudget { .. }), "{error}");
    // One worker instead of two.
    let enough = Run::new(Some(2), Some(50 << 20)).unwrap();
    parts::write_vertex_parts(
        &graph,
        &vertices,
        20,
        &Directedness::Undirected.into(),
        &Portion::whole(20, 1, home.path()),
        &enough,
    )
    .unwrap();
    let error = write(3, 1 << 34).to_string();
    assert_eq!(error, "halo_hops: 3 is not between 0 and 2");
    assert!(fs::read_dir(home.path()).unwrap().count() == 20, "refusals write nothing");
}

#[test]
fn wrong_assignments_are_refused() {
    let (graph, mut vertices, mut records) = sample();
    let home = TempDir::new().unwrap();
    let run = run(2);
    let error = |result: fastpart::internals::base::Result<Vec<PartSizes>>| result.unwrap_err().to_string();
    vertices[77] = 20;
    let refused = parts::write_vertex_parts(
        &graph,
        &vertices,
        20,
        &Directedness::Directed.into(),
        &Portion::whole(20, 1, home.path()),
        &run,
    );
    assert_eq!(error(refused), "assignment: vertex 77 has part 20, outside 0..20");
    for part in [20, -1] {
        records[77] = part;
        let refused =
            parts::write_edge_parts(&graph, &records, 20, Directedness::Directed, home.path(), &run);
        assert_eq!(error(refused), format!("assignment: record 77 has part {part}, outside 0..20"));
    }
    let refused =
        parts::write_edge_parts(&graph, &records[1..], 20, Directedness::Directed, home.path(), &run);
    assert!(error(refused).contains("299999 entries for 300000 records"));
    let refused = parts::write_edge_parts(&graph, &records, 0, Directedness::Directed, home.path(), &run);
    assert!(error(refused).contains("k: 0 is not between 1"));
    assert_eq!(
        Directedness::named("mixed").unwrap_err().to_string(),
        "directedness: unknown value \"mixed\". Known are undirected, symmetric, directed"
    );
    assert!(written(home.path()).is_empty());
}

#[test]
fn a_missing_folder_is_an_io_error_with_its_path() {
    let (graph, vertices, _) = sample();
    let home = TempDir::new().unwrap();
    let absent = home.path().join("absent");
    let error = parts::write_vertex_parts(
        &graph,
        &vertices,
        20,
        &Directedness::Directed.into(),
        &Portion::whole(20, 1, &absent),
        &run(2),
    )
    .unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path.starts_with(&absent)), "{error}");
}
