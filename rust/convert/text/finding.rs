//! The dialect of a file of text, from its first lines.
//!
//! The separator divides the first lines evenly. A first line without numbers at the places of the ids is a
//! header. The ids are in the columns that the caller names, else in those which a header calls source and
//! target, else in the first two. Text that could be read in two ways is refused where nobody would see the
//! result. Elsewhere there is a note.

use std::borrow::Cow;

use super::dialect::{
    Asked, Column, Delimiter, Dialect, Marks, Names, Unknown, is_name, is_open, outside, unquoted,
};

/// Names of source and target in a header, in small letters.
const NAMES: [[&str; 2]; 5] =
    [["source", "target"], ["src", "dst"], ["from", "to"], ["u", "v"], ["head", "tail"]];

/// Lines that are compared to find the separator.
const COMPARED: usize = 100;

/// Finds the dialect by the first lines of a file. Also returns a note on it. The last line of a `cut` head
/// is not whole.
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

impl Column {
    /// Its place, from 0, among the names of a header, of which there are none without one. Else the defect.
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

impl Delimiter {
    /// The separator that occurs first in the first line, and that divides the lines into equally many
    /// fields.
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

/// Whether the ids are names, by the first record. Behind a header a line that begins with a mark is one, if
/// no other line follows and it has the width of a record.
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
    // Words of prose are also separated by blanks.
    Ok(dialect.delimiter != Delimiter::Blanks
        && dialect.marks == Marks::Usual
        && marked.next().is_some_and(fits))
}

/// Whether an id of a line is a name. Numbers that are no ids, such as -1 or 0.5, are none, and nor is an
/// empty field.
fn holds_name(dialect: &Dialect, line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = dialect.delimiter.fields(line).map(|(_, field)| field).collect();
    dialect.ids.iter().any(|&id| fields.get(id).is_some_and(|field| is_name(field)))
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
fn filled(delimiter: Delimiter, line: &[u8]) -> usize {
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
