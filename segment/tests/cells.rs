//! Several segments of one cell are read as one.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]
#![allow(clippy::cast_possible_truncation, reason = "small figures, on machines of 64 bits")]

mod common;

use common::{Files, Model, any_model, read_all};
use proptest::prelude::*;
use tributary_segment::{
    CellBuffers, CellSelection, MatchOp, Matcher, MemorySource, Segment, TimeRange,
};

fn read_cell(
    segments: &[Segment<MemorySource>],
    matchers: &[Matcher],
    range: TimeRange,
    buffers: &mut CellBuffers,
) -> Model {
    let segments: Vec<_> = segments.iter().collect();
    let selection = CellSelection::new(&segments, matchers, range);
    let mut scan = selection.scan(buffers);
    let mut model = Model::new();
    let mut last = None;
    while let Some(series) = scan.next().unwrap() {
        let labels = segments[series.segment].index().labels(series.samples.series);
        assert!(last.as_ref().is_none_or(|last| labels.series_cmp(last).is_gt()));
        let pairs = labels.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        last = Some(labels);
        let bits = series.samples.values.iter().map(|value| value.to_bits());
        let samples = series.samples.ts.iter().copied().zip(bits).collect();
        assert_eq!(model.insert(pairs, samples), None);
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_cell_is_all_its_segments_and_the_newest_wins(
        models in prop::collection::vec(any_model(), 0..4),
        start in -5_i64..40,
        len in 0_i64..60,
    ) {
        let segments: Vec<_> =
            models.iter().map(|model| Files::of_model(model).open().unwrap()).collect();
        let mut expected = Model::new();
        for model in models {
            for (pairs, samples) in model {
                expected.entry(pairs).or_default().extend(samples);
            }
        }
        let mut buffers = CellBuffers::default();
        prop_assert_eq!(&read_cell(&segments, &[], TimeRange::ALL, &mut buffers), &expected);

        let range = TimeRange { start, end: start + len };
        let up = Matcher::new("__name__", MatchOp::Regex, "up.*").unwrap();
        expected.retain(|pairs, samples| {
            samples.retain(|ts, _| range.start <= *ts && *ts <= range.end);
            let metric = pairs.iter().find(|pair| pair.0 == "__name__");
            !samples.is_empty() && metric.is_some_and(|metric| metric.1.starts_with("up"))
        });
        prop_assert_eq!(read_cell(&segments, &[up], range, &mut buffers), expected);
    }
}

#[test]
fn a_series_of_one_segment_keeps_its_shared_times() {
    let one = Files::of_series(&common::scraped("one", 2, 3, 20)).open().unwrap();
    let two = Files::of_series(&common::scraped("two", 2, 3, 20)).open().unwrap();
    let all = read_all(&one).unwrap().len();
    let segments = [one, two];
    let by_age: Vec<_> = segments.iter().collect();
    let selection = CellSelection::new(&by_age, &[], TimeRange::ALL);
    assert_eq!(selection.series().iter().map(Vec::len).sum::<usize>(), 2 * all);
    let mut buffers = CellBuffers::default();
    let mut scan = selection.scan(&mut buffers);
    while let Some(series) = scan.next().unwrap() {
        assert!(!series.merged);
        let index = segments[series.segment].index();
        assert_eq!(series.samples.times, index.times_of(series.samples.series));
    }
}
