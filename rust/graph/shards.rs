//! The adjacency from shards: of the records, and of the vertices.
//!
//! Shards of the records are ranges of consecutive ones, and shards of the vertices are ranges of ids. Each
//! step is a task that reads files and writes one. It may run anywhere, and twice.
//!
//! 1. [`count`], for a shard of the records: how many entries fall on each range of ids, loops and digests.
//! 2. [`cut`]: shards of the vertices with about equal numbers of entries, from all counts.
//! 3. [`scatter`], for a shard of the records: its entries by shard of the vertices, in one file with an
//!    index.
//! 4. [`gather`], for a shard of the vertices: its entries from all these files, sorted, as a piece
//!    ([`pieces`]).
//!
//! The lists are those of [`Csr`](super::Csr), whatever the shards.
//!
//! **Memory.** Counts take 512 KiB. Scattering takes the buffers of a spill. Gathering takes 12 bytes per
//! entry of the shard.
//!
//! **Files.** 8 bytes per entry that is scattered, and 4 per entry of a piece. Every section of a file has a
//! checksum of its own, so a task verifies what it reads, and no more.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable, bytes_of, cast_slice, cast_slice_mut};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::checksum::{self, Hasher, UNIT};
use super::identity::Identity;
use super::pieces::{self, Piece};
use crate::base::regular_file::open_own;
use crate::base::system::FileExt as _;
use crate::base::{AtomicFile, Error, Result, Run, reserved, shown, zeros};
use crate::edges::{EdgeStream, Record};
use crate::exec::spill::Spill;
use crate::exec::{blocks, in_order, scan};

/// Most ranges of ids that are counted.
const RANGES: u64 = 1 << 16;
/// Records of a unit of scattering.
const RECORDS: u64 = 1 << 20;
/// The last bytes of a file of scattered entries.
const KIND: [u8; 8] = *b"fpscat01";

/// Counts of a shard of the records.
#[derive(Debug, Default)]
pub struct Counts {
    /// Entries of each range of ids.
    pub entries: Vec<u64>,
    /// Number of loops.
    pub loops: u64,
    /// The digest of each block of records, and its number.
    pub digests: Vec<(u64, u128)>,
}

impl Counts {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { entries, loops, digests } = self;
        let mut bytes = Vec::new();
        bytes.extend_from_slice(cast_slice(&[*loops, entries.len() as u64]));
        bytes.extend_from_slice(cast_slice(entries));
        for (number, digest) in digests {
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&digest.to_le_bytes());
        }
        bytes
    }

    /// From bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged =
            || Error::format("shards", "the counts of a shard are damaged. Remove them, and run again");
        let number = |at: usize| -> Result<u64> {
            let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.first_chunk()).ok_or_else(damaged)?;
            Ok(u64::from_le_bytes(*bytes))
        };
        let (loops, ranges) = (number(0)?, number(8)?.min(bytes.len() as u64) as usize);
        let entries = (0..ranges).map(|range| number(16 + 8 * range)).collect::<Result<_>>()?;
        let digests = bytes.get(16 + 8 * ranges..).ok_or_else(damaged)?.chunks(24);
        let digests = digests.map(|chunk| {
            let (number, digest) = (chunk.first_chunk(), chunk.last_chunk().filter(|_| chunk.len() == 24));
            Ok((
                u64::from_le_bytes(*number.ok_or_else(damaged)?),
                u128::from_le_bytes(*digest.ok_or_else(damaged)?),
            ))
        });
        Ok(Self { loops, entries, digests: digests.collect::<Result<_>>()? })
    }
}

/// The key of the lists of a graph with this checksum.
pub fn key(checksum: &str) -> u128 {
    xxh3_128(checksum.as_bytes())
}

/// Bits of an id beside those of its range, for ids below `n`.
fn shift(n: u64) -> u32 {
    let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
    bits.saturating_sub(RANGES.ilog2())
}

/// At most `count` shards of `m` records, which begin where blocks of the checksum do.
pub fn records(m: u64, count: u64) -> Vec<Range<u64>> {
    let each = m.div_ceil(count.max(1)).next_multiple_of(UNIT).max(UNIT);
    (0..m.div_ceil(each)).map(|index| index * each..m.min((index + 1) * each)).collect()
}

