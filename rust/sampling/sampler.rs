//! Batches of sampled in-edges, level by level.

use std::sync::Arc;

use super::expansion::{Expansion, add_distinct};
use super::labor::Labor;
use super::neighbours::Uniform;
use super::picks::Places;
use super::random::HopKey;
use super::sample::Sample;
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

/// What a sampler does.
#[derive(Debug)]
pub struct Settings {
    /// In-edges per vertex in each hop. `None` takes all.
    pub fanouts: Vec<Option<usize>>,
    /// How they are picked.
    pub kind: Kind,
    /// Seed of all draws.
    pub seed: u64,
    /// Whether a vertex occurs once in the batch, instead of once in a level.
    pub merged: bool,
    /// Whether the ids of in-edges are wanted.
    pub edge_ids: bool,
}

/// Which batch of which epoch.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The epoch.
    pub epoch: u64,
    /// The batch in it.
    pub step: u64,
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

    /// Samples the batch of the `seeds`, which are rows. `check` is asked now and then and ends the work by an error.
    pub fn sample(
        &self,
        seeds: &[u32],
        place: Place,
        worker: &mut Worker,
        check: &dyn Fn() -> Result<()>,
        into: &mut Sample,
    ) -> Result<()> {
        let Settings { fanouts, kind, seed, merged, edge_ids } = &self.settings;
        into.clear();
        worker.begin();
        add_distinct("seeds", seeds, &self.topology, &mut worker.ids, into)?;
        let mut level = 0..into.rows.len();
        for (hop, &fanout) in fanouts.iter().enumerate() {
            if !merged {
                worker.ids.begin();
            }
            let key = HopKey::new(*seed, place.epoch, place.step, hop as u64);
            let picked = (into.indices.len(), level.len());
            let places = Places::Appended(if *merged { 0 } else { level.end });
            let expansion = Expansion { topology: &self.topology, places, edge_ids: *edge_ids, check };
            let Worker { ids, picks, candidates, small_numbers } = &mut *worker;
            let (nodes, tables, fanout) = (level.clone(), (ids, picks), fanout.unwrap_or(usize::MAX));
            match kind {
                Kind::Uniform => expansion.expand(nodes, tables, into, Uniform { fanout, key }),
                Kind::Weighted(weights) => {
                    expansion.expand(nodes, tables, into, Weighted { fanout, key, weights, candidates })
                }
                Kind::Labor => expansion.expand(nodes, tables, into, Labor { fanout, key, small_numbers }),
            }?;
            into.num_nodes.push(picked.1 as u64);
            into.num_edges.push((into.indices.len() - picked.0) as u64);
            level = level.end..into.rows.len();
        }
        into.num_nodes.push(level.len() as u64);
        append_ids(&self.topology, &into.rows[level], &mut into.ids)
    }
}
