//! The coarser graph, whose vertices are the clusters of a finer one.
//!
//! **Parallelism.** The clusters, in waves: threads sum the edges of some clusters each, and one thread
//! appends what they got, in order. A wave is small, so that its lists hardly count beside the two graphs. The threads
//! share one array for clusters with long lists ([`SharedSums`]), which they sum up one after the other.

use super::building::{Builder, Lists};
use super::clustering::Clustering;
use super::graph::Graph;
use std::sync::Mutex;

use crate::base::{Buffer, Result, Run, locked};
use crate::capacity::plus;
use crate::exec::{scratches, share};
use crate::sets::{Groups, RatingMap, SharedSums};

/// Clusters that a thread sums the edges of at a time.
const CLUSTERS: usize = 512;
/// How many of these make a wave.
const WAVE: usize = 64;
/// Bits of the weight of all edges, at most.
const BITS: u32 = 31;

/// How many members ahead clusters are prefetched, and of how many neighbours.
pub(super) const AHEAD: usize = 2;
pub(super) const MOST_AHEAD: usize = 64;

/// By how many bits weights of edges are shifted, so that those of a vertex of the coarser graph fit into 32
/// bits. It matters from 2^30 edges on.
pub(super) fn shift<const D: usize>(graph: &Graph<D>) -> u32 {
    (u64::BITS - graph.edge_weight().leading_zeros()).saturating_sub(BITS)
}

/// The graph whose vertices are the clusters of `graph`.
pub fn contract<const D: usize>(
    graph: &Graph<D>,
    clustering: &Clustering,
    run: &Run,
) -> Result<Graph<'static, D>> {
    let Clustering { cluster_of, count } = clustering;
    let mut sizes: Buffer<u32> = Buffer::zeroed(*count, "sizes of clusters")?;
    run.each(cluster_of.len(), |v| sizes[cluster_of[v as usize] as usize] += 1)?;
    let members = Groups::of(graph.len(), sizes, |v| Some(cluster_of[v as usize]), |_| run.check())?;
    let shift = shift(graph);
    let long = Mutex::new(SharedSums::new(*count));
    let sum_up = |map: &mut RatingMap, lists: &mut Lists<D>, cluster: u32| {
        let members = members.group(cluster);
        let entries = members.iter().map(|&v| graph.degree(v)).sum();
        if SharedSums::takes(entries, *count) {
            return sum_up_long(graph, clustering, (cluster, members), &mut locked(&long), lists, run);
        }
        map.begin(entries, *count);
        let mut weight = [0; D];
        for (index, &v) in members.iter().enumerate() {
            // Members lie anywhere: what the next but one needs is looked up now.
            if let Some(&later) = members.get(index + AHEAD) {
                graph.prefetch_neighbours(later, MOST_AHEAD, cluster_of);
            }
            weight = plus(weight, graph.weight(v));
            graph.each(v, |u, w| {
                let other = cluster_of[u as usize];
                if other != cluster {
                    map.add(other, w);
                }
            });
        }
        lists.vertex(map, shift, weight)
    };
    let mut maps = scratches(run, graph.num_entries(), || RatingMap::of_short(*count))?;
    // What one thread sums up is still in its cache when it is appended.
    let chunks = if maps.len() > 1 { WAVE } else { 1 };
    let mut wave: Vec<Lists<D>> = (0..chunks).map(|_| Lists::default()).collect();
    let mut builder = Builder::new(*count, graph.num_entries() as usize)?;
    for first in (0..*count).step_by(CLUSTERS * chunks) {
        let starts = (first..*count).step_by(CLUSTERS);
        let filled = starts.len().min(chunks);
        share(&mut maps, starts.zip(&mut wave), run, |map, (start, lists)| {
            lists.clear();
            for cluster in start..count.min(&(start + CLUSTERS)).to_owned() {
                sum_up(map, lists, cluster as u32)?;
            }
            run.check()
        })?;
        builder.append(&wave[..filled], run)?;
    }
    builder.finish().with_fixed_of(graph, cluster_of, run)
}

/// Adds a cluster whose members have many entries to the lists.
fn sum_up_long<const D: usize>(
    graph: &Graph<D>,
    Clustering { cluster_of, count }: &Clustering,
    (cluster, members): (u32, &[u32]),
    sums: &mut SharedSums,
    lists: &mut Lists<D>,
    run: &Run,
) -> Result<()> {
    let (sums, shift) = (sums.share(1)?, shift(graph));
    let (mut adder, mut weight, mut entries) = (sums.adder(), [0; D], 0);
    for &v in members {
        (weight, entries) = (plus(weight, graph.weight(v)), entries + graph.degree(v));
        graph.each(v, |u, w| {
            let other = cluster_of[u as usize];
            if other != cluster {
                adder.add(other, w);
            }
        });
        run.check()?;
    }
    drop(adder);
    lists.reserve(entries.min(*count))?;
    let first = lists.targets.len();
    for &v in members {
        graph.each(v, |u, _| lists.entry_of(sums, cluster_of[u as usize], shift));
        run.check()?;
    }
    lists.end(lists.targets.len() - first, weight)
}
