//! How much a query may take before it is ended with an error that names the limit.

use crate::eval::EvalError;
use crate::labels::Labels;

/// Limits on the evaluation of one query. Those on its text are [`crate::Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalLimits {
    /// Series that one selector may read (1,000,000).
    pub max_series: u64,
    /// Samples that one selector may read (2,000,000,000). More: time in proportion.
    pub max_samples: u64,
    /// Steps of a query (11,000). More: memory in proportion.
    pub max_steps: u64,
    /// Steps of a subquery (500,000). More: memory and time in proportion.
    pub max_subquery_steps: u64,
    /// Values that are held at once (50,000,000): of rows, of states and of samples that cross
    /// edges, of all parts of the expression together. More: memory, 8 bytes for a value of a row,
    /// 16 for a sample, 40 for the state of a group, and 100 for one of `stddev`.
    pub max_values: u64,
    /// Samples that windows look at (5,000,000,000), each as often as it is looked at, in one
    /// function that has to look at all of them at every step, such as `mad_over_time`. More: time
    /// in proportion.
    pub max_window_samples: u64,
    /// Bytes of the labels of all series that one part of the expression makes (512 MiB).
    pub max_label_bytes: u64,
    /// Bytes of the labels of one series that is made (1 MiB). More: time of regular expressions.
    pub max_series_label_bytes: u64,
}

impl Default for EvalLimits {
    fn default() -> Self {
        Self {
            max_series: 1_000_000,
            max_samples: 2_000_000_000,
            max_steps: 11_000,
            max_subquery_steps: 500_000,
            max_values: 50_000_000,
            max_window_samples: 5_000_000_000,
            max_label_bytes: 512 << 20,
            max_series_label_bytes: 1 << 20,
        }
    }
}

impl EvalLimits {
    pub(crate) fn series(&self, count: u64) -> Result<(), EvalError> {
        check(count, self.max_series, "series in one selector", "max_series")
    }

    pub(crate) fn samples(&self, count: u64) -> Result<(), EvalError> {
        check(count, self.max_samples, "samples in one selector", "max_samples")
    }

    pub(crate) fn values(&self, count: u64) -> Result<(), EvalError> {
        check(count, self.max_values, "values in memory at once", "max_values")
    }

    pub(crate) fn steps(&self, count: u64) -> Result<(), EvalError> {
        check(count, self.max_steps, "steps", "max_steps")
    }

    pub(crate) fn subquery_steps(&self, count: u64) -> Result<(), EvalError> {
        check(count, self.max_subquery_steps, "steps in a subquery", "max_subquery_steps")
    }

    pub(crate) fn window_samples(&self, count: u64) -> Result<(), EvalError> {
        let what = "samples in the windows of one function";
        check(count, self.max_window_samples, what, "max_window_samples")
    }

    pub(crate) fn label_bytes(&self, count: u64) -> Result<(), EvalError> {
        check(count, self.max_label_bytes, "bytes of labels", "max_label_bytes")
    }

    pub(crate) fn series_label_bytes(&self, count: usize) -> Result<(), EvalError> {
        let what = "bytes of labels in one series";
        check(count as u64, self.max_series_label_bytes, what, "max_series_label_bytes")
    }

    /// Nothing counted yet.
    pub(crate) fn tally(&self) -> Tally {
        Tally { limits: *self, values: 0, label_bytes: 0, window_samples: 0 }
    }
}

/// What rows in the making take: counted before they are made, so that too much never is.
#[derive(Debug)]
pub(crate) struct Tally {
    limits: EvalLimits,
    values: u64,
    label_bytes: u64,
    window_samples: u64,
}

impl Tally {
    /// Counts a row with new labels.
    pub(crate) fn row(&mut self, labels: &Labels, steps: usize) -> Result<(), EvalError> {
        self.values(steps)?;
        self.labels(labels.size_bytes())
    }

    /// Counts values.
    pub(crate) fn values(&mut self, count: usize) -> Result<(), EvalError> {
        self.values += count as u64;
        self.limits.values(self.values)
    }

    /// Counts samples that windows look at.
    pub(crate) fn window_samples(&mut self, count: u64) -> Result<(), EvalError> {
        self.window_samples = self.window_samples.saturating_add(count);
        self.limits.window_samples(self.window_samples)
    }

    /// Counts the labels of a series.
    pub(crate) fn labels(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.limits.series_label_bytes(bytes)?;
        self.label_bytes += bytes as u64;
        self.limits.label_bytes(self.label_bytes)
    }
}

fn check(
    count: u64,
    limit: u64,
    what: &'static str,
    setting: &'static str,
) -> Result<(), EvalError> {
    if count > limit { Err(EvalError::Limit { what, limit, setting }) } else { Ok(()) }
}
