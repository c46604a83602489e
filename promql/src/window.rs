//! Range functions over one series: what a window of samples comes to.
//!
//! A function is defined once, as a [`Fold`]: samples go in, in time order; two folds of adjacent
//! spans can be merged; and at the end there is a value, or none. That is what crosses the edge of a
//! cell. [`slide()`] gives the same values, bit for bit, for all steps of a series at once, in time
//! linear in samples and steps wherever the function allows; the tests hold the two against each
//! other. Which samples belong to a series, and what the values are used for, is decided elsewhere.

mod extreme;
mod fold;
mod rate;
mod raw;
mod slide;
mod sums;
mod wire;

use std::ops::Range;

pub use fold::Fold;
pub use raw::quantile;
pub use slide::slide;
pub(crate) use slide::slide_unless;

/// The bits of a staleness mark. A series that ends has one as its last sample.
pub const STALE_BITS: u64 = 0x7ff0_0000_0000_0002;

/// No value at a step. A staleness mark is never a value, so its bits are free to say so.
pub const ABSENT: f64 = f64::from_bits(STALE_BITS);

/// Whether a sample is a staleness mark, or a step has no value.
#[inline]
pub fn is_absent(value: f64) -> bool {
    value.to_bits() == STALE_BITS
}

/// A function of the samples in a window, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RangeFunction {
    /// The instant selector: the last sample, unless it is a staleness mark.
    Last,
    /// `timestamp` of an instant selector: when the last sample was, unless it is a staleness mark.
    TsOfNewest,
    /// `rate`, `increase` and `delta`.
    Rate {
        /// Decreases are resets of a counter.
        counter: bool,
        /// By the second, or in all.
        per_second: bool,
    },
    /// `irate` and `idelta`.
    Instant {
        /// A decrease is a reset of a counter, and the result is by the second.
        counter: bool,
    },
    /// `changes`.
    Changes,
    /// `resets`.
    Resets,
    /// `count_over_time`.
    Count,
    /// `present_over_time`.
    Present,
    /// `sum_over_time`.
    Sum,
    /// `avg_over_time`.
    Avg,
    /// `min_over_time`.
    Min,
    /// `max_over_time`.
    Max,
    /// `first_over_time`.
    FirstOverTime,
    /// `last_over_time`.
    LastOverTime,
    /// `ts_of_first_over_time`.
    TsOfFirst,
    /// `ts_of_last_over_time`.
    TsOfLast,
    /// `ts_of_min_over_time`.
    TsOfMin,
    /// `ts_of_max_over_time`.
    TsOfMax,
    /// `stddev_over_time`.
    Stddev,
    /// `stdvar_over_time`.
    Stdvar,
    /// `quantile_over_time`.
    Quantile(f64),
    /// `mad_over_time`.
    Mad,
    /// `deriv`.
    Deriv,
    /// `predict_linear`, so many seconds ahead.
    PredictLinear(f64),
    /// `double_exponential_smoothing`.
    Smoothing {
        /// Weight of the present.
        factor: f64,
        /// Weight of the trend.
        trend: f64,
    },
}

impl RangeFunction {
    /// Whether staleness marks count: they do for the instant selector alone.
    pub(crate) fn sees_marks(self) -> bool {
        matches!(self, Self::Last | Self::TsOfNewest)
    }

    /// Whether every window looks at all of its samples, however much it overlaps with the last.
    pub(crate) fn looks_at_all(self) -> bool {
        matches!(Fold::new(self), Fold::Raw(..))
    }

    /// Whether annotations ask which metrics had values: for functions that want counters.
    pub(crate) fn wants_counters(self) -> bool {
        matches!(self, Self::Rate { counter: true, .. })
    }
}

/// The window of one step: samples after `start`, up to and including `end`, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Before the first instant that counts.
    pub start: i64,
    /// The last instant that counts.
    pub end: i64,
    /// The instant the step is at; differs from `end` under an offset or an `@`.
    pub at: i64,
}

/// The windows of evenly spaced steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The first step's instant.
    pub at: i64,
    /// How far before its step a window ends; negative for after.
    pub offset: i64,
    /// From one step to the next.
    pub step: i64,
    /// How many steps.
    pub count: usize,
    /// The length of every window.
    pub range: i64,
}

impl Windows {
    /// The window of step number `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Window {
        #[expect(clippy::cast_possible_wrap, reason = "steps are limited to far less")]
        let at = self.at + self.step * index as i64;
        let end = at - self.offset;
        Window { start: end - self.range, end, at }
    }

    /// The windows of some of the steps.
    pub fn part(&self, steps: &Range<usize>) -> Self {
        Self { at: self.get(steps.start).at, count: steps.len(), ..*self }
    }

    /// How many samples all windows have, each counted as often as it is in one.
    pub(crate) fn samples_in_all(&self, ts: &[i64]) -> u64 {
        self.over(ts).map(|(_, within)| within.len() as u64).sum()
    }

    /// All windows in time order, each with the samples that lie in it.
    #[inline]
    pub fn over<'a>(&self, ts: &'a [i64]) -> impl Iterator<Item = (Window, Range<usize>)> + 'a {
        let windows = *self;
        let (mut from, mut to) = (0, 0);
        (0..windows.count).map(move |index| {
            let window = windows.get(index);
            while to < ts.len() && ts[to] <= window.end {
                to += 1;
            }
            while from < to && ts[from] <= window.start {
                from += 1;
            }
            (window, from..to)
        })
    }
}

/// The samples of one series, in time order.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    /// Their instants in milliseconds, strictly increasing.
    pub ts: &'a [i64],
    /// Their values.
    pub values: &'a [f64],
}

impl<'a> Samples<'a> {
    /// Number of samples.
    pub fn len(&self) -> usize {
        self.ts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ts.is_empty()
    }

    /// The samples with these numbers.
    pub fn part(&self, range: Range<usize>) -> Self {
        Self { ts: &self.ts[range.clone()], values: &self.values[range] }
    }

    /// The samples after one instant, up to another.
    pub fn within(&self, after: i64, up_to: i64) -> Self {
        let from = self.ts.partition_point(|t| *t <= after);
        let to = self.ts.partition_point(|t| *t <= up_to);
        self.part(from..to.max(from))
    }

    /// The samples one by one.
    pub fn iter(&self) -> impl Iterator<Item = (i64, f64)> + 'a {
        self.ts.iter().copied().zip(self.values.iter().copied())
    }
}

#[cfg(test)]
mod tests;
