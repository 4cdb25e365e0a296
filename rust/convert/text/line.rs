//! The lines of an edge list: from bytes to ids, or to the defect of a line.
//!
//! There are two steps, so that the hot one stays small. [`record`] accepts only correct records. Every other
//! line goes to [`other`], which separates comments and headers from errors and explains the errors.

use super::dialect::{Delimiter, Dialect, is_name, is_open, unquoted};
use crate::edges::WideRecord;

/// Longest line in bytes, comments aside: memory stays bounded for any input.
pub const LONGEST_LINE: usize = 1 << 20;

/// The content of one piece of text, which begins and ends at a line's end (or within a comment).
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) records: Vec<WideRecord>,
    /// The weights of the records, if a column has them.
    pub(super) weights: Vec<f64>,
    pub(super) newlines: u64,
    /// A line without digits before the first record: a header if nothing stands before it in the file.
    pub(super) header: Option<Fault>,
    /// Why parsing stopped here.
    pub(super) fault: Option<Fault>,
}

/// A refusal and its place.
#[derive(Debug)]
pub(super) struct Fault {
    /// Newlines before it within the piece.
    pub(super) newlines: u64,
    /// Bytes before it within the line.
    pub(super) column: u64,
    pub(super) what: String,
    /// Whether it is a name where a number belongs.
    pub(super) name: bool,
}

/// A defect of a line, and the byte of the line where it is.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) column: usize,
    pub(super) what: String,
    pub(super) name: bool,
}

impl Wrong {
    pub(super) fn at(column: usize, what: impl Into<String>) -> Self {
        Self { column, what: what.into(), name: false }
    }
}

/// Parses a piece. Ids go up to `largest`. If the piece begins within a comment, `comment` says how many
/// bytes of that line lie before it.
pub(super) fn parse(text: &[u8], largest: u64, comment: Option<u64>, dialect: &Dialect) -> Piece {
    let newlines = count_newlines(text);
    let mut piece = Piece { records: Vec::new(), weights: Vec::new(), newlines, header: None, fault: None };
    // A record has four bytes at the least, the last one perhaps three.
    piece.records.reserve_exact((newlines as usize).min(text.len() / 4) + 1);
    piece.fault = piece.fill(text, largest, comment, dialect).err();
    piece
}

impl Piece {
    fn fill(
        &mut self,
        text: &[u8],
        largest: u64,
        comment: Option<u64>,
        dialect: &Dialect,
    ) -> Result<(), Fault> {
        let mut at = 0;
        if let Some(before) = comment {
            at = next_line(text, 0);
            if let Some(Wrong { column, what, .. }) = control(&text[..at]) {
                return Err(Fault { newlines: 0, column: before + column as u64, what, name: false });
            }
        }
        let form = Form::of(dialect);
        while at < text.len() {
            let fault = |Wrong { column, what, name }| Fault {
                newlines: count_newlines(&text[..at]),
                column: column as u64,
                what,
                name,
            };
            let found = if dialect.ids == [0, 1] { record(&text[at..], largest, form) } else { None };
            let (record, length) = match found {
                Some(found) => found,
                None => {
                    let line = &text[at..next_line(text, at)];
                    match other(line, largest, dialect) {
                        Ok(Some(record)) => (record, line.len()),
                        Ok(None) => {
                            at += line.len();
                            continue;
                        }
                        Err(wrong) if self.may_be_header(dialect) && control(line).is_none() => {
                            self.header = Some(fault(wrong));
                            at += line.len();
                            continue;
                        }
                        Err(wrong) => return Err(fault(wrong)),
                    }
                }
            };
            if let Some(column) = dialect.weight {
                self.weights.push(weight(&text[at..at + length], column, dialect.delimiter).map_err(fault)?);
            }
            self.records.push(record);
            at += length;
        }
        Ok(())
    }

    /// Whether a line that is no record may be the header, if nothing stands before this piece.
    fn may_be_header(&self, dialect: &Dialect) -> bool {
        dialect.header.is_some() && self.records.is_empty() && self.header.is_none()
    }
}

/// The form of lines whose first two fields are the ids, for the loop over bytes.
#[derive(Debug, Clone, Copy)]
struct Form {
    /// The byte between fields, beside blanks. A blank: there is none.
    delimiter: u8,
    /// The blank that pads fields, beside the space.
    blank: u8,
    rest: Rest,
}

/// The fields that may follow the ids.
#[derive(Debug, Clone, Copy)]
enum Rest {
    Nothing,
    /// This number of fields.
    Fields(usize),
    Anything,
}

