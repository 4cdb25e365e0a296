//! How a file of text is written: found once, from its first lines, for every reader of it.
//!
//! A dialect says what separates fields, which lines are comments, which line is the header, how many fields a line
//! has, and which of them hold the ids and the weight.

use std::borrow::Cow;

/// Names of source and target in a header, in small letters.
const NAMES: [[&str; 2]; 5] =
    [["source", "target"], ["src", "dst"], ["from", "to"], ["u", "v"], ["head", "tail"]];

/// Lines that are compared to find the separator.
const COMPARED: usize = 100;

/// A column of a table of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// By its number, from 1.
    Number(usize),
    /// By its name in the header.
    Name(String),
}

impl Column {
    /// Its place, from 0, among the names of a header, of which there are none without one. Else what is wrong.
    fn place(&self, parameter: &str, names: &[String], count: usize) -> Result<usize, String> {
        match self {
            Column::Number(number) if (1..=count).contains(number) => Ok(number - 1),
            Column::Number(number) => Err(format!("{parameter}: there is no column {number}, only {count}")),
            Column::Name(name) if names.is_empty() => Err(format!(
                "{parameter}: {name:?}, but no header names the columns. Give their numbers, from 1"
            )),
            Column::Name(name) => names
                .iter()
                .position(|each| each == name)
                .ok_or_else(|| format!("{parameter}: there is no column {name:?}, only {}", listed(names))),
        }
    }
}

/// How a caller takes ids that are names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    /// It takes numbers only.
    #[default]
    Refused,
    /// It takes numbers here, and could take names if `columns=` named them.
    Possible,
    /// It takes both.
    Read,
}

/// What the caller says of the text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// The columns of the ids.
    pub ids: Option<&'a [Column; 2]>,
    /// The column of the weights.
    pub weight: Option<&'a Column>,
    /// Refuse lines whose first two fields may not be the ids, as those of a third column could be.
    pub unsure: bool,
    /// The one mark of comments, which are comments anywhere. Empty: there are none.
    pub comments: Option<&'a str>,
    /// Whether the ids may be names.
    pub names: Names,
}

/// Which lines are comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Marks {
    /// Those that begin with `#`, `%` or `//`.
    Usual,
    /// Those that begin with this mark, or none if it is empty.
    Given(Vec<u8>),
}

impl Marks {
    /// Whether the line that begins here is a comment.
    pub(super) fn begin(&self, line: &[u8]) -> bool {
        let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let line = &line[blanks..];
        match self {
            Marks::Usual => line.starts_with(b"#") || line.starts_with(b"%") || line.starts_with(b"//"),
            Marks::Given(mark) => !mark.is_empty() && line.starts_with(mark),
        }
    }
}

/// How the lines of a file are written.
#[derive(Debug, Clone)]
pub(super) struct Dialect {
    pub(super) delimiter: Delimiter,
    pub(super) marks: Marks,
    /// The columns of the ids, from 0.
    pub(super) ids: [usize; 2],
    /// The column of the weights, from 0.
    pub(super) weight: Option<usize>,
    /// The least and the most fields of a line. None: text with blanks in it follows the ids.
    pub(super) width: Option<[usize; 2]>,
    /// The line of the header, from 0, if there is one, and its names.
    pub(super) header: Option<u64>,
    pub(super) columns: Vec<String>,
    /// Whether the ids are names.
    pub(super) named: bool,
    /// Whether the caller takes names.
    pub(super) names: Names,
    /// Whether the caller gave the names of the columns.
    pub(super) by_name: bool,
}

/// Why text has no dialect.
#[derive(Debug)]
pub(super) enum Unknown {
    /// What is wrong with a line, from 0.
    Line(u64, String),
    /// What is wrong with `columns=`.
    Columns(String),
}

/// What separates the fields of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delimiter {
    Blanks,
    Byte(u8),
}

