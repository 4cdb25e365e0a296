//! Filling: vertices leave parts with more than a given number of them for parts with fewer.
//!
//! With the cap on vertices as that number, parts above the cap come to keep it. With the least number of
//! vertices of a part, parts below it get enough. In both cases it is done when one of the two kinds of parts
//! is gone.
//!
//! The vertex that costs least moves first. What costs most is a rise above a cap, first of the bound that
//! comes first. Then the cut counts. The cost of a queue entry is computed again when it is popped. If it has
//! grown, the vertex is queued again. The neighbours of a vertex that moved are queued again, since it costs
//! less to follow it: so an empty part grows along the edges.
//!
//! **Memory.** 4 bytes per vertex, and a queue of one and a quarter entries per vertex. Of the entries of a
//! vertex only the last one is valid. When the queue is full, the others are dropped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::assignment::{Assignment, Connections, Quality};
use super::graph::Graph;
use super::problem::Problem;
use super::refiner::{Refiner, Size};
use crate::base::{Buffer, Result, Run, reserved};
use crate::capacity::{Load, plus};

/// Parts with the fewest vertices that are tried beside those with a connection.
const EMPTIEST: usize = 4;
/// Vertices with more neighbours are not queued again when one of these moves.
const HUB: usize = 256;

/// What a move costs: the rise above each cap, and the loss for the cut.
type Cost<const D: usize> = (Load<D>, i64);

/// Gives every part its least number of vertices.
pub(crate) struct Fill;

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

/// Moves vertices from parts with more than their mark of them to parts with fewer, until there are none of
/// one kind. Without marks there is nothing to do.
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
    takers.sort_by_key(|&part| (vertices(part), part));
    let connections = Connections::new(assignment.loads.len());
    let mut filling = Filling { graph, assignment, marks, caps, takers: &takers, connections };
    let mut queue = Queue::new(graph.len())?;
    run.each(graph.len(), |v| {
        if let Some((cost, _)) = filling.best(v) {
            queue.push(cost, v);
        }
    })?;
    let mut work = 0;
    while let Some((cost, v)) = queue.pop() {
        let Some((now, to)) = filling.best(v) else { continue };
        if now > cost {
            queue.push(now, v);
        } else {
            filling.assignment.shift(v, graph.weight(v), to);
            graph.each(v, |u, _| {
                if graph.degree(u) <= HUB {
                    work += graph.degree(u);
                    if let Some((cost, _)) = filling.best(u) {
                        queue.push(cost, u);
                    }
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

/// A priority queue of vertices, the least cost first. Its memory is allocated at once.
struct Queue<C> {
    heap: BinaryHeap<Reverse<(C, u32, u32)>>,
    /// Number of the last entry of each vertex, which is the valid one.
    last: Buffer<u32>,
    /// Entries at most.
    capacity: usize,
}

impl<C: Ord> Queue<C> {
    fn new(n: usize) -> Result<Self> {
        let capacity = n + n / 4 + 1;
        let heap = BinaryHeap::from(reserved(capacity, "vertices that may move")?);
        Ok(Self { heap, last: Buffer::zeroed(n, "queue entries of vertices")?, capacity })
    }

    /// Queues a vertex. The entry replaces the one that the vertex has.
    fn push(&mut self, cost: C, v: u32) {
        let Self { heap, last, capacity } = self;
        let number = last[v as usize].wrapping_add(1);
        last[v as usize] = number;
        if heap.len() == *capacity {
            // At most one entry of each vertex is left.
            heap.retain(|Reverse((_, v, number))| last[*v as usize] == *number);
        }
        heap.push(Reverse((cost, v, number)));
    }

    /// The next valid entry.
    fn pop(&mut self) -> Option<(C, u32)> {
        let last = &self.last;
        std::iter::from_fn(|| self.heap.pop())
            .map(|Reverse(entry)| entry)
            .find(|&(_, v, number)| last[v as usize] == number)
            .map(|(cost, v, _)| (cost, v))
    }
}

struct Filling<'a, const D: usize> {
    graph: &'a Graph<'a, D>,
    assignment: &'a mut Assignment<D>,
    marks: &'a [u64],
    caps: &'a [Load<D>],
    /// Parts that had too few vertices, those with the fewest first.
    takers: &'a [u32],
    connections: Connections,
}

impl<const D: usize> Filling<'_, D> {
    /// The part that takes `v` at the least cost, if `v` may move.
    fn best(&mut self, v: u32) -> Option<(Cost<D>, u32)> {
        let Self { graph, assignment, marks, caps, takers, connections } = self;
        let (own, loads) = (assignment.part(v), &assignment.loads);
        if loads[own as usize][0] <= marks[own as usize] {
            return None;
        }
        let takes = |part: u32| loads[part as usize][0] < marks[part as usize];
        while let [first, rest @ ..] = takers
            && !takes(*first)
        {
            *takers = rest;
        }
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
        let emptiest = takers.iter().copied().filter(|&part| takes(part)).take(EMPTIEST);
        connected.chain(emptiest).map(cost).min().map(|(cost, _, part)| (cost, part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_takes_no_more_memory_than_at_first_and_the_last_entry_of_a_vertex_counts() {
        let n = 100_u32;
        let mut queue = Queue::new(n as usize).unwrap();
        let before = queue.heap.capacity();
        assert!(before <= 2 * n as usize, "{before}");
        let cost = |round: u32, v: u32| (u64::from(v) * 7919 + u64::from(round) * 104_729) % 1009;
        for round in 0..50 {
            (0..n).for_each(|v| queue.push(cost(round, v), v));
        }
        assert_eq!(queue.heap.capacity(), before);
        let mut expected: Vec<(u64, u32)> = (0..n).map(|v| (cost(49, v), v)).collect();
        expected.sort();
        assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), expected);
    }
}
