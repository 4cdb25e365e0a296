//! Means of rows over whole lists of in-edges, without copies of the rows.
//!
//! **Requirements.** Rows of 32-bit floats of all parts, and the topology. Rows may have a weight each.
//!
//! **Why.** A layer that takes the mean of the neighbours reads each row once for every in-edge, and needs no
//! row in a place of its own. Copying the rows of a block of targets, numbering its vertices and multiplying
//! by a sparse matrix would read and write the rows three times, and ask a hash table once per in-edge. From
//! a disk, each block reads nearly all rows again.
//!
//! **Algorithm.** If memory holds the rows, the targets are split among the threads by their in-edges. A
//! thread takes targets until it has [`ENOUGH`] in-edges, looks up the rows of their sources, and adds them
//! up. Rows are brought into the cache a few in-edges before they are added. If not, the in-edges are sorted
//! by their source, the rows are read once, in the order of the files, and each is added to the sums of all
//! its targets (*sweep*). Sums have 64 bits: with fewer than 2^29 rows of about the same exponent nothing is
//! rounded before the end. So both ways give the same bits, for any partition. Numbers times a weight are
//! rounded to 32 bits before they are added, for the same reason.
//!
//! **Memory.** 8 bytes for each of [`ENOUGH`] in-edges and thread, or for those of the largest list. A sweep:
//! 8 bytes per in-edge, 8 per number of the targets, and 16 per source.
//!
//! **Complexity.** O(width) for each in-edge, and a sort of them in a sweep.
//!
//! Source: Huang et al., "GE-SpMM: General-purpose Sparse Matrix-Matrix Multiplication on GPUs for Graph
//! Neural Networks", SC 2020, on sums without gathered rows. Sweeps are those of Roy, Mihailovic and
//! Zwaenepoel, "X-Stream: Edge-centric Graph Processing using Streaming Partitions", SOSP 2013.

use std::ops::Range;
use std::sync::Arc;

use super::Features;
use super::direct_reads;
use crate::base::{Buffer, Error, Result, prefetch_at};
use crate::parts::coding::Number;

/// From this number of targets on, their sources lie in nearly all pages of most files.
const MANY: usize = 1 << 14;

/// In-edges that are looked up at a time. Few, so that what they bring into the cache stays there.
const ENOUGH: usize = 2048;

/// Bytes of rows that are on their way into the cache.
const AHEAD: usize = 8192;

/// In-edges between an in-edge and the one whose row in the halo, or whose sum, is brought into the cache.
const DISTANCE: usize = 32;

/// The type of the numbers in numpy.
const NUMBER: &str = "<f4";

impl Features {
    /// Whether [`Self::means`] can be asked for: all parts have rows of floats for their vertices.
    pub fn has_means(&self) -> bool {
        self.descr == NUMBER && self.has_all() && Arc::ptr_eq(self.space(), self.topology().rows())
    }

    /// Writes the mean of the rows over the in-edges of each target, zeros without in-edges. `means` has a
    /// row for each. With `weights`, one for each row of the topology, it is that of the rows times their
    /// weights.
    pub fn means(
        &self,
        targets: &[u32],
        weights: Option<&[f32]>,
        means: &mut [f32],
        threads: usize,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let width = self.row_bytes / size_of::<f32>();
        self.topology().check_rows("targets", targets)?;
        if !self.has_means() || means.len() != targets.len() * width {
            return Err(Error::parameter("targets", "means are those of rows of 32-bit floats of all parts"));
        }
        let n = self.topology().num_vertices() as usize;
        if let Some(weights) = weights.filter(|weights| weights.len() != n) {
            return Err(Error::parameter("weights", format!("{} for {n} rows", weights.len())));
        }
        if targets.len() >= MANY {
            self.topology().read_ahead(targets);
        }
        if self.is_on_disk() {
            return self.sweep(targets, weights, means, width, check);
        }
        let shares = self.shares(targets, threads.max(1))?;
        if targets.len() >= MANY {
            self.read_ahead();
        }
        let add_up = |targets, means: &mut [f32], check: &dyn Fn() -> Result<()>| {
            self.add_up(targets, weights, means, width, check)
        };
        std::thread::scope(|scope| {
            let (mut rest, mut started, mut own) = (means, Vec::new(), Ok(()));
            for (number, share) in shares.iter().enumerate() {
                let (here, behind) = std::mem::take(&mut rest).split_at_mut(share.len() * width);
                rest = behind;
                let targets = &targets[share.clone()];
                if number + 1 == shares.len() {
                    own = add_up(targets, here, check);
                } else {
                    started.push(scope.spawn(move || add_up(targets, here, &|| Ok(()))));
                }
            }
            let others = started
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            others.fold(own, Result::and)
        })
    }

