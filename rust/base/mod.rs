//! The foundation: errors, a run and its budget, large arrays, randomness, atomic files. It does not depend
//! on graphs.

pub(crate) mod buffer;
pub(crate) mod checked;
pub(crate) mod error;
pub mod npy;
pub mod output;
pub(crate) mod prefetch;
pub(crate) mod random;
pub(crate) mod regular_file;
pub(crate) mod run;
pub(crate) mod spare;
pub(crate) mod system;
pub(crate) mod temporary;
pub(crate) mod usage;

pub use buffer::{Buffer, reserved};
pub(crate) use buffer::{Growing, reserve, shared, zeros};
pub(crate) use error::bytes;
pub use error::{Error, Result, named, shown};
pub(crate) use output::AtomicFile;
pub(crate) use prefetch::{ahead, on_avx2, prefetch, prefetch_at, prefetch_ends, read_ahead};
pub use random::{Permutation, Random, splitmix64};
pub(crate) use run::CancelCheck;
pub use run::{MAX_THREADS, Run, Step, default_threads, locked};
pub use spare::Allocator;
pub(crate) use system::budget;
pub use system::budget::available;
pub(crate) use temporary::TempFile;
pub use usage::{Meter, Usage};

/// No part, no cluster, no vertex: above every id.
pub const NONE: u32 = u32::MAX;
