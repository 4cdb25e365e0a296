//! Partitions a file of edges: `cargo run --release --example partition -- g.bin 8`.
//!
//! Without arguments it writes a small random graph first, and partitions that.

use std::env::{args, temp_dir};
use std::error::Error;
use std::fs;
use std::path::PathBuf;

use fastpart::choices::Goal;
use fastpart::partitioners::Multilevel;
use fastpart::{Graph, Run, cut};

fn main() -> Result<(), Box<dyn Error>> {
    let k = args().nth(2).map_or(Ok(4), |k| k.parse())?;
    let path = args().nth(1).map_or_else(sample, |path| Ok(PathBuf::from(path)))?;
    // All processors, and 80 % of the memory that is available.
    let run = Run::new(None, None)?;
    let graph = Graph::open(&path, &run)?;
    println!("{}: {} vertices, {} edges", path.display(), graph.num_vertices(), graph.num_edges());

    let outcome = graph.partition(&Multilevel::from(Goal { balance: 1.03, ..Goal::new(k) }), &run)?;
    let partition = outcome.partition.vertices()?;
    let cut: u64 = cut(graph.edges(), &partition.assignment, k, &run)?.cut.iter().sum();
    println!("{} edges are cut, vertices per part: {:?}", cut / 2, partition.loads);
    Ok(())
}

/// A ring of 1,000 vertices with some chords.
fn sample() -> Result<PathBuf, Box<dyn Error>> {
    let path = temp_dir().join("fastpart-example.bin");
    let edges = (0..1000_u32).flat_map(|v| [[v, (v + 1) % 1000], [v, (v + 7) % 1000]]);
    fs::write(&path, edges.flatten().flat_map(u32::to_le_bytes).collect::<Vec<u8>>())?;
    Ok(path)
}