/// Looks at a shard of the records. A `symmetric` stream has an entry per record, and others two.
pub fn count(edges: &dyn EdgeStream, shard: Range<u64>, symmetric: bool, run: &Run) -> Result<Counts> {
    let (n, m) = (edges.num_vertices(), edges.num_edges());
    let shift = shift(n);
    run.begin("count", shard.end - shard.start);
    let mut entries: Vec<u64> = zeros((n.saturating_sub(1) >> shift) as usize + 1, "counts of ids")?;
    let (mut loops, mut hasher) = (0, Hasher::default());
    in_order(edges, shard, run, |first, records| {
        hasher.update(first, records, m);
        for &[u, v] in records {
            if u == v {
                loops += 1;
                continue;
            }
            entries[(u >> shift) as usize] += 1;
            entries[(v >> shift) as usize] += u64::from(!symmetric);
        }
        Ok(())
    })?;
    Ok(Counts { entries, loops, digests: hasher.digests() })
}

/// The identity of the graph, and the first vertex of each of about `count` shards, from the counts of all
/// shards of `m` records.
pub fn cut(all: Vec<Counts>, [n, m]: [u64; 2], count: u64) -> (Identity, Vec<u32>) {
    let shift = shift(n);
    let (mut entries, mut loops, mut digests) =
        (vec![0; (n.saturating_sub(1) >> shift) as usize + 1], 0, Vec::new());
    for counts in all {
        entries.iter_mut().zip(counts.entries).for_each(|(sum, its)| *sum += its);
        loops += counts.loops;
        digests.extend(counts.digests);
    }
    // A range without entries also takes space.
    let weight = |index: usize| entries[index] + 1;
    let each = (0..entries.len()).map(weight).sum::<u64>().div_ceil(count.max(1));
    let (mut starts, mut sum) = (vec![0], 0);
    for index in 0..entries.len() {
        if sum > 0 && sum + weight(index) > each {
            starts.push((index as u64) << shift);
            sum = 0;
        }
        sum += weight(index);
    }
    starts.push(n);
    let identity = Identity { n, m, loops, checksum: checksum::of_digests(digests) };
    (identity, starts.into_iter().map(|start| start as u32).collect())
}

/// Where a section of a file lies, and the digest of its entries.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Section {
    first: u64,
    count: u64,
    digest: u128,
}

/// The end of a file of scattered entries.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
struct Tail {
    sections: u64,
    kind: [u8; 8],
    digest: u128,
}

/// Writes the entries of a shard of the records into the file `into`, by shard of the vertices. `starts` has
/// the first vertex of each, and their number.
pub fn scatter(
    edges: &dyn EdgeStream,
    shard: Range<u64>,
    symmetric: bool,
    starts: &[u32],
    into: &Path,
    run: &Run,
) -> Result<()> {
    run.begin("scatter", shard.end - shard.start);
    let count = starts.len() - 1;
    let shard_of = |v: u32| starts.partition_point(|&start| start <= v) - 1;
    let spill: Spill<Record> = Spill::create(run.tmp_dir(), count)?;
    let units = blocks_of(shard).into_iter().zip(0..);
    let init = || Ok((spill.writer()?, Vec::new()));
    let writers = scan(run, usize::MAX, units, init, |(writer, buf), (unit, number)| {
        writer.begin(number)?;
        for range in blocks(unit) {
            let records = edges.block(range, buf)?;
            for &[u, v] in records {
                if u == v {
                    continue;
                }
                writer.push(shard_of(u), [u, v])?;
                if !symmetric {
                    writer.push(shard_of(v), [v, u])?;
                }
            }
            run.advance(records.len() as u64)?;
        }
        Ok(())
    })?;
    edges.check_unchanged()?;
    let spilled = spill.seal(writers.into_iter().map(|(writer, _)| writer).collect())?;
    let mut file = AtomicFile::create(into)?;
    let (mut sections, mut first) = (reserved(count, "sections of a file")?, 0);
    for bucket in 0..count {
        let (mut hash, before) = (Xxh3::new(), first);
        spilled.read(bucket, run, |entries| {
            hash.update(cast_slice(entries));
            first += entries.len() as u64;
            file.append(cast_slice(entries))
        })?;
        sections.push(Section { first: before, count: first - before, digest: hash.digest128() });
    }
    let index: &[u8] = cast_slice(&sections);
    file.append(index)?;
    let tail = Tail { sections: count as u64, kind: KIND, digest: xxh3_128(index) };
    file.append(bytes_of(&tail))?;
    file.commit()
}

