//! Files that are damaged, cut off, foreign or swapped give an error that names them, whatever the
//! damage. The number of cases is set by `TRIBUTARY_FUZZ_CASES`.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]
#![allow(clippy::cast_possible_truncation, reason = "small figures, on machines of 64 bits")]

mod common;

use std::sync::Arc;

use bytes::Bytes;
use common::{Chance, Files, Model, fuzz_cases, label_set, read_all, scraped};
use tributary_segment::{MemorySource, Segment, SegmentError, SeriesIndex};

/// A segment with pages of every layout.
fn files() -> Files {
    let mut series = scraped("counter_total", 20, 3, 200);
    let mut chance = Chance(9);
    for target in 0..300 {
        let ts: Vec<i64> = (0..120).map(|i| i * 1_000).collect();
        let percent: Vec<f64> = ts.iter().map(|_| chance.below(10_001) as f64 / 100.0).collect();
        let host = format!("{target:04}");
        series.push((label_set(&[("__name__", "cpu"), ("host", &host)]), ts, percent));
    }
    let ts: Vec<i64> = (0..40_000).collect();
    let noise: Vec<f64> = ts.iter().map(|_| f64::from_bits(chance.next())).collect();
    series.push((label_set(&[("__name__", "noise")]), ts, noise));
    Files::of_series(&series)
}

fn read(files: &Files) -> Result<Model, SegmentError> {
    read_all(&files.open()?)
}

fn flipped(bytes: &Bytes, at: usize, bit: u8) -> Bytes {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1 << bit;
    bytes.into()
}

#[test]
fn any_flipped_bit_is_found_or_does_no_harm() {
    let files = files();
    let good = read(&files).unwrap();
    let mut chance = Chance(1);
    let mut harmless = 0;
    let cases = fuzz_cases(2_000);
    for _ in 0..cases {
        let bit = chance.below(8) as u8;
        let mut bad = files.clone();
        let (bytes, name) = if chance.below(2) == 0 {
            (&mut bad.series, "a.series.parquet")
        } else {
            (&mut bad.samples, "a.samples.parquet")
        };
        let at = chance.below(bytes.len());
        *bytes = flipped(bytes, at, bit);
        match read(&bad) {
            Ok(model) => {
                // The column of series numbers is for other tools; we never read it.
                assert!(model == good, "byte {at} of {name} changed the data");
                harmless += 1;
            }
            Err(error) => assert!(error.to_string().contains(name), "{error}"),
        }
    }
    assert!(harmless * 20 < cases, "{harmless} of {cases} flips went unseen");
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let files = files();
    let mut chance = Chance(2);
    let cuts = |len: usize, chance: &mut Chance| -> Vec<usize> {
        let some = (0..fuzz_cases(300)).map(|_| chance.below(len));
        (0..16.min(len)).chain(len - 16..len).chain(some).collect()
    };
    for cut in cuts(files.series.len(), &mut chance) {
        let bad = Files { series: files.series.slice(..cut), ..files.clone() };
        assert!(read(&bad).unwrap_err().to_string().contains("a.series.parquet"));
    }
    for cut in cuts(files.samples.len(), &mut chance) {
        let bad = Files { samples: files.samples.slice(..cut), ..files.clone() };
        assert!(read(&bad).unwrap_err().to_string().contains("a.samples.parquet"));
    }
}

#[test]
fn random_bytes_are_no_segment() {
    let files = files();
    let mut chance = Chance(3);
    for _ in 0..fuzz_cases(2_000) {
        let len = chance.below(400);
        let mut bytes: Vec<u8> = (0..len).map(|_| chance.next() as u8).collect();
        if chance.below(2) == 0 {
            // At least the ends look right.
            bytes.extend((chance.below(500) as u32).to_le_bytes());
            bytes.extend(b"PAR1");
        }
        let bad = Files { series: bytes.clone().into(), ..files.clone() };
        assert!(read(&bad).is_err());
        let bad = Files { samples: bytes.into(), ..files.clone() };
        assert!(read(&bad).is_err());
    }
}

#[test]
fn files_of_two_segments_do_not_mix() {
    // The same series and times, even the same sizes: only a value differs.
    let labels = label_set(&[("__name__", "up")]);
    let with = |value: f64| Files::of_series(&[(labels.clone(), vec![1], vec![value])]);
    let one = with(1.0);
    let mut others = (2..50).map(|value| with(f64::from(value)));
    let two = others.find(|other| other.samples.len() == one.samples.len()).unwrap();
    for (series, samples) in [(&one, &two), (&two, &one)] {
        let mixed = Files { series: series.series.clone(), samples: samples.samples.clone() };
        let error = mixed.open().unwrap_err();
        assert!(matches!(error, SegmentError::Mismatched { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("a.series.parquet") && text.contains("a.samples.parquet"), "{text}");
    }
}

#[test]
fn the_two_files_are_not_taken_for_each_other() {
    let files = files();
    let swapped = Files { series: files.samples.clone(), samples: files.series.clone() };
    let error = swapped.open().unwrap_err();
    assert!(matches!(error, SegmentError::Foreign { .. }), "{error}");
    let index = Arc::new(files.index().unwrap());
    let error = Segment::open(index, MemorySource::new("x", files.series)).unwrap_err();
    assert!(matches!(error, SegmentError::Foreign { .. }), "{error}");
}

#[test]
fn a_parquet_file_of_someone_else_is_foreign() {
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    let schema = Arc::new(parse_message_type("message x { required int64 ts; }").unwrap());
    let mut bytes = Vec::new();
    let properties = Arc::new(WriterProperties::builder().build());
    SerializedFileWriter::new(&mut bytes, schema, properties).unwrap().close().unwrap();
    let error = SeriesIndex::open(&MemorySource::new("theirs.parquet", bytes)).unwrap_err();
    assert!(matches!(error, SegmentError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("theirs.parquet"), "{error}");
    let text = SeriesIndex::open(&MemorySource::new("notes.txt", &b"just some text, no more"[..]));
    assert!(matches!(text.unwrap_err(), SegmentError::Foreign { .. }));
}
