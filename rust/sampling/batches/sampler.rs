//! Batches of sampled in-edges, level by level.

use std::sync::Arc;

use super::workers::Worker;
use crate::base::{Error, Result};
use crate::sampling::levels::expansion::Expansion;
use crate::sampling::levels::node_places::IdTable;
use crate::sampling::levels::picked_edges::Places;
use crate::sampling::levels::relation_runs::{Asked, OneRun, RelationRuns, Runs};
use crate::sampling::levels::sample::{EdgeColumns, Place, Sample, Seeds};
use crate::sampling::methods::weighted::RecordWeights;
use crate::sampling::methods::{Hop, Method};
use crate::sampling::random::HopKey;
use crate::sampling::temporal::{Temporal, TemporalHop};
use crate::sampling::topology::{Topology, Types, append_ids};

/// Settings of a sampler.
#[derive(Debug)]
pub struct Settings {
    /// In-edges per vertex in each hop: a number for each relation, one in a graph without types. None: all.
    pub fanouts: Vec<Vec<Option<usize>>>,
    /// How they are picked.
    pub method: Method,
    /// Weights of records, if the method takes them.
    pub weights: Option<RecordWeights>,
    /// If seeds have times: only what was there before, and how it is picked, whatever `method` is.
    pub temporal: Option<Temporal>,
    /// Seed of all draws.
    pub seed: u64,
    /// Whether a vertex occurs once in the batch, instead of once in a level.
    pub merged: bool,
    /// Columns of in-edges.
    pub edges: EdgeColumns,
}

/// Makes batches.
#[derive(Debug)]
pub struct Sampler {
    topology: Arc<Topology>,
    types: Option<Arc<Types>>,
    settings: Settings,
}

impl Sampler {
    /// A sampler of `topology`, which may have types.
    pub fn new(topology: Arc<Topology>, types: Option<Arc<Types>>, settings: Settings) -> Result<Self> {
        let relations = types.as_ref().map_or(1, |types| types.num_relations());
        if let Some(fanouts) = settings.fanouts.iter().find(|fanouts| fanouts.len() != relations) {
            let what = format!("{} numbers for a hop of {relations} relations", fanouts.len());
            return Err(Error::parameter("fanouts", what));
        }
        settings.method.check_weights(settings.weights.as_ref())?;
        if types.is_some() && settings.edges.rows {
            return Err(Error::parameter(
                "edge_rows",
                "they are those of graphs without types. Leave it out",
            ));
        }
        Ok(Self { topology, types, settings })
    }

    /// Columns of in-edges.
    pub fn edges(&self) -> EdgeColumns {
        self.settings.edges
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
        let Some(types) = &self.types else {
            let runs = |fanouts: &[Option<usize>], key| OneRun(Asked::new(fanouts[0], key));
            return self.sample_levels(seeds, place, worker, check, into, runs);
        };
        let mut levels = std::mem::take(&mut worker.levels);
        let runs = |fanouts, key| RelationRuns { types, fanouts, key };
        let sampled = self.sample_levels(seeds, place, worker, check, &mut levels, runs);
        let Worker { tables, by_type, .. } = worker;
        let ordered = sampled.and_then(|()| into.order_by_type(&levels, &tables.relations, types, by_type));
        worker.levels = levels;
        ordered
    }

    /// Makes a batch of one type. `runs` divides the in-edges of a vertex in a hop, given fanouts and the
    /// key.
    fn sample_levels<'a, R: Runs>(
        &'a self,
        seeds: Seeds<'_>,
        place: Place,
        worker: &mut Worker,
        check: &dyn Fn() -> Result<()>,
        into: &mut Sample,
        runs: impl Fn(&'a [Option<usize>], HopKey) -> R,
    ) -> Result<()> {
        let (topology, settings) = (&*self.topology, &self.settings);
        let (edges, temporal) = (settings.edges, settings.temporal.as_ref());
        let Worker { tables, methods, temporal: scratch, .. } = worker;
        into.clear();
        tables.begin();
        match temporal {
            Some(_) => scratch.begin(topology, seeds, into)?,
            None => add_distinct("seeds", seeds.rows, topology, &mut tables.ids, into)?,
        }
        let mut level = 0..into.rows.len();
        for (hop, fanouts) in settings.fanouts.iter().enumerate() {
            if !settings.merged {
                tables.ids.begin();
                scratch.begin_level();
            }
            let before = into.indices.len();
            let first = if settings.merged { 0 } else { level.end };
            let key = HopKey::new(settings.seed, place.epoch, place.step, hop as u64);
            let (runs, nodes) = (runs(fanouts, key), level.clone());
            match temporal {
                Some(temporal) => {
                    let hop = TemporalHop { temporal, topology, runs, edges, first };
                    hop.expand(nodes, scratch, &mut tables.relations, check, into)?;
                }
                None => {
                    let hop = Hop { topology, key, weights: settings.weights.as_ref() };
                    let expansion =
                        Expansion { topology, runs, places: Places::Appended(first), edges, check };
                    settings.method.expand(hop, methods, &expansion, nodes, tables, into)?;
                }
            }
            into.num_nodes.push(level.len() as u64);
            into.num_edges.push((into.indices.len() - before) as u64);
            level = level.end..into.rows.len();
        }
        into.num_nodes.push(level.len() as u64);
        if temporal.is_some() {
            scratch.end(into);
        }
        append_ids(topology, &into.rows[level], &mut into.ids)?;
        into.end();
        Ok(())
    }
}