impl Delimiter {
    /// The separator that occurs first in the first line, and that divides the lines into equally many fields.
    fn of<'a>(first: &[u8], others: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let mut found: Vec<(usize, u8)> =
            [b',', b';', b'\t'].into_iter().filter_map(|byte| Some((outside(first, byte)?, byte))).collect();
        found.sort_unstable();
        let even = |byte: u8| {
            let count = Delimiter::Byte(byte).fields(first).count();
            others.clone().take(COMPARED).all(|line| Delimiter::Byte(byte).fields(line).count() == count)
        };
        let data = others.clone().next().unwrap_or(first);
        let header = first.first().is_some_and(u8::is_ascii_alphabetic);
        let usable = |byte: u8| byte != b'\t' || header || !blanks_part_numbers(data);
        match found.iter().find(|&&(_, byte)| usable(byte) && even(byte)).or(found.first()) {
            Some(&(_, b'\t')) if !usable(b'\t') => Delimiter::Blanks,
            Some(&(_, b'\t')) if !even(b'\t') && two_numbers(data) => Delimiter::Blanks,
            Some(&(_, byte)) => Delimiter::Byte(byte),
            None => Delimiter::Blanks,
        }
    }

    /// The fields of a line without its end, and where they begin. A quoted field may hold the delimiter. One whose
    /// quote does not close reaches to the end.
    pub(super) fn fields(self, line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
        let (mut at, mut over) = (0, false);
        std::iter::from_fn(move || {
            at += line.get(at..)?.iter().take_while(|byte| self.pads(**byte)).count();
            if over || matches!(self, Delimiter::Blanks) && at == line.len() {
                return None;
            }
            let from = match line.get(at) {
                Some(b'"') => closing(&line[at..]).map_or(line.len(), |length| at + length),
                _ => at,
            };
            let end = line[from..]
                .iter()
                .position(|&byte| self.ends(byte))
                .map_or(line.len(), |length| from + length);
            let (start, field) = (at, line[at..end].trim_ascii_end());
            over = end == line.len();
            at = end + 1;
            Some((start, field))
        })
    }

    /// Whether the byte may stand before a field.
    pub(super) fn pads(self, byte: u8) -> bool {
        byte == b' ' || byte == b'\t' && self != Delimiter::Byte(b'\t')
    }

    fn ends(self, byte: u8) -> bool {
        match self {
            Delimiter::Blanks => matches!(byte, b' ' | b'\t'),
            Delimiter::Byte(delimiter) => byte == delimiter,
        }
    }
}

/// Where the byte occurs first outside quotes.
fn outside(line: &[u8], byte: u8) -> Option<usize> {
    let mut quoted = false;
    line.iter().position(|&each| {
        quoted ^= each == b'"';
        each == byte && !quoted
    })
}

/// The bytes of a quoted field, which begins here. None if its quote does not close.
fn closing(field: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += field.get(at..)?.iter().position(|&byte| byte == b'"')? + 1;
        match field.get(at) {
            Some(b'"') => at += 1, // a doubled quote is one of the text
            _ => return Some(at),
        }
    }
}

/// Whether the quote that a field begins with does not close.
pub(super) fn is_open(field: &[u8]) -> bool {
    field.first() == Some(&b'"') && closing(field).is_none()
}

/// The text of a field: without the quotes around it, and with single ones in it. None if they do not enclose the whole.
pub(super) fn unquoted(field: &[u8]) -> Option<Cow<'_, [u8]>> {
    if field.first() != Some(&b'"') {
        return Some(Cow::Borrowed(field));
    }
    let inner = &field[1..closing(field).filter(|&end| end == field.len())? - 1];
    if !inner.contains(&b'"') {
        return Some(Cow::Borrowed(inner));
    }
    let mut text = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(&byte) = bytes.next() {
        text.push(byte);
        if byte == b'"' {
            bytes.next();
        }
    }
    Some(Cow::Owned(text))
}

impl Dialect {
    /// The dialect of text without a line that tells it.
    fn plain(asked: &Asked, marks: Marks) -> Self {
        Self {
            delimiter: Delimiter::Blanks,
            marks,
            ids: [0, 1],
            weight: None,
            width: None,
            header: None,
            columns: Vec::new(),
            named: false,
            names: asked.names,
            by_name: false,
        }
    }

