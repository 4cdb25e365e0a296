//! A batch in the order of types and relations.

use crate::base::{Error, Result};
use crate::sampling::levels::sample::Sample;
use crate::sampling::topology::types::Types;

/// The nodes while a batch is ordered.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    nodes: Vec<Node>,
    rows: Vec<u32>,
    cursors: Vec<usize>,
}

/// A node: its place among those of its type, and the type. An in-edge finds all it needs of its source in
/// one line of the cache.
#[derive(Debug, Clone, Copy)]
struct Node {
    place: i32,
    number: u16,
}

impl Sample {
    /// Orders a batch of levels whose in-edges are of these `relations`.
    pub(crate) fn order_by_type(
        &mut self,
        sample: &Sample,
        relations: &[u16],
        types: &Types,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.edge_rows.clear(); // files of in-edges belong to relations
        self.place_nodes(sample, types, scratch);
        self.put_nodes(sample, scratch);
        self.count_edges(sample, relations, types);
        self.put_edges(sample, relations, types, scratch)
    }

    /// Finds types and places of the nodes, and counts them.
    fn place_nodes(&mut self, sample: &Sample, types: &Types, scratch: &mut Scratch) {
        let (count, levels) = (types.num_types(), sample.num_nodes.len());
        let Scratch { nodes, rows, .. } = scratch;
        nodes.clear();
        rows.clear();
        self.num_nodes.clear();
        self.num_nodes.resize(count * levels, 0);
        let (mut before, mut rest) = (vec![0; count], &sample.rows[..]);
        for (level, &size) in sample.num_nodes.iter().enumerate() {
            let (of_level, after) = rest.split_at(size as usize);
            for &row in of_level {
                let (number, row) = types.locate(row);
                let of_type = &mut before[usize::from(number)];
                nodes.push(Node { place: *of_type, number });
                rows.push(row);
                *of_type += 1;
                self.num_nodes[usize::from(number) * levels + level] += 1;
            }
            rest = after;
        }
        ends_of(before.iter().map(|&count| count as usize), &mut self.nodes);
    }

    fn put_nodes(&mut self, sample: &Sample, scratch: &Scratch) {
        let Scratch { nodes, rows, .. } = scratch;
        self.rows.resize(rows.len(), 0);
        self.ids.resize(rows.len(), 0);
        self.temporal = sample.temporal;
        self.seed_times.resize(sample.seed_times.len(), 0);
        let starts = &self.nodes;
        let there = |node: &Node| starts[usize::from(node.number)] + node.place as usize;
        for ((node, &row), &id) in nodes.iter().zip(rows).zip(&sample.ids) {
            (self.rows[there(node)], self.ids[there(node)]) = (row, id);
        }
        for (node, &time) in nodes.iter().zip(&sample.seed_times) {
            self.seed_times[there(node)] = time;
        }
    }

    /// Counts the in-edges of each relation, and the targets of each.
    fn count_edges(&mut self, sample: &Sample, relations: &[u16], types: &Types) {
        let (count, hops, levels) = (types.num_relations(), sample.num_edges.len(), sample.num_nodes.len());
        self.num_edges.clear();
        self.num_edges.resize(count * hops, 0);
        let mut rest = relations;
        for (hop, &size) in sample.num_edges.iter().enumerate() {
            let (of_hop, after) = rest.split_at(size as usize);
            of_hop.iter().for_each(|&relation| self.num_edges[usize::from(relation) * hops + hop] += 1);
            rest = after;
        }
        let edges = (0..count).map(|relation| &self.num_edges[relation * hops..][..hops]);
        ends_of(edges.map(|of_hops| of_hops.iter().sum::<u64>() as usize), &mut self.edges);
        let targets = types.ends.iter().map(|&[_, target]| {
            let of_levels = &self.num_nodes[usize::from(target) * levels..][..levels - 1];
            of_levels.iter().sum::<u64>() as usize + 1
        });
        ends_of(targets, &mut self.targets);
    }

    /// Puts the in-edges of each target behind those of the targets before it.
    fn put_edges(
        &mut self,
        sample: &Sample,
        relations: &[u16],
        types: &Types,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Scratch { nodes, cursors, .. } = scratch;
        cursors.clear();
        cursors.extend_from_slice(&self.edges);
        self.indptr.clear();
        self.indptr.resize(self.targets[types.num_relations()], 0);
        self.indices.resize(relations.len(), 0);
        self.edge_ids.resize(sample.edge_ids.len(), 0);
        for (target, bounds) in sample.indptr.windows(2).enumerate() {
            let mut rest = bounds[0] as usize..bounds[1] as usize;
            for run in relations[rest.clone()].chunk_by(|one, other| one == other) {
                let (relation, edges) = (usize::from(run[0]), rest.start..rest.start + run.len());
                let (first, [source, end]) = (cursors[relation], types.ends[relation]);
                let mut right = end == nodes[target].number;
                for (place, &index) in self.indices[first..].iter_mut().zip(&sample.indices[edges.clone()]) {
                    let node = nodes[index as usize];
                    (*place, right) = (node.place, right && node.number == source);
                }
                if !right {
                    return Err(of_other_types(sample, target));
                }
                let last = first + run.len();
                if let Some(ids) = self.edge_ids.get_mut(first..last) {
                    ids.copy_from_slice(&sample.edge_ids[edges.clone()]);
                }
                self.indptr[self.targets[relation] + nodes[target].place as usize + 1] =
                    (last - self.edges[relation]) as i32;
                (cursors[relation], rest.start) = (last, edges.end);
            }
        }
        self.fill_gaps();
        Ok(())
    }

    /// Lets the in-edges of targets without any begin where those of the target before end.
    fn fill_gaps(&mut self) {
        for bounds in self.targets.windows(2) {
            let mut before = 0;
            for end in &mut self.indptr[bounds[0]..bounds[1]] {
                before = before.max(*end);
                *end = before;
            }
        }
    }
}

/// Writes where the items of each count begin, and the number of all items.
fn ends_of(counts: impl Iterator<Item = usize>, into: &mut Vec<usize>) {
    into.clear();
    into.push(0);
    let mut end = 0;
    into.extend(counts.map(|count| {
        end += count;
        end
    }));
}

#[cold]
fn of_other_types(sample: &Sample, target: usize) -> Error {
    let what = format!(
        "an in-edge of vertex {} of a relation between other types. The file is damaged or was changed. Save the \
         partition again",
        sample.ids[target]
    );
    Error::format("relations.npy", what)
}
