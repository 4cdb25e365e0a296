//! From the in-edges that were picked to places in the batch.
//!
//! Every step is a loop over many picks, which brings into the cache what the next step reads: local ids of
//! sources, rows of sources in the halo, stamps.

use std::ops::Range;

use super::node_places::IdTable;
use super::sample::{EdgeColumns, Sample};
use crate::base::Result;
use crate::sampling::topology::Topology;
use crate::sampling::topology::part::Part;

/// Picks that are collected before they are looked up. Few, so that what they bring into the cache stays
/// there.
pub(crate) const ENOUGH: usize = 512;

/// In-edges that were picked.
#[derive(Debug, Default)]
pub(crate) struct Picks {
    /// Place of each in-edge in its part.
    edges: Vec<u64>,
    runs: Vec<PickRun>,
    /// Their sources, first as local ids and then as rows.
    sources: Vec<u32>,
}

/// Picks of one target.
#[derive(Debug, Clone, Copy)]
struct PickRun {
    part: u32,
    count: u32,
    /// Whether these are the last ones of the target.
    last: bool,
}

/// How rows become places in the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Places {
    /// A row that is new is appended. Places count from this node on.
    Appended(usize),
    /// A pick whose row is not yet in the batch is dropped.
    Known,
}

impl Picks {
    /// Number of picks.
    pub(crate) fn len(&self) -> usize {
        self.edges.len()
    }

    /// Picks an in-edge of `part`. [`Self::close`] has to follow.
    #[inline(always)]
    pub(crate) fn push(&mut self, part: &Part, edge: usize) {
        part.indices.prefetch(edge);
        self.edges.push(edge as u64);
    }

    /// Appends `count` picks, which the caller sets. [`Self::close`] has to follow.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, count: usize) -> &mut [u64] {
        let begin = self.edges.len();
        self.edges.resize(begin + count, 0);
        &mut self.edges[begin..]
    }

    /// Picks in-edges that follow each other. [`Self::close`] has to follow.
    #[inline(always)]
    pub(crate) fn push_all(&mut self, edges: Range<usize>) {
        self.edges.extend(edges.start as u64..edges.end as u64);
    }

    /// Ends picks of a target of `part`, from number `first` on, which are the last ones or not.
    #[inline(always)]
    pub(crate) fn close(&mut self, part: u32, first: usize, last: bool) {
        self.runs.push(PickRun { part, count: (self.edges.len() - first) as u32, last });
    }

    /// Appends all picks to the batch, and forgets them.
    pub(crate) fn take(
        &mut self,
        topology: &Topology,
        ids: &mut IdTable,
        places: Places,
        wanted: EdgeColumns,
        sample: &mut Sample,
    ) -> Result<()> {
        sample.check_size(self.edges.len())?;
        self.find_sources(topology, ids, wanted.ids)?;
        self.find_rows(topology, ids)?;
        match places {
            Places::Appended(first) => self.append(first, ids, sample)?,
            Places::Known => self.append_known(ids, sample),
        }
        if wanted.ids {
            self.append_edge_ids(topology, &mut sample.edge_ids)?;
        }
        if wanted.rows {
            self.append_edge_rows(topology, &mut sample.edge_rows);
        }
        self.clear();
        Ok(())
    }

    /// Forgets all picks.
    pub(crate) fn clear(&mut self) {
        self.edges.clear();
        self.runs.clear();
    }

    /// Local ids of the sources.
    fn find_sources(&mut self, topology: &Topology, ids: &IdTable, with_edge_ids: bool) -> Result<()> {
        self.sources.resize(self.edges.len(), 0);
        let (mut rest, mut sources) = (&self.edges[..], &mut self.sources[..]);
        for &PickRun { part, count, .. } in &self.runs {
            let part = &topology.parts()[part as usize];
            let (edges, after) = rest.split_at(count as usize);
            let (found, after_found) = sources.split_at_mut(count as usize);
            for (source, &edge) in found.iter_mut().zip(edges) {
                *source = part.source(edge as usize)?;
                part.prefetch_row(*source, |row| ids.address(row));
                if with_edge_ids {
                    part.prefetch_edge_id(edge as usize);
                }
            }
            (rest, sources) = (after, after_found);
        }
        Ok(())
    }

    /// Rows of the sources.
    fn find_rows(&mut self, topology: &Topology, ids: &IdTable) -> Result<()> {
        let mut rest = &mut self.sources[..];
        for &PickRun { part, count, .. } in &self.runs {
            let part = &topology.parts()[part as usize];
            let (sources, after) = rest.split_at_mut(count as usize);
            for source in sources {
                *source = part.row_of(*source)?;
                ids.prefetch(*source);
            }
            rest = after;
        }
        Ok(())
    }

    /// Appends the picks, and rows that are new to the batch.
    fn append(&self, first: usize, ids: &mut IdTable, sample: &mut Sample) -> Result<()> {
        let mut edges = sample.indices.len();
        for run in &self.runs {
            edges += run.count as usize;
            if run.last {
                sample.indptr.push(edges as i32);
            }
        }
        // Every row is written behind the nodes, and stays there if it is new. So there is no branch.
        let mut nodes = sample.rows.len();
        sample.rows.resize(nodes + self.sources.len(), 0);
        let (rows, begin) = (&mut sample.rows[..], sample.indices.len());
        sample.indices.resize(begin + self.sources.len(), 0);
        let mut indices = sample.indices[begin..].iter_mut();
        ids.place(&self.sources, |row, place, new| {
            rows[nodes] = row;
            nodes += usize::from(new);
            if let Some(index) = indices.next() {
                *index = (first as u32).wrapping_add(place) as i32;
            }
        })?;
        sample.rows.truncate(nodes);
        sample.check_size(0)
    }

    /// Appends the picks whose source is in the batch. The others are dropped.
    fn append_known(&mut self, ids: &IdTable, sample: &mut Sample) {
        let (mut read, mut kept) = (0, 0);
        for run in &mut self.runs {
            let (end, before) = (read + run.count as usize, kept);
            for read in read..end {
                if let Some(place) = ids.get(self.sources[read]) {
                    sample.indices.push(place as i32);
                    self.edges[kept] = self.edges[read];
                    kept += 1;
                }
            }
            if run.last {
                sample.indptr.push(sample.indices.len() as i32);
            }
            (read, run.count) = (end, (kept - before) as u32);
        }
        self.edges.truncate(kept);
    }

    fn append_edge_rows(&self, topology: &Topology, into: &mut Vec<i64>) {
        let (starts, mut rest) = (topology.edge_rows().starts(), &self.edges[..]);
        for &PickRun { part, count, .. } in &self.runs {
            let (edges, after) = rest.split_at(count as usize);
            let start = starts[part as usize];
            into.extend(edges.iter().map(|&edge| (start + edge) as i64));
            rest = after;
        }
    }

    fn append_edge_ids(&self, topology: &Topology, into: &mut Vec<i64>) -> Result<()> {
        let mut rest = &self.edges[..];
        for &PickRun { part, count, .. } in &self.runs {
            let part = &topology.parts()[part as usize];
            let (edges, after) = rest.split_at(count as usize);
            for &edge in edges {
                into.push(part.edge_id(edge as usize)?);
            }
            rest = after;
        }
        Ok(())
    }
}
