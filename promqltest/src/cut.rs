//! Cuts data into cells, as a planner finds it cut into segments. Pure: the same data and the same
//! seed give the same cells. Cells tile time × series, so every sample is in exactly one.

use tributary_promql::Labels;

use crate::data::DataSet;
use crate::splitmix::{SplitMix, mix};

/// All samples of some series in a span of time.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Where the span begins, in milliseconds; `i64::MIN` for the first.
    pub from: i64,
    /// Before which it ends; `i64::MAX` for the last.
    pub to: i64,
    /// Which of the series of this span; spans differ in how many shards they have.
    pub shard: u32,
    /// The samples. There may be none.
    pub data: DataSet,
}

/// At most so many shards in one span.
const MOST_SHARDS: u64 = 4;

/// Cuts data into cells, by time and then by shard. Where the script pins the times of the cuts, it
/// is there that time is cut; otherwise near samples, for that is where cuts can do harm.
pub fn cut(data: &DataSet, seed: u64) -> Vec<Cell> {
    let mut dice = SplitMix::new(seed);
    let times = match data.cut_times() {
        Some(times) => times.to_vec(),
        None => cut_times(data, &mut dice),
    };
    let begins = [i64::MIN].into_iter().chain(times.iter().copied());
    let ends = times.iter().copied().chain([i64::MAX]);
    begins.zip(ends).flat_map(|(from, to)| block(data, from, to, &mut dice)).collect()
}

/// The cells of one span.
fn block(data: &DataSet, from: i64, to: i64, dice: &mut SplitMix) -> Vec<Cell> {
    let shards = 1 + dice.below(MOST_SHARDS);
    // Which series share a shard is another matter in every span, so that states of a series meet
    // whatever company each comes from.
    let salt = dice.next();
    let shard_of = |labels: &Labels| mix(labels.hash64() ^ salt) % shards;
    (0..shards)
        .map(|shard| Cell {
            from,
            to,
            shard: u32::try_from(shard).expect("there are few shards"),
            data: data.part(from, to, |labels| shard_of(labels) == shard),
        })
        .collect()
}

/// Where to cut time: at samples, just before, just after and between them.
fn cut_times(data: &DataSet, dice: &mut SplitMix) -> Vec<i64> {
    let mut samples: Vec<i64> =
        data.series().values().flat_map(|samples| samples.ts.iter().copied()).collect();
    samples.sort_unstable();
    samples.dedup();
    if samples.is_empty() {
        return Vec::new();
    }
    let mut times = Vec::new();
    // Few cuts leave long blocks, many leave windows that span lots of them.
    let count = match dice.below(3) {
        0 => dice.below(3),
        1 => 3 + dice.below(6),
        _ => 12 + dice.below(24),
    };
    for _ in 0..count {
        let at = *dice.choose(&samples);
        let next = samples[samples.partition_point(|t| *t <= at).min(samples.len() - 1)];
        times.push(match dice.below(6) {
            0 => at - 1,
            1 => at + 1,
            2 => at + (next - at) / 2,
            _ => at,
        });
    }
    times.sort_unstable();
    times.dedup();
    times
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::data::{Samples, Series};

    fn labels(number: usize) -> Labels {
        Labels::new([("__name__", "m"), ("n", &number.to_string())]).unwrap()
    }

    fn data(series: &[BTreeMap<i64, u32>]) -> DataSet {
        let mut data = DataSet::default();
        let series = series.iter().enumerate().map(|(number, samples)| {
            let values = samples.values().map(|value| f64::from(*value)).collect();
            (labels(number), Samples { ts: samples.keys().copied().collect(), values })
        });
        data.load(series.collect::<Series>());
        data
    }

    fn one_every_minute(minutes: i64) -> DataSet {
        data(&vec![(0..minutes).map(|minute| (minute * 60_000, 1)).collect(); 6])
    }

    proptest! {
        #[test]
        fn every_sample_is_in_exactly_one_cell(
            series in prop::collection::vec(
                prop::collection::btree_map(-1_000_i64..1_000, any::<u32>(), 0..20), 0..6),
            seed: u64,
        ) {
            let data = data(&series);
            let cells = cut(&data, seed);
            let mut together = DataSet::default();
            let mut count = 0;
            for cell in &cells {
                for samples in cell.data.series().values() {
                    count += samples.ts.len();
                    prop_assert!(samples.ts.iter().all(|t| (cell.from..cell.to).contains(t)));
                }
                together.load(cell.data.series().clone());
            }
            prop_assert_eq!(count, data.series().values().map(|samples| samples.ts.len()).sum());
            let flat = |data: &DataSet| -> Vec<_> {
                let series = data.series().iter();
                series.map(|(labels, samples)| (labels.clone(), samples.iter().collect::<Vec<_>>())).collect()
            };
            prop_assert_eq!(flat(&together), flat(&data));
        }

        #[test]
        fn spans_follow_each_other_without_a_gap(seed: u64) {
            let cells = cut(&one_every_minute(10), seed);
            let mut spans: Vec<(i64, i64)> = cells.iter().map(|cell| (cell.from, cell.to)).collect();
            spans.dedup();
            prop_assert_eq!(spans[0].0, i64::MIN);
            prop_assert_eq!(spans[spans.len() - 1].1, i64::MAX);
            prop_assert!(spans.windows(2).all(|two| two[0].1 == two[1].0 && two[0].0 < two[0].1));
        }
    }

    #[test]
    fn cuts_come_at_samples_and_beside_them_and_shards_in_all_numbers() {
        let data = one_every_minute(10);
        let (mut at, mut before, mut after, mut between) = (false, false, false, false);
        let mut shards = [false; 4];
        for seed in 0..50 {
            for cell in cut(&data, seed) {
                shards[cell.shard as usize] = true;
                if cell.from != i64::MIN {
                    match cell.from.rem_euclid(60_000) {
                        0 => at = true,
                        59_999 => before = true,
                        1 => after = true,
                        _ => between = true,
                    }
                }
            }
        }
        assert!(at && before && after && between);
        assert_eq!(shards, [true; 4]);
    }

    #[test]
    fn the_same_seed_cuts_the_same_way_and_another_one_differently() {
        let data = one_every_minute(30);
        let spans = |seed| -> Vec<_> {
            cut(&data, seed)
                .iter()
                .map(|cell| (cell.from, cell.shard, cell.data.series().len()))
                .collect()
        };
        assert_eq!(spans(7), spans(7));
        assert_ne!(spans(7), spans(8));
    }

    #[test]
    fn pinned_cuts_are_kept_whatever_the_seed() {
        let mut data = one_every_minute(10);
        data.cut_at(vec![300_000, 120_000]);
        for seed in 0..20 {
            let mut begins: Vec<i64> = cut(&data, seed).iter().map(|cell| cell.from).collect();
            begins.dedup();
            assert_eq!(begins, [i64::MIN, 120_000, 300_000]);
        }
    }

    #[test]
    fn parts_of_a_cell_keep_apart_what_was_loaded_apart() {
        let mut data = one_every_minute(2);
        data.load(Series::from([(labels(0), Samples { ts: vec![0], values: vec![9.0] })]));
        data.cut_at(Vec::new());
        let cells = cut(&data, 1);
        assert!(cells.iter().all(|cell| cell.data.loads().len() == 2));
        let first = cells.iter().find_map(|cell| cell.data.series().get(&labels(0))).unwrap();
        assert_eq!(first.values, [9.0, 1.0]);
    }
}
