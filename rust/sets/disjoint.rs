//! Disjoint sets of vertices, which grow together along edges. Several threads unite sets at once.
//!
//! Every vertex names another one of its set, with a lower id. The *root* of a set, its lowest vertex, names
//! itself. So the sets in the end do not depend on the order of the edges.
//!
//! **Memory.** 4 bytes per vertex.
//!
//! **Complexity.** Nearly constant per edge: a search halves the path that it takes.
//!
//! **Source.** Anderson and Woll, "Wait-Free Parallel Algorithms for the Union-Find Problem", STOC 1991.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::base::{Buffer, Result, Run, shared};

/// Disjoint sets of the vertices `0..n`.
pub(crate) struct DisjointSets {
    /// A vertex of the same set, with a lower id, or the vertex itself.
    parents: Buffer<u32>,
}

/// Disjoint sets that threads share.
#[derive(Clone, Copy)]
pub(crate) struct SharedSets<'a>(&'a [AtomicU32]);

impl DisjointSets {
    /// Bytes for `n` vertices.
    pub(crate) fn memory(n: u64) -> u64 {
        4 * n
    }

    /// Each of `n` vertices by itself.
    pub(crate) fn new(n: usize, run: &Run) -> Result<Self> {
        let mut parents: Buffer<u32> = Buffer::zeroed(n, "disjoint sets of vertices")?;
        run.each(n, |v| parents[v as usize] = v)?;
        Ok(Self { parents })
    }

    /// The sets, to unite them.
    pub(crate) fn share(&mut self) -> SharedSets<'_> {
        SharedSets(shared(&mut self.parents))
    }

    /// The root of the set of each vertex.
    pub(crate) fn roots(mut self, run: &Run) -> Result<Buffer<u32>> {
        // Parents come before their children, so theirs are roots already.
        run.each(self.parents.len(), |v| {
            self.parents[v as usize] = self.parents[self.parents[v as usize] as usize];
        })?;
        Ok(self.parents)
    }

    /// Whether `v` is the root of its set.
    #[inline(always)]
    pub(crate) fn is_root(&self, v: usize) -> bool {
        self.parents[v] as usize == v
    }
}

impl SharedSets<'_> {
    /// The root of the set of `v`, unless another thread unites it meanwhile.
    fn root(self, mut v: u32) -> u32 {
        loop {
            let parent = self.0[v as usize].load(Relaxed);
            if parent == v {
                return v;
            }
            let next = self.0[parent as usize].load(Relaxed);
            if next == parent {
                return parent;
            }
            // A vertex that is no root never becomes one again, and any vertex above it is valid here.
            self.0[v as usize].store(next, Relaxed);
            v = next;
        }
    }

    /// Unites the sets of two vertices.
    pub(crate) fn unite(self, u: u32, v: u32) {
        let (mut u, mut v) = (self.root(u), self.root(v));
        while u != v {
            let (low, high) = (u.min(v), u.max(v));
            if self.0[high as usize].compare_exchange(high, low, Relaxed, Relaxed).is_ok() {
                return;
            }
            (u, v) = (low, self.root(high));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;
    use crate::exec::for_each;

    #[test]
    fn the_root_is_the_lowest_vertex_of_a_set() {
        let run = Run::new(Some(3), None).unwrap();
        for seed in 0..50 {
            let mut random = Random::new(seed, 1);
            let n = 1 + random.below(80);
            let mut edges: Vec<[u32; 2]> =
                (0..random.below(2 * n)).map(|_| [0; 2].map(|_: u32| random.below(n) as u32)).collect();
            let mut lowest: Vec<u32> = (0..n as u32).collect();
            // Labels fall until no edge lowers one any more.
            while edges.iter().any(|&[u, v]| lowest[u as usize] != lowest[v as usize]) {
                for &[u, v] in &edges {
                    let least = lowest[u as usize].min(lowest[v as usize]);
                    (lowest[u as usize], lowest[v as usize]) = (least, least);
                }
            }
            let mut sets = DisjointSets::new(n as usize, &run).unwrap();
            let shared = sets.share();
            for_each(&mut edges, &run, |_, &mut [u, v]| shared.unite(u, v)).unwrap();
            assert!((0..n as usize).all(|v| sets.is_root(v) == (lowest[v] as usize == v)));
            assert_eq!(sets.roots(&run).unwrap()[..], lowest[..]);
        }
    }
}
