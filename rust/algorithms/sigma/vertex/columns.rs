//! Counts, for each bit, of the rows of bits that have it set.
//!
//! Counters that stand upright: bit i of all counts of 64 columns is one word, so that a row is added to 64
//! counts with a few operations on words, fewest if eight rows come together. Before the eight words of the
//! counters run over, their counts are added to the sums, eight columns at a time.

/// Most rows that the upright counters hold: a multiple of 8 below 2^8.
const ROWS: usize = 248;

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
pub(crate) struct Columns {
    words: Vec<Word>,
    /// Rows that wait, fewer than 8.
    waiting: usize,
    /// Rows that the upright counters hold.
    rows: usize,
    sums: Vec<u32>,
}

/// Upright counters of 64 columns, and the words that wait to be added.
#[derive(Debug, Clone, Default)]
struct Word {
    counters: [u64; 8],
    waiting: [u64; 8],
}

impl Columns {
    /// Zeros for rows of `words` words.
    pub(crate) fn new(words: usize) -> Self {
        Self { words: vec![Word::default(); words], waiting: 0, rows: 0, sums: vec![0; 64 * words] }
    }

    /// Bytes for rows of `words` words.
    pub(crate) fn memory(words: u64) -> u64 {
        (128 + 256) * words
    }

    /// Adds a row.
    #[inline(always)]
    pub(crate) fn add(&mut self, row: impl Iterator<Item = u64>) {
        for (word, bits) in self.words.iter_mut().zip(row) {
            word.waiting[self.waiting] = bits;
        }
        self.waiting += 1;
        if self.waiting == 8 {
            self.add_waiting();
        }
    }

    /// The counts since [`clear`](Self::clear), one per column.
    pub(crate) fn sums(&mut self) -> &[u32] {
        if self.waiting > 0 {
            self.words.iter_mut().for_each(|word| word.waiting[self.waiting..].fill(0));
            self.add_waiting();
        }
        self.flush();
        &self.sums
    }

    /// Back to zeros.
    pub(crate) fn clear(&mut self) {
        self.sums.fill(0);
    }

    #[inline(always)]
    fn add_waiting(&mut self) {
        self.words.iter_mut().for_each(Word::add_waiting);
        self.waiting = 0;
        self.rows += 8;
        if self.rows == ROWS {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let height = (usize::BITS - self.rows.leading_zeros()) as usize;
        for (word, sums) in self.words.iter_mut().zip(self.sums.chunks_mut(64)) {
            for (byte, sums) in sums.chunks_mut(8).enumerate() {
                let eight = |(bit, word): (usize, &u64)| SPREAD[(word >> (8 * byte) & 255) as usize] << bit;
                let counts: u64 = word.counters[..height].iter().enumerate().map(eight).sum();
                for (sum, count) in sums.iter_mut().zip(counts.to_le_bytes()) {
                    *sum += u32::from(count);
                }
            }
            word.counters[..height].fill(0);
        }
        self.rows = 0;
    }
}

impl Word {
    /// Adds eight words: pairs of equal weight become one of that weight and one of twice.
    #[inline(always)]
    fn add_waiting(&mut self) {
        let [a, b, c, d, e, f, g, h] = self.waiting;
        let [ones, twos, fours, ..] = self.counters;
        let (ones, two_1) = sum(ones, a, b);
        let (ones, two_2) = sum(ones, c, d);
        let (twos, four_1) = sum(twos, two_1, two_2);
        let (ones, two_1) = sum(ones, e, f);
        let (ones, two_2) = sum(ones, g, h);
        let (twos, four_2) = sum(twos, two_1, two_2);
        let (fours, mut carry) = sum(fours, four_1, four_2);
        (self.counters[0], self.counters[1], self.counters[2]) = (ones, twos, fours);
        for bits in &mut self.counters[3..] {
            (*bits, carry) = (*bits ^ carry, *bits & carry);
        }
    }
}

/// The sum of three bits in each column: its lower and its upper bit.
#[inline(always)]
fn sum(a: u64, b: u64, c: u64) -> (u64, u64) {
    (a ^ b ^ c, (a & b) | ((a ^ b) & c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    #[test]
    fn counts_by_column() {
        let mut random = Random::new(3, 0);
        let mut columns = Columns::new(3);
        for rows in [0, 1, 7, 8, 9, 247, 248, 249, 256, 1000, 3] {
            let mut expected = vec![0; 192];
            for _ in 0..rows {
                let row = [random.next_u64(), random.next_u64() & random.next_u64(), u64::MAX];
                columns.add(row.into_iter());
                for (column, count) in expected.iter_mut().enumerate() {
                    *count += (row[column / 64] >> (column % 64) & 1) as u32;
                }
            }
            assert_eq!(columns.sums(), expected);
            columns.clear();
        }
    }
}
