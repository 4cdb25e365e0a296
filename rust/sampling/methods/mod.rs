//! How in-edges are picked from a list.

pub(crate) mod labor;
mod labor_numbers;
pub(crate) mod picker;
pub(crate) mod uniform;
pub(crate) mod weighted;
