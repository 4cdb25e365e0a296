//! Neighbour samples, for Python.

mod arguments;
mod batch;
mod batches;
mod coding;
mod features;
mod pack;
mod rates;
mod sampler;
mod times;
mod topology;
mod typed;
mod types;

pub use batch::SampledBatch;
pub use batches::Batches;
pub use coding::Coding;
pub use features::Features;
pub use pack::Pack;
pub use rates::disk_rates;
pub use sampler::Sampler;
pub use times::Times;
pub use topology::Topology;
pub use typed::{TypedBatches, TypedSampledBatch, TypedSampler};
pub use types::Types;
