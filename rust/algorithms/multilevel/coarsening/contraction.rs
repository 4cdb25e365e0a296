//! The coarser graph, whose vertices are the clusters of a finer one.
//!
//! **Parallelism.** The clusters, in waves: threads sum the edges of some clusters each, and one thread
//! appends what they got, in order. A wave is small, so that its lists hardly count beside the two graphs.
//! Clusters with long lists are left out of it. All threads sum up one after the other, in one array
//! ([`SharedSums`]), and its entries go straight into the graph.

use super::clustering::Clustering;
use crate::algorithms::multilevel::model::{Builder, Graph, Lists, Size};
use crate::base::{Buffer, Result, Run};
use crate::capacity::plus;
use crate::exec::{scratches, share};
use crate::sets::{Groups, RatingMap, SharedSums};

/// Most and fewest clusters whose edges a thread sums at a time.
const CLUSTERS: usize = 512;
const LEAST: usize = 16;
/// Sets of such clusters in a wave.
const WAVE: usize = 64;
/// Waves of a graph, unless it is small.
const WAVES: usize = 8;
/// Most bits of the weight of all edges.
const BITS: u32 = 31;

/// Members by which clusters are prefetched ahead, and the most neighbours for which they are.
pub(crate) const AHEAD: usize = 2;
pub(crate) const MOST_AHEAD: usize = 64;

/// Bytes of the contraction of a graph of this size beside its clusters: the members of each, and the coarser
/// graph, which may be as large.
pub(crate) fn memory(size: &Size) -> u64 {
    size.n.saturating_mul(16 + 8 * size.bounds).saturating_add(size.entries.saturating_mul(8))
}

/// By how many bits weights of edges are shifted, so that those of a vertex of the coarser graph fit into 32
/// bits. It matters from 2^30 edges on.
pub(crate) fn shift<const D: usize>(graph: &Graph<D>) -> u32 {
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
    let sum_up = |map: &mut RatingMap, lists: &mut Lists<D>, cluster: u32| {
        let members = members.group(cluster);
        let entries = members.iter().map(|&v| graph.degree(v)).sum();
        if SharedSums::takes(entries, *count) {
            return lists.leave_out(cluster);
        }
        map.begin(entries, *count);
        let mut weight = [0; D];
        for (index, &v) in members.iter().enumerate() {
            // Members lie anywhere: what the next but one needs is looked up now.
            if let Some(&later) = members.get(index + AHEAD) {
                graph.prefetch_neighbours(later, MOST_AHEAD, cluster_of);
            }
            weight = plus(weight, graph.weight(v));
            clustering.each_outside(graph, v, cluster, |other, w| _ = map.add(other, w));
        }
        lists.vertex(map, shift, weight)
    };
    let mut maps = scratches(run, graph.num_entries(), || RatingMap::of_short(*count))?;
    // The sums of a single thread are still in its cache when they are appended.
    let chunks = if maps.len() > 1 { WAVE } else { 1 };
    let each = CLUSTERS.min(count.div_ceil(WAVES * chunks).max(LEAST));
    let mut wave: Vec<Lists<D>> = (0..chunks).map(|_| Lists::default()).collect();
    let mut builder = Builder::new(*count, graph.num_entries() as usize)?;
    let mut long = SharedSums::new(*count);
    for first in (0..*count).step_by(each * chunks) {
        let starts = (first..*count).step_by(each);
        let filled = starts.len().min(chunks);
        share(&mut maps, starts.zip(&mut wave), run, |map, (start, lists)| {
            lists.clear();
            for cluster in start..*count.min(&(start + each)) {
                sum_up(map, lists, cluster as u32)?;
            }
            run.check()
        })?;
        for lists in wave[..filled].chunk_by(|one, other| one.is_whole() && other.is_whole()) {
            match lists {
                [lists] if !lists.is_whole() => builder.append_with(lists, |builder, cluster| {
                    let members = members.group(cluster);
                    sum_up_long(graph, clustering, (cluster, members), &mut long, builder, run)
                })?,
                lists => builder.append(lists, run)?,
            }
        }
    }
    builder.finish().with_fixed_of(graph, cluster_of, run)
}

/// Adds a cluster whose members have many entries to a graph. All threads sum them up.
fn sum_up_long<const D: usize>(
    graph: &Graph<D>,
    clustering: &Clustering,
    (cluster, members): (u32, &[u32]),
    sums: &mut SharedSums,
    builder: &mut Builder<D>,
    run: &Run,
) -> Result<()> {
    let mut threads = vec![(); run.threads()];
    let (sums, shift) = (sums.share(threads.len())?, shift(graph));
    let pieces = members.iter().flat_map(|&v| graph.pieces(v).map(move |piece| (v, piece)));
    share(&mut threads, pieces, run, |(), (v, piece)| {
        let mut adder = sums.adder();
        graph.each_of(v, piece, |u, w| {
            let other = clustering.cluster_of[u as usize];
            if other != cluster {
                adder.add(other, w);
            }
        });
        run.check()
    })?;
    let mut weight = [0; D];
    for &v in members {
        weight = plus(weight, graph.weight(v));
        graph.each(v, |u, _| {
            let other = clustering.cluster_of[u as usize];
            match sums.take(other) {
                0 => {}
                sum => builder.entry(other, (sum >> shift).max(1)),
            }
        });
        run.check()?;
    }
    builder.vertex(weight);
    Ok(())
}