impl Form {
    fn of(dialect: &Dialect) -> Self {
        let (delimiter, blank) = match dialect.delimiter {
            Delimiter::Blanks => (b' ', b'\t'),
            Delimiter::Byte(b'\t') => (b'\t', b' '),
            Delimiter::Byte(byte) => (byte, b'\t'),
        };
        let rest = match dialect.width {
            None => Rest::Anything,
            Some([_, ..=2]) => Rest::Nothing,
            Some([_, most]) => Rest::Fields(most - 2),
        };
        Self { delimiter, blank, rest }
    }

    #[inline(always)]
    fn skip_blanks(self, text: &[u8], mut at: usize) -> usize {
        while text.get(at).copied().is_some_and(|byte| byte == b' ' || byte == self.blank) {
            at += 1;
        }
        at
    }

    /// The end of the separator at `at`: blanks around at most one delimiter. Two of these enclose an empty
    /// field.
    #[inline(always)]
    fn skip_separator(self, text: &[u8], at: usize) -> usize {
        let at = self.skip_blanks(text, at);
        match text.get(at) {
            Some(&byte) if byte == self.delimiter => self.skip_blanks(text, at + 1),
            _ => at,
        }
    }

    /// The place of the line's end, behind the ids. None if something else follows than should.
    fn skip_rest(self, text: &[u8], at: usize) -> Option<usize> {
        match self.rest {
            Rest::Nothing => match text.get(self.skip_blanks(text, at)..)? {
                [] => Some(text.len()),
                [b'\n', ..] => Some(self.skip_blanks(text, at)),
                [b'\r'] | [b'\r', b'\n', ..] => Some(self.skip_blanks(text, at) + 1),
                _ => None,
            },
            Rest::Fields(count) => self.skip_fields(text, at, count),
            Rest::Anything => skip_line(text, at),
        }
    }

    /// The place of the line's end behind `count` fields, each behind its delimiter or behind blanks.
    fn skip_fields(self, text: &[u8], mut at: usize, count: usize) -> Option<usize> {
        let (mut found, mut before) = (0, b'x');
        loop {
            let byte = text.get(at).copied().unwrap_or(b'\n');
            match byte {
                b'\n' => return (found == count).then_some(at),
                b'\r' if matches!(text.get(at + 1), None | Some(b'\n')) => {}
                b'\r' | b'"' | 0 => return None,
                _ if self.delimiter == b' ' => {
                    found += usize::from(before <= b' ' && byte != b' ' && byte != b'\t');
                }
                _ => found += usize::from(byte == self.delimiter),
            }
            before = if byte == b' ' || byte == b'\t' { b' ' } else { b'x' };
            at += 1;
        }
    }
}

/// The record at the start of `text`, and its line's length with the line end. `None` if the line is anything
/// else, or takes a closer look.
#[inline(always)]
fn record(text: &[u8], largest: u64, form: Form) -> Option<(WideRecord, usize)> {
    let (u, at) = id(text, form.skip_blanks(text, 0))?;
    let (v, at) = id(text, form.skip_separator(text, at))?;
    let end = match text.get(at) {
        None | Some(b'\n') if !matches!(form.rest, Rest::Fields(_)) => at,
        Some(&byte) if byte == b'\r' || byte == b' ' || byte == form.blank || byte == form.delimiter => {
            form.skip_rest(text, at)?
        }
        _ => return None,
    };
    (u.max(v) <= largest && end <= LONGEST_LINE).then_some(([u, v], text.len().min(end + 1)))
}

/// A line without its end.
pub(super) fn without_end(line: &[u8]) -> &[u8] {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    text.strip_suffix(b"\r").unwrap_or(text)
}

/// The weight of the record in a line, or the defect.
fn weight(line: &[u8], column: usize, delimiter: Delimiter) -> Result<f64, Wrong> {
    let text = without_end(line);
    let (at, field) = delimiter.fields(text).nth(column).unwrap_or((text.len(), b""));
    number(at, field, column + 1)
}

/// The weight that a field at `at` holds.
pub(super) fn number(at: usize, field: &[u8], column: usize) -> Result<f64, Wrong> {
    let field = unquoted(field).unwrap_or(field.into());
    let number = std::str::from_utf8(&field).ok().and_then(|text| text.parse::<f64>().ok());
    match number.filter(|weight| weight.is_finite() && *weight >= 0.0) {
        Some(weight) => Ok(weight),
        None if field.is_empty() => Err(Wrong::at(at, format!("no weight in column {column}"))),
        None => {
            let seen = String::from_utf8_lossy(&field[..field.len().min(24)]).escape_debug().to_string();
            let what = format!("\"{seen}\" is no weight. Weights are finite numbers of at least 0");
            Err(Wrong::at(at, what))
        }
    }
}

