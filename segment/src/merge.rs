//! One cell read as one: the series of several segments that cover the same time and shard, merged
//! by their labels and in time order. For an equal timestamp the newest segment wins.
//! Which segments make a cell, and which is the newer one, is the planner's business.

use std::cmp::Ordering;

use tributary_promql::Labels;

use crate::error::SegmentError;
use crate::matcher::Matcher;
use crate::read::{Scan, ScanBuffers, Segment, SeriesSamples};
use crate::series_index::TimeRange;
use crate::source::ByteSource;

/// The series that were chosen of each segment of a cell.
pub struct CellSelection<'a, S> {
    segments: &'a [&'a Segment<S>],
    series: Vec<Vec<u32>>,
    range: TimeRange,
}

impl<'a, S: ByteSource> CellSelection<'a, S> {
    /// Chooses by matchers among segments that are ordered from the oldest to the newest.
    pub fn new(segments: &'a [&'a Segment<S>], matchers: &[Matcher], range: TimeRange) -> Self {
        let select = |segment: &&Segment<S>| segment.index().select(matchers, range);
        Self { segments, series: segments.iter().map(select).collect(), range }
    }

    /// The chosen series of each segment, in rising order.
    pub fn series(&self) -> &[Vec<u32>] {
        &self.series
    }

    /// Starts to read, with buffers that are used again.
    pub fn scan<'s>(&'s self, buffers: &'s mut CellBuffers) -> CellScan<'s, S> {
        let CellBuffers { scans, merge } = buffers;
        scans.resize_with(self.segments.len(), ScanBuffers::default);
        let parts = self.segments.iter().zip(&self.series).zip(scans.iter_mut());
        let parts = parts
            .map(|((segment, series), buffers)| Part {
                segment,
                series,
                next: 0,
                scan: segment.scan(series, self.range, buffers),
            })
            .collect();
        CellScan { parts, merge }
    }
}

/// Memory of a cell's scan, used again by the next one.
#[derive(Default)]
pub struct CellBuffers {
    scans: Vec<ScanBuffers>,
    merge: MergeBuffers,
}

/// The segments that have the series in hand, and its merged samples so far.
#[derive(Default)]
struct MergeBuffers {
    with_series: Vec<usize>,
    ts: Vec<i64>,
    values: Vec<f64>,
    spare_ts: Vec<i64>,
    spare_values: Vec<f64>,
}

/// A series of a cell with its merged samples.
#[derive(Clone, Copy, Debug)]
pub struct CellSeries<'a> {
    /// Place of the newest segment that has the series.
    pub segment: usize,
    /// The series in that segment. Where only one segment has it, its `times` tell which series of
    /// that segment have equal timestamps; otherwise they tell nothing, and `merged` is set.
    pub samples: SeriesSamples<'a>,
    /// More than one segment has the series.
    pub merged: bool,
}

struct Part<'a, S> {
    segment: &'a Segment<S>,
    series: &'a [u32],
    next: usize,
    scan: Scan<'a, S>,
}

impl<S: ByteSource> Part<'_, S> {
    fn peek(&self) -> Option<u32> {
        self.series.get(self.next).copied()
    }

    fn cmp(&self, series: u32, other: &Self, other_series: u32) -> Ordering {
        self.segment.index().cmp(series, other.segment.index(), other_series)
    }

    fn read(&mut self) -> Result<SeriesSamples<'_>, SegmentError> {
        self.next += 1;
        let samples = self.scan.next_of_all()?;
        Ok(samples.expect("a scan hands out every series it was given"))
    }
}

/// A walk over the series of a cell, in the order of metric and labels.
pub struct CellScan<'a, S> {
    parts: Vec<Part<'a, S>>,
    merge: &'a mut MergeBuffers,
}

