//! Filling: vertices leave parts with more than a given number of them for parts with fewer.
//!
//! With the cap on vertices as that number, parts above the cap come to keep it. With the least number of
//! vertices of a part, parts below it get enough. In both cases it is done when one of the two kinds of parts
//! is gone.
//!
//! The vertex that costs least moves first. A rise above a cap costs most, and most of all under the first
//! bound. Then the cut counts. The neighbours of a vertex that moved are queued again ([`Moves`]), since it
//! costs less to follow it: so an empty part grows along the edges.
//!
//! **Memory.** 4 bytes per vertex, and a queue of one and a quarter entries per vertex.

use crate::algorithms::multilevel::model::{Assignment, BySlack, Connections, Graph, Problem, Quality, Size};
use crate::algorithms::multilevel::refinement::Refiner;
use crate::algorithms::multilevel::refinement::move_queue::Moves;
use crate::base::{Result, Run};
use crate::capacity::{Load, plus};

/// Parts with the fewest vertices that are tried beside those with a connection.
const EMPTIEST: usize = 4;
/// Vertices with more neighbours are not queued again when one of these moves.
const HUB: usize = 256;

/// The cost of a move: the rise above each cap, and the loss for the cut.
type Cost<const D: usize> = (Load<D>, i64);

/// Gives every part its least number of vertices.
pub struct Fill;

impl<const D: usize> Refiner<D> for Fill {
    fn applies(&self, problem: &Problem<D>, assignment: &Assignment<D>) -> bool {
        assignment.loads.iter().zip(problem.least).any(|(load, &least)| load[0] < least)
    }

    fn refine(&self, problem: &Problem<D>, assignment: &mut Assignment<D>) -> Result<Option<Quality>> {
        fill(problem.graph, assignment, problem.least, problem.caps, problem.run).map(|()| None)
    }

    /// The queue.
    fn memory(&self, size: &Size) -> u64 {
        size.n.saturating_mul(24 + 10 * size.bounds)
    }
}

/// Moves vertices from parts above their marks to parts below, until one of the two kinds of parts is gone.
/// Without marks there is nothing to do.
pub(crate) fn fill<const D: usize>(
    graph: &Graph<D>,
    assignment: &mut Assignment<D>,
    marks: &[u64],
    caps: &[Load<D>],
    run: &Run,
) -> Result<()> {
    let vertices = |part: u32| assignment.loads[part as usize][0];
    let parts = 0..marks.len() as u32;
    let mut takers: Vec<u32> = parts.clone().filter(|&part| vertices(part) < marks[part as usize]).collect();
    if takers.is_empty() || !parts.clone().any(|part| vertices(part) > marks[part as usize]) {
        return Ok(());
    }
    graph.require_undivided()?;
    takers.sort_by_key(|&part| (vertices(part), part));
    let takers = BySlack { parts: takers, first: 0 };
    let connections = Connections::new(assignment)?;
    let mut filling = Filling { graph, assignment, marks, caps, takers, connections };
    let mut moves = Moves::with_followers(graph.len(), run)?;
    run.each(graph.len(), |v| filling.queue(&mut moves, v))?;
    while let Some((cost, v)) = moves.next()? {
        let Some((now, to)) = filling.best(v) else { continue };
        moves.work += graph.degree(v);
        if now > cost {
            moves.push(now, v);
            continue;
        }
        filling.assignment.shift(v, graph.weight(v), to);
        graph.each(v, |u, _| {
            if graph.degree(u) <= HUB {
                moves.work += graph.degree(u);
                filling.queue(&mut moves, u);
            }
        });
    }
    Ok(())
}

struct Filling<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    assignment: &'a mut Assignment<D>,
    marks: &'a [u64],
    caps: &'a [Load<D>],
    /// Parts that had too few vertices, those with the fewest first.
    takers: BySlack,
    connections: Connections,
}

impl<const D: usize> Filling<'_, D> {
    /// Queues `v` if it may move.
    fn queue(&mut self, moves: &mut Moves<Cost<D>>, v: u32) {
        if let Some((cost, _)) = self.best(v) {
            moves.push(cost, v);
        }
    }

    /// The part that takes `v` at the least cost, if `v` may move.
    fn best(&mut self, v: u32) -> Option<(Cost<D>, u32)> {
        let Self { graph, assignment, marks, caps, takers, connections } = self;
        let (own, loads) = (assignment.part(v), &assignment.loads);
        if loads[own as usize][0] <= marks[own as usize] || !graph.may_move(v) {
            return None;
        }
        let takes = |part: u32| loads[part as usize][0] < marks[part as usize];
        takers.skip(|part| !takes(part as u32));
        connections.count(graph, assignment, v);
        let weight = graph.weight(v);
        let cost = |part: u32| {
            let (before, caps) = (loads[part as usize], caps[part as usize]);
            let after = plus(before, weight);
            let rise =
                std::array::from_fn(|bound| after[bound].saturating_sub(caps[bound].max(before[bound])));
            let loss = i64::from(connections.to(own)) - i64::from(connections.to(part));
            ((rise, loss), before[0], part)
        };
        let connected = connections.iter().map(|(part, _)| part).filter(|&part| takes(part));
        let emptiest = takers.iter().filter(|&part| takes(part)).take(EMPTIEST);
        connected.chain(emptiest).map(cost).min().map(|(cost, _, part)| (cost, part))
    }
}
