//! The score of a part for a vertex.

/// A rule that scores a part by the neighbours it holds and by its load.
pub(crate) trait Score: Send + Sync {
    /// The effect of the load on the score: computed once per placement, not once per edge.
    type Price: Copy + Send + Sync;
    /// Higher is better.
    type Value: PartialOrd;

    /// The price of a part with `load` vertices.
    fn price(&self, load: u64) -> Self::Price;
    /// The value of a part that holds `neighbours` of the vertex.
    fn value(&self, neighbours: u32, price: Self::Price) -> Self::Value;
}

/// Linear deterministic greedy: `e(v, p) * (1 - |p| / C)`, multiplied by C so that it is an integer.
pub(crate) struct Ldg {
    /// C.
    pub cap: u64,
}

impl Score for Ldg {
    type Price = u64;
    type Value = u64;

    #[inline(always)]
    fn price(&self, load: u64) -> u64 {
        self.cap.saturating_sub(load)
    }

    #[inline(always)]
    fn value(&self, neighbours: u32, price: u64) -> u64 {
        // Both are below 2^32.
        u64::from(neighbours) * price
    }
}

/// Fennel: `e(v, p) - alpha * gamma * |p|^(gamma - 1)`.
pub(crate) struct Fennel {
    /// `alpha * gamma`.
    factor: f64,
}

impl Fennel {
    /// `gamma = 1.5` and `alpha = sqrt(k) * m / n^1.5`, the paper's, for a graph of `n` vertices and `edges`
    /// edges.
    pub(crate) fn new(k: u32, n: u64, edges: f64) -> Self {
        let n = n as f64;
        Self { factor: 1.5 * libm::sqrt(f64::from(k)) * edges / (n * libm::sqrt(n)) }
    }
}

impl Score for Fennel {
    type Price = f64;
    type Value = f64;

    #[inline(always)]
    fn price(&self, load: u64) -> f64 {
        self.factor * libm::sqrt(load as f64)
    }

    #[inline(always)]
    fn value(&self, neighbours: u32, price: f64) -> f64 {
        f64::from(neighbours) - price
    }
}