    /// What to do if the ids are names.
    pub(super) fn remedy_for_names(&self) -> String {
        let name = |place: usize| self.columns.get(place).map_or("", String::as_str);
        let said = format!("columns=({:?}, {:?})", name(self.ids[0]), name(self.ids[1]));
        let reads = match self.names {
            Names::Refused => {
                "If they are names, convert does not read them: open_graph and the other commands do. "
            }
            _ => "If they are names, ",
        };
        if self.header.is_some() && self.ids.iter().all(|&id| !name(id).is_empty()) {
            return match self.names {
                Names::Refused => format!("{reads}Name their columns there: {said}"),
                _ => format!("{reads}name their columns: {said}"),
            };
        }
        let count = self.width.map_or(2, |[_, most]| most);
        let header: Vec<String> = (0..count)
            .map(|place| match self.ids.iter().position(|&id| id == place) {
                Some(end) => ["source", "target"][end].into(),
                None => format!("column_{}", place + 1),
            })
            .collect();
        let separator = match self.delimiter {
            Delimiter::Blanks => " ".into(),
            Delimiter::Byte(byte) => (byte as char).escape_default().to_string(),
        };
        let put = format!("put a header before the first line: `sed '1i {}' FILE`", header.join(&separator));
        match self.names {
            Names::Refused => format!("{reads}There, {put}"),
            _ => format!("{reads}{put}"),
        }
    }
}

