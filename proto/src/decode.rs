//! Wire → domain. Bytes from a peer become a message that holds to every limit and spelling, or an
//! error that says which field is at fault: never a panic, never a guess. Whether the message makes
//! sense at this point of a conversation is left to `core-workcoord`.

mod error;
mod field;

use bytes::Bytes;
use core_workcoord::artifact::Artifact;
use core_workcoord::id::{
    AffinityKey, ApiId, LeafId, QueryId, SessionId, TenantId, WorkId, WorkerId,
};
use core_workcoord::message::{
    ApiMessage, ArtifactAck, AssignWork, CancelReason, CancelWork, Failure, FailureCode, Heartbeat,
    Hello, RejectReason, Welcome, WorkFailed, WorkReady, WorkRef, WorkRejected, WorkerMessage,
    WorkerStatus,
};
use prost::Message;

pub use self::error::DecodeError;
use self::field::within;
use self::field::{attempt, bounded, check_length, checksum, id, name, present, printable, span};
use crate::limits::{
    API_MESSAGE_MAX_BYTES, FAILURE_MESSAGE_MAX_BYTES, SLOTS_MAX, SPEC_MAX_BYTES, TOKEN_MAX_BYTES,
    TRACEPARENT_MAX_BYTES, URL_MAX_BYTES, VERSION_MAX_BYTES, WORKER_MESSAGE_MAX_BYTES,
};
use crate::wire;

/// Reads a message of an API node, as a worker gets it.
pub fn api_message(bytes: Bytes) -> Result<ApiMessage, DecodeError> {
    use wire::api_message::Kind;
    let envelope: wire::ApiMessage = envelope(bytes, API_MESSAGE_MAX_BYTES)?;
    Ok(match envelope.kind.ok_or(DecodeError::UnknownKind)? {
        Kind::Hello(said) => ApiMessage::Hello(hello(&said)?),
        Kind::AssignWork(said) => ApiMessage::AssignWork(assign_work(said)?),
        Kind::CancelWork(said) => ApiMessage::CancelWork(cancel_work(&said)?),
        Kind::ArtifactAck(said) => ApiMessage::ArtifactAck(artifact_ack(&said)?),
        Kind::Heartbeat(said) => ApiMessage::Heartbeat(heartbeat(said)),
    })
}

/// Reads a message of a worker, as an API node gets it.
pub fn worker_message(bytes: Bytes) -> Result<WorkerMessage, DecodeError> {
    use wire::worker_message::Kind;
    let envelope: wire::WorkerMessage = envelope(bytes, WORKER_MESSAGE_MAX_BYTES)?;
    Ok(match envelope.kind.ok_or(DecodeError::UnknownKind)? {
        Kind::Welcome(said) => WorkerMessage::Welcome(welcome(said)?),
        Kind::Heartbeat(said) => WorkerMessage::Heartbeat(heartbeat(said)),
        Kind::WorkerStatus(said) => WorkerMessage::Status(worker_status(said)?),
        Kind::WorkAccepted(wire::WorkAccepted { work_id, attempt }) => {
            WorkerMessage::Accepted(WORK_ACCEPTED.read(&work_id, attempt)?)
        }
        Kind::WorkStarted(wire::WorkStarted { work_id, attempt }) => {
            WorkerMessage::Started(WORK_STARTED.read(&work_id, attempt)?)
        }
        Kind::WorkRejected(said) => WorkerMessage::Rejected(work_rejected(&said)?),
        Kind::WorkReady(said) => WorkerMessage::Ready(work_ready(said)?),
        Kind::WorkFailed(said) => WorkerMessage::Failed(work_failed(said)?),
        Kind::WorkCancelled(wire::WorkCancelled { work_id, attempt }) => {
            WorkerMessage::Cancelled(WORK_CANCELLED.read(&work_id, attempt)?)
        }
        Kind::ArtifactLost(wire::ArtifactLost { work_id, attempt }) => {
            WorkerMessage::ArtifactLost(ARTIFACT_LOST.read(&work_id, attempt)?)
        }
    })
}

fn envelope<M: Message + Default>(bytes: Bytes, max: usize) -> Result<M, DecodeError> {
    let len = bytes.len();
    if len > max {
        return Err(DecodeError::TooLarge { len, max });
    }
    M::decode(bytes).map_err(DecodeError::NotProtobuf)
}

/// The two fields by which a message says which attempt it is about.
struct WorkFields {
    work_id: &'static str,
    attempt: &'static str,
}

