//! The series of one segment: which there are, which match, and which rows of samples are theirs.
//! Reads the file of series as a whole; the samples are for `read`.

mod bits;
mod columns;
mod postings;

use std::ops::Range;
use std::sync::Arc;

use tributary_promql::Labels;
use tributary_promql::matcher::METRIC_NAME;

use crate::error::SegmentError;
use crate::footer::Footer;
use crate::matcher::Matcher;
use crate::page::text::Strings;
use crate::schema::{Family, FileKind, key};
use crate::series_index::bits::Bits;
use crate::series_index::columns::Columns;
use crate::series_index::postings::Postings;
use crate::source::ByteSource;

/// Timestamps in milliseconds of the Unix epoch, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The earliest.
    pub start: i64,
    /// The latest. Less than the start: no time at all.
    pub end: i64,
}

impl TimeRange {
    /// All of time.
    pub const ALL: Self = Self { start: i64::MIN, end: i64::MAX };

    /// True where some moment from `min` to `max` lies within.
    pub fn overlaps(&self, min: i64, max: i64) -> bool {
        self.start <= self.end && min <= self.end && max >= self.start
    }

    /// True where every moment from `min` to `max` lies within.
    pub fn covers(&self, min: i64, max: i64) -> bool {
        self.start <= min && max <= self.end
    }

    /// The part of a sorted column of times that lies within.
    pub fn clip(&self, ts: &[i64]) -> Range<usize> {
        let start = ts.partition_point(|ts| *ts < self.start);
        let end = ts.partition_point(|ts| *ts <= self.end);
        start..end.max(start)
    }
}

/// The series of one segment, in memory. Series are numbered from zero in their order.
pub struct SeriesIndex {
    name: String,
    columns: Columns,
    /// First series of each metric, by the metric's number, and the end.
    metric_starts: Vec<u32>,
    postings: Postings,
    partner: Partner,
}

/// What the file of series says of its file of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partner {
    pub(crate) size_bytes: u64,
    pub(crate) seal: String,
}

impl SeriesIndex {
    /// Reads the file of series.
    pub fn open(source: &impl ByteSource) -> Result<Self, SegmentError> {
        let footer = Footer::open(source, FileKind::Series)?;
        let corrupt = |reason: String| SegmentError::corrupt(source.name(), reason);
        let partner = footer.value(key::SAMPLES).and_then(|partner| {
            let (size, seal) = partner.split_once(':')?;
            Some(Partner { size_bytes: size.parse().ok()?, seal: seal.to_owned() })
        });
        let partner =
            partner.ok_or_else(|| corrupt("it does not name its file of samples".to_owned()))?;
        let columns = Columns::decode(&footer, source.name())?;
        let metric_starts = columns.metric_starts();
        let postings = Postings::new(&columns);
        Ok(Self { name: source.name().to_owned(), columns, metric_starts, postings, partner })
    }

