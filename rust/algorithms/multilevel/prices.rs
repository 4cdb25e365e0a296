//! What a cut edge costs: 1 between parts of the same machine, and more between machines.
//!
//! The gain of a move is the *connection* of the vertex to the part it enters, less its connection to the
//! part it leaves. Without prices, the connection to a part is the weight of the edges to it. With prices,
//! the weight of the edges to all parts of the same machine is added once for each unit that an edge between
//! machines costs more. So algorithms that take differences of connections work under prices, too. The cut is
//! then the cost of all cut edges.

use std::ops::Range;

/// The machines of the parts, and what an edge between two of them costs.
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

    /// What an edge between machines costs.
    pub fn most(&self) -> u32 {
        1 + self.extra
    }

    /// What an edge between two parts costs.
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

    /// Turns the weights of edges to the first `count` of `parts` into connections, and lists all other parts
    /// of their machines behind them.
    pub fn apply(&self, sums: &mut [u32], parts: &mut [u32], count: &mut usize, seen: &mut Vec<u32>) {
        seen.resize(self.parts.len(), 0);
        let mut machines: Vec<u32> = Vec::new();
        for &part in &parts[..*count] {
            let machine = self.machine_of[part as usize];
            if seen[machine as usize] == 0 {
                machines.push(machine);
            }
            seen[machine as usize] += sums[part as usize];
        }
        for machine in machines {
            let more = std::mem::take(&mut seen[machine as usize]) * self.extra;
            for part in self.parts[machine as usize].clone() {
                if sums[part as usize] == 0 {
                    parts[*count] = part;
                    *count += 1;
                }
                sums[part as usize] += more;
            }
        }
    }
}
