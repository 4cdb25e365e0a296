//! How a file of text is written. [`finding`](super::finding) finds it once, for every reader of the file.
//!
//! A dialect says what separates fields, which lines are comments, which line is the header, how many fields
//! a line has, and which of them hold the ids and the weight.

use std::borrow::Cow;

/// A column of a table of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// By its number, from 1.
    Number(usize),
    /// By its name in the header.
    Name(String),
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

/// The caller's requirements on the text.
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

/// The marks of lines that are comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Marks {
    /// Lines that begin with `#`, `%` or `//`.
    Usual,
    /// Lines that begin with this mark, or no lines if it is empty.
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
    /// A line, from 0, and its defect.
    Line(u64, String),
    /// The defect of `columns=`.
    Columns(String),
}

/// The separator of the fields of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delimiter {
    Blanks,
    Byte(u8),
}

impl Delimiter {
    /// The fields of a line without its end, and where they begin. A quoted field may hold the delimiter. One
    /// whose quote does not close reaches to the end.
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
pub(super) fn outside(line: &[u8], byte: u8) -> Option<usize> {
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

/// The text of a field: without the quotes around it, and with single ones in it. None if they do not enclose
/// the whole.
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
    pub(super) fn plain(asked: &Asked, marks: Marks) -> Self {
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

    /// The remedy if the ids are names.
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

    /// The remedy where columns of names are given by their numbers.
    pub(super) fn remedy_for_numbered(&self) -> String {
        let header = Dialect { header: None, ..self.clone() }.remedy_for_names();
        let put = header.split_once("put a header").map_or("", |(_, put)| put);
        format!(
            "they hold names, and nothing says whether the first line is a header. If it is, name the columns as it does. \
             Else put a header{put}"
        )
    }
}

/// Whether a field is neither a number nor empty.
pub(super) fn is_name(field: &[u8]) -> bool {
    let text = unquoted(field).unwrap_or(Cow::Borrowed(field));
    let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(&text);
    let number = digits.first().is_some_and(|first| first.is_ascii_digit() || *first == b'.')
        && std::str::from_utf8(&text).is_ok_and(|text| text.parse::<f64>().is_ok());
    !text.is_empty() && !number
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
}
