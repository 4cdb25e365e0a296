//! Filling: vertices leave parts with more than a given number of them for parts with fewer.
//!
//! With the cap on vertices as that number, parts above the cap come to keep it. With the least number of vertices of a
//! part, parts below it get enough. In both cases it is done when one of the two kinds of parts is gone.
//!
//! The vertex that costs least moves first. What costs most is a rise above a cap, first of the bound that comes first.
//! Then the cut counts. A cost is counted again when its turn comes. If it has grown, the vertex waits for its new
//! turn. The neighbours of a vertex that moved get new turns, since to follow it costs less: so an empty part grows
//! along the edges.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::assignment::{Assignment, Connections};
use super::graph::Graph;
use crate::base::{Result, Run, reserved};
use crate::capacity::{Load, plus};

/// Parts with the fewest vertices that are tried beside those with a connection.
const EMPTIEST: usize = 4;
/// Vertices with more neighbours get no new turn when one of these moves.
const HUB: usize = 256;

/// What a move costs: the rise above each cap, and the loss for the cut.
type Cost<const D: usize> = (Load<D>, i64);

/// Moves vertices from parts with more than `mark` of them to parts with fewer, until there are none of one kind.
pub fn fill<const D: usize>(
    graph: &Graph<D>,
    assignment: &mut Assignment<D>,
    mark: u64,
    caps: Load<D>,
    run: &Run,
) -> Result<()> {
    let vertices = |part: u32| assignment.loads[part as usize][0];
    let parts = 0..assignment.loads.len() as u32;
    let mut takers: Vec<u32> = parts.clone().filter(|&part| vertices(part) < mark).collect();
    if takers.is_empty() || !parts.clone().any(|part| vertices(part) > mark) {
        return Ok(());
    }
    takers.sort_by_key(|&part| (vertices(part), part));
    let connections = Connections::new(assignment.loads.len());
    let mut filling = Filling { graph, assignment, mark, caps, takers: &takers, connections };
    let mut queue = BinaryHeap::from(reserved(graph.len(), "vertices that may move")?);
    run.each(graph.len(), |v| queue.extend(filling.best(v).map(|(cost, _)| Reverse((cost, v)))))?;
    let mut work = 0;
    while let Some(Reverse((cost, v))) = queue.pop() {
        let Some((now, to)) = filling.best(v) else { continue };
        if now > cost {
            queue.push(Reverse((now, v)));
        } else {
            filling.assignment.shift(v, graph.weight(v), to);
            graph.each(v, |u, _| {
                if graph.degree(u) <= HUB {
                    work += graph.degree(u);
                    queue.extend(filling.best(u).map(|(cost, _)| Reverse((cost, u))));
                }
            });
        }
        work += graph.degree(v) + 1;
        if work > 1 << 14 {
            work = 0;
            run.check()?;
        }
    }
    Ok(())
}

struct Filling<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    assignment: &'a mut Assignment<D>,
    mark: u64,
    caps: Load<D>,
    /// Parts that had too few vertices, those with the fewest first.
    takers: &'a [u32],
    connections: Connections,
}

impl<const D: usize> Filling<'_, D> {
    /// The part that takes `v` at the least cost, if `v` may move.
    fn best(&mut self, v: u32) -> Option<(Cost<D>, u32)> {
        let Self { graph, assignment, mark, caps, takers, connections } = self;
        let (own, loads) = (assignment.part(v), &assignment.loads);
        if loads[own as usize][0] <= *mark {
            return None;
        }
        let takes = |part: u32| loads[part as usize][0] < *mark;
        while let [first, rest @ ..] = takers
            && !takes(*first)
        {
            *takers = rest;
        }
        connections.count(graph, assignment, v);
        let weight = graph.weight(v);
        let cost = |part: u32| {
            let before = loads[part as usize];
            let after = plus(before, weight);
            let rise =
                std::array::from_fn(|bound| after[bound].saturating_sub(caps[bound].max(before[bound])));
            let loss = i64::from(connections.to(own)) - i64::from(connections.to(part));
            ((rise, loss), before[0], part)
        };
        let connected = connections.iter().map(|(part, _)| part).filter(|&part| takes(part));
        let emptiest = takers.iter().copied().filter(|&part| takes(part)).take(EMPTIEST);
        connected.chain(emptiest).map(cost).min().map(|(cost, _, part)| (cost, part))
    }
}
