//! Why a request has no answer, in Prometheus' words: a type, a status and a message. Errors of
//! queries are translated here, once, for JSON and for streams of events alike.

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use core_workcoord::coordinator::{QueryFailure, Refusal};
use core_workcoord::message::FailureCode;
use tributary_promql::eval::EvalError;
use tributary_promql::quote::quoted;

use super::json::push_text;
use crate::access::{Busy, Denied};
use crate::error::QueryError;

/// When to come again where nobody can say it better.
const SOON: Duration = Duration::from_secs(1);

/// What kind of failure it is, as clients tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The request makes no sense.
    BadData,
    /// The query makes no sense over this data, or takes more than it may.
    Execution,
    /// Its time was up.
    Timeout,
    /// Somebody wanted it no more.
    Canceled,
    /// Not now; later it may work.
    Unavailable,
    /// Something is broken here.
    Internal,
    /// There is no such thing.
    NotFound,
    /// Too much at once.
    TooManyRequests,
    /// No key, or a wrong one.
    Unauthorized,
    /// The method is not for this path.
    MethodNotAllowed,
    /// The body is larger than is allowed.
    TooLarge,
    /// The body is of a kind that is not understood.
    UnsupportedMedia,
    /// The body did not come in time.
    SlowRequest,
}

impl Kind {
    /// The word clients read, as `errorType` and as the code of an event.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::BadData | Self::TooLarge | Self::UnsupportedMedia | Self::MethodNotAllowed => {
                "bad_data"
            }
            Self::Execution => "execution",
            Self::Timeout | Self::SlowRequest => "timeout",
            Self::Canceled => "canceled",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
            Self::NotFound => "not_found",
            Self::TooManyRequests => "too_many_requests",
            Self::Unauthorized => "unauthorized",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::BadData => StatusCode::BAD_REQUEST,
            Self::Execution => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Timeout | Self::Canceled | Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMedia => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::SlowRequest => StatusCode::REQUEST_TIMEOUT,
        }
    }
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    /// When it may be worth to come again.
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    pub(crate) fn bad_data(message: impl Into<String>) -> Self {
        Self::new(Kind::BadData, message)
    }

    /// A parameter that makes no sense, in Prometheus' words.
    pub(crate) fn parameter(name: &str, why: impl std::fmt::Display) -> Self {
        Self::bad_data(format!("invalid parameter {}: {why}", quoted(name.as_bytes())))
    }

    fn later(message: impl Into<String>, kind: Kind) -> Self {
        Self { retry_after: Some(SOON), ..Self::new(kind, message) }
    }
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        let message = error.to_string();
        match error {
            QueryError::Parse(error) => Self::parameter("query", error),
            // Prometheus finds these before it runs the query.
            QueryError::Eval(EvalError::Duration(error)) => Self::parameter("query", error),
            QueryError::Eval(
                EvalError::Invalid(_) | EvalError::SameLabels(_) | EvalError::Limit { .. },
            ) => Self::new(Kind::Execution, message),
            QueryError::Refused(refusal) => match refusal {
                Refusal::TooManyQueries { .. }
                | Refusal::TooManyTenantQueries { .. }
                | Refusal::QueueFull { .. } => Self::later(message, Kind::TooManyRequests),
                Refusal::TooManyItems { .. } => Self::new(Kind::Execution, message),
                Refusal::DuplicateQuery => Self::new(Kind::Internal, message),
            },
            QueryError::Failed(failure) => Self::new(kind_of(&failure), message),
            QueryError::Timeout { .. } => Self::new(Kind::Timeout, message),
            QueryError::BrokeOff(_) => Self::new(Kind::Internal, message),
            QueryError::OutOfMemory { .. } | QueryError::ShuttingDown => {
                Self::later(message, Kind::Unavailable)
            }
            QueryError::Cancelled => Self::new(Kind::Canceled, message),
        }
    }
}

