//! Why an evaluation ends without an answer.

use crate::duration_expr::DurationError;
use crate::frame::SameLabels;

/// Why an evaluation ends without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The expression makes no sense over this data, in Prometheus' words.
    #[error("{0}")]
    Invalid(String),
    /// Two series ended up with the same labels.
    #[error(transparent)]
    SameLabels(#[from] SameLabels),
    /// A duration makes no sense in this query.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// A limit was reached.
    #[error("query needs more than {limit} {what}; the limit is {setting}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
        limit: u64,
        /// The setting that allows it.
        setting: &'static str,
    },
}

impl EvalError {
    /// An expression that makes no sense over this data.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }
}
