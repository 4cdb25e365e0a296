//! The part of the largest score, exactly.
//!
//! The score of part p is `(g_u if u is in p) + (g_v if v is in p) + term of p`, added in this order in f64.
//! Ties go to the lowest part.

use super::loads::EdgeLoads;
use crate::sets::bits::ones;

/// A way to find that part: [`Dense`] for few parts, another for many.
pub(crate) trait Search: Copy {
    /// The part, from the rows of both ends and what being there is worth. `None` if no part may take a
    /// record.
    fn best(self, loads: &EdgeLoads, rows: [&[u64]; 2], gains: [f64; 2]) -> Option<u32>;
}

/// A way to score all parts of a word of the rows.
pub(crate) trait Block: Copy {
    /// The largest score, and the lowest part that has it, from the terms of the parts.
    fn best_of_word(self, terms: &[f64], words: [u64; 2], gains: [f64; 2]) -> (f64, u32);
}

impl<B: Block> Search for B {
    #[inline(always)]
    fn best(self, loads: &EdgeLoads, [row_u, row_v]: [&[u64]; 2], gains: [f64; 2]) -> Option<u32> {
        let (most, part) = self.best_of_word(loads.terms(), [row_u[0], row_v[0]], gains);
        (most > f64::NEG_INFINITY).then_some(part)
    }
}

/// Scores all parts, word by word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct All<B>(pub(super) B);

impl<B: Block> Search for All<B> {
    #[inline(always)]
    fn best(self, loads: &EdgeLoads, [row_u, row_v]: [&[u64]; 2], gains: [f64; 2]) -> Option<u32> {
        let (mut most, mut best) = (f64::NEG_INFINITY, 0);
        let words = row_u.iter().zip(row_v).zip(loads.terms().chunks_exact(64));
        for (((&u, &v), terms), first) in words.zip((0..).step_by(64)) {
            let (score, part) = self.0.best_of_word(terms, [u, v], gains);
            if score > most {
                (most, best) = (score, first + part);
            }
        }
        (most > f64::NEG_INFINITY).then_some(best)
    }
}

/// Scores `4 * QUADS` parts, four at a time and without a branch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dense<const QUADS: usize>;

/// For each nibble a mask for each of its bits: all ones where the bit is set.
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

impl<const QUADS: usize> Block for Dense<QUADS> {
    #[inline(always)]
    fn best_of_word(self, terms: &[f64], [row_u, row_v]: [u64; 2], [gain_u, gain_v]: [f64; 2]) -> (f64, u32) {
        let (bits_u, bits_v) = (gain_u.to_bits(), gain_v.to_bits());
        let terms = &terms[..4 * QUADS];
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
        (score, part as u32)
    }
}

/// Says that the processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// The only way to one.
    #[inline(always)]
    pub(crate) fn detected() -> Option<Self> {
        std::is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

/// Does what [`Dense`] does in registers of four.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wide<const QUADS: usize>(pub(super) Avx2);

#[cfg(target_arch = "x86_64")]
impl<const QUADS: usize> Block for Wide<QUADS> {
    #[inline(always)]
    fn best_of_word(self, terms: &[f64], [row_u, row_v]: [u64; 2], [gain_u, gain_v]: [f64; 2]) -> (f64, u32) {
        use std::arch::x86_64::*;
        let terms = &terms[..4 * QUADS];
        let (row_u, row_v) = (row_u as i64, row_v as i64);
        // SAFETY: as `Avx2` says, the processor has the instructions. Each load reads four of the `4 * QUADS`
        // terms. Measured: twice as fast on 32 parts as what the compiler makes of `Dense`.
        let (most, equal) = unsafe {
            let (row_u, row_v) = (_mm256_set1_epi64x(row_u), _mm256_set1_epi64x(row_v));
            let (gain_u, gain_v) = (_mm256_set1_pd(gain_u), _mm256_set1_pd(gain_v));
            let zero = _mm256_setzero_pd();
            let mut scores = [zero; QUADS];
            let mut most = _mm256_set1_pd(f64::NEG_INFINITY);
            for (quad, scores) in scores.iter_mut().enumerate() {
                // The bit of each part becomes the sign that the blend looks at.
                let top = 63 - 4 * quad as i64;
                let shifts = _mm256_set_epi64x(top - 3, top - 2, top - 1, top);
                let in_u = _mm256_castsi256_pd(_mm256_sllv_epi64(row_u, shifts));
                let in_v = _mm256_castsi256_pd(_mm256_sllv_epi64(row_v, shifts));
                let gain =
                    _mm256_add_pd(_mm256_blendv_pd(zero, gain_u, in_u), _mm256_blendv_pd(zero, gain_v, in_v));
                *scores = _mm256_add_pd(gain, _mm256_loadu_pd(terms.as_ptr().add(4 * quad)));
                most = _mm256_max_pd(most, *scores);
            }
            most = _mm256_max_pd(most, _mm256_permute2f128_pd::<1>(most, most));
            most = _mm256_max_pd(most, _mm256_permute_pd::<0b0101>(most));
            let mut equal = 0;
            for (quad, &scores) in scores.iter().enumerate() {
                let here = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_EQ_OQ>(scores, most));
                equal |= (here as u64) << (4 * quad);
            }
            (_mm256_cvtsd_f64(most), equal)
        };
        (most, equal.trailing_zeros())
    }
}

