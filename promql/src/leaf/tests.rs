//! Samples cut into cells in any way, parts in any order: the same bits as in one piece.

use proptest::prelude::*;

use super::*;
use crate::aggregate::{Rank, Reduction, keep_ranked};
use crate::frame::Row;
use crate::labels::Labels;
use crate::limits::EvalLimits;
use crate::window::{ABSENT, Samples};

type Series = (Labels, Vec<i64>, Vec<f64>);

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (0..20_i32).prop_map(f64::from),
        3 => -1e3..1e3,
        1 => any::<f64>(),
        1 => Just(ABSENT),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(-0.0),
    ]
}

fn data() -> impl Strategy<Value = Vec<Series>> {
    let samples = prop::collection::vec((1..40_i64, value()), 0..40);
    prop::collection::vec(samples, 1..5).prop_map(|all| {
        let series = all.into_iter().enumerate().map(|(index, gaps)| {
            let names = [("__name__", "m".to_owned()), ("g", (index % 2).to_string())];
            let labels = names.into_iter().chain([("i", index.to_string())]);
            let mut t = 1_000;
            let (ts, values) = gaps
                .into_iter()
                .map(|(gap, value)| {
                    t += gap;
                    (t, value)
                })
                .unzip();
            (Labels::new(labels).unwrap(), ts, values)
        });
        series.collect()
    })
}

fn function() -> impl Strategy<Value = RangeFunction> {
    use RangeFunction as F;
    prop::sample::select(vec![
        F::Last,
        F::TsOfNewest,
        F::Rate { counter: true, per_second: true },
        F::Rate { counter: false, per_second: false },
        F::Instant { counter: true },
        F::Changes,
        F::Resets,
        F::Count,
        F::Present,
        F::Sum,
        F::Avg,
        F::Min,
        F::TsOfMax,
        F::FirstOverTime,
        F::LastOverTime,
        F::Stddev,
        F::Quantile(0.3),
        F::Deriv,
        F::PredictLinear(60.0),
        F::Smoothing { factor: 0.3, trend: 0.6 },
    ])
}

fn pushed() -> impl Strategy<Value = Option<Pushed>> {
    let reduction = prop::sample::select(vec![
        Reduction::Sum,
        Reduction::Avg,
        Reduction::Count,
        Reduction::Group,
        Reduction::Min,
        Reduction::Max,
        Reduction::Stddev,
        Reduction::Stdvar,
    ]);
    let op = prop_oneof![
        4 => reduction.prop_map(PushedOp::Reduce),
        1 => Just(PushedOp::CountValues("v".to_owned())),
        1 => (1..3_usize, any::<bool>())
            .prop_map(|(count, largest)| PushedOp::Rank(Rank { count, largest })),
    ];
    let grouping = prop::sample::select(vec![
        Grouping::By(Vec::new()),
        Grouping::By(vec!["g".to_owned()]),
        Grouping::Without(vec!["i".to_owned()]),
    ]);
    prop::option::of((op, grouping).prop_map(|(op, grouping)| Pushed { op, grouping }))
}

fn leaf() -> impl Strategy<Value = Leaf> {
    let windows = (900..1_800_i64, -100..100_i64, 1..90_i64, 1..30_usize, 1..400_i64)
        .prop_map(|(at, offset, step, count, range)| Windows { at, offset, step, count, range });
    (windows, function(), pushed()).prop_map(|(windows, function, pushed)| Leaf {
        matchers: Vec::new(),
        windows,
        output: LeafOutput::Value(function),
        name: NameRule::DropLater,
        pushed,
    })
}

/// The spans between cuts, each with a number of shards.
fn cells(cuts: &[(i64, u32)]) -> Vec<(TimeSpan, u32)> {
    let mut cuts = cuts.to_vec();
    cuts.sort_unstable();
    cuts.dedup_by_key(|cut| cut.0);
    let mut from = i64::MIN;
    let mut cells = Vec::new();
    for (to, shards) in cuts.into_iter().chain([(i64::MAX, 2)]) {
        cells.push((TimeSpan { from, to }, shards));
        from = to;
    }
    cells
}

fn run(leaf: &Leaf, data: &[Series], span: TimeSpan, shard: u32, shards: u32) -> LeafPart {
    let limits = EvalLimits::default();
    let mut run = LeafRun::new(leaf, span, shard, &limits);
    for (labels, ts, values) in data.iter().filter(|series| series.0.shard(shards) == shard) {
        let inside = Samples { ts, values }.within(span.from.saturating_sub(1), span.to - 1);
        if !inside.is_empty() {
            run.push(labels, inside).unwrap();
        }
    }
    let part = run.finish();
    // Parts travel as tables: what comes back must be as good.
    let table = PartTable::of(leaf, &part);
    table.into_part(leaf, span, shard).unwrap()
}

