//! Clusters in the order of their sizes, by counting: linear, and interruptible, which a heap or a sort is
//! not.

use super::Clusters;
use crate::base::error::Result;
use crate::base::prefetch::prefetch;
use crate::base::run::Run;
use crate::clustering::hollocou::vertex_of;
use crate::sets::groups::Groups;

/// Distance of the look-ahead, in clusters.
const AHEAD: usize = 12;

/// The live clusters, by size and then id.
pub(crate) struct BySize(Groups);

impl BySize {
    /// Orders the clusters whose size is not 0.
    pub(crate) fn of(sizes: &[u32], run: &Run) -> Result<Self> {
        let largest = sizes.iter().max().map_or(0, |&size| size as usize);
        let size = |id: u32| Some(sizes[id as usize]).filter(|&size| size > 0);
        Ok(Self(Groups::counted(sizes.len(), largest + 1, size, |done| run.advance(done))?))
    }

    /// (size, id), ascending.
    pub(crate) fn ascending(&self) -> impl Iterator<Item = (u32, u32)> {
        (1..self.0.count()).flat_map(|size| self.run(size))
    }

    /// (size, id), sizes descending, ids of a size ascending.
    pub(crate) fn descending(&self) -> impl Iterator<Item = (u32, u32)> {
        (1..self.0.count()).rev().flat_map(|size| self.run(size))
    }

    /// Prefetches the data that merging the clusters some places after `position` will touch.
    pub(crate) fn look_ahead(&self, position: usize, clusters: &Clusters) {
        if let Some(&id) = self.0.items().get(position + 3 * AHEAD) {
            prefetch(&clusters.link, id as usize);
            prefetch(&clusters.size, id as usize);
        }
        if let Some(&id) = self.0.items().get(position + 2 * AHEAD) {
            prefetch(&clusters.of, vertex_of(clusters.link[id as usize]) as usize);
        }
        if let Some(&id) = self.0.items().get(position + AHEAD) {
            // A cluster that merged meanwhile links to another cluster, whose number is a vertex just as
            // well.
            let richest = vertex_of(clusters.link[id as usize]) as usize;
            if let Some(&target) = clusters.of.get(richest) {
                prefetch(&clusters.link, target as usize);
                prefetch(&clusters.size, target as usize);
            }
        }
    }

    fn run(&self, size: u32) -> impl Iterator<Item = (u32, u32)> {
        self.0.group(size).iter().map(move |&id| (size, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders() {
        let run = Run::new(Some(1), None).unwrap();
        let order = BySize::of(&[3, 0, 1, 3, 7, 1], &run).unwrap();
        assert_eq!(order.ascending().collect::<Vec<_>>(), [(1, 2), (1, 5), (3, 0), (3, 3), (7, 4)]);
        assert_eq!(order.descending().collect::<Vec<_>>(), [(7, 4), (3, 0), (3, 3), (1, 2), (1, 5)]);
        let empty = BySize::of(&[], &run).unwrap();
        assert_eq!((empty.ascending().count(), empty.descending().count()), (0, 0));
    }
}