fn kind_of(failure: &QueryFailure) -> Kind {
    match failure {
        QueryFailure::Deadline { .. } => Kind::Timeout,
        QueryFailure::ArtifactTooLarge { .. } => Kind::Execution,
        QueryFailure::AttemptsExhausted { .. } => Kind::Unavailable,
        QueryFailure::Poisonous { .. } => Kind::Internal,
        QueryFailure::WorkFailed { code, .. } => match code {
            FailureCode::LimitExceeded => Kind::Execution,
            FailureCode::Deadline => Kind::Timeout,
            FailureCode::StoreUnavailable | FailureCode::DiskFull => Kind::Unavailable,
            FailureCode::BadSpec
            | FailureCode::SegmentMissing
            | FailureCode::SegmentCorrupt
            | FailureCode::Internal => Kind::Internal,
        },
    }
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        let kind = match denied {
            Denied::NoKey | Denied::WrongKey => Kind::Unauthorized,
            Denied::BadTenant(_) => Kind::BadData,
        };
        Self::new(kind, denied.to_string())
    }
}

impl From<Busy> for Failure {
    fn from(busy: Busy) -> Self {
        let retry_after = Some(busy.retry_after());
        Self { retry_after, ..Self::new(Kind::TooManyRequests, busy.to_string()) }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut body = br#"{"status":"error","errorType":"#.to_vec();
        push_text(&mut body, self.kind.word());
        body.extend_from_slice(br#","error":"#);
        push_text(&mut body, &self.message);
        body.push(b'}');
        let mut response = (self.kind.status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(after) = self.retry_after {
            // Whole seconds, and never at once.
            let seconds = after.as_millis().div_ceil(1000).max(1);
            let value = HeaderValue::from_str(&seconds.to_string());
            headers.insert(RETRY_AFTER, value.expect("digits make a header"));
        }
        if self.kind == Kind::Unauthorized {
            headers.insert(
                WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"tributary\", Basic realm=\"tributary\""),
            );
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use core_workcoord::id::{QueryId, WorkId};
    use tributary_promql::{Options, parse};

    use super::*;

    #[test]
    fn every_error_of_a_query_has_its_word_and_status() {
        let work = WorkId { query: QueryId(7), item: 3 };
        let failed = |code| {
            QueryError::Failed(QueryFailure::WorkFailed { work, code, message: "why".to_owned() })
        };
        let deadline = QueryFailure::Deadline { done: 1, total: 2, no_workers: false };
        for (error, word, status, again) in [
            (parse("rate(", &Options::default()).unwrap_err().into(), "bad_data", 400, false),
            (EvalError::invalid("odd").into(), "execution", 422, false),
            (
                EvalError::Limit { what: "steps", limit: 5, setting: "max_steps" }.into(),
                "execution",
                422,
                false,
            ),
            (Refusal::TooManyQueries { limit: 5 }.into(), "too_many_requests", 429, true),
            (Refusal::TooManyItems { limit: 5, needed: 6 }.into(), "execution", 422, false),
            (deadline.into(), "timeout", 503, false),
            (failed(FailureCode::LimitExceeded), "execution", 422, false),
            (failed(FailureCode::SegmentMissing), "internal", 500, false),
            (failed(FailureCode::StoreUnavailable), "unavailable", 503, false),
            (QueryFailure::Poisonous { work, workers: 3 }.into(), "internal", 500, false),
            (QueryError::OutOfMemory { limit_bytes: 5 }, "unavailable", 503, true),
            (QueryError::Cancelled, "canceled", 503, false),
            (QueryError::ShuttingDown, "unavailable", 503, true),
        ] {
            let failure = Failure::from(error);
            assert_eq!(failure.kind.word(), word, "{failure:?}");
            assert_eq!(failure.retry_after.is_some(), again, "{failure:?}");
            let response = failure.into_response();
            assert_eq!(response.status().as_u16(), status);
        }
    }
}
