//! Work on a few items side by side, each on a thread of its own.
//!
//! What rayon needs to split a loop, to join its halves and to wait is compiled anew for everything that runs in it. It
//! was a third of the code that the compiler had to translate. Here it is compiled once, for a closure behind a pointer
//! that is called once for each item. The loops inside that closure are compiled for their types as before.

use std::sync::Mutex;

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
    run.install(|| (0..count).into_par_iter().with_max_len(1).for_each(work));
}

/// Hands out `items`, each to the thread that asks for the next one.
pub(super) fn queue<T>(items: impl Iterator<Item = T> + Send) -> impl Fn() -> Option<T> + Sync {
    let items = Mutex::new(items);
    move || locked(&items).next()
}
