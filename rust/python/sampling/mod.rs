//! Neighbour samples, for Python.

mod adam;
mod batch;
mod batches;
mod coding;
mod features;
mod rates;
mod sampler;
mod times;
mod topology;
mod types;

pub use adam::sparse_adam;
pub use batch::{SampledBatch, TypedSampledBatch};
pub use batches::{Batches, sampler_memory};
pub use coding::Coding;
pub use features::{Features, Pack};
pub use rates::disk_rates;
pub use sampler::Sampler;
pub use times::Times;
pub use topology::Topology;
pub use types::Types;
