//! Work on a few items side by side, each on a thread of its own.
//!
//! The code by which rayon splits a loop, joins its halves and waits is compiled again for each closure. It
//! was a third of the code that the compiler had to translate. Here it is compiled once, for a closure behind
//! a pointer that is called once for each item. The loops inside that closure are compiled for their types as
//! before.
//!
//! **Memory.** No more items are begun at a time than there are threads. If each item were a task of rayon's,
//! a thread that waits for a loop inside one item would begin the next one, until all items are in memory at
//! once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub(crate) use rayon::join;
use rayon::prelude::*;

use crate::base::{Run, locked};

/// The results of `work` for `items`, in their order. Meant for few items, each of which is worth a thread.
pub(crate) fn side_by_side<T: Send, R: Send>(
    run: &Run,
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let places: Vec<Mutex<(Option<T>, Option<R>)>> =
        items.into_iter().map(|item| Mutex::new((Some(item), None))).collect();
    each(run, places.len(), &|index| {
        let item = locked(&places[index]).0.take();
        let result = item.map(&work);
        locked(&places[index]).1 = result;
    });
    places.into_iter().filter_map(|place| locked(&place).1.take()).collect()
}

fn each(run: &Run, count: usize, work: &(dyn Fn(usize) + Sync)) {
    let next = AtomicUsize::new(0);
    let take_all = |_| {
        while let Some(index) = Some(next.fetch_add(1, Relaxed)).filter(|&index| index < count) {
            work(index);
        }
    };
    let threads = run.threads().min(count);
    run.install(|| (0..threads).into_par_iter().with_max_len(1).for_each(take_all));
}

/// Hands out `items`, each to the thread that asks for the next one.
pub(super) fn queue<T>(items: impl Iterator<Item = T> + Send) -> impl Fn() -> Option<T> + Sync {
    let items = Mutex::new(items);
    move || locked(&items).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_items_are_begun_at_a_time_than_there_are_threads() {
        let run = Run::new(Some(4), None).unwrap();
        let (begun, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let results = side_by_side(&run, 0..64_u64, |item| {
            most.fetch_max(begun.fetch_add(1, Relaxed) + 1, Relaxed);
            // A loop inside the item, for whose pieces its thread waits.
            let sum: u64 = run.install(|| {
                let slow =
                    |i: u32| (0..2000).fold(u64::from(i), |sum, step| std::hint::black_box(sum ^ step));
                (0..1000_u32).into_par_iter().with_max_len(1).map(slow).sum()
            });
            begun.fetch_sub(1, Relaxed);
            std::hint::black_box(sum);
            item
        });
        assert_eq!(results, Vec::from_iter(0..64));
        assert!(most.into_inner() <= 4);
    }
}
