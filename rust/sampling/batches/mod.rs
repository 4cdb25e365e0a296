//! A batch in memory that is used again: the sample and its features.

mod ahead;
mod by_type;
mod sampler;
mod subgraph;
mod walks;
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::base::Result;
use crate::sampling::levels::sample::{Place, Sample, Seeds};
use crate::sampling::reused_memory::{Memory, Pool, Pooled};
use crate::sampling::rows::{FeatureRows, Features, Pack};

use workers::Worker;

pub use ahead::{Ahead, Steps};
pub use sampler::{Sampler, Settings};
pub use subgraph::subgraph;
pub use walks::walks;
pub use workers::Workers;

/// A batch.
#[derive(Debug)]
pub struct Batch {
    /// The sample.
    pub sample: Pooled<Sample>,
    /// One row of features per node of each type that has some.
    pub features: Vec<Option<Pooled<FeatureRows>>>,
    /// One row of features per in-edge.
    pub edge_features: Option<Pooled<FeatureRows>>,
}

impl Batch {
    /// Bytes of memory that it takes.
    fn bytes(&self) -> u64 {
        let rows = self.features.iter().chain([&self.edge_features]).flatten();
        self.sample.bytes() + rows.map(|rows| rows.bytes()).sum::<u64>()
    }
}

/// Makes batches, with features if there are any.
#[derive(Debug)]
pub struct Maker {
    /// Samples.
    pub sampler: Arc<Sampler>,
    /// Where the features of each type are. Empty: there are none.
    pub features: Vec<Option<Arc<Features>>>,
    /// Where the features of in-edges are. The sampler gives their rows.
    pub edge_features: Option<Arc<Features>>,
    /// The features of the batches of the epoch, of each type that is packed. Empty: none is.
    pub packs: Vec<Option<Arc<Pack>>>,
    /// Memory for both.
    pub pools: Arc<Pools>,
    /// The time that both take.
    pub spent: Arc<Spent>,
}

impl Maker {
    /// Makes the batch of the `seeds`.
    pub fn make(
        &self,
        seeds: Seeds<'_>,
        place: Place,
        worker: &mut Worker,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Batch> {
        let mut sample = self.pools.sample();
        timed(&self.spent.sampling, || self.sampler.sample(seeds, place, worker, check, &mut sample))?;
        let planned = |of_type: usize| {
            let pack = self.packs.get(of_type)?.as_deref()?;
            Some((pack, place.step as usize))
        };
        let fill = |(of_type, (features, nodes)): (usize, (&Option<Arc<Features>>, &[usize]))| {
            let Some(features) = features else { return Ok(None) };
            let (mut rows, wanted) = (self.pools.features(), &sample.rows[nodes[0]..nodes[1]]);
            let planned = planned(of_type);
            timed(&self.spent.fetching, || features.fill(wanted, planned, &mut rows, check))?;
            Ok(Some(rows))
        };
        let features = self.features.iter().zip(sample.nodes.windows(2)).enumerate().map(fill);
        let features = features.collect::<Result<_>>()?;
        let fill = |features: &Arc<Features>| {
            let mut rows = self.pools.edge_features.take();
            timed(&self.spent.fetching, || features.fill(&sample.edge_rows, None, &mut rows, check))
                .map(|()| rows)
        };
        let edge_features = self.edge_features.as_ref().map(fill).transpose()?;
        Ok(Batch { sample, features, edge_features })
    }
}

/// Nanoseconds of all threads.
#[derive(Debug, Default)]
pub struct Spent {
    sampling: AtomicU64,
    fetching: AtomicU64,
}

impl Spent {
    /// Seconds of sampling and of copying features since the last call.
    pub fn read(&self) -> (f64, f64) {
        let seconds = |spent: &AtomicU64| Duration::from_nanos(spent.swap(0, Relaxed)).as_secs_f64();
        (seconds(&self.sampling), seconds(&self.fetching))
    }
}

/// Adds the time of some work.
fn timed<R>(spent: &AtomicU64, work: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let done = work();
    spent.fetch_add(start.elapsed().as_nanos() as u64, Relaxed);
    done
}

/// Memory for batches.
#[derive(Debug, Default)]
pub struct Pools {
    samples: Pool<Sample>,
    features: Pool<FeatureRows>,
    /// Apart, since their sizes are others.
    edge_features: Pool<FeatureRows>,
}

impl Pools {
    /// Memory for a sample.
    pub fn sample(&self) -> Pooled<Sample> {
        self.samples.take()
    }