impl<S: ByteSource> CellScan<'_, S> {
    /// The next series that has samples in the range, or the end.
    #[expect(clippy::should_implement_trait, reason = "what it lends lives until the next call")]
    pub fn next(&mut self) -> Result<Option<CellSeries<'_>>, SegmentError> {
        // The compiler does not see that a lent series ends the loop, so it is read again after.
        while let Some(first) = self.find_first() {
            if self.merge.with_series.len() > 1 {
                let series = self.merge_samples(first)?;
                if !self.merge.ts.is_empty() {
                    return Ok(Some(self.merged(series)));
                }
            } else if !self.parts[first].read()?.ts.is_empty() {
                let samples = self.parts[first].scan.current();
                return Ok(Some(CellSeries { segment: first, samples, merged: false }));
            }
        }
        Ok(None)
    }

    /// The labels of a series that this scan handed out.
    pub fn labels(&self, segment: usize, series: u32) -> Labels {
        self.parts[segment].segment.index().labels(series)
    }

    /// Finds the first series of all segments, and notes which of them have it. Returns the
    /// newest of these.
    fn find_first(&mut self) -> Option<usize> {
        let with_series = &mut self.merge.with_series;
        with_series.clear();
        for (i, part) in self.parts.iter().enumerate() {
            let Some(series) = part.peek() else { continue };
            let order = with_series.first().map(|first: &usize| {
                let first = &self.parts[*first];
                part.cmp(series, first, first.peek().expect("it was seen to have one"))
            });
            match order {
                Some(Ordering::Greater) => continue,
                Some(Ordering::Less) => with_series.clear(),
                Some(Ordering::Equal) | None => {}
            }
            with_series.push(i);
        }
        with_series.last().copied()
    }

    /// Merges the samples of all segments that have the series in hand; returns its number in the
    /// newest of them.
    fn merge_samples(&mut self, newest: usize) -> Result<u32, SegmentError> {
        let MergeBuffers { with_series, ts, values, spare_ts, spare_values } = &mut *self.merge;
        ts.clear();
        values.clear();
        let mut number = 0;
        for part in with_series.iter() {
            let newer = self.parts[*part].read()?;
            if *part == newest {
                number = newer.series;
            }
            spare_ts.clear();
            spare_values.clear();
            merge((&*ts, &*values), (newer.ts, newer.values), (spare_ts, spare_values));
            std::mem::swap(ts, spare_ts);
            std::mem::swap(values, spare_values);
        }
        Ok(number)
    }

    fn merged(&self, series: u32) -> CellSeries<'_> {
        let segment = *self.merge.with_series.last().expect("some segments have the series");
        let samples =
            SeriesSamples { series, times: series, ts: &self.merge.ts, values: &self.merge.values };
        CellSeries { segment, samples, merged: true }
    }
}

/// Merges two columns of samples in time order; for equal times the newer ones are taken.
fn merge(
    (mut old_ts, mut old_values): (&[i64], &[f64]),
    newer: (&[i64], &[f64]),
    (out_ts, out_values): (&mut Vec<i64>, &mut Vec<f64>),
) {
    if old_ts.last() < newer.0.first() {
        // What follows in time, as neighbouring blocks do, is simply appended.
        out_ts.extend_from_slice(old_ts);
        out_values.extend_from_slice(old_values);
        (old_ts, old_values) = (&[], &[]);
    }
    for (ts, value) in newer.0.iter().zip(newer.1) {
        let before = old_ts.partition_point(|old| old < ts);
        out_ts.extend_from_slice(&old_ts[..before]);
        out_values.extend_from_slice(&old_values[..before]);
        let replaced = usize::from(old_ts.get(before) == Some(ts));
        old_ts = &old_ts[before + replaced..];
        old_values = &old_values[before + replaced..];
        out_ts.push(*ts);
        out_values.push(*value);
    }
    out_ts.extend_from_slice(old_ts);
    out_values.extend_from_slice(old_values);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_newer_sample_wins_and_time_order_holds(
            older in prop::collection::btree_map(0_i64..40, -9.0..9.0_f64, 0..20),
            newer in prop::collection::btree_map(0_i64..40, -9.0..9.0_f64, 0..20),
        ) {
            let columns = |map: &BTreeMap<i64, f64>| -> (Vec<i64>, Vec<f64>) {
                map.iter().map(|(ts, value)| (*ts, *value)).unzip()
            };
            let (old, new) = (columns(&older), columns(&newer));
            let (mut ts, mut values) = (Vec::new(), Vec::new());
            merge((&old.0, &old.1), (&new.0, &new.1), (&mut ts, &mut values));
            let mut expected = older;
            expected.extend(newer);
            prop_assert_eq!((ts, values), columns(&expected));
        }
    }
}