/// Units of a shard of the records.
fn blocks_of(shard: Range<u64>) -> Vec<Range<u64>> {
    let step = shard.clone().step_by(RECORDS as usize);
    step.map(|start| start..shard.end.min(start + RECORDS)).collect()
}

/// Gathers the entries of a shard of the vertices from all files of scattered ones, and writes their lists.
/// The key says what these depend on.
pub fn gather(
    sources: &[PathBuf],
    shard: usize,
    vertices: Range<u32>,
    key: u128,
    into: &Path,
    run: &Run,
) -> Result<Piece> {
    let mut entries: Vec<Record> = Vec::new();
    run.begin("gather", sources.len() as u64);
    for source in sources {
        section(source, shard, &mut entries)?;
        run.advance(1)?;
    }
    let mut degrees: Vec<u32> = zeros(vertices.len(), "degrees of vertices")?;
    let place = |v: u32| v.checked_sub(vertices.start).filter(|_| v < vertices.end).map(|v| v as usize);
    for &[v, _] in &entries {
        let other = || Error::format("shards", format!("vertex {v} in the shard of {vertices:?}"));
        degrees[place(v).ok_or_else(other)?] += 1;
    }
    let mut ends: Vec<u64> = reserved(vertices.len(), "places of lists")?;
    ends.extend(degrees.iter().scan(0, |sum, &degree| {
        let start = *sum;
        *sum += u64::from(degree);
        Some(start)
    }));
    // Placing the entries of a vertex moves its start to its end.
    let mut targets: Vec<u32> = zeros(entries.len(), "lists of a shard")?;
    for [v, u] in entries.drain(..) {
        let end = &mut ends[(v - vertices.start) as usize];
        targets[*end as usize] = u;
        *end += 1;
    }
    drop(entries);
    let mut start = 0;
    for (&end, count) in ends.iter().zip(1_u32..) {
        targets[start as usize..end as usize].sort_unstable();
        start = end;
        if count.is_multiple_of(1 << 12) {
            run.check()?;
        }
    }
    pieces::write(into, key, (vertices.start, &degrees, false), run, |to| to.items(&targets))?;
    Ok(Piece { path: into.into(), vertices, entries: targets.len() as u64 })
}