/// The number at `start`, and where it ends.
#[inline(always)]
fn id(text: &[u8], start: usize) -> Option<(u64, usize)> {
    let (mut value, mut at) = (0_u64, start);
    loop {
        let (part, digits) = match text.get(at..).and_then(|rest| rest.first_chunk()) {
            Some(&word) => eight(u64::from_le_bytes(word)),
            None => few(text.get(at..)?),
        };
        value = value.wrapping_mul(POWERS[digits]).wrapping_add(part);
        at += digits;
        if digits < 8 {
            break;
        }
    }
    match at - start {
        0 => None,
        // The largest number of 19 digits fits.
        1..=19 => Some((value, at)),
        _ => Some((std::str::from_utf8(&text[start..at]).ok()?.parse().ok()?, at)),
    }
}

/// Powers of ten.
const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The number that the leading digits of eight bytes make, and how many digits these are: all eight at once,
/// since a branch per digit is mispredicted once per number.
#[inline(always)]
fn eight(word: u64) -> (u64, usize) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let digits = word ^ (ONES * 0x30);
    // Bit 7 of a byte is set unless the byte is a digit. A carry out of a byte only reaches bytes behind a
    // non-digit.
    let others = (digits.wrapping_add(ONES * 0x76) | digits) & (ONES * 0x80);
    let count = (others.trailing_zeros() / 8) as usize;
    if count == 0 {
        return (0, 0);
    }
    // The first digit is the most significant: zeros move in before it, then neighbours are joined three
    // times.
    let aligned = digits << (64 - 8 * count);
    let pairs = (aligned.wrapping_mul(10)).wrapping_add(aligned >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100)).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    let value = (fours.wrapping_mul(10_000)).wrapping_add(fours >> 32) & 0xffff_ffff;
    (value, count)
}

/// The number that the leading digits of the last bytes of a piece make, and how many digits these are.
fn few(bytes: &[u8]) -> (u64, usize) {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold((0, 0), |(value, count), &digit| (value * 10 + u64::from(digit - b'0'), count + 1))
}

/// The place of the line's end. `None` if a forbidden control byte comes first.
fn skip_line(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match text.get(at) {
            None | Some(b'\n') => return Some(at),
            Some(b'\r') if !matches!(text.get(at + 1), None | Some(b'\n')) => return None,
            Some(0) => return None,
            Some(_) => at += 1,
        }
    }
}

fn count_newlines(text: &[u8]) -> u64 {
    // Sums of bytes vectorise. 255 of them cannot overflow.
    text.chunks(255).map(|part| u64::from(part.iter().map(|&byte| u8::from(byte == b'\n')).sum::<u8>())).sum()
}

/// Where the line after the one at `at` begins.
pub(super) fn next_line(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |length| at + length + 1)
}

/// A line that takes a closer look, with its line end: a record, nothing, or a defect.
fn other(line: &[u8], largest: u64, dialect: &Dialect) -> Result<Option<WideRecord>, Wrong> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let comment = dialect.marks.begin(text);
    if text.len() > LONGEST_LINE && !comment {
        return Err(too_long());
    }
    if let Some(wrong) = control(line) {
        return Err(wrong);
    }
    let text = without_end(line);
    if comment || text.iter().all(|&byte| byte == b' ' || byte == b'\t') {
        return Ok(None);
    }
    let mut record = [0; 2];
    let fields = fields(text, dialect)?;
    for (end, (at, field)) in fields.ids.into_iter().enumerate() {
        let inner = unquoted(field).unwrap_or(field.into());
        record[end] = match id(&inner, 0) {
            Some((value, stop)) if stop == inner.len() && value <= largest => value,
            Some((value, stop)) if stop == inner.len() => {
                return Err(Wrong::at(at, too_large(value, largest)));
            }
            _ => return Err(Wrong { column: at, what: refuse_field(field, dialect), name: is_name(field) }),
        };
    }
    fields.wrong.map_or(Ok(Some(record)), Err)
}

