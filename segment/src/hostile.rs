//! Tests with files that are wrong on purpose and sealed again, so that what comes behind the seal
//! is tested too. Files that chance has damaged are in `tests/corruption.rs`.

use std::sync::Arc;

use tributary_promql::Labels;

use crate::error::SegmentError;
use crate::read::Segment;
use crate::seal;
use crate::series_index::{SeriesIndex, TimeRange};
use crate::source::MemorySource;
use crate::write::{SegmentWriter, WriteOptions};

fn labels(job: &str) -> Labels {
    Labels::new([("__name__", "up"), ("job", job), ("zone", "z")]).unwrap()
}

/// The files of a small segment.
fn files() -> (Vec<u8>, Vec<u8>) {
    let (mut series, mut samples) = (Vec::new(), Vec::new());
    let mut writer = SegmentWriter::new(&mut samples, &WriteOptions::default()).unwrap();
    let ts: Vec<i64> = (0..300).collect();
    for job in ["a", "b", "c"] {
        let values: Vec<f64> = ts.iter().map(|ts| (ts % 7) as f64 / 10.0).collect();
        writer.series(&labels(job), &Arc::default(), &ts, &values).unwrap();
    }
    writer.finish(&mut series).unwrap();
    (series, samples)
}

/// Opens and reads everything, as a query would.
fn read(series: Vec<u8>, samples: Vec<u8>) -> Result<usize, SegmentError> {
    let index = SeriesIndex::open(&MemorySource::new("s.series", series))?;
    let all = index.select(&[], TimeRange::ALL);
    let segment = Segment::open(Arc::new(index), MemorySource::new("s.samples", samples))?;
    Ok(segment.read(&all, TimeRange::ALL)?.ts.len())
}

/// Seals a file again whose sealed part was changed.
fn reseal(file: &mut [u8]) -> Option<String> {
    let from = seal::sealed_from(file)?;
    let start = usize::try_from(from).ok().filter(|start| *start <= file.len())?;
    seal::sealed_from(&file[start..])?;
    Some(seal::close(&mut file[start..], from).sum)
}

fn cases() -> u64 {
    let cases = std::env::var("TRIBUTARY_FUZZ_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(20_000)
}

/// Numbers that look like chance but are the same in every run.
fn chance(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 32)
}

/// Changes some bytes of a slice.
fn damage(bytes: &mut [u8], state: &mut u64) {
    for _ in 0..=chance(state) % 3 {
        let at = usize::try_from(chance(state) % bytes.len() as u64).unwrap();
        bytes[at] = match chance(state) % 4 {
            0 => 0,
            1 => 0xff,
            2 => bytes[at] ^ 1 << (chance(state) % 8),
            _ => u8::try_from(chance(state) % 256).unwrap(),
        };
    }
}

#[test]
fn a_changed_and_sealed_file_of_series_gives_an_error_or_a_segment() {
    let (series, samples) = files();
    for case in 0..cases() {
        let mut state = case;
        let mut bad = series.clone();
        damage(&mut bad, &mut state);
        if reseal(&mut bad).is_some() {
            // Anything but a panic or a full memory will do.
            let _ = read(bad, samples.clone());
        }
    }
}

#[test]
fn a_changed_and_sealed_file_of_samples_gives_an_error_or_a_segment() {
    let (series, samples) = files();
    let from = usize::try_from(seal::sealed_from(&samples).unwrap()).unwrap();
    let old = seal::check(&samples[from..], from as u64).unwrap().sum;
    for case in 0..cases() {
        let mut state = case ^ 0xabcd;
        let mut bad = samples.clone();
        damage(&mut bad[from..], &mut state);
        let Some(sum) = reseal(&mut bad) else { continue };
        // The file of series is made to name the changed one.
        let mut partner = series.clone();
        let at = partner.windows(32).position(|text| text == old.as_bytes()).unwrap();
        partner[at..at + 32].copy_from_slice(sum.as_bytes());
        reseal(&mut partner).unwrap();
        let _ = read(partner, bad);
    }
}

#[test]
fn a_later_version_is_named_as_such() {
    let (mut series, samples) = files();
    let version = b"tributary.version\x18\x01";
    let at = series.windows(version.len()).position(|text| text == version).unwrap();
    series[at + version.len()] = b'7';
    reseal(&mut series).unwrap();
    let error = read(series, samples).unwrap_err();
    assert!(matches!(error, SegmentError::Newer { found: 7, known: 1, .. }), "{error}");
    assert!(error.to_string().starts_with("s.series: "), "{error}");
}

mod rows {
    //! Files whose rows do not fit together, written as they are and properly sealed.

    use super::*;
    use crate::write::hostile_series;
    use crate::write::series::SeriesRow;

    fn row(job: &str, first_row: u64) -> SeriesRow {
        SeriesRow {
            labels: labels(job),
            family: Arc::default(),
            first_row,
            row_count: 300,
            min_ts: 0,
            max_ts: 299,
            times: 0,
        }
    }

    fn open(change: impl Fn(&mut Vec<SeriesRow>)) -> Result<SeriesIndex, SegmentError> {
        let mut rows = vec![row("a", 0), row("b", 300), row("c", 600)];
        change(&mut rows);
        SeriesIndex::open(&MemorySource::new("s.series", hostile_series(&rows)))
    }

    #[test]
    fn inconsistent_rows_are_refused_with_the_reason() {
        assert_eq!(open(|_| {}).unwrap().len(), 3);
        type Change = fn(&mut Vec<SeriesRow>);
        let cases: [(Change, &str); 8] = [
            (|rows| rows.swap(0, 1), "do not follow"),
            (|rows| rows[1].labels = labels("c"), "not sorted"),
            (|rows| rows[2].labels = labels("a"), "not sorted"),
            (|rows| rows[1].row_count = 0, "bad number of rows"),
            (|rows| rows[2].first_row = 599, "do not follow"),
            (|rows| rows[1].times = 2, "shares its times"),
            (|rows| rows[2].max_ts = 300, "shares its times"),
            (|rows| rows[0].min_ts = 1_000, "ends before it starts"),
        ];
        for (change, reason) in cases {
            let error = open(change).unwrap_err();
            assert!(matches!(error, SegmentError::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains(reason), "{error} does not say {reason}");
        }
    }
}
