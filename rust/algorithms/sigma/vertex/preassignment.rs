//! Preassignment: a vertex goes to its cluster's part at once if no neighbour contradicts.

use crate::base::{NONE, Result, Run, reserved};
use crate::capacity::{CHECK_EVERY, Load, fits, plus};
use crate::graph::Csr;

/// The state that the preassignment leaves to the stream.
pub(super) struct Remainder {
    /// Load of each part.
    pub loads: Vec<Load>,
    /// Vertices with neighbours that got no part, in id order.
    pub deferred: Vec<u32>,
}

/// Vertex by vertex, in id order: `parts` holds the preferred part of each vertex, and afterwards its part or
/// [`NONE`]. A vertex gets its preferred part if the neighbours before it that have a part are all there, and
/// the part has slack under the `caps`. Isolated vertices wait for the end.
pub(super) fn preassign(csr: &Csr, parts: &mut [u32], k: u32, caps: Load, run: &Run) -> Result<Remainder> {
    run.begin("preassignment", csr.num_vertices() as u64);
    let mut loads: Vec<Load> = vec![[0; 2]; k as usize];
    let mut deferred = reserved(csr.num_vertices(), "deferred vertices")?;
    let (mut work, mut told) = (0, 0);
    for v in 0..csr.num_vertices() as u32 {
        let neighbours = csr.neighbours(v);
        let preferred = std::mem::replace(&mut parts[v as usize], NONE);
        let after = plus(loads[preferred as usize], [1, 1 + neighbours.len() as u64]);
        let mut before = neighbours.iter().take_while(|&&u| u < v).map(|&u| parts[u as usize]);
        if neighbours.is_empty() {
        } else if fits(after, caps) && before.all(|part| part == preferred || part == NONE) {
            loads[preferred as usize] = after;
            parts[v as usize] = preferred;
        } else {
            deferred.push(v);
        }
        work += 1 + neighbours.len();
        if work >= 4 * CHECK_EVERY {
            work = 0;
            run.advance(u64::from(v - told))?;
            told = v;
        }
    }
    run.advance(csr.num_vertices() as u64 - u64::from(told))?;
    Ok(Remainder { loads, deferred })
}