/// Finds the dialect by the first lines of a file. Returns also a note on it. Of a `cut` head the last line is no whole one.
pub(super) fn find(head: &[u8], cut: bool, asked: Asked) -> Result<(Dialect, Option<String>), Unknown> {
    let marks = asked.comments.map_or(Marks::Usual, |mark| Marks::Given(mark.as_bytes().to_vec()));
    let whole = head.iter().rposition(|&byte| byte == b'\n').filter(|_| cut).map_or(head.len(), |at| at + 1);
    let head = &head[..whole];
    let mut lines = (0_u64..)
        .zip(head.split(|&byte| byte == b'\n'))
        .map(|(number, line)| (number, line.strip_suffix(b"\r").unwrap_or(line)))
        .filter(|(_, line)| !line.trim_ascii().is_empty() && !marks.begin(line));
    let Some((number, line)) = lines.next() else { return Ok((Dialect::plain(&asked, marks), None)) };
    let others = lines.map(|(_, line)| line);
    let wrong = |what: String| Unknown::Line(number, what);

    let delimiter = Delimiter::of(line, others.clone());
    let count = delimiter.fields(line).count();
    let text = |(_, field): (usize, &[u8])| {
        let text = unquoted(field).unwrap_or(Cow::Borrowed(field));
        String::from_utf8_lossy(&text).trim().to_owned()
    };
    let fields: Vec<String> = delimiter.fields(line).map(text).collect();
    let by_name = asked.ids.is_some_and(|ids| ids.iter().any(|column| matches!(column, Column::Name(_))));
    let pairs = pairs(&fields);
    let wanted = match asked.ids {
        Some([Column::Number(source), Column::Number(target)]) => {
            [source.saturating_sub(1), target.saturating_sub(1)]
        }
        _ => [0, 1],
    };
    let numbers = wanted.iter().all(|&place| fields.get(place).is_some_and(|field| is_number(field)));
    let begins =
        line.trim_ascii_start().first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'"');
    let header = !numbers && (begins || by_name || !pairs.is_empty());
    let names: Vec<String> = if header { fields.clone() } else { Vec::new() };
    let next = others.clone().next().map(|line| to_closing_quote(head, line, delimiter));
    let data = if header { next } else { Some(to_closing_quote(head, line, delimiter)) };

    let dialect = |ids: [usize; 2], weight: Option<usize>, named: bool| {
        let width = width(delimiter, data, ids, weight, (header && named).then_some(count));
        let columns = names.clone();
        let header = header.then_some(number);
        let marks = marks.clone();
        Dialect {
            delimiter,
            marks,
            ids,
            weight,
            width,
            header,
            columns,
            named: false,
            names: asked.names,
            by_name,
        }
    };
    let differs = || {
        let found = data.map_or(count, |line| delimiter.fields(line).count());
        let filled = data.map_or(count, |line| filled(delimiter, line));
        let open = data.is_some_and(|line| delimiter.fields(line).any(|(_, field)| is_open(field)));
        // A line that is no text is refused where it is read, by its own number.
        let is_text = data.is_none_or(|line| !line.iter().any(|&byte| byte == 0 || byte == b'\r'));
        (is_text && !open && (found < count || filled > count))
            .then(|| wrong(format!("the header names {count} columns, but the next line has {found}")))
    };

    if let Some([source, target]) = asked.ids {
        let columns = if header { count } else { data.map_or(count, |line| delimiter.fields(line).count()) };
        let place = |column: &Column| column.place("columns", &names, columns).map_err(wrong);
        let ids = [place(source)?, place(target)?];
        if ids[0] == ids[1] {
            return Err(wrong("columns: both are the same. Name the two that hold the ids".into()));
        }
        let weight = weight_beside(ids, asked.weight, &names, columns).map_err(wrong)?;
        if let Some(error) = differs().filter(|_| by_name) {
            return Err(error);
        }
        let mut dialect = dialect(ids, weight, by_name);
        dialect.named = holds_names(&dialect, data, head)?;
        let first_too = dialect.named && !by_name && pairs.is_empty();
        if first_too && (!header || holds_name(&dialect, line)) {
            return Err(Unknown::Columns(dialect.remedy_for_numbered()));
        }
        return Ok((dialect, None));
    }

    let first = |known: bool| -> Result<Dialect, Unknown> {
        let weight = match asked.weight {
            Some(Column::Number(column)) if *column > 2 => Some(column - 1),
            asked => weight_beside([0, 1], asked, &names, count).map_err(wrong)?,
        };
        let mut dialect = dialect([0, 1], weight, known);
        dialect.named = known && holds_names(&dialect, data, head)?;
        Ok(dialect)
    };
    if names.is_empty() {
        return if asked.unsure && three_ids(delimiter, line) {
            Err(wrong(unsure("there is no header")))
        } else {
            Ok((
                first(false)?,
                (count > 2).then(|| format!("the ids are in the first two of {count} columns")),
            ))
        };
    }
    let found = match next {
        Some(line) if delimiter == Delimiter::Blanks => {
            Delimiter::of(line, others.clone().skip(1)).fields(line).count()
        }
        Some(line) => delimiter.fields(line).count(),
        None => count,
    };
    if asked.unsure && pairs.len() > 1 {
        return Err(wrong(unsure(&format!("several pairs of the columns {} may", listed(&names)))));
    }
    match pairs.first() {
        Some(&ids) => {
            if let Some(error) = differs() {
                return Err(error);
            }
            let note = format!("the ids are in the columns {} and {}", names[ids[0]], names[ids[1]]);
            if ids == [0, 1] {
                return Ok((first(true)?, (names.len() > 2).then_some(note)));
            }
            let weight = weight_beside(ids, asked.weight, &names, names.len()).map_err(wrong)?;
            let mut dialect = dialect(ids, weight, true);
            dialect.named = holds_names(&dialect, data, head)?;
            Ok((dialect, Some(note)))
        }
        None if asked.unsure && found > 2 => {
            Err(wrong(unsure(&format!("the columns are {}", listed(&names)))))
        }
        None => {
            let mut dialect = first(false)?;
            let below = next.map_or(delimiter, |line| Delimiter::of(line, others.skip(1)));
            if delimiter == Delimiter::Blanks && (found != count || below != delimiter) {
                // The first line is prose.
                dialect.delimiter = below;
                dialect.width = width(dialect.delimiter, next, dialect.ids, dialect.weight, None);
                dialect.columns.clear();
            }
            let note = (found > 2).then(|| format!("the ids are in the first two of {found} columns"));
            Ok((dialect, note))
        }
    }
}

impl Dialect {
    /// What to do where columns of names are given by their numbers.
    fn remedy_for_numbered(&self) -> String {
        let header = Dialect { header: None, ..self.clone() }.remedy_for_names();
        let put = header.split_once("put a header").map_or("", |(_, put)| put);
        format!(
            "they hold names, and nothing says whether the first line is a header. If it is, name the columns as it does. \
             Else put a header{put}"
        )
    }
}

