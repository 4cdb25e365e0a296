//! The few ways in which work is done in parallel, each implemented once.
//!
//! - [`mod@side_by_side`] works on a few items, each on a thread of its own.
//! - [`mod@scan`] hands items to workers, and [`mod@pass`] hands them every record.
//! - [`batches`] decides about vertices in a fixed order, in frozen batches. [`mod@follow`] does the same for
//!   records.
//! - [`rounds`] has proposals made for many vertices against one frozen state, which the caller approves.
//! - [`division`] shares such proposals among replicas, each of which has a part of the lists.
//! - [`mod@pipeline`] places records in stream order while it gathers what the next ones need.
//! - [`scattered`] is the order in which the two before read the records of a typed graph.
//! - [`mod@shuffle`] and [`spill`] bring records into another order out of core.

pub(crate) mod batches;
pub(crate) mod division;
pub(crate) mod follow;
pub(crate) mod pass;
pub(crate) mod pipeline;
pub(crate) mod rounds;
pub(crate) mod scan;
pub(crate) mod scattered;
pub mod shuffle;
pub(crate) mod side_by_side;
pub(crate) mod spill;

pub(crate) use batches::{Decider, decide_all};
pub use division::{Division, Peers};
pub(crate) use follow::{Follower, follow};
pub use pass::{blocks, pass};
pub(crate) use pass::{each_block, in_order};
pub(crate) use pipeline::pipeline;
pub(crate) use rounds::{most_threads, propose, scratches, share};
pub(crate) use scan::{for_each, map, scan};
pub use shuffle::{key, shuffle};
pub(crate) use side_by_side::side_by_side;
pub(crate) use spill::{Entry, Spill, SpillReader, Writer, spill_edges};
