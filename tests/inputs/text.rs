//! Text edge lists: what is read, what is refused and where.

use std::io::Read;
use std::path::Path;

use crate::common::text::*;
use fastpart::internals::base::Error;
use fastpart::internals::base::Run;
use fastpart::internals::convert::text;
use fastpart::internals::convert::text::{Asked, Cut, LONGEST_LINE};
use fastpart::internals::edges::MAX_VERTICES;
use flate2::read::MultiGzDecoder;

#[test]
fn all_the_ways_to_write_records() {
    for text in [
        "1 2\n3 4\n",
        "1 2\n3 4",
        "1\t2\r\n3\t4\r\n",
        "1\t2\r\n3\t4\r",
        "1,2\n3,4\n",
        "1;2\n3 ; 4\n",
        " 1 , 2 \n\t3\t,\t4\t\n",
        "1, 2,\n3, 4,,\n",
        "\u{feff}1 2\n3 4\n",
        "# a\n1 2\n\n  \n\r\n% b\n3 4\n// c",
        "  # a\n1 2\n\t//\n3 4\n# \u{fc}\n",
        "% sym unweighted\n1 2 1 1234567\n3 4 0.5 7\n",
        "1 2 {}\n3 4 {'weight': 3, 'colour': 'red'}\n",
        "\"1\",\"2\"\n\"3\",4\n",
        "1;2;0,5\n3;4;1\n",
        "1\t2\t\n3\t4\tx y\n",
        "1 2 # three\n3 4 -1 x\n",
        "01 0000000000000000000000000002\n3 4\n",
        "source,target,weight\n1,2,x\n3,4,\n",
        "# SNAP\r\n\"FromNodeId\"\t\"ToNodeId\"\r\n1\t2\r\n3\t4\r\n",
        "\u{feff}u v\n1 2\n3 4\n",
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap(), [[1, 2], [3, 4]], "{text:?}");
        assert_eq!(stream(text.as_bytes(), TINY, &THREE).unwrap().0, [[1, 2], [3, 4]], "{text:?}");
    }
    for empty in ["", "\n", "\r\n", "# only\n# comments", "a,b\n", "\u{feff}", "  ", "\n\n\n"] {
        assert_eq!(parse(empty.as_bytes()).unwrap(), [[0; 2]; 0], "{empty:?}");
        assert_eq!(stream(empty.as_bytes(), TINY, &ONE).unwrap().0, [[0; 2]; 0], "{empty:?}");
    }
    let top = format!("{} {}\n", u64::MAX, u64::MAX - 1);
    assert_eq!(parse(top.as_bytes()).unwrap(), [[u64::MAX, u64::MAX - 1]]);
    let (_, notes) = stream(&b"# x\n\na b\n1 2\n"[..], TINY, &ONE).unwrap();
    assert_eq!(notes, ["line 3 is skipped as a header"]);
}

#[test]
fn refusals_name_line_column_and_cause() {
    let digits21 = "1".repeat(21);
    for (text, line, column, cause) in [
        ("1 2\n3 -4\n", 2, 3, "\"-4\" is negative"),
        ("1 2\n1.0 4\n", 2, 1, "\"1.0\" is a floating-point number"),
        ("1 2\n3 4.5 6\n", 2, 3, "floating-point"),
        ("1 2\n3 4 5\n", 2, 6, "3 columns, but the first line has 2. If it is an adjacency list"),
        ("1,2,x\n3,4\n", 2, 4, "2 columns, but the first line has 3"),
        ("1 2\n3,4\n", 2, 1, "\"3,4\" is no id"),
        ("1,2,x\n3,4,\"x\n5,6,y\n", 2, 5, "a quote that does not close"),
        ("1 2\n1e3 4\n", 2, 1, "floating-point"),
        (&format!("1 {digits21}\n"), 1, 3, "exceeds 2^64 - 1"),
        ("18446744073709551616 1", 1, 1, "exceeds 2^64 - 1"),
        ("1 2\n\n# c\n3 \0 4\n", 4, 3, "NUL"),
        ("1 2 3 \0\n", 1, 7, "NUL"),
        ("# \0\n1 2\n", 1, 3, "NUL"),
        ("1\0 \x002\0\n\0", 1, 2, "UTF-16"),
        ("1 2\r\n3\r\n", 2, 2, "one id"),
        ("1 2\n3", 2, 2, "one id"),
        ("1 2\n3 \t\n", 2, 4, "one id"),
        ("1 2\nx 4\n", 2, 1, "\"x\" is no id"),
        ("1 2\n3 x\n", 2, 3, "\"x\" is no id"),
        ("a b\nc d\n1 2\n", 2, 1, "\"c\" is no id"),
        ("1 2\n3 4x\n", 2, 3, "\"4x\" is no id"),
        ("1 2\n+3 4\n", 2, 1, "is no id"),
        ("1,,2\n", 1, 3, "empty field"),
        (",1,2\n", 1, 1, "empty field"),
        ("1 2\r3 4\r", 1, 4, "carriage return"),
        ("# mac\r1 2\r", 1, 6, "carriage return"),
        ("1 2\n\u{ff11} 2\n", 2, 1, "is no id"),
        ("\u{feff}1 x\n", 1, 3, "is no id"),
        ("%%MatrixMarket matrix coordinate\n3 3 1\n1 2\n", 1, 1, "Matrix Market"),
    ] {
        let (at, byte, what) = place(parse(text.as_bytes()).unwrap_err());
        assert_eq!((at, byte), (line, column), "{text:?}: {what}");
        assert!(what.contains(cause), "{text:?}: {what}");
        for (cut, run) in [(TINY, &ONE), (Cut { batch: 1, piece: 1 }, &THREE), (Cut::default(), &THREE)] {
            let streamed = place(stream(text.as_bytes(), cut, run).unwrap_err());
            assert_eq!(streamed, (line, column, what.clone()), "{text:?} {cut:?}");
        }
    }
}

