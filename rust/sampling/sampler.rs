//! Batches of sampled in-edges, level by level.

use std::ops::Range;
use std::sync::Arc;

use super::expansion::{Expansion, add_distinct};
use super::labor::Labor;
use super::neighbours::Uniform;
use super::picks::Places;
use super::random::HopKey;
use super::sample::{EdgeColumns, Sample, Seeds};
use super::temporal::{self, Graph, Hops, Temporal};
use super::topology::Topology;
use super::vertices::append_ids;
use super::weighted::{RecordWeights, Weighted};
use super::workers::Worker;
use crate::base::Result;

/// How in-edges are picked.
#[derive(Debug)]
pub enum Kind {
    /// All subsets with the same probability.
    Uniform,
    /// With probabilities in proportion to weights.
    Weighted(RecordWeights),
    /// Fewer distinct sources.
    Labor,
}

/// The settings of a sampler. A fanout is a number of in-edges per vertex, where `None` takes all, or one for
/// each relation.
#[derive(Debug)]
pub struct Settings<F = Option<usize>> {
    /// In-edges per vertex in each hop.
    pub fanouts: Vec<F>,
    /// How they are picked.
    pub kind: Kind,
    /// If seeds have times, only in-edges from before them are sampled, by a strategy that replaces `kind`.
    pub temporal: Option<Temporal>,
    /// Seed of all draws.
    pub seed: u64,
    /// Whether a vertex occurs once in the batch, instead of once in a level.
    pub merged: bool,
    /// The columns of in-edges that are wanted.
    pub edges: EdgeColumns,
}

/// A batch of an epoch.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The epoch.
    pub epoch: u64,
    /// The batch in it.
    pub step: u64,
}

impl<F> Settings<F> {
    /// The hops of temporal samples of the batch at a place. `fanouts` returns the fanouts of a hop: one, or
    /// one for each relation.
    pub(super) fn hops<'a>(
        &'a self,
        place: Place,
        fanouts: impl Fn(&'a F) -> &'a [Option<usize>],
    ) -> Hops<'a> {
        let key = |hop: usize| HopKey::new(self.seed, place.epoch, place.step, hop as u64);
        let each = self.fanouts.iter().enumerate().map(|(hop, of_hop)| (key(hop), fanouts(of_hop)));
        Hops { each: each.collect(), merged: self.merged, edges: self.edges }
    }
}

/// Makes batches.
#[derive(Debug)]
pub struct Sampler {
    topology: Arc<Topology>,
    settings: Settings,
}

impl Sampler {
    /// A sampler of `topology`.
    pub fn new(topology: Arc<Topology>, settings: Settings) -> Self {
        Self { topology, settings }
    }

    /// Samples the batch of the `seeds`. `check` is asked now and then and ends the work by an error.
    pub fn sample(
        &self,
        seeds: Seeds<'_>,
        place: Place,
        worker: &mut Worker,
        check: &dyn Fn() -> Result<()>,
        into: &mut Sample,
    ) -> Result<()> {
        let Settings { fanouts, kind, temporal, seed, merged, edges } = &self.settings;
        if let Some(temporal) = temporal {
            let graph = Graph { temporal, topology: &self.topology, types: None };
            let hops = self.settings.hops(place, std::slice::from_ref);
            return temporal::sample(graph, &hops, seeds, &mut worker.temporal, check, into);
        }
        levels(&self.topology, seeds.rows, fanouts.len(), *merged, worker, into, |level| {
            let key = HopKey::new(*seed, place.epoch, place.step, level.hop as u64);
            let expansion =
                Expansion { topology: &self.topology, places: level.places, edges: *edges, check };
            let Worker { ids, picks, candidates, labor: scratch, .. } = level.worker;
            let (nodes, tables, into) = (level.nodes, (ids, picks), level.into);
            let fanout = fanouts[level.hop].unwrap_or(usize::MAX);
            match kind {
                Kind::Uniform => expansion.expand(nodes, tables, into, Uniform { fanout, key }),
                Kind::Weighted(weights) => {
                    expansion.expand(nodes, tables, into, Weighted { fanout, key, weights, candidates })
                }
                Kind::Labor => {
                    let orders = self.topology.orders()?;
                    expansion.expand(nodes, tables, into, Labor::new(fanout, key, orders, scratch))
                }
            }
        })
    }
}

