//! The format of an input, and its records.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::sink::Intake;
use super::{Convert, Format, WeightsFrom, matrix, metis, text, with_suffix};
use crate::base::npy::MAGIC;
use crate::base::regular_file::open_regular;
use crate::base::system::FileExt as _;
use crate::base::{Error, Result, Run, shown};
use crate::edges::{EdgeFile, EdgeStream, Io, MAX_VERTICES, WideRecord, plausible};
use crate::exec::pass;

/// Suffixes of raw files. Bytes that happen to look like text do not make them text.
const RAW: [&str; 6] = ["bin", "raw", "u32", "u64", "edges32", "edges64"];

/// Suffixes of text, whatever the bytes.
const TEXT: [&str; 3] = ["txt", "tsv", "csv"];

/// Suffixes of METIS graphs, whose bytes could be those of an edge list.
const METIS: [&str; 2] = ["graph", "metis"];

/// The content of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Text { metis: bool, gzip: bool },
    Matrix { gzip: bool },
    Npy,
    Raw,
    Binedgelist,
}

/// Facts about the graph that an input states beside its records.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stated {
    /// Number of vertices.
    pub(super) n: Option<u64>,
    /// Whether an undirected edge is listed in both directions.
    pub(super) both: Option<bool>,
    /// Whether it is text that has bytes, and there is no record so far.
    pub(super) no_record: bool,
}

impl Stated {
    fn of(n: u64) -> Self {
        Stated { n: Some(n), ..Stated::default() }
    }
}

impl Input {
    /// By the options, else by name, else by the bytes.
    pub(super) fn find(mut file: &File, path: &Path, options: &Convert) -> Result<Input> {
        let mut head = Vec::new();
        io::Seek::rewind(&mut file)
            .and_then(|()| file.take(1 << 12).read_to_end(&mut head))
            .and_then(|_| io::Seek::rewind(&mut file))
            .map_err(|error| Error::io(path, error))?;
        let binary = options.swap || options.id_type.is_some();
        if binary && options.format.is_some() {
            return Err(Error::parameter("format", "dtype= and swap= are for raw pairs. Leave them out"));
        }
        let gzip = plausible::is_gzip(&head) || head.starts_with(&[0x1f, 0x8b]) && named(path, &["gz"]);
        let stem = path.file_stem().filter(|_| gzip && named(path, &["gz"])).map_or(path, Path::new);
        Ok(match options.format {
            Some(Format::Binedgelist) => Input::Binedgelist,
            Some(format) => Input::Text { metis: format == Format::Metis, gzip },
            None if head.starts_with(MAGIC) => Input::Npy,
            None if binary => Input::Raw,
            None if plausible::other_format(&head).is_some() => Input::Raw, // which is refused by name
            None if named(path, &["binedgelist"]) => Input::Binedgelist,
            None if text::is_matrix_market(&head) || named(stem, &["mtx"]) => Input::Matrix { gzip },
            None if named(stem, &["hgr"]) => {
                let what = "a hypergraph of hMETIS, by its suffix .hgr. fastpart partitions graphs: write the pairs of \
                            vertices that each hyperedge joins, two ids a line";
                return Err(Error::format(shown(path), what));
            }
            None if named(stem, &METIS) => Input::Text { metis: true, gzip },
            None if gzip => Input::Text { metis: false, gzip },
            None if plausible::is_text(&head)
                || named(path, &TEXT)
                || !named(path, &RAW) && is_nearly_text(&head) =>
            {
                Input::Text { metis: false, gzip }
            }
            None => Input::Raw,
        })
    }

    /// Its name in `fastpart.convert`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Input::Text { metis: true, .. } => "metis",
            Input::Text { .. } => "text",
            Input::Matrix { .. } => "matrix",
            Input::Npy => "npy",
            Input::Raw => "raw",
            Input::Binedgelist => "binedgelist",
        }
    }

    /// Hands the records to `intake`. Returns the facts that the input states about the graph.
    pub(super) fn read(
        self,
        (file, metadata): (&File, &Metadata),
        (path, target): (&Path, &Path),
        options: &Convert,
        intake: &mut Intake,
        run: &Run,
    ) -> Result<Stated> {
        let weights = (options.weights == WeightsFrom::File).then(|| with_suffix(target, ".weights.in"));
        let weights = weights.as_deref();
        match self {
            Input::Text { gzip, .. } | Input::Matrix { gzip } => {
                let source = unpacked((file, metadata), gzip, run);
                let weight = match &options.weights {
                    WeightsFrom::Column(column) => Some(column),
                    _ => None,
                };
                let asked = options.asked(weight);
                let read = match self {
                    Input::Matrix { .. } => matrix::read(source, path, weight.is_some(), intake, run)
                        .map(|(n, both)| Stated { both: Some(both), ..Stated::of(n) }),
                    Input::Text { metis: true, .. } => from_metis(source, path, intake, run).map(Stated::of),
                    _ => from_text(source, path, asked, intake, run)
                        .map(|bytes| Stated { no_record: bytes && intake.n == 0, ..Stated::default() }),
                };
                // Asked first: nonsense in a file that changed is no fault of the file.
                check_unchanged(file, metadata, path)?;
                read
            }
            Input::Npy | Input::Raw => {
                let layout = options.layout.filter(|_| !options.swap);
                let edges = EdgeFile::open_ordered(path, options.id_type, layout, Io::Map, options.swap)?;
                from_binary(&edges, weights, intake, run).map(|()| Stated::default())
            }
            Input::Binedgelist => from_binedgelist(path, weights, intake, run).map(Stated::of),
        }
    }
}

