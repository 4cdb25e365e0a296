//! An adjacency whose lists are stored as differences, for passes over the vertices in order.
//!
//! **Format.** The list of a vertex is its length, the difference d of its first neighbour from the vertex itself (as
//! 2d, or as -2d - 1 below 0), and the gaps from each neighbour to the next. Each is a varint: 7 bits per byte, the
//! low ones first, the highest bit set in all bytes but the last. Where neighbours have ids near each other, as after
//! [`order`](crate::algorithms::multilevel::ordering), most take a byte instead of four. Weights are left out.
//!
//! **Memory.** The bytes of the lists, and 8 for every 64 vertices: where their lists begin. They lie where those of
//! the adjacency do, in memory or in an unnamed file.
//!
//! **Figures.** A pass that sums the connections of every vertex to 8 parts, one thread, as lists of 4 bytes and
//! packed, in the order by clusters: com-dblp 5.3 and 6.5 ns per entry, cnr-2000 2.8 and 3.5, road-usa-ny 5.5 and 6.2,
//! with 28 %, 27 % and 21 % of the bytes. Where half of the gaps take two bytes (planted communities, n = 2^20, m = 16
//! M) it is 4.6 and 7.4: a branch per byte is then foretold wrongly. Lengths apart from the bytes, as in group varint
//! and StreamVByte, took 7.0, 4.5, 7.2 and 6.0 ns without vector instructions, and 10 to 25 % more bytes.
//!
//! **Source.** Boldi and Vigna, "The WebGraph Framework I: Compression Techniques", WWW 2004.

use std::ops::Range;

use super::{Csr, Home};
use crate::base::{Buffer, Result, Run};
use crate::exec::{map, scan};

/// Vertices of a block.
const BLOCK: usize = 64;

/// The lists of all vertices, packed.
#[derive(Debug)]
pub struct Packed {
    /// Where the lists of each block begin, and the number of all bytes.
    starts: Buffer<u64>,
    bytes: Buffer<u8>,
    n: usize,
}

impl Csr {
    /// The same lists, packed.
    pub fn packed(&self, run: &Run) -> Result<Packed> {
        let n = self.num_vertices();
        let lens = block_lens(self, None, run)?;
        let mut starts: Buffer<u64> = Buffer::zeroed(lens.len() + 1, "packed adjacency")?;
        for (block, len) in lens.into_iter().enumerate() {
            starts[block + 1] = starts[block] + len;
        }
        let home = Home((!self.is_in_memory()).then(|| run.tmp_dir()));
        let mut bytes: Buffer<u8> = home.zeroed(starts[starts.len() - 1], "packed adjacency")?;
        let mut rest = &mut bytes[..];
        let blocks = starts.windows(2).enumerate().map(|(block, ends)| {
            let (bytes, later) = std::mem::take(&mut rest).split_at_mut((ends[1] - ends[0]) as usize);
            rest = later;
            (block, bytes)
        });
        scan(
            run,
            usize::MAX,
            blocks,
            || Ok(()),
            |(), (block, bytes)| {
                let numbers = vertices(block, n).flat_map(|v| numbers(v, self.neighbours(v)));
                let mut at = 0;
                for number in numbers {
                    at += write(number, &mut bytes[at..]);
                }
                Ok(())
            },
        )?;
        Ok(Packed { starts, bytes, n })
    }
}

impl Packed {
    /// Number of vertices.
    pub fn num_vertices(&self) -> usize {
        self.n
    }

    /// Bytes of all lists, with the places of the blocks.
    pub fn len(&self) -> u64 {
        (self.bytes.len() + size_of_val(&self.starts[..])) as u64
    }

    /// Whether there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The lists of the vertices `range`, to be read one after the other.
    pub fn lists(&self, range: Range<u32>) -> Lists<'_> {
        let block = range.start as usize / BLOCK;
        let at = self.starts[block] as usize;
        let mut lists = Lists { bytes: &self.bytes, at, v: (block * BLOCK) as u32 };
        while lists.v < range.start {
            lists.each(|_| ());
        }
        lists
    }
}