    /// What the file is called in errors.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn partner(&self) -> &Partner {
        &self.partner
    }

    /// Number of series.
    pub fn len(&self) -> u32 {
        self.columns.len()
    }

    /// True where there is no series.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory this takes, near enough for a cache that counts them.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.name.len()
            + self.metric_starts.capacity() * size_of::<u32>()
            + self.columns.memory_bytes()
            + self.postings.memory_bytes()
    }

    /// Number of samples of all series.
    pub fn samples(&self) -> u64 {
        self.columns.row_ends.last().copied().unwrap_or(0)
    }

    /// Earliest and latest timestamp of all series, or nothing where there is no series.
    pub fn time_bounds(&self) -> Option<(i64, i64)> {
        let min = self.columns.min_ts.iter().min()?;
        Some((*min, *self.columns.max_ts.iter().max()?))
    }

    /// Rows of a series in the file of samples.
    pub fn rows(&self, series: u32) -> Range<u64> {
        let at = series as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.columns.row_ends[before]);
        start..self.columns.row_ends[at]
    }

    /// Earliest and latest timestamp of a series.
    pub fn series_time_bounds(&self, series: u32) -> (i64, i64) {
        (self.columns.min_ts[series as usize], self.columns.max_ts[series as usize])
    }

    /// The first series of the segment with exactly the same timestamps; perhaps the series
    /// itself. Series of one scrape target share them.
    pub fn times_of(&self, series: u32) -> u32 {
        self.columns.times[series as usize]
    }

    /// Name of a series' metric.
    pub fn metric(&self, series: u32) -> &str {
        self.columns.metrics.get(self.columns.metric[series as usize])
    }

    /// What is known of a series' metric family.
    pub fn family(&self, series: u32) -> &Arc<Family> {
        &self.columns.families[self.columns.family[series as usize] as usize]
    }

    /// Everything that is known of metric families, each once, with one of its metrics.
    pub fn families(&self) -> impl Iterator<Item = (&str, &Arc<Family>)> {
        let mut seen = vec![false; self.columns.families.len()];
        (0..self.len()).filter_map(move |series| {
            let family = self.columns.family[series as usize] as usize;
            let new = !std::mem::replace(&mut seen[family], true);
            new.then(|| (self.metric(series), &self.columns.families[family]))
        })
    }

    /// Names of all metrics, sorted.
    pub fn metrics(&self) -> impl Iterator<Item = &str> {
        (0..self.columns.metrics.len()).map(|metric| self.columns.metrics.get(metric))
    }

    /// Names of all labels that some series has, sorted, without the metric's name.
    pub fn label_names(&self) -> impl Iterator<Item = &str> {
        (0..self.columns.names.len()).map(|name| self.columns.names.get(name))
    }

    /// Values of a label, sorted. Those of [`METRIC_NAME`] are the metrics.
    pub fn label_values(&self, name: &str) -> Vec<&str> {
        if name == METRIC_NAME {
            return self.metrics().filter(|metric| !metric.is_empty()).collect();
        }
        let Some(name) = self.columns.names.find(name) else { return Vec::new() };
        self.postings.values(name).iter().map(|value| self.columns.values.get(*value)).collect()
    }

    /// All labels of a series.
    pub fn labels(&self, series: u32) -> Labels {
        let metric = (METRIC_NAME, self.metric(series));
        let mut pairs: Vec<_> = self.pairs(series).collect();
        let at = pairs.partition_point(|pair| pair.0 < METRIC_NAME);
        pairs.insert(at, metric);
        Labels::from_sorted(pairs.into_iter())
    }

    /// Label pairs of a series, sorted by name, without the metric's name.
    pub fn pairs(&self, series: u32) -> impl Iterator<Item = (&str, &str)> {
        let columns = &self.columns;
        columns
            .pairs(series)
            .map(|(name, value)| (columns.names.get(name), columns.values.get(value)))
    }

    /// The value of one label of a series.
    pub fn label(&self, series: u32, name: &str) -> Option<&str> {
        if name == METRIC_NAME {
            return Some(self.metric(series)).filter(|metric| !metric.is_empty());
        }
        self.pairs(series).find(|pair| pair.0 == name).map(|pair| pair.1)
    }

    /// The order of a series here and one of another segment.
    pub(crate) fn cmp(&self, series: u32, other: &Self, other_series: u32) -> std::cmp::Ordering {
        self.metric(series)
            .cmp(other.metric(other_series))
            .then_with(|| self.pairs(series).cmp(other.pairs(other_series)))
    }

    /// The series that all matchers match and that have samples in or around the range, in
    /// rising order. No matchers match every series.
    pub fn select(&self, matchers: &[Matcher], range: TimeRange) -> Vec<u32> {
        let mut keep = Bits::none(self.len());
        for metric in self.selected_metrics(matchers) {
            keep.add_range(self.metric_range(metric));
        }
        for matcher in matchers.iter().filter(|matcher| matcher.name() != METRIC_NAME) {
            if keep.is_empty() {
                break;
            }
            self.narrow(&mut keep, matcher);
        }
        let overlaps = |series: &u32| {
            let (min, max) = self.series_time_bounds(*series);
            range.overlaps(min, max)
        };
        keep.iter().filter(overlaps).collect()
    }

    fn selected_metrics(&self, matchers: &[Matcher]) -> Vec<u32> {
        let on_name: Vec<_> = matchers.iter().filter(|m| m.name() == METRIC_NAME).collect();
        let metrics = &self.columns.metrics;
        // One exact name is by far the commonest, and needs no walk over all of them.
        let exact = on_name.iter().find(|m| !m.is_negative() && m.test_values().is_some());
        let candidates: Vec<u32> = match exact.and_then(|m| m.test_values()) {
            Some(values) => values.iter().filter_map(|value| metrics.find(value)).collect(),
            None => (0..metrics.len()).collect(),
        };
        let all_match = |metric: &u32| on_name.iter().all(|m| m.matches(metrics.get(*metric)));
        candidates.into_iter().filter(all_match).collect()
    }

    fn metric_range(&self, metric: u32) -> Range<u32> {
        self.metric_starts[metric as usize]..self.metric_starts[metric as usize + 1]
    }

    /// Keeps the series that a matcher on a label matches.
    fn narrow(&self, keep: &mut Bits, matcher: &Matcher) {
        // Where the test holds for the empty text it holds for series without the label. Those
        // are in no list, so the others are collected.
        let holds_for_none = matcher.test_holds("");
        let mut listed = Bits::none(self.len());
        if let Some(name) = self.columns.names.find(matcher.name()) {
            for at in self.values_to_list(name, matcher, holds_for_none) {
                listed.add_all(self.postings.series(at));
            }
        }
        if holds_for_none == matcher.is_negative() {
            keep.retain(&listed);
        } else {
            keep.remove(&listed);
        }
    }

    /// The places of the values for which the test holds, or, where it holds for the empty text,
    /// of those for which it does not.
    fn values_to_list(&self, name: u32, matcher: &Matcher, holds_for_none: bool) -> Vec<usize> {
        let places = self.postings.places(name);
        let values: &Strings = &self.columns.values;
        let value_at = |at: &usize| values.get(self.postings.value(*at));
        if holds_for_none {
            return places.filter(|at| !matcher.test_holds(value_at(at))).collect();
        }
        if let Some(wanted) = matcher.test_values() {
            let known = wanted.iter().filter_map(|value| values.find(value));
            return known.filter_map(|value| self.postings.find(name, value)).collect();
        }
        let prefix = matcher.test_prefix();
        let from = self.postings.first_place(name, |value| values.get(value) >= prefix);
        (from..places.end)
            .take_while(|at| value_at(at).starts_with(prefix))
            .filter(|at| matcher.test_holds(value_at(at)))
            .collect()
    }
}

impl std::fmt::Debug for SeriesIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} series of {}", self.len(), self.name)
    }
}
