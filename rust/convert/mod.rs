//! Conversion of any edge list to the one format that all other modules map: headerless pairs of
//! little-endian u32.
//!
//! The bytes of the input decide what it is: `.npy`, gzip, text, else raw words. Its name decides doubtful
//! cases, and METIS graphs and `.binedgelist` files, whose bytes could be something else. Records keep their
//! order, unless loops and repeated pairs are dropped or the rest is shuffled, in this order. The target gets
//! its name when it is complete. Weights of records go to a file of f64 beside it, for the caller to scale.
//! With `relabel`, `TARGET.ids.npy` (uint64: row = new id, value = original id) gets its name just before.
//!
//! **Memory.** The buffers of [`text`] (other input needs less), and with `relabel` up to 256 MB of table and
//! 20 to 39 bytes for each id beyond it. Both are freed before a shuffle, which takes the memory that
//! [`shuffle`](mod@crate::exec::shuffle) states.
//!
//! **Disk.** The output. To drop repeated pairs or to shuffle, beside it the records once more or (for both)
//! twice, and 16 bytes per record.

pub(crate) mod dedup;
mod foreign;
mod input;
mod matrix;
pub mod metis;
mod relabel;
pub(crate) mod renumber;
mod sink;
mod tabulate;
pub mod text;
pub(crate) mod write;

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

pub use self::dedup::dedup;
use self::input::{Input, Stated};
pub use self::renumber::renumber;
use self::sink::{Forward, Intake, RawWriter};
pub use self::tabulate::{holds_names, tabulate};
pub use self::text::Column;
pub use self::write::write;
use crate::base::regular_file::open_regular;
use crate::base::system::same_file;
use crate::base::{AtomicFile, Error, Result, Run, named, shown};
use crate::edges::file::Layout;
use crate::edges::{IdType, MAX_VERTICES, TempRecords};
use crate::exec::shuffle;
use crate::graph::identity;

/// The format of the input, if its bytes and its name do not tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An edge list as text, whatever its name.
    Text,
    /// A METIS graph. See [`metis`].
    Metis,
    /// A file of the 2PS and HEP programs, with their header of 12 bytes.
    Binedgelist,
}

impl Format {
    /// The format of that name.
    pub fn named(name: &str) -> Result<Format> {
        let known = [("text", Format::Text), ("metis", Format::Metis), ("binedgelist", Format::Binedgelist)];
        named("format", "format", name, &known)
    }
}

/// How to convert.
#[derive(Debug, Clone, Default)]
pub struct Convert {
    /// Format of the input. `None`: found from its bytes and its name.
    pub format: Option<Format>,
    /// Give dense ids in order of first appearance.
    pub relabel: bool,
    /// The input is raw and big-endian.
    pub swap: bool,
    /// Type of the ids of raw input. `None`: found from the bytes.
    pub id_type: Option<IdType>,
    /// Layout of `.npy` input. `None`: found from its shape.
    pub layout: Option<Layout>,
    /// Number of vertices. `None`: what the input says, else largest id + 1.
    pub num_vertices: Option<u64>,
    /// The largest n that is accepted from the ids. `None`: what is plausible for their number.
    pub max_vertices: Option<u64>,
    /// Leave out records whose two ids are equal.
    pub drop_loops: bool,
    /// Keep the first record of each undirected pair.
    pub dedup: bool,
    /// Shuffle the records by this seed.
    pub shuffle: Option<u64>,
    /// Whether weights of the records are written to `TARGET.weights.f64`, and where they are in the input.
    pub weights: WeightsFrom,
    /// Refuse text of more than two columns where nothing says which hold the ids.
    pub unsure: bool,
    /// The columns of text that hold the ids. `None`: those that a header names, else the first two.
    pub columns: Option<[Column; 2]>,
    /// The mark of comments in text. `None`: the usual ones. Empty: there are none.
    pub comments: Option<String>,
    /// Whether the caller could also read text of names.
    pub names: bool,
}

