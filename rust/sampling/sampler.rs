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

/// What a sampler does. A fanout is a number of in-edges per vertex, where `None` takes all, or one for each relation.
#[derive(Debug)]
pub struct Settings<F = Option<usize>> {
    /// In-edges per vertex in each hop.
    pub fanouts: Vec<F>,
    /// How they are picked.
    pub kind: Kind,
    /// If seeds have times: only what was there before, and how it is picked, whatever `kind` is.
    pub temporal: Option<Temporal>,
    /// Seed of all draws.
    pub seed: u64,
    /// Whether a vertex occurs once in the batch, instead of once in a level.
    pub merged: bool,
    /// What is wanted of in-edges.
    pub edges: EdgeColumns,
}

/// Which batch of which epoch.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The epoch.
    pub epoch: u64,
    /// The batch in it.
    pub step: u64,
}

impl<F> Settings<F> {
    /// What temporal samples are asked of the batch at a place. `fanouts` are those of a hop: one, or one for each relation.
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

/// Makes a batch of so many hops, each by a call of `expand`.
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
