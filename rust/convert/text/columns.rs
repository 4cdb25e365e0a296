//! Which columns of text hold the ids: those that a header names, else the first two.

/// Names of source and target in a header, in small letters.
const NAMES: [[&str; 2]; 5] =
    [["source", "target"], ["src", "dst"], ["from", "to"], ["u", "v"], ["head", "tail"]];

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

/// Where the ids and the weights of a line are. Columns count from 0.
#[derive(Debug, Clone, Copy)]
pub(super) enum Columns {
    /// The ids are the first two fields.
    First { weight: Option<usize> },
    /// A header names the columns, or the caller. Every line has as many.
    Named { ids: [usize; 2], weight: Option<usize>, count: usize, delimiter: Delimiter },
}

/// What separates the fields of a file with a header.
#[derive(Debug, Clone, Copy)]
pub(super) enum Delimiter {
    Blanks,
    Byte(u8),
}

impl Delimiter {
    fn of(header: &[u8]) -> Self {
        let found = [b',', b';', b'\t'].into_iter().find(|delimiter| header.contains(delimiter));
        found.map_or(Delimiter::Blanks, Delimiter::Byte)
    }

    /// The fields of a line without its end, and where they begin. A quoted field may hold the delimiter.
    pub(super) fn fields(self, line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
        let (mut at, mut over) = (0, false);
        std::iter::from_fn(move || {
            at += line.get(at..)?.iter().take_while(|byte| self.pads(**byte)).count();
            if over || matches!(self, Delimiter::Blanks) && at == line.len() {
                return None;
            }
            let quoted = line.get(at) == Some(&b'"');
            let closed = line[at..].iter().skip(1).position(|&byte| byte == b'"').filter(|_| quoted);
            let from = closed.map_or(at, |length| at + length + 2);
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
    fn pads(self, byte: u8) -> bool {
        match self {
            Delimiter::Blanks => matches!(byte, b' ' | b'\t'),
            Delimiter::Byte(delimiter) => matches!(byte, b' ' | b'\t') && byte != delimiter,
        }
    }

    fn ends(self, byte: u8) -> bool {
        match self {
            Delimiter::Blanks => matches!(byte, b' ' | b'\t'),
            Delimiter::Byte(delimiter) => byte == delimiter,
        }
    }
}

/// What the caller says of the columns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// The columns of the ids.
    pub ids: Option<&'a [Column; 2]>,
    /// The column of the weights.
    pub weight: Option<&'a Column>,
    /// Refuse lines whose first two fields may not be the ids, as those of a third column could be.
    pub unsure: bool,
}

/// Finds the columns by the first lines of a file. The error says the number of a line, from 0, and what is wrong.
pub(super) fn find(head: &[u8], asked: Asked) -> Result<(Columns, Option<String>), (u64, String)> {
    let whole = head.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let head = if whole == 0 { head } else { &head[..whole] };
    let mut lines = (0_u64..)
        .zip(head.split(|&byte| byte == b'\n'))
        .map(|(number, line)| (number, line.trim_ascii()))
        .filter(|(_, line)| !line.is_empty() && !is_comment(line));
    let Some((number, line)) = lines.next() else { return Ok((Columns::First { weight: None }, None)) };
    let delimiter = Delimiter::of(line);
    let count = delimiter.fields(line).count();
    let text = |field: &[u8]| String::from_utf8_lossy(field).trim_matches(['"', ' ']).to_owned();
    let names: Vec<String> = match is_header(line) {
        true => delimiter.fields(line).map(|(_, field)| text(field)).collect(),
        false => Vec::new(),
    };
    if let Some([source, target]) = asked.ids {
        let place = |column: &Column| column.place("columns", &names, count).map_err(|what| (number, what));
        let ids = [place(source)?, place(target)?];
        if ids[0] == ids[1] {
            return Err((number, "columns: both are the same. Name the two that hold the ids".into()));
        }
        let weight = weight_beside(ids, asked.weight, &names, count).map_err(|what| (number, what))?;
        return Ok((Columns::Named { ids, weight, count, delimiter }, None));
    }
    let first = || match asked.weight {
        Some(Column::Number(column)) if *column > 2 => Ok(Columns::First { weight: Some(*column) }),
        asked => match weight_beside([0, 1], asked, &names, count) {
            Ok(weight) => Ok(Columns::First { weight: weight.map(|column| column + 1) }),
            Err(what) => Err((number, what)),
        },
    };
    if names.is_empty() {
        return if asked.unsure && three_ids(line) {
            Err((number, unsure("there is no header")))
        } else {
            Ok((first()?, (count > 2).then(|| format!("the ids are in the first two of {count} columns"))))
        };
    }
    let next = lines.next().map(|(_, line)| line);
    let counted = |delimiter: Delimiter| next.map_or(names.len(), |line| delimiter.fields(line).count());
    let fields = counted(next.map_or(delimiter, Delimiter::of));
    let place = |name: &str| names.iter().position(|each| each.eq_ignore_ascii_case(name));
    let mut known = NAMES.iter().filter_map(|[source, target]| Some([place(source)?, place(target)?]));
    let named = known.next();
    if asked.unsure && known.next().is_some() {
        return Err((number, unsure(&format!("several pairs of the columns {} may", listed(&names)))));
    }
    match named {
        Some([0, 1]) if !asked.unsure || fields <= names.len() => {
            let note = (names.len() > 2)
                .then(|| format!("the ids are in the columns {} and {}", names[0], names[1]));
            Ok((first()?, note))
        }
        Some(_) if names.len() != counted(delimiter) => {
            Err((number, format!("the header names {} columns, but the next line has {fields}", names.len())))
        }
        Some(ids) => {
            let weight =
                weight_beside(ids, asked.weight, &names, names.len()).map_err(|what| (number, what))?;
            let note = format!("the ids are in the columns {} and {}", names[ids[0]], names[ids[1]]);
            Ok((Columns::Named { ids, weight, count: names.len(), delimiter }, Some(note)))
        }
        None if asked.unsure && fields > 2 => {
            Err((number, unsure(&format!("the columns are {}", listed(&names)))))
        }
        None => {
            let note = (fields > 2).then(|| format!("the ids are in the first two of {fields} columns"));
            Ok((first()?, note))
        }
    }
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

/// Whether the line that begins here is a comment.
pub(super) fn is_comment(line: &[u8]) -> bool {
    let line = unindented(line);
    line.starts_with(b"#") || line.starts_with(b"%") || line.starts_with(b"//")
}

/// Whether a line that is no record begins as names do.
pub(super) fn is_header(line: &[u8]) -> bool {
    unindented(line).first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'"')
}

/// A line without the blanks it begins with.
fn unindented(line: &[u8]) -> &[u8] {
    let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &line[blanks..]
}

/// Whether each of the first three fields could be an id.
fn three_ids(line: &[u8]) -> bool {
    let number = |(_, field): (usize, &[u8])| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    Delimiter::of(line).fields(line).take(3).filter(|field| number(*field)).count() == 3
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
            (Delimiter::Byte(b','), "\"a,1", vec!["\"a", "1"]),
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
}
