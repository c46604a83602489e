//! Parts of leaves that come from somebody else, as tables: whatever they say, they are refused or
//! make sense.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use tributary_promql::leaf::{PartTable, RowKind};
use tributary_promql::{EvalOptions, Labels, Options, QuerySpec, parse, plan};

use super::common::{answer_of_parts, parts, spans};
use super::watch::watched;
use super::world::{DATA, limits};
use super::{ENOUGH_TO_JUDGE, EVALUATED, cases};

/// Functions and aggregations whose states are all different.
const QUERIES: &[&str] = &[
    "foo",
    "timestamp(foo)",
    "rate(dense_total[5m])",
    "irate(dense_total[5m])",
    "delta(dense_total[5m])",
    "changes(dense_total[5m])",
    "resets(dense_total[5m])",
    "count_over_time(dense_total[5m])",
    "sum_over_time(dense_total[5m])",
    "avg_over_time(dense_total[5m])",
    "min_over_time(dense_total[5m])",
    "ts_of_max_over_time(dense_total[5m])",
    "first_over_time(dense_total[5m])",
    "quantile_over_time(0.5, dense_total[5m])",
    "stddev_over_time(dense_total[5m])",
    "deriv(dense_total[5m])",
    "predict_linear(dense_total[5m], 60)",
    "double_exponential_smoothing(dense_total[5m], 0.5, 0.5)",
    "dense_total[5m]",
    "rate(dense_total[5m] smoothed)",
    "quantile_over_time(scalar(foo), dense_total[5m])",
    "sum(foo)",
    "avg by (a) (sum_over_time(dense_total[5m]))",
    "count(foo)",
    "max(foo)",
    "stddev(extremes)",
    "stdvar by (a) (foo)",
    "topk(1, foo)",
    "count_values(\"v\", foo)",
    "absent(foo)",
    "info(foo)",
];

/// What a table says that it should not.
#[derive(Clone, Debug)]
enum Lie {
    Time(Index, i64),
    Series(Index, u32),
    Kind(Index, RowKind),
    Value(Index, u64),
    Counted(Index, u64, u64),
    Byte(Index, Index, u8),
    Word(Index, Index, i64),
    Bytes(Index, Vec<u8>),
    CutBytes(Index, Index),
    Labels(Index, Index),
    Nameless(Index),
    Drop(Index),
    CutColumn,
    Swap(Index),
}

fn lie() -> impl Strategy<Value = Lie> {
    let far = i64::MAX / 16;
    let time = prop_oneof![
        1 => (0..12_i64).prop_map(|minute| minute * 60_000),
        3 => select(vec![i64::MIN, i64::MIN, i64::MAX, -far, far, 0, 1, -1]),
        1 => any::<i64>(),
    ]
    .boxed();
    let count = prop_oneof![any::<u64>(), 0..3_u64, Just(u64::MAX), Just((1 << 48) - 1)];
    let kinds = vec![RowKind::Value, RowKind::Group, RowKind::State, RowKind::Sample];
    let index = any::<Index>;
    prop_oneof![
        1 => (index(), time.clone()).prop_map(|(row, time)| Lie::Time(row, time)),
        1 => (index(), any::<u32>()).prop_map(|(row, series)| Lie::Series(row, series % 9)),
        1 => (index(), select(kinds)).prop_map(|(row, kind)| Lie::Kind(row, kind)),
        1 => (index(), any::<u64>()).prop_map(|(row, bits)| Lie::Value(row, bits)),
        1 => (index(), any::<u64>(), count).prop_map(|(row, low, count)| Lie::Counted(row, low, count)),
        1 => (index(), index(), any::<u8>()).prop_map(|(row, at, byte)| Lie::Byte(row, at, byte)),
        3 => (index(), index(), time).prop_map(|(row, at, word)| Lie::Word(row, at, word)),
        1 => (index(), vec(any::<u8>(), 0..60)).prop_map(|(row, bytes)| Lie::Bytes(row, bytes)),
        1 => (index(), index()).prop_map(|(row, at)| Lie::CutBytes(row, at)),
        1 => (index(), index()).prop_map(|(one, other)| Lie::Labels(one, other)),
        1 => index().prop_map(Lie::Nameless),
        1 => index().prop_map(Lie::Drop),
        1 => Just(Lie::CutColumn),
        1 => index().prop_map(Lie::Swap),
    ]
}

