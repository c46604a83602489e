//! What users see of queries, in figures: how they ended and how long they took. `metrics` writes
//! them down.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use core_workcoord::measure::Histogram;

use crate::error::QueryError;

/// How queries ended and how long they took, of all tenants.
#[derive(Debug, Default)]
pub struct Figures {
    inner: Mutex<QueryFigures>,
}

/// The figures themselves.
#[derive(Clone, Debug, Default)]
pub struct QueryFigures {
    /// Queries under way.
    pub running: u64,
    /// How they ended, by [`outcome_name`].
    pub ended: BTreeMap<&'static str, u64>,
    /// From the question to the first result.
    pub first_result: Histogram,
    /// From the question to the end, of answered ones.
    pub total: Histogram,
    /// Planning.
    pub planning: Histogram,
    /// Bytes of artifacts that were fetched for them.
    pub artifact_bytes: u64,
    /// Rows of artifacts that were fetched for them.
    pub artifact_rows: u64,
    /// How inquiries about series ended, by [`outcome_name`].
    pub inquiries: BTreeMap<&'static str, u64>,
    /// From the question to the end, of answered inquiries.
    pub inquiry_total: Histogram,
}

impl Figures {
    /// As they are now.
    pub fn look(&self) -> QueryFigures {
        self.lock().clone()
    }

    /// A query begins.
    pub fn begun(&self) {
        self.lock().running += 1;
    }

    /// A query was planned.
    pub fn planned(&self, took: Duration) {
        self.lock().planning.observe(took);
    }

    /// A query has its first result.
    pub fn first_result(&self, took: Duration) {
        self.lock().first_result.observe(took);
    }

    /// A query ended.
    pub fn ended(&self, outcome: Result<(), &QueryError>, took: Duration, fetched: (u64, u64)) {
        let mut figures = self.lock();
        figures.running -= 1;
        *figures.ended.entry(outcome_name(outcome)).or_default() += 1;
        figures.artifact_bytes += fetched.0;
        figures.artifact_rows += fetched.1;
        if outcome.is_ok() {
            figures.total.observe(took);
        }
    }

    /// An inquiry about series ended.
    pub fn inquired(&self, outcome: Result<(), &QueryError>, took: Duration) {
        let mut figures = self.lock();
        *figures.inquiries.entry(outcome_name(outcome)).or_default() += 1;
        if outcome.is_ok() {
            figures.inquiry_total.observe(took);
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueryFigures> {
        // Nothing in the lock can panic half-way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of an ending, for metrics.
pub fn outcome_name(outcome: Result<(), &QueryError>) -> &'static str {
    use core_workcoord::coordinator::QueryFailure as Failure;
    use tributary_promql::eval::EvalError;
    match outcome {
        Ok(()) => "answered",
        Err(QueryError::Parse(_)) => "parse_error",
        Err(QueryError::Eval(EvalError::Limit { .. })) => "limit",
        Err(QueryError::Eval(_)) => "evaluation_error",
        Err(QueryError::Refused(_)) => "refused",
        Err(QueryError::Failed(Failure::Deadline { no_workers: true, .. })) => "no_workers",
        Err(QueryError::Failed(Failure::Deadline { .. }) | QueryError::Timeout { .. }) => "timeout",
        Err(QueryError::Failed(Failure::WorkFailed { .. })) => "work_failed",
        Err(QueryError::Failed(Failure::AttemptsExhausted { .. })) => "attempts_exhausted",
        Err(QueryError::Failed(Failure::Poisonous { .. })) => "poisonous",
        Err(QueryError::Failed(Failure::ArtifactTooLarge { .. })) => "artifact_too_large",
        Err(QueryError::OutOfMemory { .. }) => "out_of_memory",
        Err(QueryError::BrokeOff(_)) => "internal",
        Err(QueryError::Cancelled) => "cancelled",
        Err(QueryError::ShuttingDown) => "shutting_down",
    }
}
