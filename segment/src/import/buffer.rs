//! Samples as they came, and the order they should have.

use crate::openmetrics::TextSample;

/// Memory that one sample in a buffer takes: itself in this buffer and in the one being sorted,
/// and its place in two orders.
const BYTES_PER_SAMPLE: usize = 2 * (4 + 8 + 8) + 2 * 4;

/// Samples that a buffer may hold so that all buffers together take this much memory.
pub(super) fn capacity_for(memory_bytes: usize) -> usize {
    (memory_bytes / BYTES_PER_SAMPLE).clamp(1, u32::MAX as usize)
}

/// Samples in the order they came.
#[derive(Default)]
pub(super) struct SampleBuffer {
    capacity: usize,
    series: Vec<u32>,
    ts: Vec<i64>,
    values: Vec<f64>,
}

/// The samples of one series in one block, in the order they came.
pub(super) struct Group<'a> {
    pub(super) block: i64,
    pub(super) series: u32,
    buffer: &'a SampleBuffer,
    order: &'a [u32],
}

impl SampleBuffer {
    /// Room for some samples; the memory is taken as they come.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            capacity,
            series: Vec::with_capacity(capacity),
            ts: Vec::with_capacity(capacity),
            values: Vec::with_capacity(capacity),
        }
    }

    pub(super) fn push(&mut self, sample: TextSample) {
        self.series.push(sample.series);
        self.ts.push(sample.ts);
        self.values.push(sample.value);
    }

    pub(super) fn is_full(&self) -> bool {
        self.series.len() >= self.capacity
    }

    pub(super) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.series.clear();
        self.ts.clear();
        self.values.clear();
    }

    /// Hands on all samples by block, then by the rank of their series.
    pub(super) fn for_each_group<E>(
        &self,
        ranks: &[u32],
        block_ms: i64,
        mut each: impl FnMut(&Group<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (blocks, block_of) = self.blocks(block_ms);
        // Counted by series, then by block; both keep the order of arrival among equals, and take
        // as long as there are samples, series and blocks.
        let arrival: Vec<u32> = (0..u32::try_from(self.series.len()).expect("limited")).collect();
        let rank = |sample: u32| ranks[self.series[sample as usize] as usize];
        let by_series = counting_sort(&arrival, ranks.len(), rank);
        let mut order = arrival;
        counting_sort_into(&by_series, blocks.len(), |i| block_of(self.ts[i as usize]), &mut order);

        let same = |a: &u32, b: &u32| {
            let (a, b) = (*a as usize, *b as usize);
            self.series[a] == self.series[b] && block_of(self.ts[a]) == block_of(self.ts[b])
        };
        for order in order.chunk_by(same) {
            let first = order[0] as usize;
            let block = blocks[block_of(self.ts[first]) as usize];
            each(&Group { block, series: self.series[first], buffer: self, order })?;
        }
        Ok(())
    }

    /// The blocks that samples are in, sorted, and the place of a timestamp among them.
    fn blocks(&self, block_ms: i64) -> (Vec<i64>, impl Fn(i64) -> u32) {
        let mut blocks = Vec::new();
        // A division for each sample would cost more than all the rest; most are in the block of
        // the one before.
        let mut last = None;
        for ts in &self.ts {
            if last.is_none_or(|(from, to): (i64, i64)| *ts < from || *ts > to) {
                let block = ts.div_euclid(block_ms);
                last = Some(bounds(block, block_ms));
                if blocks.last() != Some(&block) {
                    blocks.push(block);
                }
            }
        }
        blocks.sort_unstable();
        blocks.dedup();
        let starts: Vec<i64> = blocks.iter().map(|block| bounds(*block, block_ms).0).collect();
        let place = move |ts: i64| {
            let after = starts.partition_point(|start| *start <= ts);
            u32::try_from(after - 1).expect("not more blocks than samples")
        };
        (blocks, place)
    }
}

/// First and last millisecond of a block. At the ends of time a block is cut off.
pub(super) fn bounds(block: i64, block_ms: i64) -> (i64, i64) {
    let start = block.saturating_mul(block_ms);
    (start, start.saturating_add(block_ms - 1))
}

impl Group<'_> {
    /// Appends the samples in time order, of equal timestamps the last one.
    pub(super) fn read(&self, ts: &mut Vec<i64>, values: &mut Vec<f64>) {
        ts.extend(self.order.iter().map(|i| self.buffer.ts[*i as usize]));
        values.extend(self.order.iter().map(|i| self.buffer.values[*i as usize]));
        tidy(ts, values);
    }
}

/// Brings samples into time order; of equal timestamps the last one stays.
pub(super) fn tidy(ts: &mut Vec<i64>, values: &mut Vec<f64>) {
    if ts.is_sorted_by(|a, b| a < b) {
        return;
    }
    let mut samples: Vec<(i64, f64)> = ts.iter().copied().zip(values.iter().copied()).collect();
    samples.sort_by_key(|sample| sample.0);
    ts.clear();
    values.clear();
    for same in samples.chunk_by(|a, b| a.0 == b.0) {
        let last = same[same.len() - 1];
        ts.push(last.0);
        values.push(last.1);
    }
}

fn counting_sort(items: &[u32], keys: usize, key: impl Fn(u32) -> u32) -> Vec<u32> {
    let mut sorted = vec![0; items.len()];
    counting_sort_into(items, keys, key, &mut sorted);
    sorted
}

fn counting_sort_into(items: &[u32], keys: usize, key: impl Fn(u32) -> u32, sorted: &mut [u32]) {
    let mut next = vec![0_u32; keys + 1];
    for item in items {
        next[key(*item) as usize + 1] += 1;
    }
    for i in 1..next.len() {
        next[i] += next[i - 1];
    }
    for item in items {
        let at = &mut next[key(*item) as usize];
        sorted[*at as usize] = *item;
        *at += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn groups_hold_every_sample_in_order(
            samples in prop::collection::vec((0_u32..5, -50_i64..50, any::<i32>()), 0..200),
            block_ms in 1_i64..40,
        ) {
            let ranks = [3, 1, 4, 0, 2];
            let mut buffer = SampleBuffer::with_capacity(1_000);
            let mut expected: BTreeMap<(i64, u32), BTreeMap<i64, f64>> = BTreeMap::new();
            for (series, ts, value) in samples {
                let value = f64::from(value);
                buffer.push(TextSample { series, ts, value });
                let block = ts.div_euclid(block_ms);
                expected.entry((block, ranks[series as usize])).or_default().insert(ts, value);
            }
            let mut found = Vec::new();
            buffer.for_each_group(&ranks, block_ms, |group| {
                let (mut ts, mut values) = (Vec::new(), Vec::new());
                group.read(&mut ts, &mut values);
                let samples: BTreeMap<_, _> = ts.iter().copied().zip(values).collect();
                assert!(ts.is_sorted_by(|a, b| a < b));
                found.push(((group.block, ranks[group.series as usize]), samples));
                Ok::<(), Infallible>(())
            }).unwrap();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_ends_of_time_have_blocks_too() {
        let block_ms = 7_200_000;
        for ts in [i64::MIN, -1, 0, i64::MAX] {
            let (from, to) = bounds(ts.div_euclid(block_ms), block_ms);
            assert!(from <= ts && ts <= to, "{ts}");
        }
    }
}
