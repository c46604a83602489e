//! Artifacts come back as they went; damaged ones are refused.

use bytes::Bytes;
use proptest::prelude::*;
use tributary_promql::Labels;
use tributary_promql::leaf::{PartTable, RowKind};

use super::*;

const SPEC: &[u8] = b"what is asked";

/// Time, series, kind, value, low part and count, bytes.
type TestRow = (i64, u32, u8, f64, Option<(f64, u64)>, Option<Vec<u8>>);

fn table(rows: &[TestRow]) -> PartTable {
    let mut table = PartTable::default();
    for (number, (ts, series, kind, value, counted, bytes)) in rows.iter().enumerate() {
        let series = (*series).min(u32::try_from(rows.len()).unwrap() - 1);
        while table.series.len() <= series as usize {
            let name = table.series.len().to_string();
            table.series.push(Labels::new([("__name__", "m"), ("i", &name)]).unwrap());
        }
        table.ts.push(*ts);
        table.series_of.push(series);
        table.kind.push(RowKind::of(*kind % 4).unwrap());
        table.drop_name.push(kind % 2 == 0);
        table.value.push(*value);
        table.counted.extend(counted.map(|(low, count)| (number, low, count)));
        table.bytes.extend(bytes.clone().map(|bytes| (number, bytes)));
    }
    // Labels travel with rows: series without any don't.
    let used = table.series_of.iter().max().map_or(0, |most| *most as usize + 1);
    for series in 0..used {
        if !table.series_of.iter().any(|number| *number as usize == series) {
            table.series[series] = Labels::default();
        }
    }
    table.metrics.insert(("a:1".into(), "counter".into()));
    table
}

fn written(table: &PartTable) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(table, SPEC, &mut bytes).unwrap();
    bytes
}

fn bits(table: &PartTable) -> Vec<u64> {
    let values = table.value.iter().map(|value| value.to_bits());
    values.chain(table.counted.iter().map(|counted| counted.1.to_bits())).collect()
}

fn row() -> impl Strategy<Value = TestRow> {
    (
        any::<i64>(),
        0..6_u32,
        any::<u8>(),
        any::<f64>(),
        prop::option::of((any::<f64>(), 0..u64::MAX >> 1)),
        prop::option::of(prop::collection::vec(any::<u8>(), 0..20)),
    )
}

proptest! {
    #[test]
    fn artifacts_come_back_as_they_went(rows in prop::collection::vec(row(), 0..50)) {
        let table = table(&rows);
        let bytes = written(&table);
        prop_assert_eq!(&bytes, &written(&table), "equal parts give equal bytes");
        let back = read(Bytes::from(bytes), SPEC, 1_000).unwrap();
        prop_assert_eq!(bits(&back), bits(&table));
        prop_assert_eq!((back.ts, back.series_of, back.kind), (table.ts, table.series_of, table.kind));
        prop_assert_eq!((back.drop_name, back.bytes), (table.drop_name, table.bytes));
        prop_assert_eq!(back.metrics, table.metrics);
        let counts = |counted: &[(usize, f64, u64)]| -> Vec<(usize, u64)> {
            counted.iter().map(|counted| (counted.0, counted.2)).collect()
        };
        prop_assert_eq!(counts(&back.counted), counts(&table.counted));
        let used = back.series.len();
        prop_assert_eq!(&back.series[..], &table.series[..used]);
    }

    #[test]
    fn damaged_artifacts_never_panic(
        rows in prop::collection::vec(row(), 1..20),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = written(&table(&rows));
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = read(Bytes::from(bytes.clone()), SPEC, 1_000);
        bytes.truncate(cut.index(bytes.len()));
        prop_assert!(read(Bytes::from(bytes), SPEC, 1_000).is_err());
    }
}

#[test]
fn other_versions_and_too_many_rows_are_refused() {
    let bytes = written(&table(&[(1, 0, 0, 1.0, None, None), (2, 0, 0, 1.0, None, None)]));
    let error = read(Bytes::from(bytes.clone()), SPEC, 1).unwrap_err();
    assert_eq!(error.to_string(), "artifact of 2 rows; the limit is 1");
    let at = bytes.windows(7).rposition(|part| part == b"version").unwrap();
    let mut newer = bytes;
    let digit = newer[at..].iter().position(|byte| *byte == b'2').unwrap();
    newer[at + digit] = b'3';
    let error = read(Bytes::from(newer), SPEC, 9).unwrap_err();
    assert_eq!(error.to_string(), "artifact of version \"3\"; this build knows version 2");
}

/// Its size, checksum and rows are as announced: nothing else tells that a worker mixed two up.
#[test]
fn an_artifact_of_other_work_is_refused() {
    let bytes = written(&table(&[(1, 0, 0, 1.0, None, None)]));
    let error = read(Bytes::from(bytes), b"what else is asked", 9).unwrap_err();
    assert_eq!(error.to_string(), "artifact of other work");
}
