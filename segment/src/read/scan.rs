//! A walk over the samples of chosen series, in the order of the series.
//!
//! Times are read first, for a stretch of series at a time, and only once for all series that share
//! them; then the values, series by series, from the page in hand.

use std::collections::HashMap;
use std::ops::Range;

use crate::error::SegmentError;
use crate::read::Segment;
use crate::read::page_cache::{ColumnOf, PageCache};
use crate::series_index::TimeRange;
use crate::source::ByteSource;

/// Rows of the series that are planned together. More: larger fetches, and more memory for times
/// where every series has its own.
const STRETCH_ROWS: u64 = 1 << 19;

/// Times that are kept for the stretches to come. Beyond that they are read again if needed.
const MAX_KEPT_TIMES: usize = 4 << 20;

/// Memory of a scan, used again by the next one: some 10 MB, and up to 40 MB where every series has
/// times of its own.
#[derive(Default)]
pub struct ScanBuffers {
    times_cache: PageCache,
    values_cache: PageCache,
    times: Vec<i64>,
    /// For each series whose times are at hand: where they are, and which of its rows they are.
    times_at: HashMap<u32, TimesAt>,
    values: Vec<f64>,
    stretch: Vec<Planned>,
    missing: Vec<u32>,
}

impl ScanBuffers {
    fn reset(&mut self) {
        self.times_cache.reset();
        self.values_cache.reset();
        self.forget_times();
        self.stretch.clear();
    }

    fn forget_times(&mut self) {
        self.times.clear();
        self.times_at.clear();
    }
}

#[derive(Clone, Debug)]
struct TimesAt {
    /// Place among the times at hand.
    at: Range<usize>,
    /// Place of the first of them among the rows of the series.
    skipped: u64,
}

/// A series whose times are at hand.
#[derive(Clone, Debug)]
struct Planned {
    series: u32,
    times: u32,
    at: Range<usize>,
    rows: Range<u64>,
}

/// The samples of one series within the range of a scan, in time order.
#[derive(Clone, Copy, Debug)]
pub struct SeriesSamples<'a> {
    /// Number of the series in its segment.
    pub series: u32,
    /// Series of one scan with equal numbers here have equal timestamps: what was found out about
    /// one's times, such as the bounds of windows, holds for the other's.
    pub times: u32,
    /// Timestamps in milliseconds of the Unix epoch, strictly rising.
    pub ts: &'a [i64],
    /// As many values.
    pub values: &'a [f64],
}

/// A walk over the samples of chosen series.
pub struct Scan<'a, S> {
    segment: &'a Segment<S>,
    series: &'a [u32],
    range: TimeRange,
    buffers: &'a mut ScanBuffers,
    /// Series that were planned so far.
    planned: usize,
    /// Series of the stretch that were handed out so far.
    given: usize,
}

impl<'a, S: ByteSource> Scan<'a, S> {
    pub(super) fn new(
        segment: &'a Segment<S>,
        series: &'a [u32],
        range: TimeRange,
        buffers: &'a mut ScanBuffers,
    ) -> Self {
        debug_assert!(series.is_sorted(), "series come in rising order");
        buffers.reset();
        Self { segment, series, range, buffers, planned: 0, given: 0 }
    }