    /// Memory for features.
    pub fn features(&self) -> Pooled<FeatureRows> {
        self.features.take()
    }

    /// Memory that waits to be used again takes at most `most` bytes, for samples, features and those of
    /// edges each.
    pub fn keep_at_most(&self, most: u64) {
        self.samples.keep_at_most(most);
        self.features.keep_at_most(most);
        self.edge_features.keep_at_most(most);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::base::{Random, npy};
    use crate::sampling::levels::sample::EdgeColumns;
    use crate::sampling::methods::Method;
    use crate::sampling::topology::{Part, Topology, Types};

    const N: usize = 40;
    /// The first vertex of the second type.
    const SECOND: usize = 25;
    /// Types of the sources and of the targets of each relation.
    const ENDS: [[u16; 2]; 3] = [[0, 0], [1, 0], [0, 1]];

    fn type_of(vertex: usize) -> u16 {
        u16::from(vertex >= SECOND)
    }

    /// In-edges of each vertex: relation and source, ordered by relation.
    fn graph() -> Vec<Vec<(u8, usize)>> {
        let mut random = Random::new(4, 2);
        let in_edges = |target| {
            let mut edges = Vec::new();
            for (relation, _) in (0..).zip(ENDS).filter(|(_, ends)| ends[1] == type_of(target)) {
                let sources = if ENDS[usize::from(relation)][0] == 0 { 0..SECOND } else { SECOND..N };
                for _ in 0..random.below(5) {
                    let source = sources.start + random.below(sources.len() as u64) as usize;
                    edges.push((relation, source));
                }
            }
            edges
        };
        (0..N).map(in_edges).collect()
    }

    /// The graph in memory, and its types, whose relations are written to the folder.
    fn opened(graph: &[Vec<(u8, usize)>], folder: &Path) -> (Arc<Topology>, Arc<Types>) {
        let (vertices, mut indptr): (Vec<i64>, _) = ((0..N as i64).collect(), vec![0_i64]);
        graph.iter().for_each(|edges| indptr.push(indptr[indptr.len() - 1] + edges.len() as i64));
        let (relations, indices): (Vec<u8>, Vec<i32>) =
            graph.iter().flatten().map(|&(relation, source)| (relation, source as i32)).unzip();
        let file = [npy::header("|u1", &[relations.len() as u64]), relations].concat();
        fs::write(folder.join("relations.npy"), file).unwrap();
        let (vertices, indptr, indices) = (vertices.leak(), indptr.leak(), indices.leak());
        // SAFETY: the arrays live for ever.
        let part = unsafe { Part::in_memory(vertices, indptr, indices, Box::new(())) }.unwrap();
        let topology = Arc::new(Topology::of(vec![part]).unwrap());
        let types = Types::open(&topology, &[folder.into()], &[0, SECOND as i64], ENDS.to_vec()).unwrap();
        (topology, Arc::new(types))
    }

    /// Nodes of each type: the level and the vertex, for two hops that take all in-edges.
    fn nodes(
        graph: &[Vec<(u8, usize)>],
        seeds: &[usize],
        type_of: &dyn Fn(usize) -> u16,
    ) -> Vec<Vec<(usize, usize)>> {
        let mut levels = vec![seeds.to_vec()];
        for hop in 0..2 {
            let mut next = Vec::new();
            for &(_, source) in levels[hop].iter().flat_map(|&target| &graph[target]) {
                if !next.contains(&source) {
                    next.push(source);
                }
            }
            levels.push(next);
        }
        let all: Vec<_> = (0..)
            .zip(&levels)
            .flat_map(|(level, nodes)| nodes.iter().map(move |&node| (level, node)))
            .collect();
        let of = |number| all.iter().copied().filter(|&(_, node)| type_of(node) == number).collect();
        (0..2).map(of).collect()
    }

    #[test]
    fn a_batch_has_the_in_edges_of_each_relation_and_the_features_of_each_type() {
        let (graph, folder) = (graph(), tempfile::tempdir().unwrap());
        let (topology, types) = opened(&graph, folder.path());
        let (file, rows) = (folder.path().join("features.npy"), (0..2 * N as u8).collect::<Vec<_>>());
        for typed in [false, true] {
            let type_of = |vertex| if typed { type_of(vertex) } else { 0 };
            let ends: &[[u16; 2]] = if typed { &ENDS } else { &[[0, 0]] };
            let (count, first) = if typed { (SECOND, SECOND) } else { (N, 0) };
            fs::write(&file, [npy::header("|u1", &[count as u64, 2]), rows[..2 * count].to_vec()].concat())
                .unwrap();
            let space = Arc::new(crate::sampling::RowSpace::new(vec![0, count as u64]).unwrap());
            let features =
                Features::open(&[Some(file.clone())], Arc::clone(&topology), Some(space), None).unwrap();
            let settings = Settings {
                fanouts: vec![vec![None; ends.len()]; 2],
                method: Method::Uniform,
                weights: None,
                temporal: None,
                seed: 1,
                merged: false,
                edges: EdgeColumns { ids: true, rows: false },
            };
            let types = typed.then(|| Arc::clone(&types));
            let maker = Maker {
                sampler: Arc::new(Sampler::new(Arc::clone(&topology), types, settings).unwrap()),
                features: vec![Some(Arc::new(features)), None],
                edge_features: None,
                packs: Vec::new(),
                pools: Arc::default(),
                spent: Arc::default(),
            };
            let mut worker = Worker::new(&topology).unwrap();
            for seeds in [vec![3, 30, 26, 0], vec![39], vec![], (0..N).collect()] {
                let rows_of_seeds: Vec<u32> = seeds.iter().map(|&seed| seed as u32).collect();
                let (seeds_of, place) =
                    (Seeds { rows: &rows_of_seeds, times: &[] }, Place { epoch: 0, step: 0 });
                let Batch { sample, mut features, .. } =
                    maker.make(seeds_of, place, &mut worker, &|| Ok(())).unwrap();
                let expected = nodes(&graph, &seeds, &type_of);
                for (number, bounds) in sample.nodes.windows(2).enumerate() {
                    let of_type = expected[number].iter().map(|&(_, vertex)| vertex);
                    let ids: Vec<usize> =
                        sample.ids[bounds[0]..bounds[1]].iter().map(|&id| id as usize).collect();
                    assert_eq!(ids, of_type.clone().collect::<Vec<_>>());
                    let within = of_type.map(|vertex| (vertex - usize::from(type_of(vertex)) * first) as u32);
                    assert_eq!(sample.rows[bounds[0]..bounds[1]], within.collect::<Vec<_>>());
                }
                let mut found = features[0].take().unwrap();
                // SAFETY: the batch has these rows of two bytes.
                let found = unsafe { std::slice::from_raw_parts(found.as_mut_ptr(), 2 * expected[0].len()) };
                assert_eq!(
                    found,
                    expected[0].iter().flat_map(|&(_, v)| [2 * v as u8, 2 * v as u8 + 1]).collect::<Vec<_>>()
                );
                for (relation, &[source, target]) in ends.iter().enumerate() {
                    let indptr = &sample.indptr[sample.targets[relation]..sample.targets[relation + 1]];
                    let edges = sample.edges[relation]..sample.edges[relation + 1];
                    let (indices, edge_ids) = (&sample.indices[edges.clone()], &sample.edge_ids[edges]);
                    let targets = expected[usize::from(target)].iter().filter(|&&(level, _)| level < 2);
                    for (&(level, vertex), bounds) in targets.clone().zip(indptr.windows(2)) {
                        let before: usize = graph[..vertex].iter().map(Vec::len).sum();
                        let own = graph[vertex].iter().enumerate();
                        let own = own.filter(|&(_, &(of, _))| !typed || usize::from(of) == relation);
                        let (bounds, nodes) =
                            (bounds[0] as usize..bounds[1] as usize, &expected[usize::from(source)]);
                        let places: Vec<_> =
                            indices[bounds.clone()].iter().map(|&place| nodes[place as usize]).collect();
                        assert_eq!(
                            places,
                            own.clone().map(|(_, &(_, source))| (level + 1, source)).collect::<Vec<_>>()
                        );
                        let ids: Vec<_> = own.map(|(place, _)| (before + place) as i64).collect();
                        assert_eq!(edge_ids[bounds], ids);
                    }
                    assert_eq!(indptr.len(), targets.count() + 1);
                }
            }
        }
    }
}