/// Rows as bits, after the end of the aggregation.
fn bits(leaf: &Leaf, mut rows: Vec<Row>) -> Vec<(String, bool, Vec<u64>)> {
    if let Some(pushed) = &leaf.pushed
        && let PushedOp::Rank(rank) = pushed.op
    {
        keep_ranked(&mut rows, &pushed.grouping, |_| rank);
    }
    let row = |row: Row| {
        let values = row.values.into_iter().map(f64::to_bits).collect();
        (row.labels.to_string(), row.drop_name, values)
    };
    rows.into_iter().map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_cut_and_any_order_of_arrival_give_the_same_bits(
        data in data(),
        leaf in leaf(),
        cuts in prop::collection::vec((950..1_900_i64, 1..4_u32), 0..5),
        order in any::<u64>(),
        chunk in 1..30_usize,
        clipped in any::<bool>(),
    ) {
        let limits = EvalLimits::default();
        let count = leaf.windows.count;
        let mut whole = MergeSorted::new(&leaf, vec![(TimeSpan::ALL, 0)], &limits);
        whole.add(run(&leaf, &data, TimeSpan::ALL, 0, 1));
        let expected = bits(&leaf, whole.frame(0..count).unwrap().frame.rows);

        let mut parts = Vec::new();
        for (span, shards) in cells(&cuts) {
            for shard in 0..shards {
                // The leaf as it is, or at the steps alone that touch the span.
                match leaf.over(span).filter(|_| clipped) {
                    Some((first, leaf)) => {
                        parts.push(run(&leaf, &data, span, shard, shards).moved(first));
                    }
                    None => parts.push(run(&leaf, &data, span, shard, shards)),
                }
            }
        }
        let keys = parts.iter().map(|part| (part.span, part.place)).collect();
        let mut merge = MergeSorted::new(&leaf, keys, &limits);
        let mut order = order;
        while !parts.is_empty() {
            order = order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = usize::try_from(order >> 33).unwrap() % parts.len();
            merge.add(parts.swap_remove(at));
        }
        prop_assert_eq!(merge.complete_before(), i64::MAX);
        let frame = merge.frame(0..count).unwrap();
        prop_assert_eq!(&bits(&leaf, frame.frame.rows), &expected);

        // A few steps at a time: every step has the values it has among all.
        let mut from = 0;
        while from < count {
            let to = (from + chunk).min(count);
            let part = bits(&leaf, merge.frame(from..to).unwrap().frame.rows);
            let absent = |row: &(String, bool, Vec<u64>)| {
                row.2[from..to].iter().all(|bits| *bits == ABSENT.to_bits())
            };
            let expected: Vec<_> = expected
                .iter()
                .filter(|row| !absent(row))
                .map(|row| (row.0.clone(), row.1, row.2[from..to].to_vec()))
                .collect();
            prop_assert_eq!(part, expected);
            from = to;
        }
    }
}

/// A leaf over ten thousand steps, each with a window of ten thousand samples of one series.
fn long_windows(function: RangeFunction) -> Leaf {
    Leaf {
        matchers: Vec::new(),
        windows: Windows { at: 0, offset: 0, step: 1, count: 10_000, range: 10_000 },
        output: LeafOutput::Value(function),
        name: NameRule::Keep,
        pushed: None,
    }
}

#[test]
fn a_run_hears_that_it_is_cancelled_in_the_middle_of_a_series() {
    let labels = Labels::new([("__name__", "m")]).unwrap();
    let ts: Vec<i64> = (0..10_000).collect();
    let values: Vec<f64> = (0..10_000).map(f64::from).collect();
    let limits = EvalLimits::default();
    for function in [RangeFunction::Stddev, RangeFunction::Mad, RangeFunction::Quantile(0.5)] {
        let leaf = long_windows(function);
        let mut run = LeafRun::new(&leaf, TimeSpan::ALL, 0, &limits);
        let asked = std::cell::Cell::new(0);
        let third_time = || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        let samples = Samples { ts: &ts, values: &values };
        let pushed = run.push_unless(&labels, samples, &third_time);
        assert_eq!((pushed, asked.get()), (Ok(false), 3), "{function:?}");
    }
}

#[test]
fn a_large_part_hears_that_it_is_cancelled_while_it_becomes_a_table() {
    let labels = Labels::new([("__name__", "m")]).unwrap();
    let limits = EvalLimits::default();
    let leaf = long_windows(RangeFunction::Last);
    let mut run = LeafRun::new(&leaf, TimeSpan::ALL, 0, &limits);
    run.push(&labels, Samples { ts: &[0], values: &[1.0] }).unwrap();
    let part = run.finish();
    let whole = PartTable::of_unless(&leaf, &part, &|| false);
    assert_eq!(whole.map(|table| table.len()), Some(10_000));
    let asked = std::cell::Cell::new(0);
    let third_time = || {
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    assert_eq!(PartTable::of_unless(&leaf, &part, &third_time), None);
    assert_eq!(asked.get(), 3);
}