/// Reads the section of a shard, and adds its entries.
fn section(source: &Path, shard: usize, entries: &mut Vec<Record>) -> Result<()> {
    let io = |error| Error::io(source, error);
    let damaged = || {
        Error::format(shown(source), "the file is damaged. Remove it and run again, which writes it again")
    };
    let file = open_own(source, File::options().read(true))?;
    let len = file.metadata().map_err(io)?.len();
    let mut tail = Tail::zeroed();
    let at = len.checked_sub(size_of::<Tail>() as u64).ok_or_else(damaged)?;
    file.read_exact_at(bytemuck::bytes_of_mut(&mut tail), at).map_err(io)?;
    let bytes = tail.sections.checked_mul(size_of::<Section>() as u64).filter(|&bytes| bytes <= at);
    let bytes = bytes.filter(|_| tail.kind == KIND && (shard as u64) < tail.sections).ok_or_else(damaged)?;
    let mut sections: Vec<Section> = zeros(tail.sections as usize, "sections of a file")?;
    file.read_exact_at(cast_slice_mut(&mut sections), at - bytes).map_err(io)?;
    if xxh3_128(cast_slice(&sections)) != tail.digest {
        return Err(damaged());
    }
    let Section { first, count, digest } = sections[shard];
    let before = entries.len();
    entries
        .try_reserve_exact(count as usize)
        .map_err(|_| Error::MemoryRefused { what: "entries of a shard".into(), needed: 8 * count })?;
    entries.resize(before + count as usize, [0; 2]);
    let bytes: &mut [u8] = cast_slice_mut(&mut entries[before..]);
    file.read_exact_at(bytes, 8 * first).map_err(io)?;
    if xxh3_128(bytes) == digest { Ok(()) } else { Err(damaged()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::Random;
    use crate::edges::OwnedEdges;
    use crate::exec::division::tests::replicas;
    use crate::graph::Csr;

    fn random(n: u32, m: usize) -> OwnedEdges {
        let mut random = Random::new(7, 0);
        // Loops, and parallel records of one vertex.
        let mut record = |index: usize| match index % 10 {
            0 => [index as u32 % n; 2],
            1 => [n / 2, n - 1],
            _ => [0; 2].map(|_| random.below(n.into()) as u32),
        };
        OwnedEdges::new(n.into(), (0..m).map(&mut record).collect()).unwrap()
    }

    /// All pieces of a graph, and its identity.
    fn pieces(edges: &OwnedEdges, symmetric: bool, [e, s]: [u64; 2], into: &Path) -> (Vec<Piece>, Identity) {
        let (run, [n, m]) = (Run::new(Some(2), None).unwrap(), [edges.num_vertices(), edges.num_edges()]);
        let counts = records(m, e).into_iter().map(|shard| {
            let bytes = count(edges, shard, symmetric, &run).unwrap().to_bytes();
            assert!(Counts::from_bytes(&bytes[..bytes.len() - 1]).is_err());
            Counts::from_bytes(&bytes).unwrap()
        });
        let (graph, starts) = cut(counts.collect(), [n, m], s);
        let sources: Vec<PathBuf> = (0..e).map(|e| into.join(format!("scattered-{e}"))).collect();
        for (index, source) in (0..e).zip(&sources) {
            scatter(edges, m * index / e..m * (index + 1) / e, symmetric, &starts, source, &run).unwrap();
        }
        let shards = starts.windows(2).enumerate().map(|(index, ends)| {
            let path = into.join(format!("shard-{index}"));
            let piece = gather(&sources, index, ends[0]..ends[1], 5, &path, &run).unwrap();
            assert_eq!(pieces::entries(&path).unwrap(), piece.entries);
            piece
        });
        (shards.collect(), graph)
    }

    #[test]
    fn replicas_have_the_lists_of_one_adjacency() {
        for (n, m) in [(1, 0), (1, 3), (700, 5000), (100_000, 3000)] {
            let edges = random(n, m);
            for symmetric in [false, true] {
                let run = Run::new(Some(1), None).unwrap();
                let whole = Csr::build(&edges, symmetric, &run).unwrap();
                for [e, s, count] in [[1, 1, 1], [3, 8, 3], [2, 5, 4], [5, 1, 2]] {
                    let folder = tempfile::tempdir().unwrap();
                    let (pieces, graph) = pieces(&edges, symmetric, [e, s], folder.path());
                    assert_eq!(&graph, whole.graph());
                    let seen: usize = replicas(&vec![0; count as usize + 1], folder.path(), |division| {
                        let run = Run::new(Some(1), None).unwrap();
                        let replica = (division.peers(), division.number(), count as usize);
                        let csr: Arc<Csr> =
                            Csr::divided(&pieces, 5, graph.clone(), symmetric, replica, &run).unwrap();
                        assert_eq!(csr.offsets(), whole.offsets());
                        let here = csr.division().unwrap().here();
                        here.clone().for_each(|v| assert_eq!(csr.neighbours(v), whole.neighbours(v)));
                        here.len()
                    })
                    .into_iter()
                    .sum();
                    assert_eq!(seen, n as usize);
                }
            }
        }
    }

    #[test]
    fn a_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let run = Run::new(Some(1), None).unwrap();
        let (pieces, _) = pieces(&random(50, 400), false, [1, 2], folder.path());
        let source = folder.path().join("scattered-0");
        let bytes = std::fs::read(&source).unwrap();
        for at in [0, bytes.len() / 2, bytes.len() - 70, bytes.len() - 20, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&source, damaged).unwrap();
            let outcomes = (0..2).map(|shard| {
                gather(std::slice::from_ref(&source), shard, 0..50, 5, &folder.path().join("x"), &run)
            });
            let errors: Vec<String> =
                outcomes.filter_map(Result::err).map(|error| error.to_string()).collect();
            assert!(
                errors.iter().any(|error| error.contains("scattered-0: the file is damaged")),
                "{at} {errors:?}"
            );
        }
        let piece = &pieces[1];
        let bytes = std::fs::read(&piece.path).unwrap();
        for at in [3, 20, 40, bytes.len() / 2, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&piece.path, damaged).unwrap();
            let dealt = pieces::Dealt {
                pieces: &pieces,
                key: 5,
                n: 50,
                weighted: false,
                firsts: &[0, 2],
                whole: false,
            };
            let error = dealt.copy(0, &run).err().unwrap().to_string();
            assert!(error.contains("shard-1: the file is damaged"), "{error}");
        }
    }
}