/// The record that begins with a line of `head`: with the lines behind it while a quote in it is open.
fn to_closing_quote<'a>(head: &'a [u8], line: &'a [u8], delimiter: Delimiter) -> &'a [u8] {
    let start = line.as_ptr() as usize - head.as_ptr() as usize;
    let mut end = start + line.len();
    for _ in 0..COMPARED {
        let open = delimiter.fields(&head[start..end]).any(|(_, field)| is_open(field));
        let Some(newline) = head[end..].iter().position(|&byte| byte == b'\n').filter(|_| open) else {
            break;
        };
        let more = &head[end + newline + 1..];
        end += newline + 1 + more.iter().position(|&byte| byte == b'\n').unwrap_or(more.len());
    }
    &head[start..end]
}

/// Whether the ids are names, by the first record. Behind a header a line that begins with a mark is one, if no other
/// line follows and it has the width of a record.
fn holds_names(dialect: &Dialect, data: Option<&[u8]>, head: &[u8]) -> Result<bool, Unknown> {
    if dialect.names != Names::Read {
        return Ok(false);
    }
    if let Some(line) = data {
        return Ok(holds_name(dialect, line));
    }
    let Some(header) = dialect.header else { return Ok(false) };
    let mut marked = head
        .split(|&byte| byte == b'\n')
        .skip(header as usize + 1)
        .filter(|line| !line.trim_ascii().is_empty());
    let fits = |line: &[u8]| dialect.delimiter.fields(line).count() == dialect.columns.len();
    // Words of prose are parted by blanks, too.
    Ok(dialect.delimiter != Delimiter::Blanks
        && dialect.marks == Marks::Usual
        && marked.next().is_some_and(fits))
}

/// Whether an id of a line is a name. Numbers that are no ids, such as -1 or 0.5, are none, and nor is an empty field.
fn holds_name(dialect: &Dialect, line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = dialect.delimiter.fields(line).map(|(_, field)| field).collect();
    dialect.ids.iter().any(|&id| fields.get(id).is_some_and(|field| is_name(field)))
}

/// Whether a field is neither a number nor empty.
pub(super) fn is_name(field: &[u8]) -> bool {
    let text = unquoted(field).unwrap_or(Cow::Borrowed(field));
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(&text);
    let number = digits.first().is_some_and(|first| first.is_ascii_digit() || *first == b'.')
        && std::str::from_utf8(&text).is_ok_and(|text| text.parse::<f64>().is_ok());
    !text.is_empty() && !number
}

/// The width of the lines: that of a header that names the ids, else that of the first record.
fn width(
    delimiter: Delimiter,
    data: Option<&[u8]>,
    ids: [usize; 2],
    weight: Option<usize>,
    header: Option<usize>,
) -> Option<[usize; 2]> {
    if let Some(count) = header {
        return Some([count; 2]);
    }
    let data = data?;
    let count = delimiter.fields(data).count();
    let used = |place: &usize| ids.contains(place) || weight == Some(*place);
    let mut others = delimiter.fields(data).enumerate().filter(|(place, _)| !used(place));
    if delimiter == Delimiter::Blanks && others.any(|(_, (_, field))| is_name(field)) {
        return None;
    }
    let least = filled(delimiter, data).max(2).max(ids[0].max(ids[1]) + 1);
    Some([least.min(count.max(2)), count.max(2)])
}

/// The fields of a line without the empty ones at its end.
pub(super) fn filled(delimiter: Delimiter, line: &[u8]) -> usize {
    let fields = delimiter.fields(line).enumerate().filter(|(_, (_, field))| !field.is_empty());
    fields.last().map_or(0, |(place, _)| place + 1)
}

/// The places of the pairs of known names in a header.
fn pairs(names: &[String]) -> Vec<[usize; 2]> {
    let place = |name: &str| names.iter().position(|each| each.eq_ignore_ascii_case(name));
    NAMES.iter().filter_map(|[source, target]| Some([place(source)?, place(target)?])).collect()
}

/// The place of the weights, from 0, which hold no ids.
fn weight_beside(
    ids: [usize; 2],
    asked: Option<&Column>,
    names: &[String],
    count: usize,
) -> Result<Option<usize>, String> {
    let Some(column) = asked else { return Ok(None) };
    let place = column.place("weights", names, count)?;
    if ids.contains(&place) {
        let name = names.get(place).map_or(String::new(), |name| format!(" is {name:?}, which"));
        return Err(format!("weights: column {}{name} holds ids", place + 1));
    }
    Ok(Some(place))
}