/// The content of a file of text, which is read as progress.
pub(super) fn unpacked<'a>(
    (file, metadata): (&'a File, &Metadata),
    gzip: bool,
    run: &'a Run,
) -> Box<dyn Read + Send + 'a> {
    run.begin("convert", metadata.len());
    let source: Box<dyn Read + Send> = Box::new(ProgressReader { file, run });
    match gzip {
        true => Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 16, source))),
        false => source,
    }
}

fn named(path: &Path, names: &[&str]) -> bool {
    path.extension().and_then(OsStr::to_str).is_some_and(|name| names.contains(&name))
}

/// Text with marks, foreign letters or damage in it, which the parser finds. Three of four bytes are text. In
/// raw u32 ids, below 2^24 every fourth byte is zero, and of the others few happen to be text.
fn is_nearly_text(head: &[u8]) -> bool {
    let text = |byte: &&u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    head.starts_with(text::MARK) || 4 * head.iter().filter(text).count() > 3 * head.len()
}

pub(super) fn check_unchanged(file: &File, before: &Metadata, path: &Path) -> Result<()> {
    let now = file.metadata().map_err(|error| Error::io(path, error))?;
    let state = |metadata: &Metadata| (metadata.len(), metadata.modified().ok());
    if state(&now) == state(before) {
        return Ok(());
    }
    Err(Error::FileChanged { path: path.into(), what: "its size or modification time changed" })
}

/// Counts what is read from a file as progress.
struct ProgressReader<'a> {
    file: &'a File,
    run: &'a Run,
}

impl Read for ProgressReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(bytes)?;
        // The reader of the text asks for cancellation itself.
        let _ = self.run.advance(count as u64);
        Ok(count)
    }
}

fn from_text(
    source: impl Read + Send,
    path: &Path,
    asked: text::Asked,
    intake: &mut Intake,
    run: &Run,
) -> Result<bool> {
    let largest = if intake.relabels() { u64::MAX } else { MAX_VERTICES - 1 };
    let (mut first, mut count) = (None, 0_u64);
    let deliver = |records: &[WideRecord], weights: &[f64]| {
        first = first.or(records.first().copied());
        count += records.len() as u64;
        intake.weigh(records, weights)?;
        intake.push_wide(records)
    };
    let seen = text::read(source, path, largest, text::Cut::default(), asked, run, deliver)?;
    intake.notes.extend(seen.notes);
    if let Some([a, b]) = first.filter(|record| count > 2 && record.contains(&(count - 1)))
        && !intake.relabels()
        && intake.n == a.max(b) + 1
    {
        intake.notes.push(format!(
            "{}: the first record ({a} {b}) counts the lines behind it, and is read as an edge. If it is a header, remove \
             it: `sed 1d FILE`",
            shown(path)
        ));
    }
    Ok(seen.bytes)
}

fn from_metis(source: impl Read, path: &Path, intake: &mut Intake, run: &Run) -> Result<u64> {
    let header = metis::read(source, path, run, |records, weights| {
        intake.weigh(records, weights)?;
        intake.push_wide(records)
    })?;
    if header.vertex_weights > 0 {
        intake.notes.push("the sizes and weights of the vertices of the METIS graph are not kept".into());
    }
    if header.edge_weights && !intake.weighs() {
        intake.notes.push("the weights of the edges of the METIS graph are not kept".into());
    }
    Ok(header.n)
}

fn from_binary(edges: &EdgeFile, weights: Option<&Path>, intake: &mut Intake, run: &Run) -> Result<()> {
    let open = |path| open_regular(path).map(|(file, _)| (path, file));
    let weights = weights.map(open).transpose()?;
    let mut weighed: Vec<f64> = Vec::new();
    run.begin("convert", edges.num_edges());
    edges.check_unchanged()?;
    let (mut narrow, mut wide) = (Vec::new(), Vec::new());
    for range in pass::blocks(0..edges.num_edges()) {
        let count = range.end - range.start;
        if let Some((path, file)) = &weights {
            weighed.resize(count as usize, 0.0);
            let bytes = bytemuck::cast_slice_mut(&mut weighed);
            file.read_exact_at(bytes, 8 * range.start).map_err(|error| Error::io(path, error))?;
        }
        if intake.relabels() {
            edges.wide_block(range, &mut wide)?;
            intake.weigh(&wide, &weighed)?;
            intake.push_wide(&wide)?;
        } else {
            let records = edges.block(range, &mut narrow)?;
            intake.weigh(records, &weighed)?;
            intake.push(records)?;
        }
        run.advance(count)?;
    }
    edges.check_unchanged()
}

fn from_binedgelist(path: &Path, weights: Option<&Path>, intake: &mut Intake, run: &Run) -> Result<u64> {
    let (mut edges, n) = EdgeFile::open_binedgelist(path, Io::Map)?;
    if !intake.relabels() {
        // Programs that count from 1 also use the id n.
        edges.set_num_vertices((n + 1).min(MAX_VERTICES));
    }
    from_binary(&edges, weights, intake, run)?;
    if intake.n <= n {
        return Ok(n);
    }
    if !intake.relabels() {
        let note =
            format!("{}: ids count from 1, so vertex 0 is isolated. --relabel removes it", shown(path));
        intake.notes.push(note);
    }
    Ok(intake.n)
}