const ASSIGN_WORK: WorkFields =
    WorkFields { work_id: "AssignWork.work_id", attempt: "AssignWork.attempt" };
const CANCEL_WORK: WorkFields =
    WorkFields { work_id: "CancelWork.work_id", attempt: "CancelWork.attempt" };
const WORK_ACCEPTED: WorkFields =
    WorkFields { work_id: "WorkAccepted.work_id", attempt: "WorkAccepted.attempt" };
const WORK_STARTED: WorkFields =
    WorkFields { work_id: "WorkStarted.work_id", attempt: "WorkStarted.attempt" };
const WORK_REJECTED: WorkFields =
    WorkFields { work_id: "WorkRejected.work_id", attempt: "WorkRejected.attempt" };
const WORK_READY: WorkFields =
    WorkFields { work_id: "WorkReady.work_id", attempt: "WorkReady.attempt" };
const WORK_FAILED: WorkFields =
    WorkFields { work_id: "WorkFailed.work_id", attempt: "WorkFailed.attempt" };
const WORK_CANCELLED: WorkFields =
    WorkFields { work_id: "WorkCancelled.work_id", attempt: "WorkCancelled.attempt" };
const ARTIFACT_LOST: WorkFields =
    WorkFields { work_id: "ArtifactLost.work_id", attempt: "ArtifactLost.attempt" };

impl WorkFields {
    fn read(&self, work_id: &str, number: u32) -> Result<WorkRef, DecodeError> {
        Ok(WorkRef { work_id: id(self.work_id, work_id)?, attempt: attempt(self.attempt, number)? })
    }
}

fn hello(said: &wire::Hello) -> Result<Hello, DecodeError> {
    Ok(Hello {
        api_id: name("Hello.api_id", &said.api_id, ApiId::new)?,
        session_id: SessionId(said.session_id),
        // Any number: to a version it does not speak, the worker's intake has an answer of its own.
        protocol_version: said.protocol_version,
    })
}

fn assign_work(said: wire::AssignWork) -> Result<AssignWork, DecodeError> {
    let query_id: QueryId = id("AssignWork.query_id", &said.query_id)?;
    let WorkRef { work_id, attempt } = ASSIGN_WORK.read(&said.work_id, said.attempt)?;
    if work_id.query != query_id {
        return Err(DecodeError::ForeignWork { query: query_id, work: work_id });
    }
    check_length("AssignWork.spec", said.spec.len(), SPEC_MAX_BYTES)?;
    Ok(AssignWork {
        query_id,
        leaf_id: LeafId(said.leaf_id),
        work_id,
        attempt,
        affinity_key: AffinityKey(said.affinity_key),
        tenant: name("AssignWork.tenant", &said.tenant, TenantId::new)?,
        deadline: span("AssignWork.deadline", said.deadline)?,
        traceparent: printable("AssignWork.traceparent", said.traceparent, TRACEPARENT_MAX_BYTES)?,
        spec: said.spec,
    })
}

fn cancel_work(said: &wire::CancelWork) -> Result<CancelWork, DecodeError> {
    use wire::CancelReason as Wire;
    let WorkRef { work_id, attempt } = CANCEL_WORK.read(&said.work_id, said.attempt)?;
    let reason = match Wire::try_from(said.reason) {
        Ok(Wire::ClientGone) => CancelReason::ClientGone,
        Ok(Wire::QueryFailed) => CancelReason::QueryFailed,
        Ok(Wire::Deadline) => CancelReason::Deadline,
        Ok(Wire::Draining) => CancelReason::Draining,
        Ok(Wire::Superseded) => CancelReason::Superseded,
        Ok(Wire::ArtifactUnusable) => CancelReason::ArtifactUnusable,
        Ok(Wire::Unspecified) | Err(_) => {
            return Err(unknown_reason("CancelWork.reason", said.reason));
        }
    };
    Ok(CancelWork { work_id, attempt, reason })
}

fn artifact_ack(said: &wire::ArtifactAck) -> Result<ArtifactAck, DecodeError> {
    Ok(ArtifactAck {
        work_id: id::<WorkId>("ArtifactAck.work_id", &said.work_id)?,
        checksum: checksum("ArtifactAck.checksum", &said.checksum)?,
    })
}

/// Any three numbers are a heartbeat.
fn heartbeat(said: wire::Heartbeat) -> Heartbeat {
    Heartbeat { seq: said.seq, sent_unix_nanos: said.sent_unix_nanos, echo_seq: said.echo_seq }
}