    /// Reads each row once, in the order of the files, and adds it to the sums of its targets.
    fn sweep(
        &self,
        targets: &[u32],
        weights: Option<&[f32]>,
        means: &mut [f32],
        width: usize,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let (edges, degrees) = self.by_source(targets, check)?;
        let mut rows: Vec<u32> = Vec::new();
        let mut firsts: Vec<usize> = Vec::new();
        for (index, &edge) in edges.iter().enumerate() {
            let row = (edge >> 32) as u32;
            if rows.last() != Some(&row) {
                rows.push(row);
                firsts.push(index);
            }
        }
        firsts.push(edges.len());
        let mut sums = Buffer::<f64>::zeroed(targets.len() * width, "sums of rows")?;
        let mut decoded = vec![Number::default(); width];
        let mut add = |place: u32, row: &[u8]| {
            let place = place as usize;
            let weight = weight_of(weights, rows[place]);
            for index in firsts[place]..firsts[place + 1] {
                if let Some(&ahead) = edges.get(index + DISTANCE) {
                    let first = sums.as_ptr().wrapping_add(ahead as u32 as usize * width);
                    (0..width).step_by(8).for_each(|number| prefetch_at(first.wrapping_add(number)));
                }
                let sum = &mut sums[edges[index] as u32 as usize * width..][..width];
                // SAFETY: a whole row.
                unsafe { self.add(row.as_ptr(), |number| number * weight, sum, &mut decoded) };
            }
        };
        let order: Vec<u32> = (0..rows.len() as u32).collect();
        let (wanted, others) = self.directly(&rows, &order);
        direct_reads::read(&wanted, &mut add, check)?;
        let mut row = vec![0; self.stored_bytes()];
        for place in others {
            let Some(from) = self.address(rows[place as usize]) else { continue };
            // SAFETY: a row of the map, copied into memory of its size.
            unsafe { std::ptr::copy_nonoverlapping(from, row.as_mut_ptr(), row.len()) };
            add(place, &row);
            check()?;
        }
        let found = means.chunks_exact_mut(width.max(1)).zip(sums.chunks_exact(width.max(1)));
        found.zip(degrees).for_each(|((mean, sums), degree)| divide(mean, sums, degree));
        Ok(())
    }

    /// The in-edges of the targets by their source, whose row is the upper half of each and whose lower half
    /// is the place of the target, and the number of in-edges of each target.
    fn by_source(
        &self,
        targets: &[u32],
        check: &dyn Fn() -> Result<()>,
    ) -> Result<(Buffer<u64>, Vec<usize>)> {
        let total = self.in_edges(targets)?.last().copied().unwrap_or(0) - targets.len();
        let mut edges = Buffer::<u64>::zeroed(total, "in-edges by source")?;
        let (mut degrees, mut next) = (Vec::with_capacity(targets.len()), 0);
        self.look_up(
            targets,
            usize::MAX,
            &mut |place, row| {
                edges[next] = u64::from(row) << 32 | place as u64;
                next += 1;
            },
            &mut degrees,
            check,
        )?;
        edges.sort_unstable();
        Ok((edges, degrees))
    }

    /// For each target the number of in-edges up to its end, and of targets.
    fn in_edges(&self, targets: &[u32]) -> Result<Vec<usize>> {
        let mut sum = 0;
        let up_to = targets.iter().map(|&target| {
            let part = &self.topology().parts()[self.topology().part_of(target)];
            sum += part.in_edges(target - part.start)?.1 + 1;
            Ok(sum)
        });
        up_to.collect()
    }

    /// A range of targets for each thread, with about equal numbers of in-edges.
    fn shares(&self, targets: &[u32], threads: usize) -> Result<Vec<Range<usize>>> {
        let ends = self.in_edges(targets)?;
        let sum = ends.last().copied().unwrap_or(0);
        let mut first = 0;
        let bounds = (1..=threads).map(|thread| {
            let most = if thread == threads { sum } else { sum / threads * thread };
            let share = first..ends.partition_point(|&end| end <= most).max(first);
            first = share.end;
            share
        });
        Ok(bounds.collect())
    }

