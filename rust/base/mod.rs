//! The foundation: errors, a run and its budget, large arrays, randomness, atomic files. It does not depend on
//! graphs.

pub mod budget;
pub mod buffer;
pub mod error;
pub mod file_hash;
pub mod output;
pub mod prefetch;
pub mod random;
pub mod run;
pub mod temporary;
pub mod usage;

pub use buffer::{Buffer, reserved, shared, zeros};
pub use error::{Error, Result, bytes, named, shown};
pub use output::{AtomicDir, AtomicFile, Entries};
pub use prefetch::{prefetch, prefetch_at, prefetch_ends, read_ahead};
pub use random::{Permutation, Random, splitmix64};
pub use run::Run;
pub use temporary::TempFile;
pub use usage::{Meter, Usage};

/// No part, no cluster, no vertex: above every id.
pub const NONE: u32 = u32::MAX;
