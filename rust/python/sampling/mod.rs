//! Neighbour samples, for Python.

mod batch;
mod batches;
mod features;
mod sampler;
mod topology;

pub use batch::SampledBatch;
pub use batches::Batches;
pub use features::Features;
pub use sampler::Sampler;
pub use topology::Topology;
