//! Lists of neighbours in fewer bytes, in a file.
//!
//! **Format.** The list of a vertex is the number of its bytes, and its entries. Without weights these are
//! the difference of the first neighbour from the vertex (d as 2d, or as -2d - 1 below 0) and the gaps from
//! each neighbour to the next, which ascend. A number takes 1, 2, 3 or 5 bytes, and the lowest 2 bits say how
//! many. With weights, neighbours come in any order. Each entry is the difference from the neighbour before
//! it, in 2 to 5 bytes, and its weight, in 1 or 4. The lowest 3 bits say in how many.
//!
//! **Access.** There is a place for every 8 vertices. From there on, lists are skipped. So a vertex is found
//! as fast in a pass as at random.
//!
//! **Memory.** None. The lists, and 8 bytes for every 8 vertices, lie in two unnamed files.
//!
//! **Parallelism.** Counting the bytes of the lists, and then writing them, by ranges of vertices.
//!
//! **Why not varints of 7 bits per byte.** The first byte of a number says where it ends, without a branch.
//! So alternating short and long numbers cause no mispredictions. A pass that sums the connections of every
//! vertex to 8 parts, one thread, took per entry, with plain lists, with such varints and with this code:
//! 5.7, 9.9 and 7.2 ns on planted communities, 3.9, 7.2 and 5.6 ns on R-MAT (n = 2^20, m = 16 M both), with
//! 2.46 and 2.48 bytes per entry, and 1.73 and 1.80. With weights, on the first level of both, it was 4.7,
//! 8.4 and 6.6 ns, and 2.6, 7.8 and 4.6 ns, with 8 bytes, 3.88 and 3.93, and 8, 3.31 and 3.58. The lengths of
//! a number and of the weight behind it are then known together.
//!
//! **Source.** Gaps: Boldi and Vigna, "The WebGraph Framework I: Compression Techniques", WWW 2004. Lengths
//! before the numbers: Dean, "Challenges in Building Large-Scale Information Retrieval Systems", WSDM 2009.

use std::ops::Range;

use super::Csr;
use crate::base::{Buffer, Result, Run};
use crate::exec::{map, propose, share};

/// Vertices from one place to the next.
const BLOCK: usize = 8;
/// Vertices whose bytes are counted at a time.
const RANGE: usize = 1 << 10;
/// Bytes behind the last list, so that whole words can be read.
const PADDING: u64 = 16;

/// Neighbours, and the weights of the entries if there are any. Without weights they ascend.
pub(crate) type List<'a> = (&'a [u32], Option<&'a [u32]>);

/// The lists of all vertices, packed.
#[derive(Debug)]
pub struct Packed {
    /// Where the lists of each block begin, and the number of all bytes.
    places: Buffer<u64>,
    bytes: Buffer<u8>,
    weighted: bool,
}

