//! Connected components of the parts. A part with several falls apart where only its own edges count.
//!
//! **Memory.** 4 bytes per vertex.
//!
//! **Algorithm.** One pass over the records unites the ends of those within a part ([`DisjointSets`]). Every
//! set has one root, so the roots of a part are as many as its components.
//!
//! **Parallelism.** Threads unite sets at once. The sets in the end do not depend on the order.

use super::{over_vertices, total, validate};
use crate::base::{Result, Run, ahead, prefetch_ends, zeros};
use crate::edges::EdgeStream;
use crate::exec::each_block;
use crate::sets::DisjointSets;

/// Number of connected components of each part. A part without vertices has none.
pub fn components(edges: &dyn EdgeStream, assignment: &[i32], k: u32, run: &Run) -> Result<Vec<u64>> {
    let n = edges.num_vertices();
    validate(assignment, k, n, run)?;
    let each = 8 * u64::from(k);
    let needed = DisjointSets::memory(n);
    run.require(needed + each, format!("components of the parts of {n} vertices (4 bytes each)"))?;
    run.begin("components", edges.num_edges() + n);
    let mut sets = DisjointSets::new(n as usize, run)?;
    let shared = sets.share();
    each_block(edges, run, |_, records| {
        for (index, &[u, v]) in records.iter().enumerate() {
            prefetch_ends(assignment, records, index + ahead::RECORDS);
            if u != v && assignment[u as usize] == assignment[v as usize] {
                shared.unite(u, v);
            }
        }
        Ok(())
    })?;
    let workers = run.workers(usize::MAX, needed + each, each, &format!("components of {k} parts"))?;
    let init = || zeros(k as usize, "components of the parts");
    let counts = over_vertices(n as usize, workers, run, init, |counts: &mut Vec<u64>, range| {
        for v in range {
            counts[assignment[v] as usize] += u64::from(sets.is_root(v));
        }
        Ok(())
    })?;
    Ok(total(counts, k as usize))
}
