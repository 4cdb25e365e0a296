//! The in-edges of all vertices, in the parts of a directory or in memory.
//!
//! A vertex is a *row*: parts in order, and the inner vertices of each. Tables are indexed by rows, which are
//! u32 and without gaps. The files of a part name a source by its place among the local vertices of the part.
//! If it is inner, that is its row. If it is in the halo, the row is looked up (`halo`).

pub(crate) mod arrays;
mod halo;
mod in_edges;
pub(crate) mod lists_by_place;
pub(crate) mod part;
mod relations;
pub(crate) mod row_numbers;
pub(crate) mod types;
pub(crate) mod vertices;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::base::{Error, Result, Run};
use crate::edges::MAX_VERTICES;
use crate::exec;
use halo::{Halo, place_of};
use lists_by_place::Orders;

pub use in_edges::TopologyEdges;
pub use part::Part;
pub use row_numbers::{RowId, RowSpace};
pub use types::Types;
pub use vertices::{append_degrees, append_ids};

/// The parts of a directory, mapped.
#[derive(Debug)]
pub struct Topology {
    parts: Vec<Part>,
    rows: Arc<RowSpace>,
    edge_rows: Arc<RowSpace>,
    orders: OnceLock<Orders>,
}

impl Topology {
    /// Maps the parts in `folders`.
    pub fn open(folders: &[PathBuf], run: &Run) -> Result<Self> {
        let halos = folders.iter().map(|folder| Halo::open(folder)).collect::<Result<Vec<_>>>()?;
        let parts = folders.iter().zip(&halos).map(|(folder, halo)| Part::open(folder, halo.len()));
        let mut topology = Self::of(parts.collect::<Result<_>>()?)?;
        let parts = &topology.parts;
        let rows = |(): &mut (), part: usize| halos[part].rows(&parts[part], parts, run);
        let rows = exec::map(run, usize::MAX, parts.len(), || Ok(()), rows)?;
        topology.parts.iter_mut().zip(rows).for_each(|(part, rows)| part.halo_rows = rows);
        Ok(topology)
    }

    /// The topology of parts without halos.
    pub fn of(mut parts: Vec<Part>) -> Result<Self> {
        let mut start = 0;
        for part in &mut parts {
            part.start = start as u32;
            start += u64::from(part.num_inner);
            if start > MAX_VERTICES {
                let what = format!("the parts have more than {MAX_VERTICES} vertices");
                return Err(Error::Capacity(what));
            }
        }
        let rows = RowSpace::of(parts.iter().map(|part| u64::from(part.num_inner)));
        let edge_rows = RowSpace::of(parts.iter().map(|part| part.indices.len() as u64));
        Ok(Self { parts, rows: Arc::new(rows), edge_rows: Arc::new(edge_rows), orders: OnceLock::new() })
    }

    /// Number of vertices, which is that of rows.
    pub fn num_vertices(&self) -> u32 {
        self.rows.count() as u32
    }

    /// The parts.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The rows of the vertices.
    pub fn rows(&self) -> &Arc<RowSpace> {
        &self.rows
    }

    /// The rows of the in-edges: the place of an in-edge in its part, behind the in-edges of the parts
    /// before.
    pub fn edge_rows(&self) -> &Arc<RowSpace> {
        &self.edge_rows
    }

    /// The orders of long lists.
    pub(crate) fn orders(&self) -> Result<&Orders> {
        if self.orders.get().is_none() {
            // Another thread may be faster.
            let _ = self.orders.set(Orders::new(&self.parts)?);
        }
        self.orders.get().ok_or_else(|| Error::Internal("no orders".into()))
    }

    /// This topology, with memory for the places of `items` sources.
    #[cfg(test)]
    pub(crate) fn with_orders(mut self, items: usize) -> Self {
        self.orders = OnceLock::from(Orders::within(&self.parts, items).unwrap());
        self
    }

    /// Refuses rows of no vertex. `name` is that of the parameter.
    pub fn check_rows(&self, name: &'static str, rows: &[u32]) -> Result<()> {
        self.rows.check(name, rows)
    }

    /// Lets the operating system read the in-edges of some vertices ahead, where these are most of those
    /// between them.
    pub fn read_ahead(&self, rows: &[u32]) {
        for of_part in rows.chunk_by(|&one, &next| one < next && self.part_of(one) == self.part_of(next)) {
            let (first, last) = (of_part[0], of_part[of_part.len() - 1]);
            if (last - first) as usize <= 2 * of_part.len() {
                let part = &self.parts[self.part_of(first)];
                part.read_ahead(first - part.start, last - part.start);
            }
        }
    }

    /// The part of a row below [`Self::num_vertices`].
    #[inline(always)]
    pub fn part_of(&self, row: u32) -> usize {
        self.rows.part_of(u64::from(row))
    }

    /// The rows of the vertices with these original ids. `check` is asked now and then and ends the work by
    /// an error.
    pub fn rows_of(&self, ids: &[i64], check: &dyn Fn() -> Result<()>) -> Result<Vec<u32>> {
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        order.sort_unstable_by_key(|&place| ids[place as usize]);
        let mut rows = vec![crate::base::NONE; ids.len()];
        for part in &self.parts {
            let mut next = 0;
            for &place in &order {
                let id = ids[place as usize];
                next = place_of(&part.vertices, next, part.num_inner as usize, id);
                if next < part.num_inner as usize && part.vertices.get(next) == Some(id) {
                    rows[place as usize] = part.start + next as u32;
                }
            }
            check()?;
        }
        match rows.iter().position(|&row| row == crate::base::NONE) {
            Some(place) => Err(Error::parameter("ids", format!("no part holds the vertex {}", ids[place]))),
            None => Ok(rows),
        }
    }
}
