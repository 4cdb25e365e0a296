//! Random walks against the direction of the edges.
//!
//! A step goes to the source of an in-edge, each with the same probability. A walk that is at a vertex
//! without in-edges stays there.

use crate::base::{Error, Result};
use crate::sampling::levels::sample::Place;
use crate::sampling::levels::targets::{BLOCK, Targets};
use crate::sampling::random::HopKey;
use crate::sampling::topology::Topology;

/// Walks of `length` steps, one from each of `roots`. Returns the rows that they visit, `length + 1` for each
/// walk.
///
/// A step is a function of (seed, epoch, step, hop, number of the walk, its root).
pub fn walks(
    topology: &Topology,
    roots: &[u32],
    length: usize,
    seed: u64,
    place: Place,
    check: &dyn Fn() -> Result<()>,
) -> Result<Vec<u32>> {
    topology.check_rows("roots", roots)?;
    let keys: Vec<HopKey> =
        (0..length as u64).map(|hop| HopKey::new(seed, place.epoch, place.step, hop)).collect();
    let total = roots.len().checked_mul(length + 1).filter(|&total| total < 1 << 40);
    let total = total.ok_or_else(|| Error::Capacity(format!("{} walks of {length} steps", roots.len())))?;
    let mut visited = crate::base::reserved(total, "walks")?;
    visited.resize(total, 0);
    let (mut block, mut ids, mut root_ids) = (Targets::none(), Vec::new(), Vec::new());
    for (first, roots) in (0..).step_by(BLOCK).zip(roots.chunks(BLOCK)) {
        let mut at = [0; BLOCK];
        at[..roots.len()].copy_from_slice(roots);
        for hop in 0..=length {
            for (walk, &row) in at[..roots.len()].iter().enumerate() {
                visited[(first + walk) * (length + 1) + hop] = row;
            }
            if hop == length {
                break;
            }
            ids.clear();
            block.locate(topology, &at[..roots.len()]);
            block.look_up(topology, 0, &mut ids)?;
            if hop == 0 {
                root_ids.clone_from(&ids);
            }
            let mut edges = [None; BLOCK];
            for (walk, (target, part)) in block.iter(topology).enumerate().filter(|(_, (t, _))| t.degree > 0)
            {
                let draws = keys[hop].of_walk((first + walk) as u64, root_ids[walk]);
                let edge = target.first + draws.below(0, target.degree as u64) as usize;
                part.indices.prefetch(edge);
                edges[walk] = Some(edge);
            }
            for ((row, edge), (_, part)) in at.iter_mut().zip(edges).zip(block.iter(topology)) {
                if let Some(edge) = edge {
                    *row = part.row_of(part.source(edge)?)?;
                }
            }
            check()?;
        }
    }
    Ok(visited)
}