/// A level whose in-edges are to be appended to a batch.
pub(super) struct Level<'a> {
    /// Number of the hop.
    pub hop: usize,
    /// Its nodes.
    pub nodes: Range<usize>,
    /// Where sources are in the batch.
    pub places: Places,
    /// Makes the batch.
    pub worker: &'a mut Worker,
    /// The batch.
    pub into: &'a mut Sample,
}

/// Makes a batch of `hops` hops, each by a call of `expand`.
pub(super) fn levels(
    topology: &Topology,
    seeds: &[u32],
    hops: usize,
    merged: bool,
    worker: &mut Worker,
    into: &mut Sample,
    mut expand: impl FnMut(Level<'_>) -> Result<()>,
) -> Result<()> {
    into.clear();
    worker.begin();
    add_distinct("seeds", seeds, topology, &mut worker.ids, into)?;
    let mut nodes = 0..into.rows.len();
    for hop in 0..hops {
        if !merged {
            worker.ids.begin();
        }
        let edges = into.indices.len();
        let places = Places::Appended(if merged { 0 } else { nodes.end });
        expand(Level { hop, nodes: nodes.clone(), places, worker: &mut *worker, into: &mut *into })?;
        into.num_nodes.push(nodes.len() as u64);
        into.num_edges.push((into.indices.len() - edges) as u64);
        nodes = nodes.end..into.rows.len();
    }
    into.num_nodes.push(nodes.len() as u64);
    append_ids(topology, &into.rows[nodes], &mut into.ids)
}

#[cfg(test)]
mod tests {
    use super::super::part::Part;
    use super::*;
    use crate::base::Random;

    /// In-degrees of the first vertices. The others have no in-edges.
    const DEGREES: [usize; 9] = [0, 1, 63, 64, 255, 256, 257, 900, 5000];

    /// A graph that keeps the places of `items` in-edges.
    fn graph(items: usize) -> Arc<Topology> {
        let (n, mut random) = (6000, Random::new(7, 8));
        let vertices: Vec<i64> = (0..n).map(|id| 3 * id).collect();
        let mut indptr = vec![0];
        DEGREES.iter().for_each(|&degree| indptr.push(indptr[indptr.len() - 1] + degree as i64));
        indptr.resize(n as usize + 1, indptr[indptr.len() - 1]);
        let count = DEGREES.iter().sum();
        let indices: Vec<i32> = (0..count).map(|_| random.below(n as u64) as i32).collect();
        let arrays = Box::new((vertices, indptr, indices));
        let (vertices, indptr, indices): (&[i64], &[i64], &[i32]) = (
            // SAFETY: the part keeps the arrays, which stay where they are on the heap.
            unsafe { std::slice::from_raw_parts(arrays.0.as_ptr(), arrays.0.len()) },
            // SAFETY: as above.
            unsafe { std::slice::from_raw_parts(arrays.1.as_ptr(), arrays.1.len()) },
            // SAFETY: as above.
            unsafe { std::slice::from_raw_parts(arrays.2.as_ptr(), arrays.2.len()) },
        );
        // SAFETY: as above.
        let part = unsafe { Part::in_memory(vertices, indptr, indices, arrays) }.unwrap();
        Arc::new(Topology::of(vec![part]).unwrap().with_orders(items))
    }

    #[test]
    fn picks_of_labor_do_not_depend_on_the_places_that_are_kept() {
        let graphs = [0, 2000, 100_000].map(graph);
        let mut workers = graphs.each_ref().map(|graph| Worker::new(graph).unwrap());
        let rows: Vec<u32> = (0..DEGREES.len() as u32).collect();
        for fanout in [1, 10, 40, 300] {
            let samplers = graphs.each_ref().map(|graph| {
                let edges = EdgeColumns { ids: true, rows: false };
                let fanouts = vec![Some(fanout)];
                let settings =
                    Settings { fanouts, kind: Kind::Labor, temporal: None, seed: 9, merged: false, edges };
                Sampler::new(Arc::clone(graph), settings)
            });
            for step in 0..30 {
                let mut of = |index: usize| {
                    let mut sample = Sample::default();
                    let (seeds, place) = (Seeds { rows: &rows, times: &[] }, Place { epoch: 1, step });
                    let worker = &mut workers[index];
                    samplers[index].sample(seeds, place, worker, &|| Ok(()), &mut sample).unwrap();
                    sample
                };
                let none = of(0);
                assert!(none.edge_ids.chunk_by(|one, next| one < next).count() == 1);
                assert_eq!(none, of(1));
                assert_eq!(none, of(2));
            }
        }
    }
}
