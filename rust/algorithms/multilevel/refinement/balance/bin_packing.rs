//! The last resort for parts of different sizes, or with fixed vertices: vertices are dealt by their weight.
//!
//! Fixed vertices are in their parts from the beginning. The others follow by descending weight, each into
//! the part that uses the smallest share of its cap on the weight, among those with slack for a vertex. If
//! all weights are 0 or 1, and the fixed vertices keep the caps, the result also keeps them: while a part can
//! take a vertex of weight 1 under both caps, the one with the smallest share can. The caps of a part on
//! vertices and on weight are its shares, so the smaller ones of both add up to at least all vertices of
//! weight 1.
//!
//! **Memory.** 8 bytes per vertex and 16 per part.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::algorithms::multilevel::model::{Assignment, Problem, copied};
use crate::algorithms::multilevel::refinement::move_queue::OrderedF64;
use crate::base::{Result, reserved};
use crate::capacity::{Load, minus, plus};
use crate::exec::sort_by_key;

/// Vertices that are dealt between two polls of the cancel flag.
const STRIDE: usize = 1 << 12;

/// All vertices dealt by their weight under the bound `index`. Fixed vertices stay where they are.
pub(crate) fn deal<const D: usize>(
    problem: &Problem<D>,
    before: &Assignment<D>,
    index: usize,
) -> Result<Assignment<D>> {
    let &Problem { graph, caps, run, .. } = problem;
    let mut order = reserved(graph.len(), "order of the vertices")?;
    order.extend((0..graph.len() as u32).filter(|&v| graph.may_move(v)));
    run.begin("dealing", order.len() as u64);
    sort_by_key(&mut order, run, |&v| (Reverse(graph.weight(v)[index]), v));
    // Free vertices leave their parts before they are dealt.
    let mut dealt = problem.assignment(copied(&before.part_of)?)?;
    for &v in &order {
        let load = &mut dealt.loads[dealt.part_of[v as usize] as usize];
        *load = minus(*load, graph.weight(v));
    }
    let used = |loads: &[Load<D>], part: usize| {
        OrderedF64(loads[part][index] as f64 / caps[part][index].max(1) as f64)
    };
    let mut parts: BinaryHeap<Reverse<(OrderedF64, usize)>> =
        (0..caps.len()).map(|part| Reverse((used(&dealt.loads, part), part))).collect();
    for vertices in order.chunks(STRIDE) {
        for &v in vertices {
            while parts.peek().is_some_and(|Reverse((_, part))| dealt.loads[*part][0] >= caps[*part][0]) {
                parts.pop();
            }
            let Some(mut first) = parts.peek_mut() else { continue };
            let part = first.0.1;
            dealt.part_of[v as usize] = part as u32;
            dealt.loads[part] = plus(dealt.loads[part], graph.weight(v));
            first.0.0 = used(&dealt.loads, part);
        }
        run.advance(vertices.len() as u64)?;
    }
    Ok(dealt)
}
