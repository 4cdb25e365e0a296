//! The part of the largest score, exactly.
//!
//! The score of part p is `(g_u if u is in p) + (g_v if v is in p) + term of p`, added in this order in f64; ties go to
//! the lowest part.

use super::loads::Loads;
use crate::incidence;

/// A way to find that part; one for few parts and one for many.
pub trait Search {
    /// The part, from the rows of both ends and what being there is worth; `None` if no part may take a record.
    fn best(loads: &Loads, rows: [&[u64]; 2], gains: [f64; 2]) -> Option<u32>;
}

/// Scores all parts, up to `4 * QUADS` and 64 of them, four at a time and without a branch.
#[derive(Debug)]
pub struct Dense<const QUADS: usize>;

/// Of each nibble, all ones where a bit is set.
const MASKS: [[u64; 4]; 16] = {
    let mut masks = [[0; 4]; 16];
    let mut nibble = 0;
    while nibble < 16 {
        let mut bit = 0;
        while bit < 4 {
            masks[nibble][bit] = if nibble >> bit & 1 == 1 { u64::MAX } else { 0 };
            bit += 1;
        }
        nibble += 1;
    }
    masks
};

impl<const QUADS: usize> Search for Dense<QUADS> {
    #[inline(always)]
    fn best(loads: &Loads, [row_u, row_v]: [&[u64]; 2], [gain_u, gain_v]: [f64; 2]) -> Option<u32> {
        let (row_u, row_v) = (row_u[0], row_v[0]);
        let (bits_u, bits_v) = (gain_u.to_bits(), gain_v.to_bits());
        let terms = &loads.terms()[..4 * QUADS];
        let mut most = [f64::NEG_INFINITY; 4];
        let mut quads = [0.0; 4];
        for quad in 0..QUADS {
            let in_u = &MASKS[(row_u >> (4 * quad) & 15) as usize];
            let in_v = &MASKS[(row_v >> (4 * quad) & 15) as usize];
            for lane in 0..4 {
                let gain = f64::from_bits(bits_u & in_u[lane]) + f64::from_bits(bits_v & in_v[lane]);
                let score = gain + terms[4 * quad + lane];
                let better = score > most[lane];
                most[lane] = if better { score } else { most[lane] };
                quads[lane] = if better { quad as f64 } else { quads[lane] };
            }
        }
        let part = |lane: usize| 4.0 * quads[lane] + lane as f64;
        let better = |a: (f64, f64), b: (f64, f64)| {
            if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a }
        };
        let left = better((most[0], part(0)), (most[1], part(1)));
        let right = better((most[2], part(2)), (most[3], part(3)));
        let (score, part) = better(left, right);
        (score > f64::NEG_INFINITY).then_some(part as u32)
    }
}

/// Scores the parts of both ends, and the best balanced of all: no other part can score more.
#[derive(Debug)]
pub struct Sparse;

impl Search for Sparse {
    #[inline(always)]
    fn best(loads: &Loads, [row_u, row_v]: [&[u64]; 2], [gain_u, gain_v]: [f64; 2]) -> Option<u32> {
        let terms = loads.terms();
        let mut part = loads.best_balanced();
        let mut most = terms[part as usize];
        for (index, (&in_u, &in_v)) in row_u.iter().zip(row_v).enumerate() {
            for bit in incidence::parts(&[in_u | in_v]) {
                let gain = (if in_u >> bit & 1 == 1 { gain_u } else { 0.0 })
                    + (if in_v >> bit & 1 == 1 { gain_v } else { 0.0 });
                let candidate = 64 * index as u32 + bit;
                let score = gain + terms[candidate as usize];
                if score > most || (score == most && candidate < part) {
                    (most, part) = (score, candidate);
                }
            }
        }
        (most > f64::NEG_INFINITY).then_some(part)
    }
}
