//! A queue of ascending numbers: what enters is larger than what left last.
//!
//! A number lies in the bucket of the highest bit in which it differs from the one that left last (a *radix
//! heap*: Ahuja, Mehlhorn, Orlin, Tarjan, "Faster Algorithms for the Shortest Path Problem", 1990). It
//! changes its bucket at most 64 times, each time to a lower one. A binary heap would compare, and guess
//! wrong, at every level.

/// Numbers that leave in ascending order.
#[derive(Debug)]
pub(crate) struct MonotoneQueue {
    /// The number that left last. No number here is smaller.
    last: u64,
    buckets: [Vec<u64>; 65],
    /// The smallest number of each bucket that is not empty.
    least: [u64; 65],
    /// One bit per bucket: whether it holds any.
    filled: u128,
}

impl Default for MonotoneQueue {
    fn default() -> Self {
        Self { last: 0, buckets: [const { Vec::new() }; 65], least: [u64::MAX; 65], filled: 0 }
    }
}

impl MonotoneQueue {
    /// Adds a number, not smaller than what left last.
    pub(crate) fn push(&mut self, number: u64) {
        debug_assert!(number >= self.last, "{number} after {}", self.last);
        let bucket = (u64::BITS - (number ^ self.last).leading_zeros()) as usize;
        self.buckets[bucket].push(number);
        self.least[bucket] = self.least[bucket].min(number);
        self.filled |= 1 << bucket;
    }

    /// The smallest number.
    pub(crate) fn first(&self) -> Option<u64> {
        // Numbers of a lower bucket agree with the last one in more bits, and so are smaller.
        (self.filled != 0).then(|| self.least[self.filled.trailing_zeros() as usize])
    }

    /// Takes the smallest number.
    pub(crate) fn pop(&mut self) -> Option<u64> {
        self.last = self.first()?;
        let bucket = self.filled.trailing_zeros() as usize;
        if bucket > 0 {
            self.filled &= !(1 << bucket);
            self.least[bucket] = u64::MAX;
            let mut numbers = std::mem::take(&mut self.buckets[bucket]);
            numbers.drain(..).for_each(|number| self.push(number));
            self.buckets[bucket] = numbers;
        }
        let number = self.buckets[0].pop();
        if self.buckets[0].is_empty() {
            self.filled &= !1;
            self.least[0] = u64::MAX;
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use super::*;
    use crate::base::random::splitmix64;

    #[test]
    fn leaves_in_the_order_of_a_heap() {
        let (mut queue, mut heap) = (MonotoneQueue::default(), BinaryHeap::new());
        let mut last = 0;
        for step in 0..20_000 {
            let random = splitmix64(step);
            if random.is_multiple_of(5) || step > 15_000 {
                let next = heap.pop().map(|Reverse(number)| number);
                assert_eq!((queue.first(), queue.pop()), (next, next));
                last = next.unwrap_or(last);
            } else {
                let number = last + (random >> (random % 64));
                queue.push(number.max(last));
                heap.push(Reverse(number.max(last)));
            }
        }
        assert!(heap.len() < 20_000 && queue.first() == heap.peek().map(|&Reverse(number)| number));
    }
}
