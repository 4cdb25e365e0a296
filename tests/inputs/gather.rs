//! Rows sent to the parts that want them, against indexing.

use std::collections::BTreeMap;
use std::fs;

use crate::common::parts::{i64s, named, written};
use crate::common::run;
use fastpart::internals::base::npy;

use fastpart::internals::parts::{Gather, RowGatherer, Rows};
use proptest::prelude::*;
use tempfile::TempDir;

proptest! {
    /// Rows of random ids, ascending or not, with repetitions and second directions, from chunks of any lengths.
    #[test]
    fn gathered_rows(
        wanted in proptest::collection::vec((any::<bool>(), proptest::collection::vec(0_i64..40, 0..60), 0_u64..3), 0..6),
        chunks in proptest::collection::vec(1_u64..30, 0..4), width in 0_usize..4, threads in 1_usize..=3,
    ) {
        let num_rows = 20 + chunks.iter().sum::<u64>();
        let home = TempDir::new().unwrap();
        let row = |row: u64| (0..width as u64).map(move |column| (row * 100 + column) as u8);
        let mut ranges = Vec::new();
        let mut expected = BTreeMap::new();
        for (part, (sorted, ids, start)) in wanted.into_iter().enumerate() {
            let mut ids: Vec<i64> = ids.into_iter().map(|id| id % (2 * num_rows as i64)).collect();
            if sorted {
                ids.sort_by_key(|id| id % num_rows as i64);
            }
            let start = start.min(ids.len() as u64);
            let rows: Vec<u8> = ids[start as usize..].iter().flat_map(|&id| row(id as u64 % num_rows)).collect();
            let head = npy::header("|u1", &[ids.len() as u64 - start, width as u64]);
            let name = format!("part-{part:05}");
            fs::create_dir(home.path().join(&name)).unwrap();
            ranges.push((start, ids.len() as u64));
            let ids = i64s(ids);
            fs::write(home.path().join(&name).join("ids.npy"), &ids).unwrap();
            expected.insert(name, named([("ids.npy", ids), ("x.npy", [head, rows].concat())]));
        }
        let gather = Gather {
            into: home.path().into(), name: "x.npy".into(), ids: "ids.npy".into(), ranges, first: 0, num_rows,
            descr: "|u1".into(), row_shape: vec![width as u64], row_bytes: width,
        };
        let run = run(threads);
        let mut gatherer = RowGatherer::new(gather, &run).unwrap();
        let mut first = 0;
        for count in chunks.into_iter().chain([20]) {
            let bytes: Vec<u8> = (first..first + count).flat_map(row).collect();
            // SAFETY: the bytes are there until the end of the block.
            gatherer.push(unsafe { Rows::new(bytes.as_ptr(), count, width) }, &run).unwrap();
            first += count;
        }
        gatherer.finish(&run).unwrap();
        prop_assert_eq!(written(home.path()), expected);
    }
}

#[test]
fn rows_that_do_not_match_are_refused() {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("part-00000");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("ids.npy"), i64s([0, 3, 9])).unwrap();
    let gather = |num_rows| Gather {
        into: home.path().into(),
        name: "x.npy".into(),
        ids: "ids.npy".into(),
        ranges: vec![(0, 3)],
        first: 0,
        num_rows,
        descr: "|u1".into(),
        row_shape: vec![],
        row_bytes: 1,
    };
    let run = run(2);
    let error = RowGatherer::new(gather(4), &run).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "ids.npy: id 9 of no row. The source has 4 rows");
    let bytes = [5_u8; 11];
    // SAFETY: the bytes live longer.
    let rows = |count| unsafe { Rows::new(bytes.as_ptr(), count, 1) };
    let mut gatherer = RowGatherer::new(gather(10), &run).unwrap();
    let error = gatherer.push(rows(11), &run).unwrap_err().to_string();
    assert_eq!(error, "rows: 1 rows more than the 10 that were announced");
    // SAFETY: as above.
    let wide = unsafe { Rows::new(bytes.as_ptr(), 5, 2) };
    let error = gatherer.push(wide, &run).unwrap_err().to_string();
    assert_eq!(error, "rows: rows of 2 bytes instead of the 1 announced");
    gatherer.push(rows(9), &run).unwrap();
    let error = gatherer.finish(&run).unwrap_err().to_string();
    assert_eq!(error, "rows: 9 rows instead of the 10 that were announced");
}
