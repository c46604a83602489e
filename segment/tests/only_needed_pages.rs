//! A scan reads the pages of its series and nothing else.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]
#![allow(clippy::cast_possible_truncation, reason = "small figures, on machines of 64 bits")]

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use common::{CountingSource, Files, scraped};
use tributary_segment::{MatchOp, Matcher, ScanBuffers, Segment, SegmentError, TimeRange};

fn counted(files: &Files) -> (Segment<CountingSource>, CountingSource) {
    let source = CountingSource::new(files.samples.clone());
    let segment = Segment::open(Arc::new(files.index().unwrap()), source.clone()).unwrap();
    (segment, source)
}

#[test]
fn opening_reads_the_end_of_the_file_once() {
    let files = Files::of_series(&scraped("m", 200, 10, 480));
    let (_, source) = counted(&files);
    assert_eq!(source.reads.load(Ordering::Relaxed), 1);
    assert!(source.bytes.load(Ordering::Relaxed) <= 64 << 10);
}

#[test]
fn one_series_costs_a_page_of_each_column() {
    let files = Files::of_series(&scraped("m", 200, 10, 480));
    let total = files.samples.len() as u64;
    let (segment, source) = counted(&files);
    let mut buffers = ScanBuffers::default();
    for series in [0, 777, 1_999] {
        source.reset();
        let mut rows = 0;
        segment
            .for_each(&[series], TimeRange::ALL, &mut buffers, |samples| {
                rows += samples.values.len();
                Ok::<(), SegmentError>(())
            })
            .unwrap();
        assert_eq!(rows, 480);
        // One page of times; one of values, or two where the series lies across their edge.
        assert!(source.reads.load(Ordering::Relaxed) <= 3);
        let read = source.bytes.load(Ordering::Relaxed);
        assert!(read < total / 2, "{read} of {total}");
        let announced = segment.byte_ranges(&[series]);
        for range in source.ranges.lock().unwrap().iter() {
            let within =
                |all: &std::ops::Range<u64>| all.start <= range.start && range.end <= all.end;
            assert!(announced.iter().any(within), "{range:?} of {announced:?}");
        }
    }
}

#[test]
fn shared_times_are_read_once_for_all_series() {
    // Two metrics of the same targets: the second one's times are those of the first.
    let mut series = scraped("first", 300, 4, 480);
    let others: Vec<_> = scraped("second", 300, 4, 480)
        .into_iter()
        .zip(&series)
        .map(|((labels, _, values), same)| (labels, same.1.clone(), values))
        .collect();
    series.extend(others);
    let files = Files::of_series(&series);
    let (segment, source) = counted(&files);
    let second = Matcher::new("__name__", MatchOp::Equal, "second").unwrap();
    let chosen = segment.index().select(&[second], TimeRange::ALL);
    assert_eq!(chosen.len(), 1_200);
    source.reset();
    let batch = segment.read(&chosen, TimeRange::ALL).unwrap();
    assert_eq!(batch.ts.len(), 1_200 * 480);
    // Its own pages of times, which are the second half of that column, are never touched: less
    // than half of the file is read.
    let read = source.bytes.load(Ordering::Relaxed);
    assert!(read < files.samples.len() as u64 / 2 + 50_000, "{read} of {}", files.samples.len());
}

#[test]
fn a_time_outside_the_segment_reads_nothing() {
    let files = Files::of_series(&scraped("m", 20, 10, 480));
    let (segment, source) = counted(&files);
    source.reset();
    let all: Vec<u32> = (0..segment.index().len()).collect();
    let later = TimeRange { start: i64::MAX - 1, end: i64::MAX };
    assert!(segment.index().select(&[], later).is_empty());
    assert!(segment.read(&all, later).unwrap().ts.is_empty());
    assert_eq!(source.reads.load(Ordering::Relaxed), 0);
}

#[test]
fn neighbouring_pages_are_fetched_together() {
    let files = Files::of_series(&scraped("m", 400, 10, 480));
    let (segment, source) = counted(&files);
    source.reset();
    let all: Vec<u32> = (0..segment.index().len()).collect();
    let batch = segment.read(&all, TimeRange::ALL).unwrap();
    assert_eq!(batch.values.len(), 400 * 10 * 480);
    // Sixty pages of values and four of times, in a fetch for each stretch and column.
    assert!(source.reads.load(Ordering::Relaxed) <= 16, "{:?}", source.reads);
}
