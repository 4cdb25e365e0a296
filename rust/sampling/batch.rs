//! A batch in memory that is used again: the sample and its features.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::gather::{FeatureRows, Features};
use super::pack::Pack;
use super::pool::{Memory, Pool, Pooled};
use super::sample::{Sample, Seeds};
use super::sampler::{Place, Sampler};
use super::workers::Worker;
use crate::base::Result;

/// A batch.
#[derive(Debug)]
pub struct Batch {
    /// The sample.
    pub sample: Pooled<Sample>,
    /// One row of features per node.
    pub features: Option<Pooled<FeatureRows>>,
    /// One row of features per in-edge.
    pub edge_features: Option<Pooled<FeatureRows>>,
}

/// A maker of batches.
pub trait BatchMaker: Debug + Send + Sync + 'static {
    /// The batch that it makes.
    type Batch: Debug + Send;

    /// Makes the batch of the `seeds`.
    fn make(
        &self,
        seeds: Seeds<'_>,
        place: Place,
        worker: &mut Worker,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Self::Batch>;

    /// Bytes of memory that a batch takes.
    fn bytes(batch: &Self::Batch) -> u64;
}

/// Makes batches, with features if there are any.
#[derive(Debug)]
pub struct Maker {
    /// Samples.
    pub sampler: Arc<Sampler>,
    /// Where the features are.
    pub features: Option<Arc<Features>>,
    /// Where the features of in-edges are. The sampler gives their rows.
    pub edge_features: Option<Arc<Features>>,
    /// The features of the batches of the epoch, if they are packed.
    pub pack: Option<Arc<Pack>>,
    /// Memory for both.
    pub pools: Arc<Pools>,
    /// The time that both take.
    pub spent: Arc<Spent>,
}

/// Nanoseconds of all threads.
#[derive(Debug, Default)]
pub struct Spent {
    pub(super) sampling: AtomicU64,
    pub(super) fetching: AtomicU64,
}

impl Spent {
    /// Seconds of sampling and of copying features since the last call.
    pub fn read(&self) -> (f64, f64) {
        let seconds = |spent: &AtomicU64| Duration::from_nanos(spent.swap(0, Relaxed)).as_secs_f64();
        (seconds(&self.sampling), seconds(&self.fetching))
    }
}

/// Adds the time of some work.
pub(super) fn timed<R>(spent: &AtomicU64, work: impl FnOnce() -> R) -> R {
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

impl BatchMaker for Maker {
    type Batch = Batch;

    fn make(
        &self,
        seeds: Seeds<'_>,
        place: Place,
        worker: &mut Worker,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Batch> {
        let mut sample = self.pools.sample();
        timed(&self.spent.sampling, || self.sampler.sample(seeds, place, worker, check, &mut sample))?;
        let planned = self.pack.as_ref().map(|pack| (&**pack, place.step as usize));
        let fill = |features: &Arc<Features>| {
            let mut rows = self.pools.features();
            timed(&self.spent.fetching, || features.fill(&sample.rows, planned, &mut rows, check))
                .map(|()| rows)
        };
        let features = self.features.as_ref().map(fill).transpose()?;
        let fill = |features: &Arc<Features>| {
            let mut rows = self.pools.edge_features.take();
            timed(&self.spent.fetching, || features.fill(&sample.edge_rows, None, &mut rows, check))
                .map(|()| rows)
        };
        let edge_features = self.edge_features.as_ref().map(fill).transpose()?;
        Ok(Batch { sample, features, edge_features })
    }

    fn bytes(batch: &Batch) -> u64 {
        let rows = [&batch.features, &batch.edge_features].into_iter().flatten();
        batch.sample.bytes() + rows.map(|rows| rows.bytes()).sum::<u64>()
    }
}
