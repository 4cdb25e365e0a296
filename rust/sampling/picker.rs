//! Ways to pick in-edges of one vertex after the other.

use super::part::Part;
use super::picks::Picks;
use super::targets::Target;
use crate::base::Result;

/// A way to pick in-edges.
pub(crate) trait Picker {
    /// Lists up to this length are brought into the cache before they are picked from.
    fn short(&self) -> usize {
        usize::MAX
    }

    /// Brings into the cache what [`Self::prepare`] reads for a target that comes soon.
    #[inline(always)]
    fn announce(&self, _target: &Target) {}

    /// Brings into the cache what [`Self::pick`] reads for a target that comes soon.
    #[inline(always)]
    fn prepare(&self, _target: &Target, _part: &Part) {}

    /// Picks in-edges of a target of `part`.
    fn pick(&mut self, target: &Target, part: &Part, picks: &mut Picks) -> Result<Picked>;
}

/// The picks of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picked {
    /// Some of its in-edges were picked.
    Some,
    /// All of them are to be taken.
    All,
}

/// Takes all in-edges.
#[derive(Debug)]
pub(crate) struct All;

impl Picker for All {
    fn pick(&mut self, _: &Target, _: &Part, _: &mut Picks) -> Result<Picked> {
        Ok(Picked::All)
    }
}
