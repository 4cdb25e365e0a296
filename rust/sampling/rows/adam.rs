//! Adam for the learned rows that a step has used.
//!
//! **Requirements.** A table of rows with the running means of their gradients and of the squares, and one
//! list of rows with gradients from each process that used rows, ascending and distinct within the list.
//!
//! **Algorithm.** The lists are merged. The gradients of a row are added up in the order of the lists, so
//! that a run is repeatable, and the row is changed while its numbers are in the cache: one pass over three
//! tables in place of the sixteen that operations over arrays take. Rows that come soon are brought into the
//! cache. Each number gets the operations of `torch.optim.SparseAdam` in their order, each rounded as IEEE
//! 754 says. Torch's roots come from a library of vectors that may differ in the last bit, and with the place
//! in an array.
//!
//! **Memory.** One row. **Complexity.** O(lists + width) for each row. One thread: every process has its own
//! rows.
//!
//! Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, with the correction of the
//! bias in the rate, as at the end of its section 2.

use std::ops::{Add, Div, Mul, Sub};

use crate::base::{Error, Result, prefetch_at};

/// Rows of a list between a row and the one that is brought into the cache.
const DISTANCE: usize = 6;

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// A number of a learned row.
pub trait Number:
    Copy
    + Default
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    /// The nearest number.
    fn nearest(number: f64) -> Self;
    /// The square root.
    fn root(self) -> Self;
}

impl Number for f32 {
    fn nearest(number: f64) -> Self {
        number as f32
    }
    fn root(self) -> Self {
        self.sqrt()
    }
}

impl Number for f64 {
    fn nearest(number: f64) -> Self {
        number
    }
    fn root(self) -> Self {
        self.sqrt()
    }
}

/// The numbers of a step of Adam.
#[derive(Clone, Copy)]
pub struct AdamStep {
    /// Learning rate of this step, with the correction of the bias.
    pub size: f64,
    /// Decay of the means of gradients and of squares.
    pub betas: (f64, f64),
    /// A small number, which is added to roots.
    pub eps: f64,
}

/// A table of learned rows.
pub struct LearnedRows<'a, T> {
    /// The rows.
    pub values: &'a mut [T],
    /// Running means of the gradients.
    pub mean: &'a mut [T],
    /// Running means of the squares of the gradients.
    pub square: &'a mut [T],
    /// Numbers of a row.
    pub width: usize,
}

impl<T: Number> LearnedRows<'_, T> {
    /// Makes a step. List `i` is `rows[bounds[i]..bounds[i + 1]]`, and row `r` is at `r - first` of the
    /// table. `gradients` has a row for each of `rows`.
    pub fn step(
        &mut self,
        rows: &[u32],
        bounds: &[usize],
        first: u32,
        gradients: &[T],
        step: AdamStep,
    ) -> Result<()> {
        let width = self.width;
        self.check(rows, bounds, first, gradients)?;
        let numbers = Numbers {
            first: T::nearest(1.0 - step.betas.0),
            second: T::nearest(1.0 - step.betas.1),
            eps: T::nearest(step.eps),
            size: T::nearest(-step.size),
        };
        let mut lists: Vec<_> = bounds.windows(2).map(|list| list[0]..list[1]).collect();
        let mut sum = vec![T::default(); width];
        loop {
            lists.retain(|list| !list.is_empty());
            let Some(row) = lists.iter().map(|list| rows[list.start]).min() else { return Ok(()) };
            sum.fill(T::default());
            for list in &mut lists {
                if rows[list.start] == row {
                    let gradient = &gradients[list.start * width..][..width];
                    sum.iter_mut().zip(gradient).for_each(|(sum, &number)| *sum = *sum + number);
                    list.start += 1;
                    if let Some(&soon) = rows[list.clone()].get(DISTANCE) {
                        self.prefetch((soon - first) as usize * width);
                    }
                }
            }
            let at = (row - first) as usize * width;
            let tables = self.values[at..][..width]
                .iter_mut()
                .zip(&mut self.mean[at..][..width])
                .zip(&mut self.square[at..][..width]);
            for (((value, mean), square), &gradient) in tables.zip(&sum) {
                *mean = *mean + (gradient - *mean) * numbers.first;
                *square = *square + (gradient * gradient - *square) * numbers.second;
                *value = *value + *mean / (square.root() + numbers.eps) * numbers.size;
            }
        }
    }

    fn prefetch(&self, at: usize) {
        for table in [&*self.values, self.mean, self.square] {
            let start = table.as_ptr().wrapping_add(at).cast::<u8>();
            (0..self.width * size_of::<T>())
                .step_by(LINE)
                .for_each(|byte| prefetch_at(start.wrapping_add(byte)));
        }
    }

    fn check(&self, rows: &[u32], bounds: &[usize], first: u32, gradients: &[T]) -> Result<()> {
        let size = self.values.len();
        let inside = |row: u32| row >= first && ((row - first) as usize + 1) * self.width <= size;
        let fits = self.mean.len() == size
            && self.square.len() == size
            && gradients.len() == rows.len() * self.width
            && bounds.first() == Some(&0)
            && bounds.last() == Some(&rows.len())
            && bounds.is_sorted()
            && rows.iter().all(|&row| inside(row))
            && bounds.windows(2).all(|list| rows[list[0]..list[1]].is_sorted_by(|one, next| one < next));
        if fits {
            return Ok(());
        }
        Err(Error::Internal("rows of a step of Adam are not lists of distinct rows of the table".into()))
    }
}

