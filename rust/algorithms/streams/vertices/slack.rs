//! The parts that have slack, and the least loaded of them.

use crate::base::Result;
use crate::capacity::{BalanceOn, PartLoads, UnitLoads};

/// The loads of the parts during a pass, which only grow.
pub(crate) trait Slack: Send + Sync {
    /// The number of vertices of `part`.
    fn load(&self, part: u32) -> u64;
    /// Whether `v` fits into `part`.
    fn fits(&self, part: u32, v: u32) -> bool;
    /// The least loaded part that `v` fits into. Ties go to the lowest part.
    fn least(&self, v: u32) -> Option<u32>;
    /// Adds `v` to `part`.
    fn add(&mut self, part: u32, v: u32);
}

/// Slack under one cap, on the vertices.
pub(crate) struct OneCap {
    parts: UnitLoads,
    cap: u64,
}

impl OneCap {
    /// `k` empty parts.
    pub(crate) fn new(k: u32, cap: u64) -> Self {
        Self::of(vec![0; k as usize], cap)
    }

    /// Parts with these loads.
    pub(crate) fn of(loads: Vec<u64>, cap: u64) -> Self {
        Self { parts: UnitLoads::new(loads), cap }
    }

    /// The number of vertices of each part.
    pub(crate) fn into_loads(self) -> Vec<u64> {
        self.parts.into_loads()
    }
}

impl Slack for OneCap {
    #[inline(always)]
    fn load(&self, part: u32) -> u64 {
        self.parts.load(part)
    }

    #[inline(always)]
    fn fits(&self, part: u32, _v: u32) -> bool {
        self.load(part) < self.cap
    }

    #[inline(always)]
    fn least(&self, v: u32) -> Option<u32> {
        let least = self.parts.least();
        self.fits(least, v).then_some(least)
    }

    #[inline(always)]
    fn add(&mut self, part: u32, _v: u32) {
        self.parts.add(part);
    }
}

/// Slack under two caps, on the vertices and on their weight.
pub(crate) struct TwoCaps<'a> {
    parts: PartLoads,
    on: &'a BalanceOn,
}

impl<'a> TwoCaps<'a> {
    /// `k` empty parts for the vertices of `on`.
    pub(crate) fn new(k: u32, cap: u64, on: &'a BalanceOn) -> Result<Self> {
        Ok(Self { parts: on.parts(k, cap)?, on })
    }

    /// The parts with both loads.
    pub(crate) fn into_parts(self) -> PartLoads {
        self.parts
    }
}

impl Slack for TwoCaps<'_> {
    fn load(&self, part: u32) -> u64 {
        self.parts.load(part)[0]
    }

    fn fits(&self, part: u32, v: u32) -> bool {
        self.parts.fits(part, [1, self.on.weight(v)])
    }

    fn least(&self, v: u32) -> Option<u32> {
        self.parts.choose([1, self.on.weight(v)])
    }

    fn add(&mut self, part: u32, v: u32) {
        self.parts.put(part, [1, self.on.weight(v)]);
    }
}
