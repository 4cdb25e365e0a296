//! The directed edges that records stand for, in the whole graph or in each relation.

use std::ops::Range;

use super::{Directedness, Record};
use crate::base::{Error, Result};

/// The directed edges that the records of a graph stand for.
#[derive(Debug, Clone)]
pub enum Directions {
    /// All records are read alike.
    All(Directedness),
    /// Each relation has a directedness of its own.
    ByRelation(Relations),
}

/// The relations of a graph: each is a range of records.
///
/// A directed edge has a number that says its relation. Record r of relation i is an edge r of number i. If
/// the relation has reverse edges, they are edges m + r of another number, or of the same.
#[derive(Debug, Clone)]
pub struct Relations {
    /// Where the records of each end.
    ends: Box<[u64]>,
    /// Number of the reverse edges of each. None if there are none.
    reverses: Box<[Option<u16>]>,
}

impl Relations {
    /// The relations, with their number of records and the number of their reverse edges: `m` records in all.
    pub fn new(relations: &[(u64, Option<u16>)], m: u64) -> Result<Self> {
        let mut end = 0_u64;
        let ends: Box<[u64]> = relations
            .iter()
            .map(|&(records, _)| {
                end = end.saturating_add(records);
                end
            })
            .collect();
        if end != m || ends.is_empty() {
            let text = format!("{end} records in {} relations, but the graph has {m}", ends.len());
            return Err(Error::parameter("relations", text));
        }
        Ok(Self { ends, reverses: relations.iter().map(|&(_, reverse)| reverse).collect() })
    }

    /// Number of records.
    fn m(&self) -> u64 {
        self.ends[self.ends.len() - 1]
    }

    /// The relation of a record.
    #[inline(always)]
    fn at(&self, record: u64) -> usize {
        self.ends.partition_point(|&end| end <= record).min(self.ends.len() - 1)
    }

    #[inline(always)]
    pub(crate) fn reverses(&self, id: u64, [u, v]: Record) -> bool {
        let relation = self.at(id);
        // The reverse of a loop would be the same edge. In a relation of its own it is another one.
        self.reverses[relation].is_some_and(|number| u != v || usize::from(number) != relation)
    }

    /// The number of a directed edge.
    #[inline]
    pub(crate) fn number(&self, id: u64) -> u16 {
        match id.checked_sub(self.m()) {
            None => self.at(id) as u16,
            Some(record) => {
                let relation = self.at(record);
                self.reverses[relation].unwrap_or(relation as u16)
            }
        }
    }

    /// All relation numbers, including those of reverse edges, are below this.
    pub fn num_numbers(&self) -> usize {
        self.reverses
            .iter()
            .flatten()
            .map(|&number| usize::from(number) + 1)
            .fold(self.ends.len(), usize::max)
    }

    /// The records of whose edges some have a number, and whether those in their direction do, and those
    /// against it.
    pub(crate) fn of_number(&self, number: usize) -> (Range<u64>, [bool; 2]) {
        let reversed = |relation: usize| self.reverses[relation].map(usize::from) == Some(number);
        let (relation, forward) = match number < self.ends.len() {
            true => (Some(number), true),
            false => ((0..self.ends.len()).find(|&relation| reversed(relation)), false),
        };
        let Some(relation) = relation else { return (0..0, [false; 2]) };
        let first = if relation == 0 { 0 } else { self.ends[relation - 1] };
        (first..self.ends[relation], [forward, reversed(relation)])
    }

    /// Whether a directed edge is of a number that is no relation of records. These numbers are the largest.
    #[inline]
    pub(crate) fn is_behind(&self, id: u64) -> bool {
        id >= self.m() && usize::from(self.number(id)) >= self.ends.len()
    }

    /// Whether there are such edges.
    pub(crate) fn some_behind(&self) -> bool {
        self.reverses.iter().flatten().any(|&number| usize::from(number) >= self.ends.len())
    }

    /// Whether the numbers fit a byte.
    pub(crate) fn narrow(&self) -> bool {
        let largest = self.reverses.iter().flatten().copied().max().unwrap_or(0);
        usize::from(largest).max(self.ends.len() - 1) <= usize::from(u8::MAX)
    }
}

impl Directions {
    /// Most directed edges that `m` records make.
    pub(crate) fn most_edges(&self, m: u64) -> u64 {
        match self {
            Self::All(directedness) => directedness.most_edges(m),
            Self::ByRelation(relations) => {
                let reversed = relations.reverses.iter().any(Option::is_some);
                if reversed { m.saturating_mul(2) } else { m }
            }
        }
    }

    /// Whether the record is also an edge from its second vertex to its first.
    #[inline(always)]
    pub(crate) fn reverses(&self, id: u64, record: Record) -> bool {
        match self {
            Self::All(directedness) => directedness.reverses(record),
            Self::ByRelation(relations) => relations.reverses(id, record),
        }
    }

    /// The relations, if records are read by them.
    pub(crate) fn relations(&self) -> Option<&Relations> {
        match self {
            Self::All(_) => None,
            Self::ByRelation(relations) => Some(relations),
        }
    }
}

impl From<Directedness> for Directions {
    fn from(directedness: Directedness) -> Self {
        Self::All(directedness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_have_the_numbers_of_their_relations() {
        // Empty, merged, of its own, none.
        let given = [(0, Some(4)), (2, Some(1)), (3, Some(5)), (1, None)];
        let relations = Relations::new(&given, 6).unwrap();
        let numbers: Vec<u16> = (0..12).map(|id| relations.number(id)).collect();
        assert_eq!(numbers, [1, 1, 2, 2, 2, 3, 1, 1, 5, 5, 5, 3]);
        let behind: Vec<bool> = (0..12).map(|id| relations.is_behind(id)).collect();
        assert_eq!(behind, [[false; 8].as_slice(), &[true; 3], &[false]].concat());
        assert!(relations.some_behind() && relations.narrow());
        assert_eq!(relations.num_numbers(), 6);
        let of = [(0..0, [true, false]), (0..2, [true, true]), (2..5, [true, false]), (5..6, [true, false])];
        let behind = [(0..0, [false, true]), (2..5, [false, true]), (0..0, [false, false])];
        let expected = of.into_iter().chain(behind);
        assert!(expected.enumerate().all(|(number, expected)| relations.of_number(number) == expected));
        let directions = Directions::ByRelation(relations);
        let loops: Vec<bool> = (0..6).map(|id| directions.reverses(id, [7, 7])).collect();
        assert_eq!(loops, [false, false, true, true, true, false]);
        let edges: Vec<bool> = (0..6).map(|id| directions.reverses(id, [7, 8])).collect();
        assert_eq!(edges, [true, true, true, true, true, false]);
        assert_eq!(directions.most_edges(6), 12);
    }

    #[test]
    fn relations_that_do_not_add_up_are_refused() {
        assert!(Relations::new(&[(2, None)], 3).is_err());
        assert!(Relations::new(&[], 0).is_err());
        let many: Vec<(u64, Option<u16>)> = (0..200).map(|index| (0, Some(200 + index))).collect();
        assert!(!Relations::new(&many, 0).unwrap().narrow());
    }
}