/// The numbers of a step, as the table has them.
struct Numbers<T> {
    first: T,
    second: T,
    eps: T,
    size: T,
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: AdamStep = AdamStep { size: 0.1, betas: (0.9, 0.999), eps: 1e-8 };

    /// Steps of lists whose rows overlap, against a loop over all rows of the table.
    #[test]
    fn rows_of_several_lists_are_changed_once() {
        let (width, first) = (3, 40);
        let lists: [&[u32]; 4] = [&[41, 43, 47], &[], &[40, 43], &[43, 47, 49]];
        let (mut values, mut mean, mut square) = ([1.0_f64; 30], [0.5; 30], [0.25; 30]);
        let (mut kept, mut kept_mean, mut kept_square) = (values, mean, square);
        let rows = lists.concat();
        let bounds: Vec<_> = [0].into_iter().chain((1..=4).map(|end| lists[..end].concat().len())).collect();
        let gradients: Vec<_> = (0..rows.len() * width).map(|at| at as f64 * 0.7 - 3.0).collect();
        LearnedRows { values: &mut values, mean: &mut mean, square: &mut square, width }
            .step(&rows, &bounds, first, &gradients, STEP)
            .unwrap();
        for row in 40..50 {
            for number in 0..width {
                let at = (row - first) as usize * width + number;
                let of_row: Vec<_> = (0..rows.len()).filter(|&place| rows[place] == row).collect();
                if of_row.is_empty() {
                    continue;
                }
                let sum: f64 = of_row.iter().fold(0.0, |sum, place| sum + gradients[place * width + number]);
                kept_mean[at] += (sum - kept_mean[at]) * (1.0 - 0.9);
                kept_square[at] += (sum * sum - kept_square[at]) * (1.0 - 0.999);
                kept[at] += kept_mean[at] / (kept_square[at].sqrt() + 1e-8) * -0.1;
            }
        }
        assert_eq!((values, mean, square), (kept, kept_mean, kept_square));
    }

    #[test]
    fn what_is_no_list_of_rows_of_the_table_is_refused() {
        let cases: [(&[u32], &[usize], usize); 6] = [
            (&[3], &[0, 1], 2),    // below the table
            (&[6], &[0, 1], 2),    // behind it
            (&[5, 4], &[0, 2], 4), // descending
            (&[4, 4], &[0, 2], 4), // twice
            (&[4], &[0, 1], 1),    // too few gradients
            (&[4, 5], &[0, 1], 4), // a row in no list
        ];
        for (rows, bounds, gradients) in cases {
            let (mut values, mut mean, mut square) = ([0.0_f32; 4], [0.0; 4], [0.0; 4]);
            let mut table =
                LearnedRows { values: &mut values, mean: &mut mean, square: &mut square, width: 2 };
            assert!(table.step(rows, bounds, 4, &vec![1.0; gradients], STEP).is_err(), "{rows:?}");
        }
    }
}
