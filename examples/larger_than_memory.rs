//! Partitions under a memory budget, watches the progress and cancels: `cargo run --release --example larger_than_memory`.

use std::thread;
use std::time::Duration;

use fastpart::partitioners::Multilevel;
use fastpart::{Error, Graph, Result, Run};

fn main() -> Result<()> {
    let n = 200_000_u64;
    let edges = (0..n).flat_map(|v| [1, 17, 289].map(|step| [v as u32, ((v + step * step) % n) as u32]));
    let graph = Graph::from_edges(n, edges.collect())?;
    let multilevel = Multilevel::new(8);

    // With too little memory nothing starts.
    match graph.partition(&multilevel, &Run::new(None, Some(1 << 20))?) {
        Err(error @ Error::MemoryBudget { .. }) => println!("refused: {error}"),
        other => println!("{other:?}"),
    }

    // With some of it levels lie in temporary files.
    let run = Run::new(None, Some(40 << 20))?;
    let outcome = thread::scope(|scope| {
        let partition = scope.spawn(|| graph.partition(&multilevel, &run));
        while !partition.is_finished() {
            thread::sleep(Duration::from_millis(100));
            let progress = run.progress();
            println!("{:>20} {:>12} of {}", progress.phase, progress.done, progress.total);
        }
        partition.join().unwrap_or_else(|_| Err(Error::Internal("the partitioner panicked".into())))
    })?;
    println!("chosen: {:?}", outcome.chosen);

    // Another thread may cancel a run.
    let run = Run::new(None, None)?;
    run.cancel();
    println!("{:?}", graph.partition(&multilevel, &run).map(drop));
    Ok(())
}