/// The lists of some vertices in order.
pub struct Lists<'a> {
    bytes: &'a [u8],
    /// Where the next list begins.
    at: usize,
    v: u32,
}

impl Lists<'_> {
    /// Calls `visit` with each neighbour of the next vertex, ascending.
    #[inline(always)]
    pub fn each(&mut self, mut visit: impl FnMut(u32)) {
        let mut at = self.at;
        let len = read(self.bytes, &mut at);
        if len > 0 {
            let first = read(self.bytes, &mut at);
            let mut u = self.v.wrapping_add((first >> 1 ^ (first & 1).wrapping_neg()) as u32);
            visit(u);
            for _ in 1..len {
                u = u.wrapping_add(read(self.bytes, &mut at) as u32);
                visit(u);
            }
        }
        self.at = at;
        self.v += 1;
    }
}

/// Bytes of the lists of all vertices, packed, if vertex v had the id `places[v]`.
pub fn packed_len(csr: &Csr, places: Option<&[u32]>, run: &Run) -> Result<u64> {
    Ok(block_lens(csr, places, run)?.into_iter().sum())
}

/// Bytes of the lists of each block. The order of the vertices does not matter to them.
fn block_lens(csr: &Csr, places: Option<&[u32]>, run: &Run) -> Result<Vec<u64>> {
    let n = csr.num_vertices();
    let place = |v: u32| places.map_or(v, |places| places[v as usize]);
    let len = |list: &mut Vec<u32>, block: usize| {
        let lens = vertices(block, n).map(|v| {
            list.clear();
            list.extend(csr.neighbours(v).iter().map(|&u| place(u)));
            list.sort_unstable();
            numbers(place(v), list).map(bytes_of).sum::<u64>()
        });
        let sum = lens.sum();
        run.advance(BLOCK as u64)?;
        Ok(sum)
    };
    map(run, usize::MAX, n.div_ceil(BLOCK), || Ok(Vec::new()), len)
}

/// The vertices of a block.
fn vertices(block: usize, n: usize) -> Range<u32> {
    (block * BLOCK) as u32..n.min((block + 1) * BLOCK) as u32
}

/// What stands for the list of `v`.
fn numbers(v: u32, list: &[u32]) -> impl Iterator<Item = u64> {
    let first = list.first().map(|&first| {
        let from = i64::from(first) - i64::from(v);
        (from << 1 ^ from >> 63) as u64
    });
    let gaps = list.windows(2).map(|pair| u64::from(pair[1] - pair[0]));
    std::iter::once(list.len() as u64).chain(first).chain(gaps)
}

/// Bytes of a varint.
fn bytes_of(number: u64) -> u64 {
    (u64::BITS - (number | 1).leading_zeros()).div_ceil(7).into()
}

/// Writes a varint, and returns its bytes.
fn write(mut number: u64, bytes: &mut [u8]) -> usize {
    let mut at = 0;
    while number >= 0x80 {
        bytes[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    bytes[at] = number as u8;
    at + 1
}

/// Reads the varint at `at`, and moves that behind it.
#[inline(always)]
fn read(bytes: &[u8], at: &mut usize) -> u64 {
    let mut byte = bytes[*at];
    *at += 1;
    let (mut number, mut shift) = (u64::from(byte & 0x7f), 7);
    while byte >= 0x80 {
        byte = bytes[*at];
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_what_was_written() {
        let numbers = (0..33).flat_map(|bit| [0, 1, 2].map(|more| (1_u64 << bit) + more - 1));
        for number in numbers {
            let mut bytes = [0; 10];
            let (len, mut at) = (write(number, &mut bytes), 0);
            assert_eq!((read(&bytes, &mut at), at), (number, len));
            assert_eq!(len as u64, bytes_of(number));
        }
    }
}
