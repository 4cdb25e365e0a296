//! The few ways in which work is done in parallel, each implemented once. Beside this module only
//! [`crate::base::run`], which has the pool, names rayon.
//!
//! | does a decision need the state? | must it see its predecessor? | take |
//! |---|---|---|
//! | no: items or vertices | | [`scan`](scan()), [`map`](map()), [`fill`], [`fold`], [`select`], [`group`], [`for_each`], [`scan_ranges`] |
//! | no: all records | | [`pass`](pass()), [`each_block`] |
//! | yes: the vertices of a round | no: the caller approves proposals | [`propose`], and [`division`] if replicas have the lists |
//! | yes: vertices in an order | as far as a batch allows: those whose state has changed decide again | [`decide_all`] |
//! | yes: records, few of which change anything | as far as a batch allows | [`follow`](follow()) |
//! | yes: every record | yes: one thread places, all others gather data for it | [`pipeline`](pipeline()) |
//!
//! None of these depends on the number of threads. Records of a typed graph are read in the order of
//! [`scattered`] where they are placed one after the other. [`shuffle`](shuffle()) and [`spill`] bring
//! records into another order out of core. [`side_by_side`](side_by_side()) works on a few items, each on a
//! thread of its own, and is what most of the others are made of. `tests/test_layers.py` has the order of the
//! files, lowest first.

pub(crate) mod batches;
pub(crate) mod division;
pub(crate) mod follow;
pub(crate) mod grouping;
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
pub(crate) use grouping::group;
pub use pass::{blocks, pass};
pub(crate) use pass::{each_block, in_order};
pub(crate) use pipeline::pipeline;
pub(crate) use rounds::{most_threads, propose, scratches, share};
pub(crate) use scan::{fill, fold, for_each, map, scan, scan_ranges, select, sort_by_key};
pub use shuffle::{key, shuffle};
pub(crate) use side_by_side::{join, side_by_side};
pub(crate) use spill::{Entry, Spill, SpillReader, Writer, spill_edges};
