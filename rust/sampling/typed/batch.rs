//! A batch of a typed graph in memory that is used again: the sample and the features of each type.

use std::sync::Arc;

use super::grouping::TypedSample;
use super::sampler::TypedSampler;
use crate::base::Result;
use crate::sampling::batch::{BatchMaker, Pools, Spent, timed};
use crate::sampling::gather::{FeatureRows, Features};
use crate::sampling::pool::{Memory, Pool, Pooled};
use crate::sampling::sample::Seeds;
use crate::sampling::sampler::Place;
use crate::sampling::workers::Worker;

/// A batch.
#[derive(Debug)]
pub struct TypedBatch {
    /// The sample.
    pub sample: Pooled<TypedSample>,
    /// One row of features per node of each type.
    pub features: Vec<Option<Pooled<FeatureRows>>>,
}

/// Memory for samples, used again.
#[derive(Debug, Default)]
pub struct TypedSamples(Pool<TypedSample>);

impl TypedSamples {
    /// Memory for a sample.
    fn take(&self) -> Pooled<TypedSample> {
        self.0.take()
    }

    /// Memory that waits to be used again takes at most `most` bytes.
    pub fn keep_at_most(&self, most: u64) {
        self.0.keep_at_most(most);
    }
}

/// Makes batches, with features of the types that have some.
#[derive(Debug)]
pub struct TypedMaker {
    /// Samples.
    pub sampler: Arc<TypedSampler>,
    /// Where the features of each type are.
    pub features: Vec<Option<Arc<Features>>>,
    /// Memory for samples by type and relation.
    pub samples: Arc<TypedSamples>,
    /// Memory for features, and for samples before they are ordered.
    pub pools: Arc<Pools>,
    /// The time that both take.
    pub spent: Arc<Spent>,
}

impl BatchMaker for TypedMaker {
    type Batch = TypedBatch;

    fn make(
        &self,
        seeds: Seeds<'_>,
        place: Place,
        worker: &mut Worker,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<TypedBatch> {
        let (mut plain, mut sample) = (self.pools.sample(), self.samples.take());
        timed(&self.spent.sampling, || {
            self.sampler.sample(seeds, place, worker, check, &mut plain, &mut sample)
        })?;
        drop(plain);
        let fill = |(number, features): (usize, &Option<Arc<Features>>)| {
            let Some(features) = features else { return Ok(None) };
            let (mut rows, nodes) = (self.pools.features(), sample.nodes[number]..sample.nodes[number + 1]);
            timed(&self.spent.fetching, || features.fill(&sample.rows[nodes], None, &mut rows, check))?;
            Ok(Some(rows))
        };
        let features = self.features.iter().enumerate().map(fill).collect::<Result<_>>()?;
        Ok(TypedBatch { sample, features })
    }

    fn bytes(batch: &TypedBatch) -> u64 {
        batch.sample.bytes() + batch.features.iter().flatten().map(|rows| rows.bytes()).sum::<u64>()
    }
}