    /// Hands out the place and the row of each source of the first targets, until there are `enough` sources,
    /// and appends the number of in-edges of each target. Returns the number of these targets.
    fn look_up(
        &self,
        targets: &[u32],
        enough: usize,
        found: &mut dyn FnMut(usize, u32),
        degrees: &mut Vec<usize>,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<usize> {
        let (mut sources, mut count): (Vec<i32>, usize) = (Vec::new(), 0);
        for (place, &target) in targets.iter().enumerate() {
            if count >= enough {
                return Ok(place);
            }
            let part = &self.topology().parts()[self.topology().part_of(target)];
            let (first, degree) = part.in_edges(target - part.start)?;
            sources.resize(degree, 0);
            part.copy_sources(first, &mut sources)?;
            for index in 0..degree {
                if let Some(&ahead) = sources.get(index + DISTANCE) {
                    part.prefetch_row(ahead as u32, |_| std::ptr::null());
                }
                found(place, part.row_of(sources[index] as u32)?);
            }
            degrees.push(degree);
            count += degree;
            if place.is_multiple_of(ENOUGH) {
                check()?;
            }
        }
        Ok(targets.len())
    }

    /// Writes the means of targets, one after the other.
    fn add_up(
        &self,
        mut targets: &[u32],
        weights: Option<&[f32]>,
        mut means: &mut [f32],
        width: usize,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let (mut rows, mut degrees, mut sums) = (Vec::new(), Vec::new(), vec![0.0; width]);
        while !targets.is_empty() {
            rows.clear();
            degrees.clear();
            let count = self.look_up(targets, ENOUGH, &mut |_, row| rows.push(row), &mut degrees, check)?;
            targets = &targets[count..];
            let (here, behind) = std::mem::take(&mut means).split_at_mut(count * width);
            means = behind;
            match weights {
                None => self.add_rows(&rows, |_| (), |number, ()| number, &degrees, here, &mut sums),
                Some(weights) => {
                    let weight = |row: u32| weights[row as usize];
                    rows.iter().for_each(|&row| prefetch_at(weights.as_ptr().wrapping_add(row as usize)));
                    self.add_rows(&rows, weight, |number, weight| number * weight, &degrees, here, &mut sums);
                }
            }
            check()?;
        }
        Ok(())
    }

    /// Computes each of the `means` over the next rows, whose number is in `degrees`. Rows have a weight, and
    /// numbers are weighted.
    fn add_rows<W: Copy>(
        &self,
        rows: &[u32],
        weight: impl Fn(u32) -> W,
        weighted: impl Fn(f32, W) -> f32,
        degrees: &[usize],
        means: &mut [f32],
        sums: &mut [f64],
    ) {
        let distance = (AHEAD / self.stored_bytes().max(1)).clamp(2, DISTANCE);
        let (mut first, mut decoded) = (0, vec![Number::default(); sums.len()]);
        for (mean, &degree) in means.chunks_exact_mut(sums.len().max(1)).zip(degrees) {
            sums.fill(0.0);
            for index in first..first + degree {
                if let Some(ahead) = rows.get(index + distance).and_then(|&row| self.address(row)) {
                    for offset in (0..self.stored_bytes()).step_by(64) {
                        prefetch_at(ahead.wrapping_add(offset));
                    }
                }
                let Some(row) = self.address(rows[index]) else { continue };
                let weight = weight(rows[index]);
                // SAFETY: a row of the map.
                unsafe { self.add(row, |number| weighted(number, weight), sums, &mut decoded) };
            }
            divide(mean, sums, degree);
            first += degree;
        }
    }

    /// Adds the weighted numbers of a row to sums. One that is coded is decoded first.
    ///
    /// # Safety
    /// The row has as many bytes as those in the files.
    #[inline(always)]
    unsafe fn add(
        &self,
        row: *const u8,
        weighted: impl Fn(f32) -> f32,
        sums: &mut [f64],
        decoded: &mut [Number],
    ) {
        let Some(coding) = self.coding() else {
            for (place, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the caller vouches for the row. Any bytes are a number.
                *sum += f64::from(weighted(unsafe { row.cast::<f32>().add(place).read_unaligned() }));
            }
            return;
        };
        // SAFETY: the caller vouches for the row.
        unsafe { coding.decode(row, decoded) };
        let numbers = sums.iter_mut().zip(decoded);
        numbers.for_each(|(sum, number)| *sum += f64::from(weighted(f32::from_ne_bytes(*number))));
    }
}

/// The weight of a row. 1, which changes no number, if rows have none.
#[inline(always)]
fn weight_of(weights: Option<&[f32]>, row: u32) -> f32 {
    weights.map_or(1.0, |weights| weights[row as usize])
}

/// The mean of `degree` rows, given their sums.
fn divide(mean: &mut [f32], sums: &[f64], degree: usize) {
    let count = degree.max(1) as f64;
    mean.iter_mut().zip(sums).for_each(|(mean, sum)| *mean = (sum / count) as f32);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::base::npy;
    use crate::sampling::{Io, Part, Topology};

    #[test]
    fn means_are_those_of_the_lists() {
        let (n, width) = (50_usize, 3_usize);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("features.npy");
        let rows: Vec<f32> = (0..n * width).map(|at| (at * 37 % 101) as f32 / 8.0).collect();
        let bytes: Vec<u8> = rows.iter().flat_map(|number| number.to_le_bytes()).collect();
        fs::write(&file, [npy::header("<f4", &[n as u64, width as u64]), bytes].concat()).unwrap();
        let degrees: Vec<usize> = (0..n).map(|vertex| vertex * 7 % 11).collect();
        let mut indptr = vec![0_i64];
        degrees.iter().for_each(|&degree| indptr.push(indptr[indptr.len() - 1] + degree as i64));
        let indices: Vec<i32> = (0..indptr[n]).map(|edge| (edge * 13 % n as i64) as i32).collect();
        let vertices: Vec<i64> = (0..n as i64).collect();
        // SAFETY: the arrays live as long as the part.
        let part = unsafe { Part::in_memory(&vertices, &indptr, &indices, Box::new(())) }.unwrap();
        let topology = Arc::new(Topology::of(vec![part]).unwrap());
        let open = |io| Features::open(&[Some(file.clone())], Arc::clone(&topology), None, Some(io)).unwrap();
        let (mapped, direct, mut swept) = (open(Io::Mmap), open(Io::Direct), open(Io::Mmap));
        let loaded = direct.loaded().unwrap();
        assert!(!loaded.is_on_disk());
        swept.in_order = true;
        let targets: Vec<u32> = (0..70).map(|index| index * 31 % n as u32).collect();
        let ones = vec![1.0; n];
        let roots: Vec<f32> = (0..n).map(|row| (row as f32 + 1.0).sqrt().recip()).collect();
        let ways = [
            (&mapped, 1),
            (&mapped, 2),
            (&mapped, 5),
            (&mapped, 100),
            (&direct, 1),
            (&swept, 1),
            (&loaded, 2),
        ];
        for ((features, threads), weights) in
            ways.into_iter().flat_map(|way| [None, Some(&ones), Some(&roots)].map(|weights| (way, weights)))
        {
            let mut means = vec![9.0; targets.len() * width];
            features.means(&targets, weights.map(Vec::as_slice), &mut means, threads, &|| Ok(())).unwrap();
            let weights = weights.unwrap_or(&ones);
            for (&target, mean) in targets.iter().zip(means.chunks(width)) {
                let edges = indptr[target as usize] as usize..indptr[target as usize + 1] as usize;
                let mut sums = vec![0.0_f64; width];
                for &source in &indices[edges.clone()] {
                    let weight = weights[source as usize];
                    (0..width).for_each(|at| {
                        sums[at] += f64::from(weight * rows[source as usize * width + at]);
                    });
                }
                let count = edges.len().max(1) as f64;
                assert_eq!(mean, sums.iter().map(|sum| (sum / count) as f32).collect::<Vec<_>>());
            }
        }
        let mut means = vec![0.0; targets.len() * width];
        let error = mapped.means(&targets, Some(&ones[1..]), &mut means, 1, &|| Ok(())).unwrap_err();
        assert!(error.to_string().contains("weights: 49 for 50 rows"), "{error}");
    }
}