/// Appends rows to the nodes of an empty batch. A row may occur once.
pub(crate) fn add_distinct(
    name: &'static str,
    rows: &[u32],
    topology: &Topology,
    ids: &mut IdTable,
    into: &mut Sample,
) -> Result<()> {
    topology.check_rows(name, rows)?;
    rows.iter().for_each(|&row| ids.prefetch(row));
    let mut twice = None;
    ids.place(rows, |row, _, new| twice = twice.or((!new).then_some(row)))?;
    if let Some(row) = twice {
        let part = &topology.parts()[topology.part_of(row)];
        let vertex = part.id(row - part.start)?;
        return Err(Error::parameter(name, format!("vertex {vertex} occurs twice in a batch. Pass it once")));
    }
    into.rows.extend_from_slice(rows);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;
    use crate::sampling::topology::part::Part;

    /// In-degrees of the first vertices. The others have no in-edges.
    const DEGREES: [usize; 9] = [0, 1, 63, 64, 255, 256, 257, 900, 5000];

    /// A graph of `n` vertices with memory for the places of `items` in-edges.
    fn graph(n: i64, items: usize) -> Arc<Topology> {
        let mut random = Random::new(7, 8);
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
        let graphs = [0, 2000, 100_000].map(|items| graph(6000, items));
        let mut workers = graphs.each_ref().map(|graph| Worker::new(graph).unwrap());
        let rows: Vec<u32> = (0..DEGREES.len() as u32).collect();
        for fanout in [1, 10, 40, 300] {
            let samplers = graphs.each_ref().map(|graph| {
                let edges = EdgeColumns { ids: true, rows: false };
                let (fanouts, method) = (vec![vec![Some(fanout)]], Method::Labor);
                let settings = Settings {
                    fanouts,
                    method,
                    weights: None,
                    temporal: None,
                    seed: 9,
                    merged: false,
                    edges,
                };
                Sampler::new(Arc::clone(graph), None, settings).unwrap()
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
    #[test]
    fn batches_do_not_depend_on_the_table_of_their_rows() {
        let graph = graph(60_000, 0);
        let mut workers = [u32::MAX, 0].map(|many| {
            let mut worker = Worker::new(&graph).unwrap();
            worker.tables.ids = IdTable::sized(graph.num_vertices(), many).unwrap();
            worker
        });
        let mut random = Random::new(3, 4);
        for (step, merged) in (0..20_usize).zip([false, true].into_iter().cycle()) {
            let mut rows: Vec<u32> = (0..random.below(3000)).map(|_| random.below(60_000) as u32).collect();
            rows.extend(0..DEGREES.len() as u32);
            rows.sort_unstable();
            rows.dedup();
            let fanout = [Some(3), Some(300), None][step % 3];
            let settings = Settings {
                fanouts: vec![vec![fanout]; 2],
                method: [Method::Uniform, Method::Labor][step / 2 % 2],
                weights: None,
                temporal: None,
                seed: 9,
                merged,
                edges: EdgeColumns { ids: true, rows: true },
            };
            let sampler = Sampler::new(Arc::clone(&graph), None, settings).unwrap();
            let [array, met] = workers.each_mut().map(|worker| {
                let mut sample = Sample::default();
                let (seeds, place) =
                    (Seeds { rows: &rows, times: &[] }, Place { epoch: 1, step: step as u64 });
                sampler.sample(seeds, place, worker, &|| Ok(()), &mut sample).unwrap();
                sample
            });
            assert_eq!(array, met);
            rows.push(rows[0]);
            for worker in &mut workers {
                let (seeds, place) =
                    (Seeds { rows: &rows, times: &[] }, Place { epoch: 1, step: step as u64 });
                let error =
                    sampler.sample(seeds, place, worker, &|| Ok(()), &mut Sample::default()).unwrap_err();
                assert!(error.to_string().contains("occurs twice in a batch"), "{error}");
            }
        }
    }
}
