//! The few ways in which work is done in parallel, each implemented once.
//!
//! - [`mod@side_by_side`] works on a few items, each on a thread of its own.
//! - [`mod@scan`] hands items to workers, and [`mod@pass`] hands them every record.
//! - [`batches`] decides about vertices in a fixed order, in frozen batches. [`mod@follow`] does the same for
//!   records.
//! - [`rounds`] has proposals made for many vertices against one frozen state, which the caller approves.
//! - [`mod@pipeline`] places records in stream order while it gathers what the next ones need.
//! - [`mod@shuffle`] and [`spill`] bring records into another order out of core.

pub mod batches;
pub mod follow;
pub mod pass;
pub mod pipeline;
pub mod rounds;
pub mod scan;
pub mod shuffle;
pub mod side_by_side;
pub mod spill;

pub use batches::{Decider, decide_all};
pub use follow::{Follower, follow};
pub use pass::{blocks, in_order, pass};
pub use pipeline::pipeline;
pub use rounds::{propose, scratches, share};
pub use scan::{for_each, map, scan};
pub use shuffle::shuffle;
pub use side_by_side::side_by_side;
pub use spill::spill_edges;
