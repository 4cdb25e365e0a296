//! Compares partitioners of vertices on one graph: `cargo run --release --example compare`.

use fastpart::partitioners::{Fennel, Grem, Ldg, Multilevel, Random, Sigma, Spring};
use fastpart::{Graph, Partitioner, Result, Run, cut};

const K: u32 = 8;

fn main() -> Result<()> {
    // A grid of 100 by 100 vertices.
    let right = (0..10_000).filter(|v| v % 100 < 99).map(|v| [v, v + 1]);
    let down = (0..9_900).map(|v| [v, v + 100]);
    let graph = Graph::from_edges(10_000, right.chain(down).collect())?;
    // The adjacency is built by the first that reads it, and kept for the others.
    row("random", &Random::new(K), &graph)?;
    row("ldg", &Ldg::new(K), &graph)?;
    row("fennel", &Fennel::new(K), &graph)?;
    row("sigma", &Sigma::new(K), &graph)?;
    row("spring", &Spring::new(K), &graph)?;
    row("grem", &Grem::new(K), &graph)?;
    row("multilevel", &Multilevel::new(K), &graph)
}

fn row<P: Partitioner>(name: &str, partitioner: &P, graph: &Graph) -> Result<()> {
    let run = Run::new(None, None)?;
    let partition = graph.partition(partitioner, &run)?.partition.vertices()?;
    let cut: u64 = cut(graph.edges(), &partition.assignment, K, &run)?.cut.iter().sum();
    let ratio = cut as f64 / 2.0 / graph.num_edges() as f64;
    println!("{name:>10}  cut ratio {ratio:.4}  largest part {:?}", partition.loads.iter().max());
    Ok(())
}