    /// The next series that has samples in the range, or the end.
    #[expect(clippy::should_implement_trait, reason = "what it lends lives until the next call")]
    pub fn next(&mut self) -> Result<Option<SeriesSamples<'_>>, SegmentError> {
        // Two steps, because the compiler does not see that a lent series ends the loop.
        while self.advance()? {
            if !self.buffers.stretch[self.given - 1].at.is_empty() {
                return Ok(Some(self.current()));
            }
        }
        Ok(None)
    }

    /// The next series, without samples where it has none in the range.
    pub(crate) fn next_of_all(&mut self) -> Result<Option<SeriesSamples<'_>>, SegmentError> {
        Ok(if self.advance()? { Some(self.current()) } else { None })
    }

    /// The series that was handed out last.
    pub(crate) fn current(&self) -> SeriesSamples<'_> {
        let Planned { series, times, at, .. } = &self.buffers.stretch[self.given - 1];
        SeriesSamples {
            series: *series,
            times: *times,
            ts: &self.buffers.times[at.clone()],
            values: &self.buffers.values,
        }
    }

    /// Reads the next series; false at the end.
    fn advance(&mut self) -> Result<bool, SegmentError> {
        if self.given == self.buffers.stretch.len() {
            if self.planned == self.series.len() {
                return Ok(false);
            }
            self.plan()?;
        }
        let buffers = &mut *self.buffers;
        let rows = buffers.stretch[self.given].rows.clone();
        self.given += 1;
        buffers.values.clear();
        if !rows.is_empty() {
            let samples = &self.segment.samples;
            let column = ColumnOf { source: &samples.source, pages: &samples.pages.values };
            buffers.values_cache.read(&column, rows, &mut buffers.values)?;
        }
        Ok(true)
    }

    /// Takes the next stretch of series and reads their times.
    fn plan(&mut self) -> Result<(), SegmentError> {
        let index = &self.segment.index;
        let count = |series: u32| {
            let rows = index.rows(series);
            rows.end - rows.start
        };
        let mut rows = 0;
        let from = self.planned;
        while let Some(series) = self.series.get(self.planned).filter(|_| rows < STRETCH_ROWS) {
            rows += count(*series);
            self.planned += 1;
        }
        let chosen = &self.series[from..self.planned];
        if self.buffers.times.len() > MAX_KEPT_TIMES {
            self.buffers.forget_times();
        }
        self.read_times(chosen)?;
        self.buffers.stretch.clear();
        self.given = 0;
        for series in chosen {
            let times = index.times_of(*series);
            let TimesAt { at, skipped } = self.buffers.times_at[&times].clone();
            let first = index.rows(*series).start + skipped;
            let rows = first..first + at.len() as u64;
            self.buffers.stretch.push(Planned { series: *series, times, at, rows });
        }
        let values = &self.segment.samples.pages.values;
        let ScanBuffers { values_cache, stretch, .. } = &mut *self.buffers;
        let with_rows = stretch.iter().filter(|planned| !planned.rows.is_empty());
        values_cache.want(with_rows.flat_map(|planned| values.page_numbers(planned.rows.clone())));
        Ok(())
    }

    /// Reads those times of these series that are not at hand yet, in the order of the file.
    fn read_times(&mut self, chosen: &[u32]) -> Result<(), SegmentError> {
        let index = &self.segment.index;
        let buffers = &mut *self.buffers;
        buffers.missing.clear();
        let times = chosen.iter().map(|series| index.times_of(*series));
        buffers.missing.extend(times.filter(|times| !buffers.times_at.contains_key(times)));
        buffers.missing.sort_unstable();
        buffers.missing.dedup();

        let samples = &self.segment.samples;
        let column = ColumnOf { source: &samples.source, pages: &samples.pages.times };
        let overlaps = |series: &u32| {
            let (min, max) = index.series_time_bounds(*series);
            self.range.overlaps(min, max)
        };
        let inside = buffers.missing.iter().filter(|series| overlaps(series));
        let pages = inside.flat_map(|series| column.pages.page_numbers(index.rows(*series)));
        buffers.times_cache.want(pages);
        for series in &buffers.missing {
            let start = buffers.times.len();
            let mut skipped = 0;
            if overlaps(series) {
                let rows = index.rows(*series);
                buffers.times_cache.read(&column, rows, &mut buffers.times)?;
                let read = &buffers.times[start..];
                check_times(read, index.series_time_bounds(*series))
                    .map_err(|reason| SegmentError::corrupt(column.source.name(), reason))?;
                let clip = self.range.clip(read);
                skipped = clip.start;
                buffers.times.truncate(start + clip.end);
                buffers.times.drain(start..start + clip.start);
            }
            let at = start..buffers.times.len();
            buffers.times_at.insert(*series, TimesAt { at, skipped: skipped as u64 });
        }
        Ok(())
    }
}

/// Everything after a scan relies on the order of the times.
fn check_times(ts: &[i64], (min, max): (i64, i64)) -> Result<(), &'static str> {
    if ts.first() != Some(&min) || ts.last() != Some(&max) {
        return Err("the times of a series are not within its bounds");
    }
    // A loop without an early end, so that the compiler compares several at once.
    let falling = ts.windows(2).fold(false, |falling, two| falling | (two[0] >= two[1]));
    if falling { Err("the times of a series are not in order") } else { Ok(()) }
}

/// The samples of several series, one after the other in columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Each series' number, and where its samples are in the columns.
    pub series: Vec<(u32, Range<usize>)>,
    /// Timestamps.
    pub ts: Vec<i64>,
    /// Values.
    pub values: Vec<f64>,
}

impl Batch {
    /// Adds the samples of a series.
    pub fn push(&mut self, samples: &SeriesSamples<'_>) {
        let start = self.ts.len();
        self.ts.extend_from_slice(samples.ts);
        self.values.extend_from_slice(samples.values);
        self.series.push((samples.series, start..self.ts.len()));
    }
}
