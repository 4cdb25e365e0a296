//! The lines of an edge list: from bytes to ids, or to what is wrong with a line.
//!
//! There are two steps, so that the hot one stays small. [`record`] accepts only correct records. Every other line
//! goes to [`other`], which separates comments and headers from errors and explains the errors.

use super::columns::{Columns, Delimiter, is_comment, is_header};
use crate::edges::WideRecord;

/// Longest line in bytes, comments aside: memory stays bounded for any input.
pub const LONGEST_LINE: usize = 1 << 20;

/// The content of one piece of text, which begins and ends at a line's end (or within a comment).
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) records: Vec<WideRecord>,
    /// What the records weigh, if a column says it.
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
}

/// What a line that is no record may be.
enum NonRecord {
    Nothing,
    Header(usize, String),
}

/// Parses a piece. Ids go up to `largest`. If the piece begins within a comment, `comment` says how many bytes of
/// that line lie before it.
pub(super) fn parse(text: &[u8], largest: u64, comment: Option<u64>, columns: Columns) -> Piece {
    let newlines = count_newlines(text);
    let mut piece = Piece { records: Vec::new(), weights: Vec::new(), newlines, header: None, fault: None };
    // A record has four bytes at the least, the last one perhaps three.
    piece.records.reserve_exact((newlines as usize).min(text.len() / 4) + 1);
    piece.fault = piece.fill(text, largest, comment, columns).err();
    piece
}

impl Piece {
    fn fill(
        &mut self,
        text: &[u8],
        largest: u64,
        comment: Option<u64>,
        columns: Columns,
    ) -> Result<(), Fault> {
        let mut at = 0;
        if let Some(before) = comment {
            at = next_line(text, 0);
            if let Some((column, what)) = control(&text[..at]) {
                return Err(Fault { newlines: 0, column: before + column as u64, what });
            }
        }
        while at < text.len() {
            let fault =
                |(column, what)| Fault { newlines: count_newlines(&text[..at]), column: column as u64, what };
            let found = match columns {
                Columns::First { .. } => record(&text[at..], largest),
                Columns::Named { ids, count, delimiter, .. } => {
                    named_record(&text[at..next_line(text, at)], ids, count, delimiter, largest)
                }
            };
            if let Some((record, length)) = found {
                if let Some(weight) = weight(&text[at..at + length], columns) {
                    self.weights.push(weight.map_err(fault)?);
                }
                self.records.push(record);
                at += length;
                continue;
            }
            let next = next_line(text, at);
            match other(&text[at..next], largest, columns).map_err(fault)? {
                NonRecord::Nothing => {}
                NonRecord::Header(column, what) if self.records.is_empty() && self.header.is_none() => {
                    self.header = Some(fault((column, what)));
                }
                NonRecord::Header(column, what) => return Err(fault((column, what))),
            }
            at = next;
        }
        Ok(())
    }
}

/// The record at the start of `text`, and its line's length with the line end. `None` if the line is anything else.
#[inline(always)]
fn record(text: &[u8], largest: u64) -> Option<(WideRecord, usize)> {
    let (u, at) = id(text, skip_blanks(text, 0))?;
    let (v, at) = id(text, skip_separator(text, at))?;
    let end = match text.get(at) {
        None | Some(b'\n') => at,
        Some(b'\r' | b' ' | b'\t' | b',' | b';') => skip_rest(text, at)?,
        Some(_) => return None,
    };
    (u.max(v) <= largest && end <= LONGEST_LINE).then_some(([u, v], text.len().min(end + 1)))
}

/// The record of a line with named columns, and the line's length. `None` if the line is anything else.
fn named_record(
    line: &[u8],
    ids: [usize; 2],
    count: usize,
    delimiter: Delimiter,
    largest: u64,
) -> Option<(WideRecord, usize)> {
    let text = without_end(line);
    let plain = text.len() <= LONGEST_LINE && !is_comment(text) && control(line).is_none();
    let (mut record, mut fields) = ([0; 2], 0);
    for (index, (_, field)) in delimiter.fields(text).enumerate() {
        fields += 1;
        for (end, value) in ids.iter().zip(&mut record) {
            if *end == index {
                let (number, stop) = id(field, 0)?;
                *value = (stop == field.len() && number <= largest).then_some(number)?;
            }
        }
    }
    (plain && fields == count).then_some((record, line.len()))
}

/// A line without its end.
fn without_end(line: &[u8]) -> &[u8] {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    text.strip_suffix(b"\r").unwrap_or(text)
}

/// The weight of the record in a line, if a column has it, or what is wrong there.
#[inline(always)]
fn weight(line: &[u8], columns: Columns) -> Option<Result<f64, (usize, String)>> {
    match columns {
        Columns::First { weight } => weight.map(|column| first_weight(line, column)),
        Columns::Named { weight, delimiter, .. } => weight.map(|column| {
            let text = without_end(line);
            let (at, field) = delimiter.fields(text).nth(column).unwrap_or((text.len(), b""));
            number(at, field, column + 1)
        }),
    }
}

/// The weight in a column behind the ids.
fn first_weight(line: &[u8], column: usize) -> Result<f64, (usize, String)> {
    let ends = |byte: &u8| is_separator(*byte) || matches!(byte, b'\n' | b'\r');
    let mut at = skip_blanks(line, 0);
    for _ in 1..column {
        at += line[at..].iter().take_while(|byte| !ends(byte)).count();
        at = skip_separator(line, at);
    }
    let field = line[at..].split(ends).next().unwrap_or_default();
    number(at, field, column)
}

