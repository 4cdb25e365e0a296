//! The foundation: errors, a run and its budget, large arrays, randomness, atomic files. It does not depend on
//! graphs.

pub mod budget;
pub mod buffer;
pub mod error;
pub mod output;
pub mod prefetch;
pub mod random;
pub mod run;
pub mod temporary;

/// No part, no cluster, no vertex: above every id.
pub const NONE: u32 = u32::MAX;
