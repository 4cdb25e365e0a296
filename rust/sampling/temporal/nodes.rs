//! The nodes of a batch whose seeds have times.
//!
//! A node is a vertex and a group: the seeds with one time, and all that was sampled for them. So a
//! neighbourhood depends on the vertex and the time, never on the other seeds of the batch, and seeds with
//! equal times share theirs.

use rustc_hash::FxHashMap;

/// The vertices of a batch, the time of each, and its place.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    /// Place of each row and group within the scope.
    places: FxHashMap<u64, u32>,
    /// Group of each time.
    of_time: FxHashMap<i64, u32>,
    /// Time of each group.
    times: Vec<i64>,
    /// Group of each node of the batch.
    groups: Vec<u32>,
}

impl Nodes {
    /// Begins a batch.
    pub(crate) fn begin(&mut self) {
        let Self { places, of_time, times, groups } = self;
        places.clear();
        of_time.clear();
        times.clear();
        groups.clear();
    }

    /// Begins a new, empty scope within the batch.
    pub(crate) fn begin_scope(&mut self) {
        self.places.clear();
    }

    /// The group of a time.
    pub(crate) fn group_of(&mut self, time: i64) -> u32 {
        let new = self.times.len() as u32;
        let group = *self.of_time.entry(time).or_insert(new);
        if group == new {
            self.times.push(time);
        }
        group
    }

    /// The place of a row and a group in this scope, and whether it is a new one, which becomes the next
    /// node.
    #[inline(always)]
    pub(crate) fn place(&mut self, row: u32, group: u32) -> (u32, bool) {
        let next = self.places.len() as u32;
        let place = *self.places.entry(u64::from(row) << 32 | u64::from(group)).or_insert(next);
        if place == next {
            self.groups.push(group);
        }
        (place, place == next)
    }

    /// Group of a node of the batch, and its time.
    pub(crate) fn group(&self, node: usize) -> (u32, i64) {
        let group = self.groups[node];
        (group, self.times[group as usize])
    }

    /// The time of each node of the batch.
    pub(crate) fn all_times(&self) -> impl Iterator<Item = i64> {
        self.groups.iter().map(|&group| self.times[group as usize])
    }
}