/// The weight that a field at `at` holds.
fn number(at: usize, field: &[u8], column: usize) -> Result<f64, (usize, String)> {
    let number = std::str::from_utf8(field).ok().and_then(|text| text.parse::<f64>().ok());
    match number.filter(|weight| weight.is_finite() && *weight >= 0.0) {
        Some(weight) => Ok(weight),
        None if field.is_empty() => Err((at, format!("no weight in column {column}"))),
        None => {
            let seen = String::from_utf8_lossy(&field[..field.len().min(24)]).escape_debug().to_string();
            Err((at, format!("\"{seen}\" is no weight. Weights are finite numbers of at least 0")))
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

/// The number that the leading digits of eight bytes make, and how many digits these are: all eight at once, since
/// a branch per digit is mispredicted once per number.
#[inline(always)]
fn eight(word: u64) -> (u64, usize) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let digits = word ^ (ONES * 0x30);
    // Bit 7 of a byte is set unless the byte is a digit. A carry out of a byte only reaches bytes behind a non-digit.
    let others = (digits.wrapping_add(ONES * 0x76) | digits) & (ONES * 0x80);
    let count = (others.trailing_zeros() / 8) as usize;
    if count == 0 {
        return (0, 0);
    }
    // The first digit is the most significant: zeros move in before it, then neighbours are joined three times.
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

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn is_separator(byte: u8) -> bool {
    is_blank(byte) || byte == b',' || byte == b';'
}

#[inline(always)]
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at).copied().is_some_and(is_blank) {
        at += 1;
    }
    at
}

/// The end of the separator at `at`: blanks around at most one comma or semicolon. Two of them enclose an empty field.
#[inline(always)]
fn skip_separator(text: &[u8], at: usize) -> usize {
    let at = skip_blanks(text, at);
    match text.get(at) {
        Some(b',' | b';') => skip_blanks(text, at + 1),
        _ => at,
    }
}

/// The place of the line's end. `None` if a forbidden control byte comes first.
fn skip_rest(text: &[u8], mut at: usize) -> Option<usize> {
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
fn next_line(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |length| at + length + 1)
}

/// A line that is no record, with its line end: nothing, a header, or a fault at a column.
fn other(line: &[u8], largest: u64, columns: Columns) -> Result<NonRecord, (usize, String)> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let comment = is_comment(text);
    if text.len() > LONGEST_LINE && !comment {
        let what = format!(
            "the line is longer than {LONGEST_LINE} bytes. This is no edge list, or line ends are missing"
        );
        return Err((LONGEST_LINE, what));
    }
    if let Some(fault) = control(line) {
        return Err(fault);
    }
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let start = skip_blanks(text, 0);
    match text.get(start) {
        None => Ok(NonRecord::Nothing),
        _ if comment => Ok(NonRecord::Nothing),
        Some(_) => {
            let (column, what) = match columns {
                Columns::First { .. } => explain(text, start, largest),
                Columns::Named { ids, count, delimiter, .. } => {
                    explain_named(text, ids, count, delimiter, largest)
                }
            };
            if is_header(text) { Ok(NonRecord::Header(column, what)) } else { Err((column, what)) }
        }
    }
}

/// The first control byte of a line that makes it no text.
fn control(line: &[u8]) -> Option<(usize, String)> {
    let lone = |at: usize| line[at] == b'\r' && line.get(at + 1).is_some_and(|&next| next != b'\n');
    let at = (0..line.len()).find(|&at| line[at] == 0 || lone(at))?;
    let what = if line[at] == 0 {
        "a NUL byte. The file is damaged, binary (pass dtype=) or UTF-16 (save it as UTF-8)"
    } else {
        "a carriage return within the line. Write line feeds, as `tr '\\r' '\\n'` does"
    };
    Some((at, what.into()))
}

/// Which field of a wrong line is wrong, and why.
fn explain(line: &[u8], mut at: usize, largest: u64) -> (usize, String) {
    for position in 0..2 {
        let field = line[at..].split(|&byte| is_separator(byte)).next().unwrap_or_default();
        let end = at + field.len();
        match id(line, at) {
            Some((value, stop)) if stop == end && value <= largest => at = skip_separator(line, end),
            Some((value, stop)) if stop == end => {
                return (at, too_large(value, largest));
            }
            _ if at == line.len() && position == 1 => return (at, "one id, where a record needs two".into()),
            _ => return (at, refuse_field(field)),
        }
    }
    (at, "no record".into())
}

/// Which field of a wrong line with named columns is wrong, and why.
fn explain_named(
    line: &[u8],
    ids: [usize; 2],
    count: usize,
    delimiter: Delimiter,
    largest: u64,
) -> (usize, String) {
    let fields = delimiter.fields(line).count();
    if fields != count {
        return (line.len(), format!("{fields} columns, but the first line has {count}"));
    }
    let wrong = delimiter.fields(line).enumerate().find_map(|(index, (at, field))| match id(field, 0) {
        _ if !ids.contains(&index) => None,
        Some((value, stop)) if stop == field.len() && value <= largest => None,
        Some((value, stop)) if stop == field.len() => Some((at, too_large(value, largest))),
        _ => Some((at, refuse_field(field))),
    });
    wrong.unwrap_or((0, "no record".into()))
}

fn too_large(value: u64, largest: u64) -> String {
    format!("the id {value} exceeds {largest}, the largest. Relabel with `fastpart convert --relabel`")
}

/// Why a field is no id.
fn refuse_field(field: &[u8]) -> String {
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
        _ => format!(
            "{seen} is no id. Ids are whole numbers from 0. If they are names, say which \
                       columns hold them: columns= of open_graph. Comment lines begin with #, % or //"
        ),
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
