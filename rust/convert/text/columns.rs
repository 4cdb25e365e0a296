//! Which columns of text hold the ids: those that a header names, else the first two.

/// Names of source and target in a header, in small letters.
const NAMES: [[&str; 2]; 4] = [["source", "target"], ["src", "dst"], ["from", "to"], ["u", "v"]];

/// Where the ids and the weights of a line are. Columns count from 0.
#[derive(Debug, Clone, Copy)]
pub(super) enum Columns {
    /// The ids are the first two fields.
    First { weight: Option<usize> },
    /// A header names the columns. Every line has as many.
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
pub struct Asked {
    /// The column of the weights, from 1. It is the third or a later one.
    pub weight: Option<usize>,
    /// Refuse lines whose first two fields may not be the ids, as those of a third column could be.
    pub unsure: bool,
}

/// Finds the columns by the first lines of a file. The error says the number of a line, from 0, and what is wrong.
pub(super) fn find(head: &[u8], asked: Asked) -> Result<(Columns, Option<String>), (u64, String)> {
    let first = Columns::First { weight: asked.weight };
    let whole = head.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let head = if whole == 0 { head } else { &head[..whole] };
    let mut lines = (0_u64..)
        .zip(head.split(|&byte| byte == b'\n'))
        .map(|(number, line)| (number, line.trim_ascii()))
        .filter(|(_, line)| !line.is_empty() && !is_comment(line));
    let Some((number, line)) = lines.next() else { return Ok((first, None)) };
    if !is_header(line) {
        return if asked.unsure && three_ids(line) {
            Err((number, unsure("there is no header")))
        } else {
            Ok((first, None))
        };
    }
    let delimiter = Delimiter::of(line);
    let text = |field: &[u8]| String::from_utf8_lossy(field).trim_matches(['"', ' ']).to_owned();
    let names: Vec<String> = delimiter.fields(line).map(|(_, field)| text(field)).collect();
    let next = lines.next().map(|(_, line)| line);
    let counted = |delimiter: Delimiter| next.map_or(names.len(), |line| delimiter.fields(line).count());
    let fields = counted(next.map_or(delimiter, Delimiter::of));
    let place = |name: &str| names.iter().position(|each| each.eq_ignore_ascii_case(name));
    let named = NAMES.iter().find_map(|[source, target]| Some([place(source)?, place(target)?]));
    let listed = || names.iter().map(|name| name.escape_debug().to_string()).collect::<Vec<_>>().join(", ");
    match named {
        Some([0, 1]) if !asked.unsure || fields <= names.len() => Ok((first, None)),
        Some(_) if names.len() != counted(delimiter) => {
            Err((number, format!("the header names {} columns, but the next line has {fields}", names.len())))
        }
        Some(ids) => {
            let weight = asked.weight.map(|column| column - 1);
            if let Some(weight) = weight.filter(|weight| ids.contains(weight)) {
                return Err((
                    number,
                    format!("weights: column {} is {:?}, which holds ids", weight + 1, names[weight]),
                ));
            }
            let note = format!("the ids are in the columns {} and {}", names[ids[0]], names[ids[1]]);
            Ok((Columns::Named { ids, weight, count: names.len(), delimiter }, Some(note)))
        }
        None if asked.unsure && fields > 2 => Err((number, unsure(&format!("the columns are {}", listed())))),
        None => Ok((first, None)),
    }
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
        "which columns hold the ids? There are more than two, and {why}. Name two of them in a header as source and \
         target (or src and dst, from and to, u and v). If the first two hold them, pass weights=3 for weights in the \
         third column, or weights=False (`--weights no`) to leave out the others"
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
