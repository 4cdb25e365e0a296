//! The coarser graph, whose vertices are the clusters of a finer one.
//!
//! **Parallelism.** The clusters, in waves: threads sum the edges of some clusters each, and one thread
//! appends what they got, in order. A wave is small, so that its lists hardly count beside the two graphs.
//! Clusters with long lists are left out of it. All threads sum up one after the other, in one array
//! ([`SharedSums`]). A piece of the list lists the clusters that come first in it. So the order of the
//! entries is that of one thread.

use std::ops::Range;

use super::clustering::Clustering;
use crate::algorithms::multilevel::model::{Builder, Graph, Lists, Size};
use crate::base::{Growing, Result, Run};
use crate::capacity::plus;
use crate::exec::{group, map, scratches, share};
use crate::sets::{RatingMap, SharedSums};

/// Most and fewest clusters whose edges a thread sums at a time.
const CLUSTERS: usize = 512;
const LEAST: usize = 16;
/// Sets of such clusters in a wave.
const WAVE: usize = 64;
/// Waves of a graph, unless it is small.
const WAVES: usize = 8;
/// Entries of a piece of a cluster that all threads sum up, unless one vertex has more.
const ENTRIES: usize = 1 << 12;
/// Pieces of a thread whose sums wait until they are appended.
const WINDOW: usize = 8;
/// Most bits of the weight of all edges.
const BITS: u32 = 31;

/// Members by which clusters are prefetched ahead, and the most neighbours for which they are.
pub(crate) const AHEAD: usize = 2;
pub(crate) const MOST_AHEAD: usize = 64;

/// Bytes of the contraction of a graph of this size beside its clusters: the members of each, and the coarser
/// graph, which may be as large.
pub(crate) fn memory(size: &Size) -> u64 {
    let owners = if size.threads > 1 { 4 } else { 0 };
    size.n.saturating_mul(16 + owners + 8 * size.bounds).saturating_add(size.entries.saturating_mul(8))
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
    let members = group(run, graph.len(), *count, |v| cluster_of[v as usize])?;
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

/// Some of the entries of a cluster that all threads sum up.
enum Piece {
    /// The lists of these members.
    Members(Range<usize>),
    /// A piece of the list of one vertex.
    Entries(u32, Range<u64>),
}

/// The entries of a cluster in pieces, in their order.
fn pieces_of<const D: usize>(graph: &Graph<D>, members: &[u32]) -> Result<Vec<Piece>> {
    let (mut pieces, mut first, mut entries) = (Growing::default(), 0, 0);
    for (index, &v) in members.iter().enumerate() {
        let is_long = graph.degree(v) > ENTRIES;
        if first < index && (is_long || entries + graph.degree(v) > ENTRIES) {
            pieces.push(Piece::Members(first..index));
            (first, entries) = (index, 0);
        }
        if is_long {
            graph.pieces(v).for_each(|piece| pieces.push(Piece::Entries(v, piece)));
            first = index + 1;
        } else {
            entries += graph.degree(v);
        }
    }
    if first < members.len() {
        pieces.push(Piece::Members(first..members.len()));
    }
    pieces.finish("pieces of the entries of a cluster")
}

/// A cluster that all threads sum up.
struct Long<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    clustering: &'a Clustering,
    cluster: u32,
    members: &'a [u32],
}

impl<const D: usize> Long<'_, D> {
    /// Calls `visit` with the other clusters that the entries of a piece lead to, and the weight of the edge.
    #[inline(always)]
    fn each_outside(&self, piece: &Piece, mut visit: impl FnMut(u32, u32)) {
        let &Self { graph, clustering, cluster, members } = self;
        match piece {
            Piece::Members(range) => {
                for &v in &members[range.clone()] {
                    clustering.each_outside(graph, v, cluster, &mut visit);
                }
            }
            Piece::Entries(v, entries) => graph.each_of(*v, entries.clone(), |u, w| {
                let other = clustering.cluster_of[u as usize];
                if other != cluster {
                    visit(other, w);
                }
            }),
        }
    }
}

/// Adds a cluster whose members have many entries to a graph. All threads sum them up, and list the sums in
/// the order of the entries.
fn sum_up_long<const D: usize>(
    graph: &Graph<D>,
    clustering: &Clustering,
    (cluster, members): (u32, &[u32]),
    sums: &mut SharedSums,
    builder: &mut Builder<D>,
    run: &Run,
) -> Result<()> {
    let pieces = pieces_of(graph, members)?;
    let long = Long { graph, clustering, cluster, members };
    let mut threads = vec![(); run.threads()];
    let sums = sums.in_order(threads.len())?;
    share(&mut threads, pieces.iter().zip(0..), run, |(), (piece, index)| {
        let mut adder = sums.adder_of(index);
        long.each_outside(piece, |other, w| adder.add(other, w));
        run.check()
    })?;
    let (shift, window) = (shift(graph), WINDOW * threads.len());
    for (pieces, first) in pieces.chunks(window).zip((0..).step_by(window)) {
        let taken = map(
            run,
            usize::MAX,
            pieces.len(),
            || Ok(()),
            |(), index| {
                let (mut taken, piece) = (Growing::default(), first + index as u32);
                long.each_outside(&pieces[index], |other, _| match sums.take_first(other, piece) {
                    0 => {}
                    sum => taken.push([other, (sum >> shift).max(1)]),
                });
                taken.finish("sums of a long list")
            },
        )?;
        taken.into_iter().flatten().for_each(|[other, weight]| builder.entry(other, weight));
    }
    builder.vertex(members.iter().fold([0; D], |sum, &v| plus(sum, graph.weight(v))));
    Ok(())
}
