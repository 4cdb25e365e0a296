//! The library of the streaming partitioners: [`edges`] gives records parts one after the other, [`vertices`]
//! gives them to vertices, each with all its neighbours.

pub mod edges;
pub mod vertices;
