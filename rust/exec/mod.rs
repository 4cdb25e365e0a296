//! The few ways in which work is done in parallel, each once.
//!
//! [`mod@pass`] hands every record to some worker; [`batches`] decides about vertices in a fixed order, in frozen batches;
//! [`mod@pipeline`] places records in stream order while it gathers what the next ones need; [`mod@shuffle`] and [`spill`] bring records into another order out of core.

pub mod batches;
pub mod pass;
pub mod pipeline;
pub mod shuffle;
pub mod spill;
