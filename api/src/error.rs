//! Why a query has no answer: one error, from the text to the last artifact. It becomes an HTTP
//! status or an SSE event once, in `http`.

use std::time::Duration;

use core_workcoord::coordinator::{QueryFailure, Refusal};
use tributary_promql::ParseError;
use tributary_promql::eval::EvalError;

use crate::cores::BrokeOff;

/// Why a query has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum QueryError {
    /// The text is no expression.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// It can't be evaluated, or would take more than it may.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// It was not taken in: there is too much to do already.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Its work could not be done.
    #[error(transparent)]
    Failed(#[from] QueryFailure),
    /// Its time was up, though its work was done: this node or its client was too slow.
    #[error("query timed out after {timeout:?}")]
    Timeout {
        /// The time it had.
        timeout: Duration,
    },
    /// Its results take more memory than there is for all queries together.
    #[error(
        "the results of all queries need more than {limit_bytes} bytes; the limit is limits.memory_bytes"
    )]
    OutOfMemory {
        /// How much there is.
        limit_bytes: u64,
    },
    /// Something broke inside this node.
    #[error(transparent)]
    BrokeOff(#[from] BrokeOff),
    /// Somebody wanted it no more.
    #[error("the query was cancelled")]
    Cancelled,
    /// This node is leaving.
    #[error("this node is shutting down")]
    ShuttingDown,
}