fn welcome(said: wire::Welcome) -> Result<Welcome, DecodeError> {
    const BASE_URL: &str = "Welcome.artifact_base_url";
    const TOKEN: &str = "Welcome.artifact_token";
    Ok(Welcome {
        worker_id: name("Welcome.worker_id", &said.worker_id, WorkerId::new)?,
        version: bounded("Welcome.version", said.version, VERSION_MAX_BYTES)?,
        slots: within("Welcome.slots", said.slots, 1..=SLOTS_MAX)?,
        artifact_base_url: printable(
            BASE_URL,
            present(BASE_URL, said.artifact_base_url)?,
            URL_MAX_BYTES,
        )?,
        artifact_token: printable(TOKEN, present(TOKEN, said.artifact_token)?, TOKEN_MAX_BYTES)?,
    })
}

fn worker_status(said: wire::WorkerStatus) -> Result<WorkerStatus, DecodeError> {
    Ok(WorkerStatus {
        alive: said.alive,
        accepting_work: said.accepting_work,
        draining: said.draining,
        queued: said.queued,
        running: said.running,
        slots: within("WorkerStatus.slots", said.slots, 0..=SLOTS_MAX)?,
        spool_bytes: said.spool_bytes,
        cache_bytes: said.cache_bytes,
        free_bytes: said.free_bytes,
    })
}

fn work_rejected(said: &wire::WorkRejected) -> Result<WorkRejected, DecodeError> {
    use wire::RejectReason as Wire;
    let work = WORK_REJECTED.read(&said.work_id, said.attempt)?;
    let reason = match Wire::try_from(said.reason) {
        Ok(Wire::Full) => RejectReason::Full,
        Ok(Wire::Draining) => RejectReason::Draining,
        Ok(Wire::NotAccepting) => RejectReason::NotAccepting,
        Ok(Wire::Unspecified) | Err(_) => {
            return Err(unknown_reason("WorkRejected.reason", said.reason));
        }
    };
    Ok(WorkRejected { work, reason })
}

fn work_ready(said: wire::WorkReady) -> Result<WorkReady, DecodeError> {
    const URL: &str = "WorkReady.artifact_url";
    let work = WORK_READY.read(&said.work_id, said.attempt)?;
    let (min_ts, max_ts) = (said.min_ts, said.max_ts);
    if said.row_count > 0 && min_ts > max_ts {
        return Err(DecodeError::TimesReversed { min_ts, max_ts });
    }
    let artifact = Artifact {
        url: printable(URL, present(URL, said.artifact_url)?, URL_MAX_BYTES)?,
        size_bytes: said.artifact_size_bytes,
        checksum: checksum("WorkReady.artifact_checksum", &said.artifact_checksum)?,
        row_count: said.row_count,
        min_ts,
        max_ts,
        parquet_schema_version: said.parquet_schema_version,
    };
    Ok(WorkReady { work, artifact })
}

fn work_failed(said: wire::WorkFailed) -> Result<WorkFailed, DecodeError> {
    use wire::FailureReason as Wire;
    let work = WORK_FAILED.read(&said.work_id, said.attempt)?;
    let code = match Wire::try_from(said.reason) {
        Ok(Wire::BadSpec) => FailureCode::BadSpec,
        Ok(Wire::SegmentMissing) => FailureCode::SegmentMissing,
        Ok(Wire::SegmentCorrupt) => FailureCode::SegmentCorrupt,
        Ok(Wire::StoreUnavailable) => FailureCode::StoreUnavailable,
        Ok(Wire::LimitExceeded) => FailureCode::LimitExceeded,
        Ok(Wire::DiskFull) => FailureCode::DiskFull,
        Ok(Wire::Deadline) => FailureCode::Deadline,
        Ok(Wire::Internal) => FailureCode::Internal,
        Ok(Wire::Unspecified) | Err(_) => {
            return Err(unknown_reason("WorkFailed.reason", said.reason));
        }
    };
    let message = bounded("WorkFailed.message", said.message, FAILURE_MESSAGE_MAX_BYTES)?;
    Ok(WorkFailed { work, failure: Failure { code, retryable: said.retryable, message } })
}

fn unknown_reason(field: &'static str, code: i32) -> DecodeError {
    DecodeError::UnknownReason { field, code }
}

#[cfg(test)]
mod tests;
