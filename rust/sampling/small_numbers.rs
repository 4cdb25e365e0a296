//! A bit for each vertex of a part: whether its number in a hop of LABOR is small.
//!
//! On R-MAT with a million vertices, a batch looks up seven million bits. So this is written for AVX2, too.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::part::Part;
use super::random::HopKey;
use crate::base::{Result, on_avx2, reserved};

/// A small number has this many zeros at its front.
pub(crate) const ZEROS: u32 = 6;

/// In-edges or vertices that are looked up together.
pub(crate) const CHUNK: usize = 1024;

/// One bit per local vertex.
#[derive(Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u32>,
    len: usize,
}

/// Places within a chunk.
pub(crate) type Found = [u16; CHUNK];

impl Bits {
    /// Computes those of all vertices of `part`.
    pub(crate) fn compute(&mut self, key: HopKey, part: &Part) -> Result<()> {
        let n = part.num_local();
        if self.len != n {
            self.words = reserved(n.div_ceil(32), "table of a sampler's worker")?;
            self.words.resize(n.div_ceil(32), 0);
            self.len = n;
        }
        let (mut ids, mut small) = ([0; CHUNK], [0; CHUNK]);
        for (first, words) in (0..n).step_by(CHUNK).zip(self.words.chunks_mut(CHUNK / 32)) {
            (0..CHUNK).step_by(8).for_each(|next| part.prefetch_id((first + CHUNK + next) as u32));
            part.copy_ids(first, &mut ids[..CHUNK.min(n - first)])?;
            are_small(key, &ids, &mut small);
            let bytes: &mut [[u8; 4]] = bytemuck::cast_slice_mut(words);
            for (byte, small) in bytes.as_flattened_mut().iter_mut().zip(small.as_chunks::<8>().0) {
                // Collects the lowest bits of eight bytes in the highest byte.
                *byte = (u64::from_le_bytes(*small).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
            }
        }
        Ok(())
    }

    /// The places in `sources`, at most a chunk of local ids, of those with small numbers. None if one is of no vertex.
    pub(crate) fn find<'a>(&self, sources: &[i32], found: &'a mut Found) -> Option<&'a [u16]> {
        if greatest(sources) as usize >= self.len {
            return None;
        }
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what the function needs. All local ids are below `len`.
            return Some(unsafe { self.find_with_avx2(sources, found) });
        }
        Some(self.find_from(0, 0, sources, found))
    }

    /// Finds places from `first` on, behind `count` that were found.
    #[inline(always)]
    fn find_from<'a>(
        &self,
        first: usize,
        mut count: usize,
        sources: &[i32],
        found: &'a mut Found,
    ) -> &'a [u16] {
        for (index, &local) in sources.iter().enumerate().skip(first) {
            found[count] = index as u16;
            count += (self.words[local as usize / 32] >> (local % 32) & 1) as usize;
        }
        &found[..count]
    }

    /// Eight at a time: most of them have no small number, and a branch skips them.
    ///
    /// # Safety
    /// Every local id has a bit.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn find_with_avx2<'a>(&self, sources: &[i32], found: &'a mut Found) -> &'a [u16] {
        let mut count = 0;
        let (eights, rest) = sources.as_chunks::<8>();
        for (first, locals) in (0..).step_by(8).zip(eights) {
            // SAFETY: eight local ids, and the words that hold their bits, as the caller vouches.
            let (locals, words) = unsafe {
                let locals = _mm256_loadu_si256(locals.as_ptr().cast());
                (
                    locals,
                    _mm256_i32gather_epi32::<4>(self.words.as_ptr().cast(), _mm256_srli_epi32::<5>(locals)),
                )
            };
            // The bit of each becomes the sign.
            let shifts = _mm256_andnot_si256(locals, _mm256_set1_epi32(31));
            let mut small = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_sllv_epi32(words, shifts)));
            while small != 0 {
                found[count] = first + small.trailing_zeros() as u16;
                count += 1;
                small &= small - 1;
            }
        }
        self.find_from(sources.len() - rest.len(), count, sources, found)
    }
}

/// The greatest local id, where those that are negative count as greater than others.
fn greatest(sources: &[i32]) -> u32 {
    on_avx2!(|sources: &[i32]| -> u32 {
        sources.iter().fold(0, |greatest, &local| greatest.max(local as u32))
    })
}

/// Whether the numbers of vertices are small, as 1 or 0.
fn are_small(key: HopKey, ids: &[i64; CHUNK], small: &mut [u8; CHUNK]) {
    on_avx2!(|key: HopKey, ids: &[i64; CHUNK], small: &mut [u8; CHUNK]| -> () {
        let is_small = |id| u8::from(key.bits(id) >> (u32::BITS - ZEROS) == 0);
        small.iter_mut().zip(ids).for_each(|(small, &id)| *small = is_small(id));
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Random;

    #[test]
    fn eight_at_a_time_or_one_the_same_are_found() {
        let mut random = Random::new(1, 2);
        let bits = Bits { words: (0..40).map(|_| random.next_u64() as u32).collect(), len: 1270 };
        for count in [1, 7, 8, 9, 64, 1001, CHUNK] {
            let sources: Vec<i32> = (0..count).map(|_| random.below(1270) as i32).collect();
            let (mut found, mut expected) = ([0; CHUNK], [0; CHUNK]);
            let found = bits.find(&sources, &mut found).unwrap();
            assert_eq!(found, bits.find_from(0, 0, &sources, &mut expected));
            assert!(found.iter().all(|&place| {
                let local = sources[usize::from(place)];
                bits.words[local as usize / 32] >> (local % 32) & 1 == 1
            }));
        }
        for wrong in [1270, -1, i32::MIN] {
            assert_eq!(bits.find(&[0, wrong, 3], &mut [0; CHUNK]), None);
        }
    }
}
