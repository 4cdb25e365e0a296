//! Requests of hot loops to the processor: data that they need a few rounds later, and wide registers.

use super::system::{Access, advise};

/// Rounds by which data is prefetched ahead, by the items of the loop. With more, data would leave the
/// first-level cache before its use. With fewer, it would come too late.
pub(crate) mod ahead {
    /// Records, whose two ends are looked up. Measured with halos: twice as fast as without.
    pub(crate) const RECORDS: usize = 24;
    /// Entries or directed edges, lists of neighbours, and records with several lookups or much work for
    /// each.
    pub(crate) const ENTRIES: usize = 16;
}

/// Brings `items[index]` into the cache. An index outside is ignored.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], index: usize) {
    prefetch_at(items.as_ptr().wrapping_add(index));
}

/// Brings what lies at an address into the cache. An address of nothing is ignored.
#[inline(always)]
pub(crate) fn prefetch_at<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address. x86-64 always has the instruction.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(address.cast(), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches the items of both ends of `records[index]`.
#[inline(always)]
pub(crate) fn prefetch_ends<T>(items: &[T], records: &[[u32; 2]], index: usize) {
    if let Some(&[u, v]) = records.get(index) {
        prefetch(items, u as usize);
        prefetch(items, v as usize);
    }
}

/// Asks the operating system to read the pages of `items`, part of a mapped file, soon. Pages in memory stay
/// as they are.
pub(crate) fn read_ahead<T>(items: &[T]) {
    advise(items.as_ptr().cast(), size_of_val(items), Access::Soon);
}

/// Does the same work, compiled for AVX2 too, and so on eight items of 32 bits at a time where the processor
/// has it.
macro_rules! on_avx2 {
    (|$($name:ident: $type:ty),*| -> $output:ty $work:block) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2")]
            fn with_avx2($($name: $type),*) -> $output $work
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has what the function needs.
                return unsafe { with_avx2($($name),*) };
            }
        }
        $work
    }};
}
pub(crate) use on_avx2;
