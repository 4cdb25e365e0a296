//! The coarser graph, whose vertices are the clusters of a finer one.
//!
//! **Parallelism.** The clusters, in waves: threads sum the edges of some clusters each, and one thread appends what they
//! got, in order. A wave is small, so that its lists hardly count beside the two graphs.

use super::clustering::Clustering;
use super::graph::{Builder, Graph, Lists};
use crate::base::{Buffer, Result, Run, prefetch};
use crate::capacity::{Load, plus};
use crate::exec::map;
use crate::sets::{Groups, RatingMap};

/// Clusters that a thread sums the edges of at a time.
const CLUSTERS: usize = 512;
/// How many of these make a wave.
const WAVE: usize = 64;
/// Below so many entries one thread does it all.
const FEW: u64 = 1 << 16;
/// Bits of the weight of all edges, at most.
const BITS: u32 = 31;

/// How many members ahead clusters are prefetched, and of how many neighbours.
const AHEAD: usize = 2;
const MOST_AHEAD: usize = 64;

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
    // Weights are halved until those of a vertex fit into 32 bits, which matters from 2^30 edges on.
    let shift = (u64::BITS - graph.edge_weight().leading_zeros()).saturating_sub(BITS);
    let sum_up = |map: &mut RatingMap, lists: &mut Lists<D>, cluster: u32| {
        let members = members.group(cluster);
        map.begin(members.iter().map(|&v| graph.degree(v)).sum(), *count);
        let mut weight = [0; D];
        for (index, &v) in members.iter().enumerate() {
            // Members lie anywhere: what the next but one needs is looked up now.
            if let Some(&later) = members.get(index + AHEAD) {
                graph
                    .neighbours_up_to(later, MOST_AHEAD)
                    .iter()
                    .for_each(|&u| prefetch(cluster_of, u as usize));
            }
            weight = plus(weight, graph.weight(v));
            graph.each(v, |u, w| {
                let other = cluster_of[u as usize];
                if other != cluster {
                    map.add(other, w);
                }
            });
        }
        let before = lists.targets.len();
        for [other, w] in map.sums() {
            lists.targets.push(other);
            lists.weights.push((w >> shift).max(1));
        }
        lists.vertices.push((lists.targets.len() - before, weight));
    };
    // What one thread sums up is still in its cache when it is appended.
    let (workers, chunks) =
        if graph.num_entries() < FEW || run.threads() == 1 { (1, 1) } else { (usize::MAX, WAVE) };
    let mut builder = Builder::new(*count, graph.num_entries() as usize)?;
    for wave in (0..*count).step_by(CLUSTERS * chunks) {
        let end = count.min(&(wave + CLUSTERS * chunks)).to_owned();
        let of_chunk = |map: &mut RatingMap, chunk: usize| {
            let first = wave + chunk * CLUSTERS;
            let mut lists = Lists::default();
            for cluster in first..end.min(first + CLUSTERS) {
                sum_up(map, &mut lists, cluster as u32);
                run.check()?;
            }
            Ok(lists)
        };
        let chunks = (end - wave).div_ceil(CLUSTERS);
        builder.append(&map(run, workers, chunks, || Ok(RatingMap::default()), of_chunk)?, run)?;
    }
    Ok(builder.finish())
}
