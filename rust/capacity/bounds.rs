//! Loads and caps under several bounds.

/// The load of a vertex or a part under each of D bounds: first the number of vertices, then volume or
/// weights of the user.
pub(crate) type Load<const D: usize = 2> = [u64; D];

/// The sum of two loads.
#[inline(always)]
pub(crate) fn plus<const D: usize>(a: Load<D>, b: Load<D>) -> Load<D> {
    std::array::from_fn(|bound| a[bound] + b[bound])
}

/// The difference of two loads.
#[inline(always)]
pub(crate) fn minus<const D: usize>(a: Load<D>, b: Load<D>) -> Load<D> {
    std::array::from_fn(|bound| a[bound] - b[bound])
}

/// Whether a load stays within a cap.
#[inline(always)]
pub(crate) fn fits<const D: usize>(load: Load<D>, cap: Load<D>) -> bool {
    (0..D).all(|bound| load[bound] <= cap[bound])
}

/// The largest load of a part that can take `item`. `None` if no part can.
#[inline(always)]
pub(crate) fn limit_for<const D: usize>(cap: Load<D>, item: Load<D>) -> Option<Load<D>> {
    fits(item, cap).then(|| minus(cap, item))
}

/// The largest share of a cap that a load uses.
#[inline(always)]
pub(crate) fn relative<const D: usize>(load: Load<D>, cap: Load<D>) -> f64 {
    (0..D).map(|bound| load[bound] as f64 / cap[bound].max(1) as f64).fold(0.0, f64::max)
}

/// By how much a load exceeds a cap, relative to it, in all bounds.
#[inline(always)]
pub(crate) fn excess<const D: usize>(load: Load<D>, cap: Load<D>) -> f64 {
    (0..D).map(|bound| load[bound].saturating_sub(cap[bound]) as f64 / cap[bound].max(1) as f64).sum()
}
