//! The cost of a cut edge: 1 between parts of the same machine, and more between machines.
//!
//! The gain of a move is the *connection* of the vertex to the part it enters, less its connection to the
//! part it leaves. Without prices, the connection to a part is the weight of the edges to it. With prices,
//! the weight of the edges to all parts of the same machine is added once for each unit that an edge between
//! machines costs more. So algorithms that take differences of connections also work under prices. The cut is
//! then the cost of all cut edges.

use std::ops::Range;

use crate::base::{Error, Result};
use crate::sets::SparseSums;

/// Refuses machines whose parts are not `k` in all.
pub(crate) fn validate(machines: &[u32], k: u32) -> Result<()> {
    let sum: u64 = machines.iter().map(|&parts| u64::from(parts)).sum();
    if sum == u64::from(k) && !machines.contains(&0) {
        return Ok(());
    }
    let what =
        format!("{machines:?} are {sum} parts, but k is {k}. Use numbers of at least 1 whose sum is k");
    Err(Error::parameter("machines", what))
}
/// The machines of the parts, and the cost of an edge between two of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices {
    /// Machine of each part.
    machine_of: Vec<u32>,
    /// Parts of each machine.
    parts: Vec<Range<u32>>,
    /// By how much an edge between machines costs more than one within.
    extra: u32,
}

impl Prices {
    /// The prices for machines with these numbers of parts. An edge between machines costs `price`. The first
    /// parts are on the first machine.
    pub fn new(machines: &[u32], price: u32) -> Self {
        let (mut machine_of, mut parts) = (Vec::new(), Vec::new());
        for (machine, &count) in (0..).zip(machines) {
            let first = machine_of.len() as u32;
            parts.push(first..first + count);
            machine_of.extend((0..count).map(|_| machine));
        }
        Self { machine_of, parts, extra: price - 1 }
    }

    /// Machine of each part.
    pub fn machine_of(&self, part: u32) -> u32 {
        self.machine_of[part as usize]
    }

    /// Number of machines.
    pub fn machines(&self) -> u32 {
        self.parts.len() as u32
    }

    /// The cost of an edge between machines.
    pub fn most(&self) -> u32 {
        1 + self.extra
    }

    /// The cost of an edge between two parts.
    #[inline(always)]
    pub fn between(&self, one: u32, other: u32) -> u32 {
        let apart = self.machine_of[one as usize] != self.machine_of[other as usize];
        u32::from(one != other) + u32::from(apart) * self.extra
    }

    /// The gain of an edge to a vertex of `part` when its other end moves.
    #[inline(always)]
    pub fn gain(&self, part: u32, [from, to]: [u32; 2]) -> i64 {
        i64::from(self.between(part, from)) - i64::from(self.between(part, to))
    }

    /// The parts on the machine of `part`.
    #[inline(always)]
    pub fn around(&self, part: u32) -> Range<u32> {
        self.parts[self.machine_of[part as usize] as usize].clone()
    }

    /// Adds an edge to a vertex of `part` to the connections of its other end.
    #[inline(always)]
    pub fn connect(&self, row: &mut [u32], part: u32, weight: u32) {
        self.around(part).for_each(|near| row[near as usize] += weight * self.extra);
        row[part as usize] += weight;
    }

    /// Updates the connections of a vertex when its neighbour moves.
    #[inline(always)]
    pub fn shift(&self, row: &mut [u32], [from, to]: [u32; 2], weight: u32) {
        self.connect(row, to, weight);
        self.around(from).for_each(|near| row[near as usize] -= weight * self.extra);
        row[from as usize] -= weight;
    }

    /// Turns the weights of edges to each part into connections. `machines` is scratch space for a sum of
    /// each.
    pub(crate) fn apply(&self, connections: &mut SparseSums<u32>, machines: &mut SparseSums<u32>) {
        machines.clear();
        connections.iter().for_each(|(part, sum)| machines.add(self.machine_of(part), sum));
        for (machine, sum) in machines.iter() {
            self.parts[machine as usize].clone().for_each(|part| connections.add(part, sum * self.extra));
        }
    }
}
