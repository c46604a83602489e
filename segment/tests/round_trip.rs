//! What is written is read back, bit for bit.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]
#![allow(clippy::cast_possible_truncation, reason = "small figures, on machines of 64 bits")]

mod common;

use common::{Files, any_model, read_all, read_some, scraped};
use proptest::prelude::*;
use tributary_segment::{Kind, Labels, SegmentWriter, TimeRange, WriteError, WriteOptions};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_series_and_every_bit_comes_back(model in any_model()) {
        let files = Files::of_model(&model);
        let segment = files.open().unwrap();
        prop_assert_eq!(&read_all(&segment).unwrap(), &model);
        let count: u64 = model.values().map(|samples| samples.len() as u64).sum();
        prop_assert_eq!(segment.index().samples(), count);
        let bounds = model.values().flat_map(|s| s.keys().copied());
        let bounds = bounds.clone().min().zip(bounds.max());
        prop_assert_eq!(segment.index().time_bounds(), bounds);
    }

    #[test]
    fn equal_content_gives_equal_files(model in any_model()) {
        let (one, two) = (Files::of_model(&model), Files::of_model(&model));
        prop_assert!(one.series == two.series && one.samples == two.samples);
    }

    #[test]
    fn a_range_of_time_gives_just_its_samples(
        model in any_model(),
        a in -5_i64..40,
        len in -1_i64..40,
    ) {
        let segment = Files::of_model(&model).open().unwrap();
        let range = TimeRange { start: a, end: a + len };
        let mut expected = model;
        for samples in expected.values_mut() {
            samples.retain(|ts, _| range.start <= *ts && *ts <= range.end);
        }
        expected.retain(|_, samples| !samples.is_empty());
        let all = segment.index().select(&[], TimeRange::ALL);
        prop_assert_eq!(&read_some(&segment, &all, range).unwrap(), &expected);
        let selected = segment.index().select(&[], range);
        prop_assert_eq!(read_some(&segment, &selected, range).unwrap(), expected);
    }
}

#[test]
fn an_empty_segment_is_a_segment() {
    let segment = Files::of_series(&[]).open().unwrap();
    assert!(segment.index().is_empty());
    assert_eq!(segment.index().time_bounds(), None);
    assert!(segment.index().select(&[], TimeRange::ALL).is_empty());
    assert!(read_all(&segment).unwrap().is_empty());
}

#[test]
fn a_series_longer_than_pages_and_row_groups_comes_back_whole() {
    let mut series = scraped("long", 1, 1, 2_200_000);
    series.extend(scraped("short", 3, 2, 100));
    let segment = Files::of_series(&series).open().unwrap();
    let batch = segment.read(&[0, 1, 6], TimeRange::ALL).unwrap();
    assert_eq!(batch.series.len(), 3);
    assert_eq!(batch.ts[..2_200_000], series[0].1);
    assert_eq!(batch.values[..2_200_000], series[0].2);
    // A window in the middle, across the edge of a row group.
    let ts = &series[0].1;
    let range = TimeRange { start: ts[1_048_570], end: ts[1_048_590] };
    let batch = segment.read(&[0], range).unwrap();
    assert_eq!(batch.ts, ts[1_048_570..=1_048_590]);
    assert_eq!(batch.values, series[0].2[1_048_570..=1_048_590]);
}

#[test]
fn series_of_one_target_are_known_to_share_their_times() {
    let series = scraped("m", 4, 5, 50);
    let segment = Files::of_series(&series).open().unwrap();
    let index = segment.index();
    let mut seen = std::collections::BTreeMap::new();
    for number in 0..index.len() {
        let host = index.label(number, "host").unwrap().to_owned();
        let times = index.times_of(number);
        assert_eq!(*seen.entry(host).or_insert(times), times);
    }
    assert_eq!(seen.len(), 4);
    assert_eq!(seen.values().collect::<std::collections::BTreeSet<_>>().len(), 4);
}

#[test]
fn what_was_said_of_a_family_comes_back() {
    let family = std::sync::Arc::new(tributary_segment::Family {
        name: "http_requests".into(),
        kind: Kind::Counter,
        unit: "requests".into(),
        help: "All of them.\nEven bad ones.".into(),
    });
    let plain = std::sync::Arc::default();
    let (mut series, mut samples) = (Vec::new(), Vec::new());
    let mut writer = SegmentWriter::new(&mut samples, &WriteOptions::default()).unwrap();
    let labels = |metric: &str| Labels::new([("__name__", metric)]).unwrap();
    writer.series(&labels("http_requests_total"), &family, &[1], &[1.0]).unwrap();
    writer.series(&labels("up"), &plain, &[1], &[1.0]).unwrap();
    let stats = writer.finish(&mut series).unwrap();
    assert_eq!(stats.metrics, ["http_requests_total", "up"]);
    assert_eq!(stats.series_bytes, series.len() as u64);
    assert_eq!(stats.samples_bytes, samples.len() as u64);
    let index = Files { series: series.into(), samples: samples.into() }.index().unwrap();
    assert_eq!(index.family(0), &family);
    assert_eq!(index.family(1), &plain);
    let families: Vec<_> = index.families().collect();
    assert_eq!(families, [("http_requests_total", &family), ("up", &plain)]);
}

#[test]
fn what_is_out_of_order_is_refused_when_written() {
    let labels = |job: &str| Labels::new([("__name__", "up"), ("job", job)]).unwrap();
    let family = std::sync::Arc::default();
    let mut writer = SegmentWriter::new(Vec::new(), &WriteOptions::default()).unwrap();
    writer.series(&labels("b"), &family, &[1, 2], &[0.0, 0.0]).unwrap();
    for late in ["a", "b"] {
        let error = writer.series(&labels(late), &family, &[1], &[0.0]).unwrap_err();
        assert!(matches!(error, WriteError::SeriesOrder { .. }), "{error}");
    }
    for ts in [[2, 1], [1, 1]] {
        let error = writer.series(&labels("c"), &family, &ts, &[0.0, 0.0]).unwrap_err();
        assert!(matches!(error, WriteError::SampleOrder { .. }), "{error}");
    }
    let error = writer.series(&labels("c"), &family, &[], &[]).unwrap_err();
    assert!(matches!(error, WriteError::SampleCount { .. }), "{error}");
}
