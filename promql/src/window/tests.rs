//! The sliding evaluation and merged states against a fold over each whole window: the same bits.

use proptest::prelude::*;

use super::*;

const FUNCTIONS: [RangeFunction; 28] = [
    RangeFunction::Last,
    RangeFunction::TsOfNewest,
    RangeFunction::Rate { counter: true, per_second: true },
    RangeFunction::Rate { counter: true, per_second: false },
    RangeFunction::Rate { counter: false, per_second: false },
    RangeFunction::Instant { counter: true },
    RangeFunction::Instant { counter: false },
    RangeFunction::Changes,
    RangeFunction::Resets,
    RangeFunction::Count,
    RangeFunction::Present,
    RangeFunction::Sum,
    RangeFunction::Avg,
    RangeFunction::Min,
    RangeFunction::Max,
    RangeFunction::FirstOverTime,
    RangeFunction::LastOverTime,
    RangeFunction::TsOfFirst,
    RangeFunction::TsOfLast,
    RangeFunction::TsOfMin,
    RangeFunction::TsOfMax,
    RangeFunction::Stddev,
    RangeFunction::Stdvar,
    RangeFunction::Quantile(0.9),
    RangeFunction::Mad,
    RangeFunction::Deriv,
    RangeFunction::PredictLinear(60.0),
    RangeFunction::Smoothing { factor: 0.3, trend: 0.6 },
];

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (0..40_i32).prop_map(f64::from),
        4 => -1e3..1e3,
        1 => any::<f64>(),
        1 => Just(ABSENT),
        1 => Just(f64::NAN),
        1 => Just(f64::from_bits(0x7ff8_0000_0000_0007)),
        1 => Just(f64::INFINITY),
        1 => Just(-0.0),
    ]
}

fn series() -> impl Strategy<Value = (Vec<i64>, Vec<f64>)> {
    prop::collection::vec((1..60_i64, value()), 0..60).prop_map(|gaps| {
        let mut t = 1_000;
        gaps.into_iter()
            .map(|(gap, value)| {
                t += gap;
                (t, value)
            })
            .unzip()
    })
}

fn windows() -> impl Strategy<Value = Windows> {
    (900..2_000_i64, -100..100_i64, 1..90_i64, 1..40_usize, 1..400_i64)
        .prop_map(|(at, offset, step, count, range)| Windows { at, offset, step, count, range })
}

fn whole(function: RangeFunction, samples: Samples<'_>, window: Window) -> f64 {
    let from = samples.ts.partition_point(|t| *t <= window.start);
    let to = samples.ts.partition_point(|t| *t <= window.end);
    let mut fold = Fold::new(function);
    fold.extend(function, samples.part(from..to.max(from)));
    fold.finish(function, window)
}

proptest! {
    #[test]
    fn sliding_gives_the_bits_of_each_whole_window(
        (ts, values) in series(),
        windows in windows(),
    ) {
        let samples = Samples { ts: &ts, values: &values };
        for function in FUNCTIONS {
            let mut out = vec![0.0; windows.count];
            slide(function, samples, windows, &mut out);
            for (i, got) in out.iter().enumerate() {
                let expected = whole(function, samples, windows.get(i));
                prop_assert_eq!(
                    got.to_bits(), expected.to_bits(),
                    "{:?} in {:?}: {} is not {}", function, windows.get(i), got, expected
                );
            }
        }
    }

    #[test]
    fn merged_states_give_the_bits_of_the_whole_window(
        (ts, values) in series(),
        cuts in prop::collection::vec(0..60_usize, 0..4),
    ) {
        let samples = Samples { ts: &ts, values: &values };
        let window = Window { start: 999, end: 5_000, at: 5_010 };
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(ts.len())).collect();
        cuts.extend([0, ts.len()]);
        cuts.sort_unstable();
        for function in FUNCTIONS {
            let mut merged = Fold::new(function);
            for pair in cuts.windows(2) {
                let mut part = Fold::new(function);
                part.extend(function, samples.part(pair[0]..pair[1]));
                merged.merge(function, &part);
            }
            let (got, expected) = (merged.finish(function, window), whole(function, samples, window));
            prop_assert_eq!(got.to_bits(), expected.to_bits(), "{:?}: {} is not {}", function, got, expected);
        }
    }
}

fn over(function: RangeFunction, values: &[f64]) -> f64 {
    let ts: Vec<i64> = (1..).map(|i| i * 10_000).take(values.len()).collect();
    let end = *ts.last().unwrap_or(&0);
    whole(function, Samples { ts: &ts, values }, Window { start: 0, end, at: end })
}

#[test]
fn increases_are_extrapolated_as_prometheus_does() {
    let increase = RangeFunction::Rate { counter: true, per_second: false };
    let rate = RangeFunction::Rate { counter: true, per_second: true };
    let delta = RangeFunction::Rate { counter: false, per_second: false };
    // Ten samples, ten seconds apart, the first ten seconds after the window's start.
    let steady: Vec<f64> = (1..=10).map(|i| f64::from(i) * 10.0).collect();
    assert_eq!(over(increase, &steady), 100.0);
    assert_eq!(over(rate, &steady), 1.0);
    assert_eq!(over(delta, &[50.0, 40.0, 30.0]), -30.0);
    // A reset in the middle: 10, 20, then 5, 15.
    assert_eq!(over(increase, &[10.0, 20.0, 5.0, 15.0]), 25.0 * (40.0 / 30.0));
    assert!(is_absent(over(increase, &[1.0])));
    assert!(is_absent(over(increase, &[1.0, ABSENT])), "a staleness mark is no sample");
}

#[test]
fn the_instant_selector_stops_at_a_staleness_mark() {
    assert_eq!(over(RangeFunction::Last, &[1.0, 2.0]), 2.0);
    assert!(is_absent(over(RangeFunction::Last, &[1.0, ABSENT])));
    assert_eq!(over(RangeFunction::LastOverTime, &[1.0, ABSENT]), 1.0);
}

#[test]
fn statistics_of_known_numbers() {
    let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
    assert_eq!(over(RangeFunction::Stddev, &values), 2.0);
    assert_eq!(over(RangeFunction::Stdvar, &values), 4.0);
    assert_eq!(over(RangeFunction::Stdvar, &[5e-324, 1.5, f64::MIN]), f64::INFINITY);
    assert_eq!(over(RangeFunction::Quantile(0.5), &values), 4.5);
    assert_eq!(over(RangeFunction::Quantile(-0.1), &values), f64::NEG_INFINITY);
    assert_eq!(over(RangeFunction::Quantile(1.1), &values), f64::INFINITY);
    assert_eq!(over(RangeFunction::Mad, &[1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]), 1.0);
    assert_eq!(over(RangeFunction::Deriv, &[0.0, 10.0, 20.0]), 1.0);
    assert_eq!(over(RangeFunction::PredictLinear(60.0), &[0.0, 10.0, 20.0]), 80.0);
    assert_eq!(over(RangeFunction::TsOfMax, &[1.0, 9.0, 9.0, 2.0]), 30.0);
    assert_eq!(over(RangeFunction::Changes, &[1.0, f64::NAN, f64::NAN, 2.0]), 2.0);
    assert_eq!(over(RangeFunction::Avg, &[f64::MAX, f64::MAX]), f64::MAX);
}