impl Packed {
    /// Packs the lists of `n` vertices, which are read in two passes over `ranges` of them, unless they would
    /// take `most` bytes or more.
    pub fn of<'a, R: Iterator<Item = Range<u32>> + Send>(
        n: usize,
        weighted: bool,
        ranges: impl Fn() -> R,
        list: impl Fn(u32) -> List<'a> + Sync,
        most: u64,
        run: &Run,
    ) -> Result<Option<Packed>> {
        let blocks = || ranges().map(|range| [range.start, range.end].map(|v| v.div_ceil(BLOCK as u32)));
        let mut places: Buffer<u64> = Buffer::in_file(n.div_ceil(BLOCK) + 1, run.tmp_dir())?;
        let mut threads = vec![(); run.threads()];
        propose(
            &mut threads,
            blocks().map(|[start, end]| start..end),
            &mut places[1..],
            run,
            |(), block, len| {
                *len = vertices(block, n).map(|v| len_of(v, list(v))).sum();
            },
        )?;
        run.each(places.len() - 1, |block| places[block as usize + 1] += places[block as usize])?;
        let len = places[places.len() - 1];
        if len + size_of_val(&places[..]) as u64 >= most {
            return Ok(None);
        }
        let mut bytes: Buffer<u8> = Buffer::in_file((len + PADDING) as usize, run.tmp_dir())?;
        let mut rest = &mut bytes[..];
        let pieces = blocks().map(|[start, end]| {
            let len = places[end as usize] - places[start as usize];
            let (piece, later) = std::mem::take(&mut rest).split_at_mut(len as usize);
            rest = later;
            (start..end, piece)
        });
        share(&mut threads, pieces, run, |(), (blocks, piece)| {
            let mut rest = piece;
            for v in blocks.flat_map(|block| vertices(block, n)) {
                let (targets, weights) = list(v);
                let mut put = |number: u64, len: usize| {
                    let (place, later) = std::mem::take(&mut rest).split_at_mut(len);
                    place.copy_from_slice(&number.to_le_bytes()[..len]);
                    rest = later;
                };
                let len = numbers(v, (targets, weights), |_, _| ());
                let (head, head_len) = coded(len);
                put(head, head_len);
                numbers(v, (targets, weights), put);
            }
            run.check()
        })?;
        Ok(Some(Packed { places, bytes, weighted }))
    }

    /// Bytes of all lists, with the places.
    pub fn len(&self) -> u64 {
        (self.bytes.len() + size_of_val(&self.places[..])) as u64 - PADDING
    }

    /// Whether there is no list.
    pub fn is_empty(&self) -> bool {
        self.places.len() <= 1
    }

    /// About where the lists of these vertices lie in [`bytes`](Self::bytes).
    pub fn span(&self, vertices: Range<u32>) -> Range<u64> {
        self.places[vertices.start as usize / BLOCK]..self.places[vertices.end as usize / BLOCK]
    }

    /// All lists.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Calls `visit` with each neighbour of `v`, in the order in which they were packed, and the weight of
    /// the entry, or 1. Never inlined. Measured: inside a loop over plain lists it would make that 3 to 8 %
    /// slower.
    #[inline(never)]
    pub fn each(&self, v: u32, visit: impl FnMut(u32, u32)) {
        self.visit(v, usize::MAX, visit);
    }

    /// Calls `visit` like [`each`](Self::each), but only with what begins in the first `most` bytes of the
    /// list.
    #[inline(never)]
    pub fn each_within(&self, v: u32, most: usize, visit: impl FnMut(u32, u32)) {
        self.visit(v, most, visit);
    }

    #[inline(always)]
    fn visit(&self, v: u32, most: usize, mut visit: impl FnMut(u32, u32)) {
        let bytes = &self.bytes[..];
        let mut at = self.places[v as usize / BLOCK] as usize;
        for _ in 0..v as usize % BLOCK {
            let len = read(bytes, &mut at);
            at += len as usize;
        }
        let len = read(bytes, &mut at) as usize;
        let (end, mut u) = (at + len.min(most), v);
        if self.weighted {
            while at < end {
                let weight = read_step(bytes, &mut at, &mut u);
                visit(u, weight);
            }
        } else if at < end {
            u = u.wrapping_add(signed(read(bytes, &mut at)));
            visit(u, 1);
            while at < end {
                u = u.wrapping_add(read(bytes, &mut at) as u32);
                visit(u, 1);
            }
        }
    }
}

/// Bytes of the lists of all vertices, packed, if vertex v had the id `places[v]`. The order of the vertices
/// does not matter to them. Weights are left out.
pub fn packed_len(csr: &Csr, places: Option<&[u32]>, run: &Run) -> Result<u64> {
    let n = csr.num_vertices();
    let place = |v: u32| places.map_or(v, |places| places[v as usize]);
    let len = |list: &mut Vec<u32>, range: usize| {
        let mut sum = 0;
        for v in (range * RANGE) as u32..n.min((range + 1) * RANGE) as u32 {
            list.clear();
            list.extend(csr.neighbours(v).iter().map(|&u| place(u)));
            list.sort_unstable();
            sum += len_of(place(v), (list, None));
        }
        run.advance((n - range * RANGE).min(RANGE) as u64)?;
        Ok(sum)
    };
    Ok(map(run, usize::MAX, n.div_ceil(RANGE), || Ok(Vec::new()), len)?.into_iter().sum())
}

/// Bytes per entry of the lists of a graph of this size, without weights, if its ids are arbitrary.
pub(crate) fn expected(n: u64, entries: u64) -> f64 {
    let gap = n as f64 * n as f64 / entries.max(1) as f64;
    let above = |bits: u32| libm::exp(-f64::from(1_u32 << bits) / gap);
    1.0 + above(6) + above(14) + 2.0 * above(22)
}

/// The vertices of a block.
fn vertices(block: u32, n: usize) -> Range<u32> {
    block * BLOCK as u32..n.min((block as usize + 1) * BLOCK) as u32
}

/// Bytes of the list of `v`, with their number.
fn len_of(v: u32, list: List) -> u64 {
    let len = numbers(v, list, |_, _| ());
    len + coded(len).1 as u64
}