impl Convert {
    /// The requirements on text whose weights are in the column `weight`.
    fn asked<'a>(&'a self, weight: Option<&'a Column>) -> text::Asked<'a> {
        let names = if self.names { text::Names::Possible } else { text::Names::Refused };
        let (ids, comments) = (self.columns.as_ref(), self.comments.as_deref());
        text::Asked { ids, weight, unsure: self.unsure, comments, names }
    }
}

/// The place of the weights in an input. METIS graphs have them beside the neighbours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WeightsFrom {
    /// They are not kept.
    #[default]
    Nowhere,
    /// Nowhere but in METIS graphs.
    Metis,
    /// In this column of text.
    Column(Column),
    /// In `TARGET.weights.in`, as f64, for binary records.
    File,
}

/// The graph that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversion {
    /// Number of vertices.
    pub n: u64,
    /// Number of records.
    pub m: u64,
    /// Records whose two ids are equal.
    pub loops: u64,
    /// See [`crate::graph::checksum`].
    pub checksum: String,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Whether the input lists an undirected edge in both directions, if it says so.
    pub both: Option<bool>,
}

/// The format of a file: "text", "metis", "matrix", "npy", "binedgelist" or "raw". Compressed files have the
/// format of their content.
pub fn format_of(input: &Path) -> Result<&'static str> {
    let (file, _) = open_regular(input)?;
    Ok(Input::find(&file, input, &Convert::default())?.name())
}

/// Converts the file `input` into the file `target`.
pub fn convert(input: &Path, target: &Path, options: &Convert, run: &Run) -> Result<Conversion> {
    convert_all(&[input.to_owned()], target, options, run)
}

/// Converts files, whose records come in this order, into the file `target`. With [`WeightsFrom::File`] there
/// is one.
pub fn convert_all(inputs: &[PathBuf], target: &Path, options: &Convert, run: &Run) -> Result<Conversion> {
    let ids_target = ids_beside(target);
    let opened = inputs.iter().map(|input| open_input(input, target, &ids_target, options));
    let opened = opened.collect::<Result<Vec<_>>>()?;
    let origin = origin_of(inputs);
    if let Some(given) = options.num_vertices.filter(|&given| given > MAX_VERTICES) {
        return Err(Error::parameter("num_vertices", format!("{given}. Use at most {MAX_VERTICES}")));
    }
    let ids = options.relabel.then_some(&*ids_target);
    let weights = (options.weights != WeightsFrom::Nowhere).then(|| with_suffix(target, ".weights.f64"));
    if weights.is_some() && (options.dedup || options.shuffle.is_some()) {
        let what = "dedup and shuffle do not keep the weights of records. Leave these out, or weights";
        return Err(Error::parameter("weights", what));
    }
    let mut writer = RawWriter::create(target)?;
    let read = |forward: &mut Forward| {
        let mut intake = Intake::new(ids, weights.as_deref(), options.drop_loops, run, forward)?;
        let mut stated = Stated::default();
        for (input, (file, metadata, format)) in inputs.iter().zip(&opened) {
            let said = format.read((file, metadata), (input, target), options, &mut intake, run)?;
            let no_record = (stated.no_record || said.no_record) && intake.n == 0;
            stated = Stated { n: stated.n.max(said.n), both: stated.both.or(said.both), no_record };
        }
        if stated.no_record {
            return Err(no_record(&origin));
        }
        let both = stated.both;
        if let Some(given) = options.num_vertices.filter(|&given| given < intake.n) {
            let what = format!("{given}, but the largest id is {}", intake.n - 1);
            return Err(Error::parameter("num_vertices", what));
        }
        // Relabelled graphs have no isolated vertices.
        let stated = stated.n.filter(|_| !options.relabel);
        if let (Some(given), Some(stated)) = (options.num_vertices, stated)
            && given < stated
        {
            return Err(Error::parameter("num_vertices", format!("{given}, but the input says {stated}")));
        }
        let (n, files, notes) = intake.finish()?;
        Ok((options.num_vertices.or(stated).unwrap_or(n), (stated.is_some(), both), files, notes))
    };
    let (n, (stated, both), files, notes) = if options.dedup || options.shuffle.is_some() {
        let mut records = TempRecords::create(directory(target))?;
        let (n, stated, files, mut notes) = read(&mut |more| records.append(more))?;
        notes.extend(reorder(records, options, directory(target), run, &mut writer)?);
        (n, stated, files, notes)
    } else {
        read(&mut |records| writer.push(records))?
    };
    let (m, loops) = (writer.m, writer.loops);
    if options.num_vertices.is_none() && !options.relabel && !stated {
        check_plausible(n, m, options.max_vertices, &origin)?;
    }
    files.into_iter().try_for_each(AtomicFile::commit)?;
    Ok(Conversion { n, m, loops, checksum: writer.finish()?, notes, both })
}