#[test]
fn large_ids_need_relabelling() {
    let limit = MAX_VERTICES - 1;
    let text = format!("0 {limit}\n1 {}\n", limit + 1);
    let read =
        text::read(text.as_bytes(), Path::new("g"), limit, Cut::default(), Asked::default(), &ONE, |_, _| {
            Ok(())
        });
    let error = read.unwrap_err();
    let (line, column, what) = place(error);
    assert_eq!((line, column), (2, 3));
    assert!(what.contains("4294967295 exceeds 4294967294") && what.contains("--relabel"), "{what}");
}

/// Counts what is taken from an endless source.
struct Endless<'a>(u8, &'a mut u64);

impl Read for Endless<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        bytes.fill(self.0);
        *self.1 += bytes.len() as u64;
        Ok(bytes.len())
    }
}

#[test]
fn long_lines_are_refused_early_and_long_comments_pass() {
    let pad = |length: usize| format!("1 2\n3 4{}\n5 6\n", " ".repeat(length - 3));
    for cut in
        [Cut { batch: 1 << 14, piece: 1 << 12 }, Cut::default(), Cut { batch: 4 << 20, piece: 4 << 20 }]
    {
        let longest = pad(LONGEST_LINE);
        assert_eq!(stream(longest.as_bytes(), cut, &THREE).unwrap().0.len(), 3);
        let longer = pad(LONGEST_LINE + 1);
        let (line, column, what) = place(stream(longer.as_bytes(), cut, &THREE).unwrap_err());
        assert_eq!((line, column), (2, LONGEST_LINE as u64 + 1), "{what}");
        for filler in [b'7', b'x', b' '] {
            let mut taken = 0;
            let (line, ..) =
                place(stream(b"1 2\n".chain(Endless(filler, &mut taken)), cut, &ONE).unwrap_err());
            assert_eq!(line, 2);
            assert!(taken < (LONGEST_LINE + 4 * cut.batch) as u64, "{taken} bytes for one line");
        }
        let comment = format!("1 2\n# {}\n3 4\n-", "long ".repeat(LONGEST_LINE));
        let (line, column, what) = place(stream(comment.as_bytes(), cut, &THREE).unwrap_err());
        assert_eq!((line, column), (4, 1), "{what}");
        let damaged = comment.replace("long \n", "long\0\n");
        let (line, column, _) = place(stream(damaged.as_bytes(), cut, &THREE).unwrap_err());
        assert_eq!((line, column), (2, 2 + 5 * LONGEST_LINE as u64));
        let mut taken = 0;
        let returns = b"# mac".chain(Endless(b'\r', &mut taken));
        assert_eq!(place(stream(returns, cut, &ONE).unwrap_err()).1, 6);
        assert!(taken < 4 * cut.batch as u64, "{taken} bytes for one line");
    }
}

#[test]
fn damaged_gzip_is_refused() {
    let lines: String = (0..5000).map(|id| format!("{id} {}\n", id * 7 % 5000)).collect();
    let whole = gzip(lines.as_bytes());
    let read = |bytes: &[u8]| stream(MultiGzDecoder::new(bytes), Cut { batch: 999, piece: 99 }, &THREE);
    assert_eq!(read(&whole).unwrap().0, parse(lines.as_bytes()).unwrap());
    let two = [&whole[..], &gzip(b"7 7\n")].concat();
    assert_eq!(read(&two).unwrap().0.len(), 5001);
    for length in [1, 9, 10, 11, 100, whole.len() / 2, whole.len() - 8, whole.len() - 1] {
        let error = read(&whole[..length]).unwrap_err();
        assert!(matches!(&error, Error::Format { what, .. } if what.contains("gzip")), "{length}: {error}");
    }
    let mut flipped = whole.clone();
    let last = flipped.len() - 5;
    flipped[last] ^= 1;
    assert!(matches!(read(&flipped), Err(Error::Format { .. })));
    assert!(matches!(read(&[&whole[..], b"garbage garbage garbage"].concat()), Err(Error::Format { .. })));
}

#[test]
fn cancelling_stops_within_a_batch() {
    let text = "1 2\n".repeat(1 << 20);
    let run = Run::new(Some(2), None).unwrap();
    let mut delivered = 0;
    let result = text::read(
        text.as_bytes(),
        Path::new("g"),
        9,
        Cut { batch: 1 << 12, piece: 99 },
        Asked::default(),
        &run,
        |more, _| {
            delivered += more.len();
            run.cancel();
            Ok(())
        },
    );
    assert!(matches!(result, Err(Error::Cancelled)));
    assert!(delivered < 1 << 14, "{delivered} records");
}
