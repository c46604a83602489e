//! Domain → wire. Always succeeds.
//!
//! Text for people is cut to its limit, an unfit trace context is left out and a deadline beyond
//! all bounds is sent as the longest there is: none of these is worth a stream. Everything else is
//! sent as it is, and whoever makes a longer `spec` or URL than [`limits`](crate::limits) allow will
//! see the peer end the stream over it.

use std::time::Duration;

use bytes::Bytes;
use core_workcoord::message::{
    ApiMessage, AssignWork, CancelReason, FailureCode, Heartbeat, Hello, RejectReason, Welcome,
    WorkReady, WorkRef, WorkerMessage, WorkerStatus,
};
use prost::Message;

use crate::limits::{
    DEADLINE_MAX_SECONDS, FAILURE_MESSAGE_MAX_BYTES, TRACEPARENT_MAX_BYTES, VERSION_MAX_BYTES,
};
use crate::wire;

/// Writes a message of an API node.
pub fn api_message(message: ApiMessage) -> Bytes {
    use wire::api_message::Kind;
    let kind = match message {
        ApiMessage::Hello(Hello { api_id, session_id, protocol_version }) => {
            let (api_id, session_id) = (api_id.to_string(), session_id.0);
            Kind::Hello(wire::Hello { api_id, session_id, protocol_version })
        }
        ApiMessage::AssignWork(work) => Kind::AssignWork(assign_work(work)),
        ApiMessage::CancelWork(cancel) => Kind::CancelWork(wire::CancelWork {
            work_id: cancel.work_id.to_string(),
            attempt: cancel.attempt.0,
            reason: cancel_reason(cancel.reason).into(),
        }),
        ApiMessage::ArtifactAck(ack) => Kind::ArtifactAck(wire::ArtifactAck {
            work_id: ack.work_id.to_string(),
            checksum: ack.checksum.to_string(),
        }),
        ApiMessage::Heartbeat(beat) => Kind::Heartbeat(heartbeat(beat)),
    };
    wire::ApiMessage { kind: Some(kind) }.encode_to_vec().into()
}

/// Writes a message of a worker.
pub fn worker_message(message: WorkerMessage) -> Bytes {
    use wire::worker_message::Kind;
    let kind = match message {
        WorkerMessage::Welcome(said) => Kind::Welcome(welcome(said)),
        WorkerMessage::Heartbeat(beat) => Kind::Heartbeat(heartbeat(beat)),
        WorkerMessage::Status(status) => Kind::WorkerStatus(worker_status(status)),
        WorkerMessage::Accepted(work) => {
            let (work_id, attempt) = work_fields(work);
            Kind::WorkAccepted(wire::WorkAccepted { work_id, attempt })
        }
        WorkerMessage::Started(work) => {
            let (work_id, attempt) = work_fields(work);
            Kind::WorkStarted(wire::WorkStarted { work_id, attempt })
        }
        WorkerMessage::Rejected(rejected) => {
            let (work_id, attempt) = work_fields(rejected.work);
            let reason = reject_reason(rejected.reason).into();
            Kind::WorkRejected(wire::WorkRejected { work_id, attempt, reason })
        }
        WorkerMessage::Ready(ready) => Kind::WorkReady(work_ready(ready)),
        WorkerMessage::Failed(failed) => {
            let (work_id, attempt) = work_fields(failed.work);
            Kind::WorkFailed(wire::WorkFailed {
                work_id,
                attempt,
                reason: failure_reason(failed.failure.code).into(),
                retryable: failed.failure.retryable,
                message: cut(failed.failure.message, FAILURE_MESSAGE_MAX_BYTES),
            })
        }
        WorkerMessage::Cancelled(work) => {
            let (work_id, attempt) = work_fields(work);
            Kind::WorkCancelled(wire::WorkCancelled { work_id, attempt })
        }
        WorkerMessage::ArtifactLost(work) => {
            let (work_id, attempt) = work_fields(work);
            Kind::ArtifactLost(wire::ArtifactLost { work_id, attempt })
        }
    };
    wire::WorkerMessage { kind: Some(kind) }.encode_to_vec().into()
}

fn work_fields(work: WorkRef) -> (String, u32) {
    (work.work_id.to_string(), work.attempt.0)
}

fn assign_work(work: AssignWork) -> wire::AssignWork {
    wire::AssignWork {
        query_id: work.query_id.to_string(),
        leaf_id: work.leaf_id.0,
        work_id: work.work_id.to_string(),
        attempt: work.attempt.0,
        affinity_key: work.affinity_key.0,
        tenant: work.tenant.to_string(),
        deadline: Some(span(work.deadline)),
        traceparent: trace_context(work.traceparent),
        spec: work.spec,
    }
}

fn heartbeat(beat: Heartbeat) -> wire::Heartbeat {
    wire::Heartbeat {
        seq: beat.seq,
        sent_unix_nanos: beat.sent_unix_nanos,
        echo_seq: beat.echo_seq,
    }
}

fn welcome(said: Welcome) -> wire::Welcome {
    wire::Welcome {
        worker_id: said.worker_id.to_string(),
        version: cut(said.version, VERSION_MAX_BYTES),
        slots: said.slots,
        artifact_base_url: said.artifact_base_url,
        artifact_token: said.artifact_token,
    }
}

fn worker_status(status: WorkerStatus) -> wire::WorkerStatus {
    wire::WorkerStatus {
        alive: status.alive,
        accepting_work: status.accepting_work,
        draining: status.draining,
        queued: status.queued,
        running: status.running,
        slots: status.slots,
        spool_bytes: status.spool_bytes,
        cache_bytes: status.cache_bytes,
        free_bytes: status.free_bytes,
    }
}

