//! Text and `convert`, whatever the bytes: what is written is read, nothing depends on threads or on how the input is
//! cut, and nothing panics.

use crate::common::text::*;
use fastpart::internals::base::Result;
use fastpart::internals::convert::Convert;
use fastpart::internals::convert::text::{Asked, Column, Cut, names};
use fastpart::internals::edges::WideRecord;
use flate2::read::MultiGzDecoder;
use proptest::prelude::*;
use std::path::Path;

/// A line that is skipped.
fn filler() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[ \t]{0,3}", "[ \t]{0,2}(#|%|//)[ -~\u{e9}]{0,40}"]
}

fn any_id() -> impl Strategy<Value = u64> {
    prop_oneof![0..30_u64, any::<u32>().prop_map(u64::from), any::<u64>(), Just(u64::MAX)]
}

/// Records, each with how it is written: what lies before, between, behind, how the line ends, what follows.
fn rendered() -> impl Strategy<Value = (Vec<WideRecord>, Vec<u8>)> {
    let line = ("[ ]{0,2}", "[ ]{0,2}", "[ ]{0,2}", "\r?\n", proptest::option::of(filler()));
    let records = proptest::collection::vec(([any_id(), any_id()], line), 0..60);
    let form = (prop::sample::select(vec![" ", "\t", ",", ";"]), "([ ][a-z]{1,9})?");
    (records, any::<bool>(), any::<bool>(), any::<bool>(), form).prop_map(
        |(lines, mark, header, last, (separator, third))| {
            let mut text = String::from(if mark { "\u{feff}" } else { "" });
            let third = third.trim();
            if header {
                let more = if third.is_empty() { String::new() } else { format!("{separator}weight") };
                text.push_str(&format!("# x\nsource{separator}target{more}\n"));
            }
            for ([u, v], (before, between, behind, end, filler)) in &lines {
                let more = if third.is_empty() { String::new() } else { format!("{separator}{third}") };
                text.push_str(&format!("{before}{u}{between}{separator}{v}{more}{behind}{end}"));
                if let Some(filler) = filler {
                    text.push_str(&format!("{filler}{end}"));
                }
            }
            if last && text.ends_with('\n') {
                text.pop();
            }
            (lines.into_iter().map(|(record, _)| record).collect(), text.into_bytes())
        },
    )
}

fn cuts() -> impl Strategy<Value = Cut> {
    (1..80_usize, 1..40_usize).prop_map(|(batch, piece)| Cut { batch, piece })
}

/// Bytes near to text.
fn nearly_text() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        8 => proptest::sample::select(&b"0123456789 \t,;\n\n\n\r#%/-.\"ax\0\xef\xbb\xbf"[..]),
        1 => any::<u8>()
    ];
    proptest::collection::vec(byte, 0..200)
}

fn outcome<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Ok(records) => format!("{records:?}"),
        Err(error) => error.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_rendered_is_read((records, text) in rendered(), cut in cuts()) {
        prop_assert_eq!(&parse(&text).unwrap(), &records);
        let packed = gzip(&text);
        for run in [&*ONE, &*THREE] {
            prop_assert_eq!(&stream(&text[..], cut, run).unwrap().0, &records);
            prop_assert_eq!(&stream(MultiGzDecoder::new(&packed[..]), cut, run).unwrap().0, &records);
        }
    }

    #[test]
    fn no_bytes_panic_and_cuts_do_not_matter(text in nearly_text(), cut in cuts()) {
        let whole = outcome(parse(&text));
        for run in [&*ONE, &*THREE] {
            prop_assert_eq!(&outcome(stream(&text[..], cut, run).map(|(records, _)| records)), &whole);
        }
    }

    #[test]
    fn numbers_read_as_names_are_the_same_records((records, text) in rendered()) {
        // A line without a mark is read by both readers alike, whatever its blanks and quotes.
        let ids = [Column::Number(1), Column::Number(2)];
        let asked = Asked { ids: Some(&ids), ..Asked::default() };
        let text: Vec<u8> = text.split_inclusive(|&byte| byte == b'\n')
            .filter(|line| !line.trim_ascii_start().starts_with(b"#") && !line.trim_ascii_start().starts_with(b"%")
                && !line.trim_ascii_start().starts_with(b"//"))
            .flatten().copied().collect();
        let mut found = Vec::new();
        names::read(&text[..], Path::new("g"), asked, &ONE, |[u, v], _| {
            found.push([u.parse::<u64>().unwrap(), v.parse().unwrap()]);
            Ok(())
        }).unwrap();
        prop_assert_eq!(found, records);
    }

    #[test]
    fn no_bytes_panic_in_names(text in nearly_text()) {
        let _ = names::read(&text[..], Path::new("g"), Asked::default(), &ONE, |_, _| Ok(()));
    }

    #[test]
    fn no_bytes_panic_whatever_they_are(bytes in proptest::collection::vec(any::<u8>(), 0..300), relabel: bool) {
        let case = Case::new("g", &bytes);
        let before = case.names();
        if case.convert(&Convert { relabel, ..Convert::default() }).is_err() {
            prop_assert_eq!(case.names(), before);
        }
        let _ = stream(MultiGzDecoder::new(&bytes[..]), TINY, &THREE);
    }

    #[test]
    fn a_corrupt_byte_is_found_at_its_line((records, text) in rendered(), cut in cuts(), at: prop::sample::Index) {
        prop_assume!(!text.is_empty() && !records.is_empty());
        let at = at.index(text.len());
        prop_assume!(text[at] != b'\n' && !(text.starts_with("\u{feff}".as_bytes()) && at < 3));
        let mut text = text;
        text[at] = 0;
        let line = 1 + text[..at].iter().filter(|&&byte| byte == b'\n').count() as u64;
        for run in [&*ONE, &*THREE] {
            let found = place(stream(&text[..], cut, run).unwrap_err());
            prop_assert_eq!(found.0, line, "{}", found.2);
        }
    }

    #[test]
    fn relabelling_is_a_bijection((records, text) in rendered()) {
        // A file with bytes and no record is refused.
        prop_assume!(text.is_empty() || !records.is_empty());
        let case = Case::new("g.txt", &text);
        let result = case.convert(&RELABEL).unwrap();
        let ids = case.ids();
        let distinct: std::collections::HashSet<u64> = records.iter().flatten().copied().collect();
        prop_assert_eq!(ids.len(), distinct.len());
        prop_assert_eq!(result.n, ids.len() as u64);
        let back: Vec<WideRecord> = case.records().iter().map(|record| record.map(|id| ids[id as usize])).collect();
        prop_assert_eq!(back, records.clone());
        let mut seen = std::collections::HashSet::new();
        let order: Vec<u64> = records.into_iter().flatten().filter(|&id| seen.insert(id)).collect();
        prop_assert_eq!(ids, order);
    }
}
