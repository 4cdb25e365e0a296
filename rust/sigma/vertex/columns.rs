//! How many rows of bits have each bit set.
//!
//! Counters that stand upright: bit i of all counts of 64 columns is one word, so that a row is added to 64 counts with
//! a few operations on words. After 255 rows the eight words are full, and their counts are added to the sums, eight
//! columns at a time.

/// Rows that the upright counters hold.
const ROWS: u32 = 255;

/// The eight bits of each byte, one byte each.
const SPREAD: [u64; 256] = spread();

const fn spread() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte] |= (byte as u64 >> bit & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    table
}

/// Counts of the bits in each column.
#[derive(Debug)]
pub struct Columns {
    counters: Vec<[u64; 8]>,
    rows: u32,
    sums: Vec<u32>,
}

impl Columns {
    /// Zeros for rows of `words` words.
    pub fn new(words: usize) -> Self {
        Self { counters: vec![[0; 8]; words], rows: 0, sums: vec![0; 64 * words] }
    }

    /// Bytes for rows of `words` words.
    pub fn memory(words: u64) -> u64 {
        (64 + 256) * words
    }

    /// Adds a row.
    #[inline(always)]
    pub fn add(&mut self, row: &[u64]) {
        for (counter, &word) in self.counters.iter_mut().zip(row) {
            let mut carry = word;
            for bits in counter {
                if carry == 0 {
                    break;
                }
                (*bits, carry) = (*bits ^ carry, *bits & carry);
            }
        }
        self.rows += 1;
        if self.rows == ROWS {
            self.flush();
        }
    }

    /// The counts since [`clear`](Self::clear), one per column.
    pub fn sums(&mut self) -> &[u32] {
        self.flush();
        &self.sums
    }

    /// Back to zeros.
    pub fn clear(&mut self) {
        self.sums.fill(0);
    }

    fn flush(&mut self) {
        let height = (u32::BITS - self.rows.leading_zeros()) as usize;
        for (counter, sums) in self.counters.iter_mut().zip(self.sums.chunks_mut(64)) {
            for (byte, sums) in sums.chunks_mut(8).enumerate() {
                let eight = |(bit, word): (usize, &u64)| SPREAD[(word >> (8 * byte) & 255) as usize] << bit;
                let counts: u64 = counter[..height].iter().enumerate().map(eight).sum();
                for (sum, count) in sums.iter_mut().zip(counts.to_le_bytes()) {
                    *sum += u32::from(count);
                }
            }
            counter[..height].fill(0);
        }
        self.rows = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn counts_by_column() {
        let mut random = Random::new(3, 0);
        let mut columns = Columns::new(3);
        for rows in [0, 1, 2, 254, 255, 256, 1000, 3] {
            let mut expected = vec![0; 192];
            for _ in 0..rows {
                let row = [random.next_u64(), random.next_u64() & random.next_u64(), u64::MAX];
                columns.add(&row);
                for (column, count) in expected.iter_mut().enumerate() {
                    *count += (row[column / 64] >> (column % 64) & 1) as u32;
                }
            }
            assert_eq!(columns.sums(), expected);
            columns.clear();
        }
    }
}
