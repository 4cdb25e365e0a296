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
    /// The features of the batches of the epoch, if they are packed.
    pub pack: Option<Arc<Pack>>,
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
        let planned = self.pack.as_ref().map(|pack| (&**pack, place.step as usize));
        let fill = |(features, nodes): (&Option<Arc<Features>>, &[usize])| {
            let Some(features) = features else { return Ok(None) };
            let (mut rows, wanted) = (self.pools.features(), &sample.rows[nodes[0]..nodes[1]]);
            timed(&self.spent.fetching, || features.fill(wanted, planned, &mut rows, check))?;
            Ok(Some(rows))
        };
        let features = self.features.iter().zip(sample.nodes.windows(2)).map(fill);
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