fn work_ready(ready: WorkReady) -> wire::WorkReady {
    let (work_id, attempt) = work_fields(ready.work);
    let artifact = ready.artifact;
    wire::WorkReady {
        work_id,
        attempt,
        artifact_url: artifact.url,
        artifact_size_bytes: artifact.size_bytes,
        artifact_checksum: artifact.checksum.to_string(),
        row_count: artifact.row_count,
        min_ts: artifact.min_ts,
        max_ts: artifact.max_ts,
        parquet_schema_version: artifact.parquet_schema_version,
    }
}

fn cancel_reason(reason: CancelReason) -> wire::CancelReason {
    use wire::CancelReason as Wire;
    match reason {
        CancelReason::ClientGone => Wire::ClientGone,
        CancelReason::QueryFailed => Wire::QueryFailed,
        CancelReason::Deadline => Wire::Deadline,
        CancelReason::Draining => Wire::Draining,
        CancelReason::Superseded => Wire::Superseded,
        CancelReason::ArtifactUnusable => Wire::ArtifactUnusable,
    }
}

fn reject_reason(reason: RejectReason) -> wire::RejectReason {
    use wire::RejectReason as Wire;
    match reason {
        RejectReason::Full => Wire::Full,
        RejectReason::Draining => Wire::Draining,
        RejectReason::NotAccepting => Wire::NotAccepting,
    }
}

fn failure_reason(code: FailureCode) -> wire::FailureReason {
    use wire::FailureReason as Wire;
    match code {
        FailureCode::BadSpec => Wire::BadSpec,
        FailureCode::SegmentMissing => Wire::SegmentMissing,
        FailureCode::SegmentCorrupt => Wire::SegmentCorrupt,
        FailureCode::StoreUnavailable => Wire::StoreUnavailable,
        FailureCode::LimitExceeded => Wire::LimitExceeded,
        FailureCode::DiskFull => Wire::DiskFull,
        FailureCode::Deadline => Wire::Deadline,
        FailureCode::Internal => Wire::Internal,
    }
}

fn span(span: Duration) -> prost_types::Duration {
    let longest = Duration::from_secs(DEADLINE_MAX_SECONDS);
    let span = span.min(longest);
    prost_types::Duration {
        seconds: i64::try_from(span.as_secs()).expect("the longest deadline fits"),
        nanos: i32::try_from(span.subsec_nanos()).expect("a second's nanoseconds fit"),
    }
}

/// Cuts a text for people at the last whole character within `max` bytes.
fn cut(mut text: String, max: usize) -> String {
    text.truncate(text.floor_char_boundary(max));
    text
}

fn trace_context(text: String) -> String {
    let fit = text.len() <= TRACEPARENT_MAX_BYTES && text.bytes().all(|b| b.is_ascii_graphic());
    if fit { text } else { String::new() }
}

#[cfg(test)]
mod tests {
    use core_workcoord::id::{AffinityKey, Attempt, LeafId, QueryId, TenantId, WorkId, WorkerId};
    use core_workcoord::message::{Failure, WorkFailed};

    use super::*;
    use crate::decode;

    fn work() -> WorkRef {
        WorkRef { work_id: WorkId { query: QueryId(7), item: 3 }, attempt: Attempt(2) }
    }

    #[test]
    fn a_long_story_about_a_failure_is_cut_between_characters() {
        let story = "é".repeat(FAILURE_MESSAGE_MAX_BYTES);
        let failure = Failure { code: FailureCode::Internal, retryable: true, message: story };
        let sent = worker_message(WorkerMessage::Failed(WorkFailed { work: work(), failure }));
        let Ok(WorkerMessage::Failed(heard)) = decode::worker_message(sent) else { panic!() };
        assert_eq!(heard.failure.message, "é".repeat(FAILURE_MESSAGE_MAX_BYTES / 2));
        assert_eq!(cut("aéb".into(), 2), "a");
        assert_eq!(cut("aéb".into(), 99), "aéb");
    }

    #[test]
    fn a_wordy_build_is_cut_and_everything_else_of_a_welcome_is_not() {
        let said = Welcome {
            worker_id: WorkerId::new("worker-1").unwrap(),
            version: "v".repeat(VERSION_MAX_BYTES + 1),
            slots: 2,
            artifact_base_url: "http://worker-1:9001/".into(),
            artifact_token: "secret".into(),
        };
        let sent = worker_message(WorkerMessage::Welcome(said.clone()));
        let heard = Welcome { version: "v".repeat(VERSION_MAX_BYTES), ..said };
        assert_eq!(decode::worker_message(sent), Ok(WorkerMessage::Welcome(heard)));
    }

    #[test]
    fn neither_trace_nor_deadline_costs_an_answer() {
        for trace in ["a b", "line\nbreak", &"x".repeat(TRACEPARENT_MAX_BYTES + 1)] {
            let sent = api_message(ApiMessage::AssignWork(AssignWork {
                query_id: QueryId(7),
                leaf_id: LeafId(0),
                work_id: work().work_id,
                attempt: work().attempt,
                affinity_key: AffinityKey(1),
                tenant: TenantId::new("acme").unwrap(),
                deadline: Duration::MAX,
                traceparent: trace.into(),
                spec: Bytes::from_static(b"spec"),
            }));
            let Ok(ApiMessage::AssignWork(heard)) = decode::api_message(sent) else { panic!() };
            assert_eq!(heard.traceparent, "");
            assert_eq!(heard.deadline, Duration::from_secs(DEADLINE_MAX_SECONDS));
        }
    }
}
