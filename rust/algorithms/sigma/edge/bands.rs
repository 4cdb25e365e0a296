//! The order in which SIGMA's edge mode streams: bands of records, by the lower degree of their ends.
//!
//! A record of two hubs makes new replicas wherever it goes until the hubs are everywhere they are wanted; a record of an
//! end of low degree says where that is. So the latter come first. On the graphs of the tests eight bands give 2 to 20 %
//! fewer replicas than the order of the file, and all but 1 or 2 % of what a complete sort gives.
//!
//! **Bounds.** Were the ends of records independent, a share of `1 - (1 - f)^2` of them would have an end among the
//! vertices of the lowest degrees that hold the share f of the sum of all degrees. So bound i of B is the least degree
//! where `f >= 1 - sqrt(1 - i / B)`. Nothing but the degrees is needed, and equal sizes are not.

use crate::algorithms::edge_streams::choose;
use crate::base::NONE;
use crate::base::error::Result;
use crate::base::run::Run;
use crate::edges::Record;
use crate::partition::edge_parts::width;

/// Vertices between two looks at the cancel flag.
const STRIDE: usize = 1 << 16;
/// Degrees share a slot with those that agree in their highest bits: the first, and this many after it.
const BITS: u32 = 4;

/// Bands by lower degree, and how records are marked with them while their part is open.
#[derive(Debug)]
pub struct Bands {
    /// The first slot of degrees of each band but the first.
    bounds: Vec<u32>,
    /// The mark of the first band, if marks fit beside the parts in what parts are stored as.
    first_mark: Option<u32>,
}

impl Bands {
    /// `count` bands (1 or more) of a graph with these degrees, for `k` parts.
    pub fn new(degrees: &[u32], count: u32, k: u32, run: &Run) -> Result<Self> {
        let mut volumes = vec![0_u64; slot(u32::MAX) as usize + 1];
        for degrees in degrees.chunks(STRIDE) {
            degrees.iter().for_each(|&degree| volumes[slot(degree) as usize] += u64::from(degree));
            run.check()?;
        }
        let total = volumes.iter().sum::<u64>() as f64;
        let (mut bounds, mut below) = (Vec::new(), 0);
        for (volume, next) in volumes.iter().zip(1..) {
            below += volume;
            let share = below as f64 / total;
            while (bounds.len() as u32) < count - 1
                && share >= 1.0 - (1.0 - (bounds.len() + 1) as f64 / f64::from(count)).sqrt()
            {
                bounds.push(next);
            }
        }
        let highest = (1_u64 << (8 * width(k) - u64::from(width(k) > 1))) - 1;
        let first_mark = (u64::from(k) + u64::from(count) <= highest).then_some(k);
        Ok(Self { bounds, first_mark })
    }

    /// Number of bands.
    pub fn count(&self) -> u32 {
        self.bounds.len() as u32 + 1
    }

    /// The mark of a record whose ends have these degrees.
    #[inline(always)]
    pub fn mark(&self, degrees: [u32; 2]) -> u32 {
        self.first_mark.map_or(NONE, |first| first + self.of(degrees))
    }

    /// Lists, of the records with these marks, those of `band`.
    pub fn members(
        &self,
        band: u32,
        records: &[Record],
        marks: &[u32],
        degrees: &[u32],
        chosen: &mut Vec<u32>,
    ) {
        let Some(first) = self.first_mark else {
            let belongs =
                |[u, v]: Record| u != v && self.of([degrees[u as usize], degrees[v as usize]]) == band;
            return choose(marks.len(), chosen, |index| marks[index] == NONE && belongs(records[index]));
        };
        choose(marks.len(), chosen, |index| marks[index] == first + band);
    }

    #[inline(always)]
    fn of(&self, degrees: [u32; 2]) -> u32 {
        let slot = slot(degrees[0].min(degrees[1]));
        self.bounds.iter().map(|&bound| u32::from(slot >= bound)).sum()
    }
}

/// A number that grows with the degree, by 1 for each of the lowest degrees and for every 6 % later.
#[inline(always)]
fn slot(degree: u32) -> u32 {
    let exponent = (31 - (degree | 1).leading_zeros()).saturating_sub(BITS);
    (exponent << BITS) + (degree >> exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_ascend_without_gaps() {
        let slots: Vec<u32> = (0..1 << 16).map(slot).collect();
        assert!(slots.windows(2).all(|pair| pair[1] == pair[0] || pair[1] == pair[0] + 1));
        assert_eq!(slots[..20], (0..20).collect::<Vec<u32>>());
        assert!(slot(u32::MAX) < 1 << 10);
    }

    #[test]
    fn bands_ascend_with_the_lower_degree_whether_marked_or_not() {
        let degrees: Vec<u32> = (0..1000).map(|v| v * v / 100).collect();
        let records: Vec<Record> = (1..1000).map(|v| [v, 999 - v % 7]).filter(|[u, v]| u != v).collect();
        let run = Run::new(Some(1), None).unwrap();
        for count in [1, 2, 8] {
            let found = [4, 255].map(|k| {
                let bands = Bands::new(&degrees, count, k, &run).unwrap();
                assert_eq!(bands.count(), count);
                assert_eq!(bands.first_mark, (k == 4).then_some(4));
                let ends = |&[u, v]: &Record| [degrees[u as usize], degrees[v as usize]];
                let marks: Vec<u32> = records.iter().map(|record| bands.mark(ends(record))).collect();
                let members = |band| {
                    let mut chosen = Vec::new();
                    bands.members(band, &records, &marks, &degrees, &mut chosen);
                    chosen
                };
                (0..count).map(members).collect::<Vec<Vec<u32>>>()
            });
            assert_eq!(found[0], found[1]);
            assert_eq!(found[0].concat().len(), records.len());
            let slot_of = |&index: &u32| {
                let [u, v] = records[index as usize];
                slot(degrees[u as usize].min(degrees[v as usize]))
            };
            let highest = |band: &Vec<u32>| band.iter().map(slot_of).max().unwrap();
            let lowest = |band: &Vec<u32>| band.iter().map(slot_of).min().unwrap();
            assert!(found[0].windows(2).all(|pair| highest(&pair[0]) < lowest(&pair[1])));
        }
    }
}