/// Scores the parts of both ends, and the best balanced of all: no other part can score more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sparse;

impl Search for Sparse {
    #[inline(always)]
    fn best(self, loads: &EdgeLoads, [row_u, row_v]: [&[u64]; 2], [gain_u, gain_v]: [f64; 2]) -> Option<u32> {
        let terms = loads.terms();
        let mut part = loads.best_balanced();
        let mut most = terms[part as usize];
        for (index, (&in_u, &in_v)) in row_u.iter().zip(row_v).enumerate() {
            for bit in ones(&[in_u | in_v]) {
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

/// The part of the largest score among those that both rows of `within` have, where every end in a part is
/// worth 1. `None` if none of them may take a record.
#[inline(always)]
pub(crate) fn best_common(loads: &EdgeLoads, within: [&[u64]; 2], rows: [&[u64]; 2]) -> Option<u32> {
    let (mut most, mut best) = (f64::NEG_INFINITY, None);
    for (word, (u, v)) in within[0].iter().zip(within[1]).enumerate() {
        for bit in ones(&[u & v]) {
            let part = 64 * word as u32 + bit;
            let ends = (rows[0][word] >> bit & 1) + (rows[1][word] >> bit & 1);
            let score = ends as f64 + loads.terms()[part as usize];
            if score > most {
                (most, best) = (score, Some(part));
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    /// The result that every way to score a word must find.
    fn oracle(terms: &[f64], words: [u64; 2], gains: [f64; 2]) -> (f64, u32) {
        let score = |part: usize| {
            let gain = |end: usize| if words[end] >> part & 1 == 1 { gains[end] } else { 0.0 };
            gain(0) + gain(1) + terms[part]
        };
        (0..terms.len()).fold((f64::NEG_INFINITY, 0), |best, part| {
            if score(part) > best.0 { (score(part), part as u32) } else { best }
        })
    }

    /// Compares the best of `4 * QUADS` parts with that of the oracle.
    fn compare_with_the_oracle<const QUADS: usize>() {
        let mut random = Random::new(0, QUADS as u64);
        for _ in 0..2000 {
            // Few values, so that many parts tie. Some take nothing.
            let term = |random: &mut Random| match random.below(4) {
                0 => f64::NEG_INFINITY,
                other => other as f64 / 2.0,
            };
            let terms: Vec<f64> = (0..4 * QUADS).map(|_| term(&mut random)).collect();
            let words = [random.next_u64() & random.next_u64(), random.next_u64() & random.next_u64()];
            let gains = [1.0 + random.unit(), 1.5];
            let expected = oracle(&terms, words, gains);
            if expected.0 > f64::NEG_INFINITY {
                assert_eq!(Dense::<QUADS>.best_of_word(&terms, words, gains), expected);
                #[cfg(target_arch = "x86_64")]
                if let Some(avx2) = Avx2::detected() {
                    assert_eq!(Wide::<QUADS>(avx2).best_of_word(&terms, words, gains), expected);
                }
            }
        }
    }

    #[test]
    fn portable_and_wide_scores_are_the_same() {
        compare_with_the_oracle::<2>();
        compare_with_the_oracle::<4>();
        compare_with_the_oracle::<8>();
        compare_with_the_oracle::<16>();
        #[cfg(target_arch = "x86_64")]
        if Avx2::detected().is_none() {
            eprintln!("no wide scores compared: this processor has no AVX2");
        }
    }
}
