//! Exchanges of two vertices, where no move of one brings a load nearer to its cap.
//!
//! The vertex that leaves the part above its cap relieves it more than the one that comes burdens it. The
//! heaviest vertices of that part are tried with the lightest of all others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::assignment::{Assignment, Connections};
use super::graph::Graph;
use crate::base::{Result, Run};
use crate::capacity::{Load, excess, fits, minus, plus};

/// Vertices on each side that are tried.
const TRIED: usize = 64;

/// Exchanges a vertex of the part that exceeds its caps most with a vertex of another part, so that the
/// excess of the first falls and that of no other part rises. Returns whether it found such a pair.
pub(crate) fn exchange<const D: usize>(
    graph: &Graph<D>,
    assignment: &mut Assignment<D>,
    caps: &[Load<D>],
    run: &Run,
) -> Result<bool> {
    let over = |part: u32| excess(assignment.loads[part as usize], caps[part as usize]);
    let parts = (0..caps.len() as u32).filter(|&part| over(part) > 0.0);
    let Some(part) = parts.max_by(|&a, &b| over(a).total_cmp(&over(b)).then(b.cmp(&a))) else {
        return Ok(false);
    };
    let (load, cap) = (assignment.loads[part as usize], caps[part as usize]);
    let mut connections = Connections::new(assignment)?;
    for bound in (0..D).filter(|&bound| load[bound] > cap[bound]) {
        let heavy = top(graph, |v| assignment.part(v) == part, |weight| weight[bound], run)?;
        let light = top(graph, |v| assignment.part(v) != part, |weight| u64::MAX - weight[bound], run)?;
        // Edges are summed once for all partners: a hub has many, and the heaviest vertices are hubs.
        let gain_of = |connections: &Connections, from: u32, to: u32| {
            i64::from(connections.to(to)) - i64::from(connections.to(from))
        };
        let light: Vec<(u32, i64)> = light
            .into_iter()
            .map(|u| {
                connections.count(graph, assignment, u);
                (u, gain_of(&connections, assignment.part(u), part))
            })
            .collect();
        let mut best: Option<(i64, u32, u32)> = None;
        for &v in &heavy {
            connections.count(graph, assignment, v);
            let mut between: FxHashMap<u32, i64> = light.iter().map(|&(u, _)| (u, 0)).collect();
            graph.each(v, |u, w| {
                if let Some(joined) = between.get_mut(&u) {
                    *joined += i64::from(w);
                }
            });
            for &(u, gain_of_other) in &light {
                let other = assignment.part(u);
                let here = plus(minus(load, graph.weight(v)), graph.weight(u));
                let there = plus(minus(assignment.loads[other as usize], graph.weight(u)), graph.weight(v));
                if excess(here, cap) >= excess(load, cap) || !fits(there, caps[other as usize]) {
                    continue;
                }
                let gain = gain_of(&connections, part, other) + gain_of_other
                    - 2 * i64::from(assignment.price(part, other)) * between[&u];
                if best.is_none_or(|(most, ..)| gain > most) {
                    best = Some((gain, v, u));
                }
            }
            run.check()?;
        }
        if let Some((_, v, u)) = best {
            let other = assignment.part(u);
            assignment.shift(v, graph.weight(v), other);
            assignment.shift(u, graph.weight(u), part);
            return Ok(true);
        }
    }
    Ok(false)
}

/// The vertices with the largest keys.
fn top<const D: usize>(
    graph: &Graph<D>,
    eligible: impl Fn(u32) -> bool,
    key: impl Fn(Load<D>) -> u64,
    run: &Run,
) -> Result<Vec<u32>> {
    let mut least = BinaryHeap::new();
    run.each(graph.len(), |v| {
        if graph.may_move(v) && eligible(v) {
            least.push(Reverse((key(graph.weight(v)), Reverse(v))));
        }
        if least.len() > TRIED {
            least.pop();
        }
    })?;
    Ok(least.into_iter().map(|Reverse((_, Reverse(v)))| v).collect())
}
