//! The model of partitioning: the goal, the graph of a level, its problem, an assignment of its vertices to
//! parts, and the memory that steps take.

pub(crate) mod assignment;
pub(crate) mod builder;
pub(crate) mod connectivity;
mod divided;
mod entries;
pub(crate) mod goal;
pub(crate) mod graph;
pub(crate) mod machines;
pub(crate) mod memory;
pub(crate) mod migration;
pub(crate) mod problem;

pub use assignment::{Assignment, Connections};
pub(crate) use assignment::{BySlack, Quality, with_slack};
pub(crate) use builder::{Builder, Lists};
pub use connectivity::Connectivity;
pub(crate) use goal::{BALANCE, MOST_BOUNDS, WEIGHT_BALANCE, bounds_of, goal, parameters_with_goal};
pub use goal::{Bound, Goal};
pub use graph::Graph;
pub use machines::Prices;
pub use memory::Size;
pub(crate) use migration::Migration;
pub use problem::{Objective, Problem};
pub(crate) use problem::{Solution, copied};
