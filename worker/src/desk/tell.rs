//! The log lines of the desk: fixed sentences with the ids of query and work on every line about
//! work. Decides nothing.

use std::net::SocketAddr;

use core_workcoord::id::SessionId;
use core_workcoord::intake::CloseReason;
use core_workcoord::message::{AssignWork, CancelWork, Failure, Hello, WorkRef, WorkerMessage};
use tracing::{Span, debug, field, info, info_span, warn};
use tributary_process::trace::TraceParent;

pub(super) fn opened(session: SessionId, peer: Option<SocketAddr>) {
    info!(%session, peer = peer.map(field::display), "stream opened");
}

pub(super) fn hello(session: SessionId, hello: &Hello) {
    info!(%session, api_id = %hello.api_id, api_session = %hello.session_id, "API node introduced itself");
}

pub(super) fn closing(session: SessionId, reason: CloseReason) {
    match reason {
        CloseReason::Violation(_) | CloseReason::Silent | CloseReason::TooManySessions => {
            warn!(%session, ?reason, "closing stream");
        }
        CloseReason::HelloTimeout | CloseReason::Superseded | CloseReason::Drained => {
            info!(%session, ?reason, "closing stream");
        }
    }
}

pub(super) fn cancel(session: SessionId, cancel: &CancelWork) {
    let (work_id, reason) = (cancel.work_id, cancel.reason);
    let attempt = cancel.attempt.0;
    debug!(query_id = %work_id.query, %work_id, attempt, %session, ?reason, "work cancelled");
}

/// What an API node is told of work.
pub(super) fn answer(session: SessionId, message: &WorkerMessage) {
    let of = |work: &WorkRef| (work.work_id, work.work_id.query, work.attempt.0);
    match message {
        WorkerMessage::Accepted(work) => {
            let (work_id, query_id, attempt) = of(work);
            debug!(%query_id, %work_id, attempt, %session, "work accepted");
        }
        WorkerMessage::Started(work) => {
            let (work_id, query_id, attempt) = of(work);
            debug!(%query_id, %work_id, attempt, %session, "work started");
        }
        WorkerMessage::Rejected(rejected) => {
            let (work_id, query_id, attempt) = of(&rejected.work);
            let reason = rejected.reason;
            debug!(%query_id, %work_id, attempt, %session, ?reason, "work rejected");
        }
        WorkerMessage::Ready(ready) => {
            let (work_id, query_id, attempt) = of(&ready.work);
            let (rows, size_bytes) = (ready.artifact.row_count, ready.artifact.size_bytes);
            debug!(%query_id, %work_id, attempt, %session, rows, size_bytes, "work ready");
        }
        WorkerMessage::Failed(failed) => {
            let (work_id, query_id, attempt) = of(&failed.work);
            let Failure { code, retryable, message: reason } = &failed.failure;
            info!(%query_id, %work_id, attempt, %session, ?code, retryable, reason, "work failed");
        }
        WorkerMessage::Cancelled(work) => {
            let (work_id, query_id, attempt) = of(work);
            debug!(%query_id, %work_id, attempt, %session, "cancellation took effect");
        }
        WorkerMessage::ArtifactLost(work) => {
            let (work_id, query_id, attempt) = of(work);
            warn!(%query_id, %work_id, attempt, %session, "artifact lost before it was acknowledged");
        }
        WorkerMessage::Welcome(_) | WorkerMessage::Heartbeat(_) | WorkerMessage::Status(_) => {}
    }
}

/// What every line of a run stands in, as a part of the trace that asked for it. What it came to is
/// written into it by whoever runs it.
pub(super) fn run_span(session: SessionId, work: &AssignWork) -> Span {
    let (query_id, work_id, attempt) = (work.query_id, work.work_id, work.attempt.0);
    let trace = TraceParent::parse(&work.traceparent);
    let trace_id = trace.map(|trace| field::display(trace.trace_id()));
    let tenant = &work.tenant;
    let span = info_span!(
        "run",
        %query_id,
        %work_id,
        attempt,
        %session,
        %tenant,
        trace_id,
        outcome = field::Empty,
        segments = field::Empty,
        rows = field::Empty,
        bytes = field::Empty,
        reused = field::Empty,
    );
    if let Some(trace) = trace {
        trace.continue_in(&span);
    }
    span
}