impl Lie {
    fn tell(self, table: &mut PartTable) {
        let (rows, series) = (table.value.len(), table.series.len());
        if rows == 0 || series == 0 {
            return;
        }
        match self {
            Self::Time(row, time) => table.ts[row.index(rows)] = time,
            Self::Series(row, number) => table.series_of[row.index(rows)] = number,
            Self::Kind(row, kind) => table.kind[row.index(rows)] = kind,
            Self::Value(row, bits) => table.value[row.index(rows)] = f64::from_bits(bits),
            Self::Counted(row, low, count) => {
                let counted = (row.index(rows), f64::from_bits(low), count);
                table.counted.retain(|(number, ..)| *number != counted.0);
                let at = table.counted.partition_point(|(number, ..)| *number < counted.0);
                table.counted.insert(at, counted);
            }
            Self::Bytes(row, bytes) => {
                let row = row.index(rows);
                table.bytes.retain(|(number, _)| *number != row);
                let at = table.bytes.partition_point(|(number, _)| *number < row);
                table.bytes.insert(at, (row, bytes));
            }
            Self::Byte(row, at, byte) => {
                let states = table.bytes.len();
                if states > 0 {
                    let bytes = &mut table.bytes[row.index(states)].1;
                    let len = bytes.len();
                    if len > 0 {
                        bytes[at.index(len)] = byte;
                    }
                }
            }
            Self::Word(row, at, word) => {
                let states = table.bytes.len();
                if states > 0 {
                    // Numbers of eight bytes follow each other, behind a mark of one in some.
                    let bytes = &mut table.bytes[row.index(states)].1;
                    let at = at.index(bytes.len() / 8 + 1) * 8 + bytes.len() % 8;
                    if let Some(place) = bytes.get_mut(at..at + 8) {
                        place.copy_from_slice(&word.to_le_bytes());
                    }
                }
            }
            Self::CutBytes(row, at) => {
                let states = table.bytes.len();
                if states > 0 {
                    let bytes = &mut table.bytes[row.index(states)].1;
                    bytes.truncate(at.index(bytes.len() + 1));
                }
            }
            Self::Labels(one, other) => {
                table.series[one.index(series)] = table.series[other.index(series)].clone();
            }
            Self::Nameless(one) => table.series[one.index(series)] = Labels::default(),
            Self::Drop(row) => table.drop_name[row.index(rows)] ^= true,
            Self::CutColumn => _ = table.value.pop(),
            Self::Swap(row) => table.ts.swap(row.index(rows), 0),
        }
    }
}

#[test]
fn parts_that_lie_are_refused_or_make_sense() {
    let specs = vec![
        QuerySpec::instant(300_000),
        QuerySpec::range(0, 600_000, 60_000),
        QuerySpec::range(0, 600_000, 400_000),
    ];
    // A single lie is believed more often than many.
    let one = (any::<Index>(), lie()).prop_map(|(at, lie)| vec![(at, vec![lie])]);
    let lies = prop_oneof![3 => one, 1 => vec((any::<Index>(), vec(lie(), 1..4)), 1..3)];
    let inputs = (select(QUERIES), select(specs), lies);
    let cases = cases() / EVALUATED * 2;
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let (refused, taken) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let result = TestRunner::new(config).run(&inputs, |(text, spec, lies)| {
        watched(text, || {
            let expr = parse(text, &Options::with_all_features()).unwrap();
            let options = EvalOptions { limits: limits(), ..EvalOptions::default() };
            let Ok(plan) = plan(&expr, spec, &options) else { return Ok(()) };
            let spans = spans(&[120_000, 250_000]);
            let honest = parts(&plan, &DATA, &options.limits, &spans).unwrap();
            let mut tables: Vec<(usize, PartTable)> = honest
                .iter()
                .map(|(leaf, part)| (*leaf, PartTable::of(&plan.leaves[*leaf].leaf, part)))
                .collect();
            for (at, lies) in lies {
                let count = tables.len();
                let table = &mut tables[at.index(count)].1;
                lies.into_iter().for_each(|lie| lie.tell(table));
            }
            let mut parts = Vec::new();
            for ((number, table), (_, honest)) in tables.into_iter().zip(&honest) {
                let leaf = &plan.leaves[number].leaf;
                match table.into_part(leaf, honest.span, honest.place) {
                    Ok(part) => parts.push((number, part)),
                    Err(_) => {
                        refused.set(refused.get() + 1);
                        return Ok(());
                    }
                }
            }
            taken.set(taken.get() + 1);
            // An answer, though not a true one, or an error: anything but a panic.
            let _ = answer_of_parts(&plan, &spans, parts);
            Ok(())
        })
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    if cases >= ENOUGH_TO_JUDGE {
        assert!(refused.get() > 0 && taken.get() > 0, "{refused:?} refused, {taken:?} taken");
    }
}
