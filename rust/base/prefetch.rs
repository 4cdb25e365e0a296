//! Prefetching of data that a loop needs a few rounds later.

/// Brings `items[index]` into the cache. An index outside is ignored.
#[inline(always)]
pub fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address. x86-64 always has the instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(items.as_ptr().wrapping_add(index).cast(), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

/// Prefetches the items of both ends of `records[index]`.
#[inline(always)]
pub fn prefetch_ends<T>(items: &[T], records: &[[u32; 2]], index: usize) {
    if let Some(&[u, v]) = records.get(index) {
        prefetch(items, u as usize);
        prefetch(items, v as usize);
    }
}
