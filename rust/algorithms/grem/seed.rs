//! The seed partitioner: [`crate::algorithms::multilevel`] on the graph of one chunk, whose vertices are
//! numbered densely.
//!
//! The graph of a large chunk is never held. Its vertices are clustered first, and the clusters are
//! partitioned. The repeated decisions of GREM itself then refine the finest level.

use super::clusters;
use super::entries::Entries;
use crate::algorithms::multilevel::model::{Builder, Graph, Problem};
use crate::algorithms::multilevel::{Effort, Rating, Scheme};
use crate::base::{Buffer, CancelCheck, Error, NONE, Result, Run};

/// Slack that the multilevel partitioner gets beside a part's share of the vertices.
const SLACK: f64 = 1.03;
/// Entries up to which a graph is partitioned with the best settings, even if chunks follow.
const SMALL: usize = 1 << 18;
/// Entries from which on the vertices of a first chunk are clustered before.
pub(crate) const LARGE: usize = 1 << 20;
/// Most vertices of such a cluster.
const CLUSTER: u32 = 64;

/// Whether more chunks follow, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Later chunks refine the result. Large chunks may exceed a cap by what is in one cluster.
    First,
    /// The result is final, and keeps the caps.
    Whole,
}

/// Numbers in `place` the vertices that have `entries`, or their clusters, and returns the part of each
/// number, at most `caps` vertices of each. Other vertices are marked [`NONE`].
pub(crate) fn partition(
    mut entries: Entries,
    place: &mut [u32],
    caps: &[u64],
    of: Stage,
    seed: u64,
    run: &Run,
) -> Result<Buffer<u32>> {
    let small = entries.len() <= SMALL;
    let graph = if of == Stage::First && entries.len() >= LARGE {
        clustered(entries, place, seed, run)?
    } else {
        entries.sort(run)?;
        let n = number(&entries, place, run)?;
        let graph = build(n, &entries, |v| place[v as usize], |_| 1, run)?;
        drop(entries);
        graph
    };
    let (n, total) = (graph.total()[0] as f64, caps.iter().sum::<u64>() as f64);
    let share = |&cap: &u64| ((n * cap as f64 / total.max(1.0)).ceil() * SLACK).ceil() as u64;
    let loose: Vec<_> = caps.iter().map(|cap| [share(cap)]).collect();
    let mut scheme = Scheme::new(1, Effort::Default);
    if of == Stage::First && !small {
        // A seed is refined by all later chunks.
        scheme.ratings = vec![Rating::Density];
    }
    let problem = Problem::new(&graph, &loose, seed, run);
    let ((part_of, _), _) = scheme.partition(&problem)?;
    if loose.iter().zip(caps).all(|(loose, cap)| loose[0] <= *cap) {
        return Ok(part_of);
    }
    let caps: Vec<_> = caps.iter().map(|&cap| [cap]).collect();
    let (part_of, quality) = scheme.refine(&Problem { caps: &caps, ..problem }, part_of)?;
    if quality.excess > 0.0 && of == Stage::Whole {
        return Err(Error::Internal("grem: the seed partitioner found no part for some vertex".into()));
    }
    Ok(part_of)
}

/// Numbers the vertices that have entries.
fn number(entries: &Entries, place: &mut [u32], run: &Run) -> Result<usize> {
    place.fill(NONE);
    let (mut n, mut check) = (0, CancelCheck::new(run));
    for (v, _) in entries.vertices() {
        place[v as usize] = n;
        n += 1;
        check.count(1)?;
    }
    Ok(n as usize)
}

fn clustered(entries: Entries, place: &mut [u32], seed: u64, run: &Run) -> Result<Graph<'static, 1>> {
    let sizes = clusters::cluster(&entries, place, CLUSTER, seed, run)?;
    let entries = entries.contracted(|v| place[v as usize], run)?;
    build(sizes.len(), &entries, |cluster| cluster, |cluster| u64::from(sizes[cluster as usize]), run)
}

/// The graph of `n` vertices, each with the number and the weight given. Some may have no entries.
fn build(
    n: usize,
    entries: &Entries,
    number: impl Fn(u32) -> u32,
    weight: impl Fn(u32) -> u64,
    run: &Run,
) -> Result<Graph<'static, 1>> {
    let mut builder = Builder::new(n, entries.len())?;
    let (mut next, mut check) = (0, CancelCheck::new(run));
    for (v, neighbours) in entries.vertices() {
        for vertex in next..number(v) {
            builder.vertex([weight(vertex)]);
        }
        neighbours.for_each(|u| builder.entry(number(u), 1));
        builder.vertex([weight(number(v))]);
        next = number(v) + 1;
        check.count(1)?;
    }
    (next..n as u32).for_each(|vertex| builder.vertex([weight(vertex)]));
    Ok(builder.finish())
}
