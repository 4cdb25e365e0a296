//! Batches of a typed graph, level by level.

use std::sync::Arc;

use super::expansion::{RelationPicker, Tables, TypedExpansion};
use super::grouping::TypedSample;
use super::types::Types;
use crate::base::{Error, Result};
use crate::sampling::labor::{self, Labor};
use crate::sampling::neighbours::Uniform;
use crate::sampling::orders::Orders;
use crate::sampling::picker::Picker;
use crate::sampling::random::HopKey;
use crate::sampling::sample::{Sample, Seeds};
use crate::sampling::sampler::{Kind, Place, Settings, levels};
use crate::sampling::temporal::{self, Graph};
use crate::sampling::topology::Topology;
use crate::sampling::weighted::{Candidates, RecordWeights, Weighted};
use crate::sampling::workers::Worker;

/// Makes batches of a typed graph.
#[derive(Debug)]
pub struct TypedSampler {
    topology: Arc<Topology>,
    types: Arc<Types>,
    settings: Settings<Vec<Option<usize>>>,
}

impl TypedSampler {
    /// A sampler of `topology`, of whose in-edges each hop has a fanout for each relation.
    pub fn new(
        topology: Arc<Topology>,
        types: Arc<Types>,
        settings: Settings<Vec<Option<usize>>>,
    ) -> Result<Self> {
        let relations = types.num_relations();
        if let Some(fanouts) = settings.fanouts.iter().find(|fanouts| fanouts.len() != relations) {
            let what = format!("{} numbers for a hop of {relations} relations", fanouts.len());
            return Err(Error::parameter("fanouts", what));
        }
        Ok(Self { topology, types, settings })
    }

    /// The types of the graph.
    pub fn types(&self) -> &Types {
        &self.types
    }

    /// Samples the batch of the `seeds`. `check` is asked now and then and ends the work by an error.
    pub fn sample(
        &self,
        seeds: Seeds<'_>,
        place: Place,
        worker: &mut Worker,
        check: &dyn Fn() -> Result<()>,
        sample: &mut Sample,
        into: &mut TypedSample,
    ) -> Result<()> {
        let Settings { fanouts, kind, temporal, seed, merged, edges } = &self.settings;
        if let Some(temporal) = temporal {
            let graph = Graph { temporal, topology: &self.topology, types: Some(&*self.types) };
            let hops = self.settings.hops(place, |fanouts| fanouts);
            temporal::sample(graph, &hops, seeds, &mut worker.temporal, check, sample)?;
            return into.fill(sample, &worker.temporal.relations, &self.types);
        }
        let mut relations = std::mem::take(&mut worker.relations);
        relations.clear();
        let made = levels(&self.topology, seeds.rows, fanouts.len(), *merged, worker, sample, |level| {
            let key = HopKey::new(*seed, place.epoch, place.step, level.hop as u64);
            let Worker { ids, picks, candidates, labor: scratch, .. } = level.worker;
            let (topology, types, places, edge_ids) =
                (&*self.topology, &*self.types, level.places, edges.ids);
            let expansion = TypedExpansion { topology, types, places, edge_ids, check };
            let mut tables = Tables { ids, picks, relations: &mut relations };
            let fanouts = &fanouts[level.hop];
            let (nodes, into) = (level.nodes, level.into);
            match kind {
                Kind::Uniform => expansion.expand(nodes, &mut tables, into, &mut UniformOf { fanouts, key }),
                Kind::Weighted(weights) => {
                    let mut pickers = WeightedOf { fanouts, key, weights, candidates };
                    expansion.expand(nodes, &mut tables, into, &mut pickers)
                }
                Kind::Labor => {
                    let orders = topology.orders()?;
                    let mut pickers = LaborOf { fanouts, key, orders, scratch };
                    expansion.expand(nodes, &mut tables, into, &mut pickers)
                }
            }
        });
        let made = made.and_then(|()| into.fill(sample, &relations, &self.types));
        worker.relations = relations;
        made
    }
}

fn wants(fanouts: &[Option<usize>], relation: u16) -> bool {
    fanouts[usize::from(relation)] != Some(0)
}

fn fanout_of(fanouts: &[Option<usize>], relation: u16) -> usize {
    fanouts[usize::from(relation)].unwrap_or(usize::MAX)
}

struct UniformOf<'a> {
    fanouts: &'a [Option<usize>],
    key: HopKey,
}

impl RelationPicker for UniformOf<'_> {
    fn wants(&self, relation: u16) -> bool {
        wants(self.fanouts, relation)
    }

    #[inline(always)]
    fn of(&mut self, relation: u16) -> impl Picker {
        Uniform { fanout: fanout_of(self.fanouts, relation), key: self.key.of_relation(relation) }
    }
}

struct WeightedOf<'a> {
    fanouts: &'a [Option<usize>],
    key: HopKey,
    weights: &'a RecordWeights,
    candidates: &'a mut Candidates,
}

impl RelationPicker for WeightedOf<'_> {
    fn wants(&self, relation: u16) -> bool {
        wants(self.fanouts, relation)
    }

    fn of(&mut self, relation: u16) -> impl Picker {
        let (fanout, key) = (fanout_of(self.fanouts, relation), self.key.of_relation(relation));
        Weighted { fanout, key, weights: self.weights, candidates: &mut *self.candidates }
    }
}

struct LaborOf<'a> {
    fanouts: &'a [Option<usize>],
    key: HopKey,
    orders: &'a Orders,
    scratch: &'a mut labor::Scratch,
}

impl RelationPicker for LaborOf<'_> {
    fn wants(&self, relation: u16) -> bool {
        wants(self.fanouts, relation)
    }

    /// The number of a source is the same for all relations.
    fn of(&mut self, relation: u16) -> impl Picker {
        let fanout = fanout_of(self.fanouts, relation);
        Labor::new(fanout, self.key, self.orders, &mut *self.scratch)
    }
}