/// The fields of a line that hold the ids, where they begin, and another defect of the line.
pub(super) struct Fields<'a> {
    pub(super) ids: [(usize, &'a [u8]); 2],
    pub(super) wrong: Option<Wrong>,
}

/// Finds the ids of a line, and compares its width.
pub(super) fn fields<'a>(text: &'a [u8], dialect: &Dialect) -> Result<Fields<'a>, Wrong> {
    let (mut ids, mut count, mut filled) = ([(text.len(), &b""[..]); 2], 0, 0);
    let mut open = None;
    for (place, (at, field)) in dialect.delimiter.fields(text).enumerate() {
        count = place + 1;
        filled = if field.is_empty() { filled } else { count };
        if is_open(field) {
            open = Some(at);
        }
        for (end, id) in dialect.ids.iter().zip(&mut ids) {
            if *end == place {
                *id = (at, field);
            }
        }
    }
    let [least, most] = dialect.width.unwrap_or([dialect.ids[0].max(dialect.ids[1]) + 1, usize::MAX]);
    let wrong = match open {
        Some(at) if dialect.width.is_some() => Some(Wrong::at(at, unclosed(dialect))),
        _ if filled > most || count < least => {
            Some(Wrong::at(text.len(), differing(if count < least { count } else { filled }, most, dialect)))
        }
        _ => None,
    };
    if count <= dialect.ids[0].max(dialect.ids[1]) {
        return Err(match wrong {
            Some(wrong) if open.is_some() || (most > 2 || dialect.named) && most < usize::MAX => wrong,
            _ if count == 1 && is_name(ids[0].1) => {
                Wrong { column: ids[0].0, what: refuse_field(ids[0].1, dialect), name: true }
            }
            _ => Wrong::at(text.len(), "one id, where a record needs two"),
        });
    }
    Ok(Fields { ids, wrong })
}

/// The reason to refuse a line of `count` fields.
fn differing(count: usize, most: usize, dialect: &Dialect) -> String {
    let plural = if count == 1 { "" } else { "s" };
    let differs = format!("{count} column{plural}, but the first line has {most}");
    if count < most
        || most > 2
        || dialect.delimiter != Delimiter::Blanks && dialect.delimiter != Delimiter::Byte(b'\t')
    {
        return differs;
    }
    format!(
        "{differs}. If it is an adjacency list, `awk '{{for (i = 2; i <= NF; i++) print $1, $i}}' FILE` writes its edges. \
         A METIS graph is named x.graph"
    )
}

/// Why a line is refused in which a quote does not close.
fn unclosed(dialect: &Dialect) -> String {
    let names = if dialect.named { " in the 1048576 bytes that a record may have" } else { " on its line" };
    format!("a quote that does not close{names}. Close it, or double the quotes that belong to the text")
}

pub(super) fn too_long() -> Wrong {
    let what = format!(
        "the line is longer than {LONGEST_LINE} bytes. This is no edge list, or line ends are missing"
    );
    Wrong::at(LONGEST_LINE, what)
}

/// The first control byte of a line that makes it no text.
pub(super) fn control(line: &[u8]) -> Option<Wrong> {
    let lone = |at: usize| line[at] == b'\r' && line.get(at + 1).is_some_and(|&next| next != b'\n');
    let at = (0..line.len()).find(|&at| line[at] == 0 || lone(at))?;
    let what = if line[at] == 0 {
        "a NUL byte. The file is damaged, binary (pass dtype=) or UTF-16 (save it as UTF-8)"
    } else {
        "a carriage return within the line. Write line feeds, as `tr '\\r' '\\n'` does"
    };
    Some(Wrong::at(at, what))
}

fn too_large(value: u64, largest: u64) -> String {
    format!("the id {value} exceeds {largest}, the largest. Relabel with `fastpart convert --relabel`")
}

/// Why a field is no id.
fn refuse_field(field: &[u8], dialect: &Dialect) -> String {
    let start = String::from_utf8_lossy(&field[..field.len().min(24)]);
    let dots = if field.len() > 24 { "..." } else { "" };
    let seen = format!("\"{}{dots}\"", start.escape_debug());
    let digits = field.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match field {
        [] => "an empty field where an id belongs".into(),
        [b'-', b'0'..=b'9', ..] => format!("{seen} is negative. Ids are whole numbers from 0"),
        _ if digits == field.len() => format!("{seen} exceeds 2^64 - 1, the largest id"),
        _ if digits > 0 && matches!(field[digits], b'.' | b'e' | b'E') => {
            format!("{seen} is a floating-point number. Write ids as whole numbers")
        }
        _ => format!("{seen} is no id. Ids are whole numbers from 0. {}", dialect.remedy_for_names()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length() {
        for digits in 1..=20 {
            for first in ["1", "9"] {
                let text = first.repeat(digits);
                for tail in ["", " ", "\n", "x", "/", ":", "\u{b0}000000000", ".000000000", ",12345678"] {
                    let line = format!("{text}{tail}");
                    let expected = text.parse().ok().map(|value| (value, digits));
                    assert_eq!(id(line.as_bytes(), 0), expected, "{line}");
                }
            }
        }
        assert_eq!(id(b"00000000000000000000000042 ", 0), Some((42, 26)));
        assert_eq!(id(b"18446744073709551616", 0), None);
        for other in 0..=255_u8 {
            let word = [b'7', b'0', other, b'9', other, b'1', b'0', b'0'];
            let few = few(&word);
            assert_eq!(eight(u64::from_le_bytes(word)), few, "{word:?}");
        }
    }
}