/// Names as messages list them.
fn listed(names: &[String]) -> String {
    names.iter().map(|name| name.escape_debug().to_string()).collect::<Vec<_>>().join(", ")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether blanks part the first two fields of a line, which are numbers.
fn two_numbers(line: &[u8]) -> bool {
    let fields = || Delimiter::Blanks.fields(line).take(2);
    fields().count() == 2 && fields().all(|(_, field)| field.iter().all(u8::is_ascii_digit))
}

/// Whether tabs do not part the first two numbers of a line, but blanks do, as in `1 2<tab>0.5`.
fn blanks_part_numbers(line: &[u8]) -> bool {
    let first = Delimiter::Byte(b'\t').fields(line).take(2).map(|(_, field)| field);
    let apart = first.filter(|field| !field.is_empty() && field.iter().all(u8::is_ascii_digit)).count() == 2;
    two_numbers(line) && !apart
}

/// Whether each of the first three fields could be an id.
fn three_ids(delimiter: Delimiter, line: &[u8]) -> bool {
    let number = |(_, field): (usize, &[u8])| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    delimiter.fields(line).take(3).filter(|field| number(*field)).count() == 3
}

fn unsure(why: &str) -> String {
    format!(
        "which columns hold the ids? There are more than two, and {why}. Name two of them: columns=(\"source\", \
         \"target\") or columns=(1, 2) (`--columns 1,2`). weights=3 says that the first two hold them, and the third \
         weights"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_lines() {
        for (delimiter, line, expected) in [
            (Delimiter::Byte(b','), "1, 2 ,x y", vec!["1", "2", "x y"]),
            (Delimiter::Byte(b','), ",,", vec!["", "", ""]),
            (Delimiter::Byte(b','), "\"a,5\",1,2", vec!["\"a,5\"", "1", "2"]),
            (Delimiter::Byte(b','), "\"a\"\",5\",1", vec!["\"a\"\",5\"", "1"]),
            (Delimiter::Byte(b','), "\"a,1", vec!["\"a,1"]),
            (Delimiter::Byte(b'\t'), "\t1\t2", vec!["", "1", "2"]),
            (Delimiter::Blanks, "  1 \t 2 ", vec!["1", "2"]),
            (Delimiter::Blanks, "", vec![]),
        ] {
            let fields: Vec<&str> = delimiter
                .fields(line.as_bytes())
                .map(|(_, field)| std::str::from_utf8(field).unwrap())
                .collect();
            assert_eq!(fields, expected, "{line}");
        }
    }

    #[test]
    fn quotes_of_fields() {
        for (field, text) in [
            ("a", Some("a")),
            ("\"a\"", Some("a")),
            ("\"\"", Some("")),
            ("\"a\"\"b\"", Some("a\"b")),
            ("a\"b", Some("a\"b")),
            ("\"a\"b", None),
            ("\"a", None),
        ] {
            let found = unquoted(field.as_bytes()).map(|text| String::from_utf8(text.to_vec()).unwrap());
            assert_eq!(found.as_deref(), text, "{field}");
        }
    }

    #[test]
    fn separators_divide_the_lines_evenly() {
        for (text, expected) in [
            ("1 2\n3 4\n", Delimiter::Blanks),
            ("1\t2\n3\t4\n", Delimiter::Byte(b'\t')),
            ("0\t1\n1 2\n", Delimiter::Blanks),
            ("1 2\t0.5\n3 4\t0.5\n", Delimiter::Blanks),
            ("1\t\t2\n3\t4\n", Delimiter::Blanks),
            ("1;2;0,5\n3;4;1\n", Delimiter::Byte(b';')),
            ("Smith, J\tDoe\nLee\tPoe\n", Delimiter::Byte(b'\t')),
            ("Source, Target\nann, bob\n", Delimiter::Byte(b',')),
        ] {
            let mut lines = text.lines().map(str::as_bytes);
            let first = lines.next().unwrap();
            assert_eq!(Delimiter::of(first, lines), expected, "{text:?}");
        }
    }
}
