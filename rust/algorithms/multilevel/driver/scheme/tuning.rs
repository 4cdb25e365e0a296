//! The numbers of each effort, one row for each. Numbers that all efforts share stand beside the code that
//! uses them.

use super::effort::Effort;

/// The numbers of an effort.
#[derive(Debug)]
pub(crate) struct Tuning {
    /// Attempts begin on the first level with at most 1/`attempts_at` of the entries of the graph.
    pub attempts_at: u64,
    /// Sides that are grown for each bisection of the coarsest graph, under one bound.
    pub bisections: u64,
    /// Iterations of Jet on a level.
    pub jet_iterations: u32,
    /// Iterations that are left out on the given graph, where they take most of the time.
    pub fewer_on_given: u32,
    /// Whether FM follows Jet.
    pub fm: bool,
    /// Whether FM has a table of the gains of small graphs. Without one it refines short boundaries only.
    pub gain_tables: bool,
    /// Whether a V-cycle follows the first partition.
    pub v_cycle: bool,
    /// Whether flows refine every level, and not only those of the V-cycle.
    pub flows: bool,
    /// See [`Flows::short`](super::Flows::short).
    pub flow_boundary: u64,
    /// Most rounds that bring parts within a loose bound. `None`: as long as they pay, if lists lie in
    /// memory.
    pub mending_rounds: Option<u64>,
    /// Passes over the lists of a level that its refinement takes, for the estimate of costs.
    pub refining_passes: f64,
}

const FAST: Tuning = Tuning {
    attempts_at: 4,
    bisections: 2,
    jet_iterations: 1,
    fewer_on_given: 1,
    fm: false,
    gain_tables: false,
    v_cycle: false,
    flows: false,
    flow_boundary: 4,
    mending_rounds: Some(1),
    refining_passes: 5.0,
};

const QUICK: Tuning = Tuning {
    attempts_at: 12,
    jet_iterations: 4,
    fm: true,
    mending_rounds: Some(2),
    refining_passes: 6.0,
    ..FAST
};

const DEFAULT: Tuning = Tuning {
    bisections: 5,
    jet_iterations: 12,
    fewer_on_given: 0,
    gain_tables: true,
    v_cycle: true,
    mending_rounds: None,
    refining_passes: 21.0,
    ..QUICK
};

const BEST: Tuning = Tuning { flows: true, flow_boundary: 2, ..DEFAULT };

impl Effort {
    /// The numbers of this effort.
    pub(crate) fn tuning(self) -> &'static Tuning {
        match self {
            Effort::Fast => &FAST,
            Effort::Quick => &QUICK,
            Effort::Default => &DEFAULT,
            Effort::Best { .. } => &BEST,
        }
    }
}
