//! How queries are evaluated: the settings Prometheus has for it, and limits.

use crate::limits::EvalLimits;

/// How queries are evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvalOptions {
    /// How far an instant selector looks back for a sample, in milliseconds.
    pub lookback: i64,
    /// The step of subqueries that name none, in milliseconds.
    pub subquery_step: i64,
    /// Names of metrics go at the very end, so that functions further out can still ask for them
    /// (`promql-delayed-name-removal`).
    pub delayed_name_removal: bool,
    /// Whether a metric is a counter is told by its label `__type__` instead of its name
    /// (`type-and-unit-labels`).
    pub type_and_unit_labels: bool,
    /// Aggregations are begun where the samples are. Makes no difference to the answer.
    pub pushdown: bool,
    /// How much a query may take.
    pub limits: EvalLimits,
}

impl Default for EvalOptions {
    fn default() -> Self {
        Self {
            lookback: 5 * 60 * 1000,
            subquery_step: 60 * 1000,
            delayed_name_removal: false,
            type_and_unit_labels: false,
            pushdown: true,
            limits: EvalLimits::default(),
        }
    }
}
