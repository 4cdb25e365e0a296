//! How rows are cut into pieces that a worker holds in memory.
//!
//! A *window* is a range of rows with at most [`WINDOW`] edges and rows, or one single row with more. A part
//! of one window shares a bucket with its neighbours, as long as they fit together. A part of several windows
//! has a bucket for each. So the number of buckets grows with the edges and not with the parts, and a *group*
//! of parts is what a worker takes.

use std::ops::Range;

use crate::capacity::MAX_PARTS;
use crate::exec::spill::TAGS;

/// Edges and rows that a window holds: buffers that the third-level cache can hold. Never changes a result.
pub(crate) const WINDOW: u64 = 3 << 19;

// A row of the copies of a vertex never exceeds a window.
const _: () = assert!(MAX_PARTS < WINDOW);

/// Consecutive rows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Window {
    /// Key of the first row: keys ascend with the rows of a part.
    first: u32,
    /// Number of rows.
    pub rows: u64,
    /// Number of edges.
    pub edges: u64,
}

impl Window {
    /// All rows of a part.
    pub(crate) fn whole(rows: u64, edges: u64) -> Self {
        Self { first: 0, rows, edges }
    }

    fn fits(&self, rows: u64, edges: u64) -> bool {
        self.rows + self.edges + rows + edges <= WINDOW
    }
}

/// Where a part's edges go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    bucket: u32,
    windows: u32,
    /// Number of the part within its group.
    pub tag: u32,
}

/// The parts that a worker takes at once: one part, or several that share a bucket.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// The parts.
    pub parts: Range<usize>,
    /// Their buckets. Only a part alone has more than one.
    pub buckets: Range<usize>,
    /// Whether the bucket is small enough to be loaded as a whole.
    pub whole: bool,
}

/// The buckets of all parts.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    places: Vec<Place>,
    windows: Vec<Window>,
    /// First window of the part begun.
    begun: usize,
    /// The groups, in the order of the parts.
    pub groups: Vec<Group>,
}

impl Layout {
    /// Appends a part with rows of the given keys (ascending) and numbers of edges.
    pub(crate) fn add_part(&mut self, rows: impl Iterator<Item = (u32, u64)>) {
        self.begin_part();
        rows.for_each(|(key, edges)| self.add_row(key, edges));
        self.end_part();
    }

    /// Begins a part.
    pub(crate) fn begin_part(&mut self) {
        self.begun = self.windows.len();
        self.windows.push(Window::default());
    }

    /// Appends a row to the part begun.
    pub(crate) fn add_row(&mut self, key: u32, edges: u64) {
        if let Some(window) = self.windows.last_mut()
            && (window.rows == 0 || window.fits(1, edges))
        {
            let first = if window.rows == 0 { key } else { window.first };
            *window = Window { first, rows: window.rows + 1, edges: window.edges + edges };
        } else {
            self.windows.push(Window { first: key, rows: 1, edges });
        }
    }

    /// Ends the part.
    pub(crate) fn end_part(&mut self) {
        let (part, first_window) = (self.places.len(), self.begun);
        let own = self.windows[first_window];
        let whole = self.windows.len() == first_window + 1 && own.fits(0, 0);
        let neighbours =
            self.groups.last_mut().filter(|group| whole && group.whole && group.parts.len() < TAGS);
        if let Some(group) = neighbours
            && self.windows[first_window - 1].fits(own.rows, own.edges)
        {
            self.windows.pop();
            let shared = &mut self.windows[first_window - 1];
            shared.rows += own.rows;
            shared.edges += own.edges;
            let tag = group.parts.len() as u32;
            group.parts.end += 1;
            self.places.push(Place { bucket: first_window as u32 - 1, windows: 1, tag });
            return;
        }
        let buckets = first_window..self.windows.len();
        self.places.push(Place { bucket: first_window as u32, windows: buckets.len() as u32, tag: 0 });
        self.groups.push(Group { parts: part..part + 1, buckets, whole });
    }

    /// Most buckets that `rows`, `edges` and `parts` may need: two neighbouring buckets would not fit into
    /// one.
    pub(crate) fn most_buckets(rows: u64, edges: u64, parts: u64) -> u64 {
        2 * (rows + edges) / WINDOW + parts / TAGS as u64 + 1
    }

    /// Number of buckets.
    pub(crate) fn buckets(&self) -> usize {
        self.windows.len()
    }

    /// The windows of all buckets.
    pub(crate) fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Number of edges in all buckets.
    pub(crate) fn num_edges(&self) -> u64 {
        self.windows.iter().map(|window| window.edges).sum()
    }

    /// The window of a bucket.
    pub(crate) fn window(&self, bucket: usize) -> Window {
        self.windows[bucket]
    }

    /// Where the edges of the part go.
    #[inline(always)]
    pub(crate) fn place(&self, part: usize) -> Place {
        self.places[part]
    }

    /// The bucket of the part's row with that key.
    #[inline(always)]
    pub(crate) fn bucket(&self, place: Place, key: u32) -> usize {
        let first = place.bucket as usize;
        if place.windows == 1 {
            return first;
        }
        let later = &self.windows[first + 1..first + place.windows as usize];
        first + later.partition_point(|window| window.first <= key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(degrees: &[u64]) -> impl Iterator<Item = (u32, u64)> {
        degrees.iter().zip(0..).map(|(&edges, row)| (10 * row, edges))
    }

    #[test]
    fn small_parts_share_and_large_ones_are_cut() {
        let mut layout = Layout::default();
        layout.add_part(rows(&[1, 2]));
        layout.add_part(rows(&[]));
        layout.add_part(rows(&[WINDOW - 1, 5, 2 * WINDOW, 0, 1]));
        layout.add_part(rows(&[2 * WINDOW]));
        layout.add_part(rows(&[WINDOW - 10]));
        layout.add_part(rows(&[9]));
        let groups: Vec<_> =
            layout.groups.iter().map(|g| (g.parts.clone(), g.buckets.clone(), g.whole)).collect();
        let expected = [
            (0..2, 0..1, true),
            (2..3, 1..5, false),
            (3..4, 5..6, false),
            (4..5, 6..7, true),
            (5..6, 7..8, true),
        ];
        assert_eq!(groups, expected);
        let buckets = |part| {
            let place = layout.place(part);
            [0, 9, 10, 20, 29, 30, 40, 99].map(|key| layout.bucket(place, key))
        };
        assert_eq!(buckets(2), [1, 1, 2, 3, 3, 4, 4, 4]);
        assert_eq!(buckets(1), [0; 8]);
        assert_eq!((layout.place(0).tag, layout.place(1).tag, layout.place(2).tag), (0, 1, 0));
        assert_eq!((layout.window(4).rows, layout.window(4).edges), (2, 1));
    }

    #[test]
    fn many_empty_parts_make_groups_of_bounded_size() {
        let mut layout = Layout::default();
        (0..3 * TAGS).for_each(|_| layout.add_part(rows(&[])));
        assert_eq!((layout.groups.len(), layout.buckets()), (3, 3));
    }
}