/// How messages call the inputs.
fn origin_of(inputs: &[PathBuf]) -> String {
    match inputs {
        [input] => shown(input).to_string(),
        _ => format!(
            "{} files, the first of them {}",
            inputs.len(),
            inputs.first().map_or_else(String::new, |input| shown(input).to_string())
        ),
    }
}

/// Refuses text without a record that has bytes. An empty graph has none.
fn no_record(origin: &str) -> Error {
    let what = "no line is a record. All are blank, comments or a header. If lines that begin with a mark of comments \
                are records, pass comments=\"\". An empty graph is a file of 0 bytes";
    Error::format(origin, what)
}

/// Opens an input and finds what it is.
fn open_input(
    input: &Path,
    target: &Path,
    ids_target: &Path,
    options: &Convert,
) -> Result<(File, Metadata, Input)> {
    let (file, metadata) = open_regular(input)?;
    refuse_same(&metadata, input, target)?;
    if options.relabel {
        refuse_same(&metadata, input, ids_target)?;
    }
    let format = Input::find(&file, input, options)?;
    if matches!(format, Input::Text { .. } | Input::Matrix { .. } | Input::Binedgelist)
        && options.layout.is_some()
    {
        let what = "text holds one record a line. layout= is for arrays and .npy";
        return Err(Error::parameter("layout", what));
    }
    if format.name() != "text" && options.columns.is_some() {
        let what =
            format!("{}: it has no columns to choose from. They are for text and Parquet", shown(input));
        return Err(Error::parameter("columns", what));
    }
    Ok((file, metadata, format))
}

/// Drops repeated pairs and shuffles, as asked. Returns notes.
fn reorder(
    mut records: TempRecords,
    options: &Convert,
    into: &Path,
    run: &Run,
    writer: &mut RawWriter,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    if options.dedup {
        let dropped = if options.shuffle.is_some() {
            let mut distinct = TempRecords::create(into)?;
            let dropped = dedup(&records, into, run, |more| distinct.append(more))?;
            records = distinct;
            dropped
        } else {
            dedup(&records, into, run, |more| writer.push(more))?
        };
        if dropped > 0 {
            notes.push(format!("{dropped} records that repeat a pair are dropped"));
        }
    }
    if let Some(seed) = options.shuffle {
        shuffle(&records, seed, into, run, |more| writer.push(more))?;
    }
    Ok(notes)
}

/// Refuses ids that can only be a mistake, such as times.
fn check_plausible(n: u64, m: u64, max_vertices: Option<u64>, origin: &str) -> Result<()> {
    identity::check_plausible(n, m, max_vertices, origin, || {
        format!(
            "If they are ids with gaps, relabel them (relabel=True, --relabel). If all of them are wanted, pass \
             num_vertices={n}. If they are times or row numbers, name the columns of the ids with columns="
        )
    })
}

/// The file of the original ids of a graph with other ids.
fn ids_beside(target: &Path) -> PathBuf {
    with_suffix(target, ".ids.npy")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The directory that holds `target`.
fn directory(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses to write over the input, under whatever name.
fn refuse_same(input: &Metadata, path: &Path, output: &Path) -> Result<()> {
    if same_file(input, path, output) {
        return Err(Error::parameter("out", format!("{} is the input. Name another file", shown(path))));
    }
    Ok(())
}
