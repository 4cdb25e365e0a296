//! Partitions edges, where a vertex may have copies in several parts: `cargo run --release --example edge_partition`.

use fastpart::partitioners::{EdgesOf, Hdrf, Hep, Multilevel};
use fastpart::{EdgePartition, Graph, Result, Run, replicas};

const K: u32 = 4;

fn main() -> Result<()> {
    // A star of hubs: vertex v is joined to v / 2 and to v / 10.
    let edges = (1..20_000_u32).flat_map(|v| [[v, v / 2], [v, v / 10]]).collect();
    let graph = Graph::from_edges(20_000, edges)?;
    let run = Run::new(None, None)?;

    let streamed = graph.partition(&Hdrf::new(K), &run)?.partition.edges()?;
    show("hdrf", streamed, &graph, &run)?;
    let pruned = graph.partition(&Hep::new(K), &run)?.partition.edges()?;
    show("hep", pruned, &graph, &run)?;

    // A vertex partition becomes an edge partition.
    let vertices = graph.partition(&Multilevel::new(K), &run)?.partition.vertices()?;
    let partition = vertices.assignment.iter().map(|&part| part as u32).collect();
    let edges = graph.partition(&EdgesOf { partition, ..EdgesOf::new(K) }, &run)?.partition.edges()?;
    show("edges of multilevel", edges, &graph, &run)
}

fn show(name: &str, partition: EdgePartition, graph: &Graph, run: &Run) -> Result<()> {
    let loads = partition.loads.clone();
    let mut parts = Vec::new();
    partition.parts.read(0..graph.num_edges(), &mut parts);
    let parts: Vec<i32> = parts.into_iter().map(|part| part as i32).collect();
    let copies = replicas(graph.edges(), &parts, K, run)?;
    let factor = copies.sizes.iter().sum::<u64>() as f64 / copies.touched as f64;
    println!("{name:>20}  copies of a vertex {factor:.3}  edges per part {loads:?}");
    Ok(())
}