/// Calls `put` with what stands for the list of `v`: numbers, and how many of their bytes count. Returns all
/// bytes.
#[inline(always)]
fn numbers(v: u32, (targets, weights): List, mut put: impl FnMut(u64, usize)) -> u64 {
    let (mut before, mut sum) = (v, 0);
    for (index, &u) in targets.iter().enumerate() {
        let from = i64::from(u) - i64::from(std::mem::replace(&mut before, u));
        let folded = (from << 1 ^ from >> 63) as u64;
        let (number, len) = match weights {
            None => coded(if index == 0 { folded } else { from as u64 }),
            Some(weights) => step(folded, weights[index]),
        };
        put(number, len);
        sum += len as u64;
        if let Some(weights) = weights {
            let len = if is_large(weights[index]) { 4 } else { 1 };
            put(weights[index].into(), len);
            sum += len as u64;
        }
    }
    sum
}

/// A number with its length, and that length.
fn coded(number: u64) -> (u64, usize) {
    let tag = u64::from(number >= 1 << 6) + u64::from(number >= 1 << 14) + u64::from(number >= 1 << 22);
    (number << 2 | tag, len(tag))
}

/// Bytes of a number with this tag.
#[inline(always)]
fn len(tag: u64) -> usize {
    (tag + 1 + (tag >> 1 & tag)) as usize
}

/// Whether a weight takes 4 bytes.
fn is_large(weight: u32) -> bool {
    weight >= 1 << 8
}

/// A difference with its length and that of the weight behind it, and the former.
fn step(folded: u64, weight: u32) -> (u64, usize) {
    let tag = u64::from(folded >= 1 << 13) + u64::from(folded >= 1 << 21) + u64::from(folded >= 1 << 29);
    (folded << 3 | u64::from(is_large(weight)) << 2 | tag, 2 + tag as usize)
}

/// A difference that was folded.
#[inline(always)]
fn signed(folded: u64) -> u32 {
    (folded >> 1 ^ (folded & 1).wrapping_neg()) as u32
}

/// The 8 bytes at `at`, which always exist.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |&chunk| u64::from_le_bytes(chunk))
}

/// Reads the number at `at`, and moves that behind it.
#[inline(always)]
fn read(bytes: &[u8], at: &mut usize) -> u64 {
    const MASKS: [u64; 4] = [0xff, 0xffff, 0xff_ffff, 0xff_ffff_ffff];
    let word = word(bytes, *at);
    let tag = word & 3;
    *at += len(tag);
    (word & MASKS[tag as usize]) >> 2
}

/// Reads a difference and a weight. Moves `u` by the difference, and returns the weight.
#[inline(always)]
fn read_step(bytes: &[u8], at: &mut usize, u: &mut u32) -> u32 {
    const MASKS: [u64; 4] = [0xffff, 0xff_ffff, 0xffff_ffff, 0xff_ffff_ffff];
    let number = word(bytes, *at);
    let (tag, large) = (number & 3, number >> 2 & 1);
    let weight = word(bytes, *at + 2 + tag as usize) as u32 & (0xff | (large as u32).wrapping_neg());
    *at += (3 + tag + 3 * large) as usize;
    *u = u.wrapping_add(signed((number & MASKS[tag as usize]) >> 3));
    weight
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list packed and read again.
    fn again(v: u32, list: List) -> Vec<[u32; 2]> {
        let lists = |u: u32| if u == v { list } else { (&[][..], list.1.map(|_| &[][..])) };
        let (n, run) = (v as usize + 1, Run::new(Some(1), None).unwrap());
        let weighted = list.1.is_some();
        let whole = || std::iter::once(0..n as u32);
        let packed = Packed::of(n, weighted, whole, lists, u64::MAX, &run).unwrap().unwrap();
        let mut found = Vec::new();
        packed.each(v, |u, w| found.push([u, w]));
        found
    }

    #[test]
    fn numbers_of_all_lengths_come_back() {
        let ids: Vec<u32> = (0..32).flat_map(|bit| [0, 1].map(|less| (1_u32 << bit) - less)).collect();
        let mut ascending = ids.clone();
        ascending.push(u32::MAX);
        for v in [0, 5, 70_000] {
            let list: Vec<[u32; 2]> = ascending.iter().map(|&u| [u, 1]).collect();
            assert_eq!(again(v, (&ascending, None)), list);
            let mixed: Vec<u32> = ids.iter().enumerate().map(|(i, _)| ids[i * 37 % ids.len()]).collect();
            let list: Vec<[u32; 2]> = mixed.iter().zip(&ids).map(|(&u, &w)| [u, w]).collect();
            assert_eq!(again(v, (&mixed, Some(&ids))), list);
            assert!(again(v, (&[], None)).is_empty());
        }
    }

    #[test]
    fn arbitrary_ids_take_what_is_expected() {
        assert!((expected(1 << 20, 1 << 10) - 5.0).abs() < 0.1 && expected(1 << 5, 1 << 10) < 1.01);
        assert!(expected(1 << 20, 1 << 25) > 2.0 && expected(1 << 20, 1 << 25) < 3.0);
        assert!(expected(0, 0) >= 1.0);
    }
}
