//! How much a query may take before it is ended with an error that names the limit.

use crate::eval::EvalError;

/// Limits on the evaluation of one query. Those on its text are [`crate::Limits`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalLimits {
    /// Series that one selector may read.
    pub max_series: u64,
    /// Samples that one selector may read.
    pub max_samples: u64,
    /// Steps of a query.
    pub max_steps: u64,
    /// Steps of a subquery.
    pub max_subquery_steps: u64,
    /// Values that are held at once for one part of the expression: of rows, of states and of
    /// samples that cross edges.
    pub max_values: u64,
}

impl Default for EvalLimits {
    fn default() -> Self {
        Self {
            max_series: 1_000_000,
            max_samples: 2_000_000_000,
            max_steps: 11_000,
            max_subquery_steps: 500_000,
            max_values: 50_000_000,
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
}

fn check(
    count: u64,
    limit: u64,
    what: &'static str,
    setting: &'static str,
) -> Result<(), EvalError> {
    if count > limit { Err(EvalError::Limit { what, limit, setting }) } else { Ok(()) }
}
