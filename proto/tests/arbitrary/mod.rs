//! Any message there can be, within the limits of the protocol: every kind, every reason, short
//! texts and the longest ones.

use std::time::Duration;

use core_workcoord::artifact::{Artifact, Checksum};
use core_workcoord::id::{
    AffinityKey, ApiId, Attempt, BadId, LeafId, QueryId, SessionId, TenantId, WorkId, WorkerId,
};
use core_workcoord::message::{
    ApiMessage, ArtifactAck, AssignWork, CancelReason, CancelWork, Failure, FailureCode, Heartbeat,
    Hello, RejectReason, Welcome, WorkFailed, WorkReady, WorkRef, WorkRejected, WorkerMessage,
    WorkerStatus,
};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use tributary_proto::limits::{
    DEADLINE_MAX_SECONDS, FAILURE_MESSAGE_MAX_BYTES, SLOTS_MAX, TOKEN_MAX_BYTES,
    TRACEPARENT_MAX_BYTES, URL_MAX_BYTES, VERSION_MAX_BYTES,
};

pub(crate) fn api_message() -> impl Strategy<Value = ApiMessage> {
    prop_oneof![
        hello().prop_map(ApiMessage::Hello),
        assign_work().prop_map(ApiMessage::AssignWork),
        cancel_work().prop_map(ApiMessage::CancelWork),
        artifact_ack().prop_map(ApiMessage::ArtifactAck),
        heartbeat().prop_map(ApiMessage::Heartbeat),
    ]
}

pub(crate) fn worker_message() -> impl Strategy<Value = WorkerMessage> {
    prop_oneof![
        welcome().prop_map(WorkerMessage::Welcome),
        heartbeat().prop_map(WorkerMessage::Heartbeat),
        worker_status().prop_map(WorkerMessage::Status),
        work_ref().prop_map(WorkerMessage::Accepted),
        work_ref().prop_map(WorkerMessage::Started),
        work_rejected().prop_map(WorkerMessage::Rejected),
        work_ready().prop_map(WorkerMessage::Ready),
        work_failed().prop_map(WorkerMessage::Failed),
        work_ref().prop_map(WorkerMessage::Cancelled),
        work_ref().prop_map(WorkerMessage::ArtifactLost),
    ]
}

fn hello() -> impl Strategy<Value = Hello> {
    (name(ApiId::new), any::<u64>(), any::<u32>()).prop_map(|(api_id, session, version)| Hello {
        api_id,
        session_id: SessionId(session),
        protocol_version: version,
    })
}

fn assign_work() -> impl Strategy<Value = AssignWork> {
    let deadline = prop_oneof![
        (0..DEADLINE_MAX_SECONDS, 0..1_000_000_000_u32).prop_map(|(s, n)| Duration::new(s, n)),
        Just(Duration::ZERO),
        Just(Duration::from_secs(DEADLINE_MAX_SECONDS)),
    ];
    let traceparent = prop_oneof![Just(String::new()), printable(TRACEPARENT_MAX_BYTES)];
    let spec = vec(any::<u8>(), 0..300);
    (work_ref(), any::<u32>(), any::<u64>(), name(TenantId::new), deadline, traceparent, spec)
        .prop_map(|(work, leaf, affinity, tenant, deadline, traceparent, spec)| AssignWork {
            query_id: work.work_id.query,
            leaf_id: LeafId(leaf),
            work_id: work.work_id,
            attempt: work.attempt,
            affinity_key: AffinityKey(affinity),
            tenant,
            deadline,
            traceparent,
            spec: spec.into(),
        })
}

fn cancel_work() -> impl Strategy<Value = CancelWork> {
    let reasons = vec![
        CancelReason::ClientGone,
        CancelReason::QueryFailed,
        CancelReason::Deadline,
        CancelReason::Draining,
        CancelReason::Superseded,
        CancelReason::ArtifactUnusable,
    ];
    (work_ref(), select(reasons)).prop_map(|(work, reason)| CancelWork {
        work_id: work.work_id,
        attempt: work.attempt,
        reason,
    })
}

fn artifact_ack() -> impl Strategy<Value = ArtifactAck> {
    (work_ref(), checksum())
        .prop_map(|(work, checksum)| ArtifactAck { work_id: work.work_id, checksum })
}

fn heartbeat() -> impl Strategy<Value = Heartbeat> {
    any::<(u64, u64, u64)>().prop_map(|(seq, sent_unix_nanos, echo_seq)| Heartbeat {
        seq,
        sent_unix_nanos,
        echo_seq,
    })
}

fn welcome() -> impl Strategy<Value = Welcome> {
    (
        name(WorkerId::new),
        text(VERSION_MAX_BYTES),
        1..=SLOTS_MAX,
        printable(URL_MAX_BYTES),
        printable(TOKEN_MAX_BYTES),
    )
        .prop_map(|(worker_id, version, slots, artifact_base_url, artifact_token)| Welcome {
            worker_id,
            version,
            slots,
            artifact_base_url,
            artifact_token,
        })
}

fn worker_status() -> impl Strategy<Value = WorkerStatus> {
    (any::<(bool, bool, bool)>(), any::<(u32, u32)>(), 0..=SLOTS_MAX, any::<(u64, u64, u64)>())
        .prop_map(|(flags, counts, slots, bytes)| WorkerStatus {
            alive: flags.0,
            accepting_work: flags.1,
            draining: flags.2,
            queued: counts.0,
            running: counts.1,
            slots,
            spool_bytes: bytes.0,
            cache_bytes: bytes.1,
            free_bytes: bytes.2,
        })
}

fn work_rejected() -> impl Strategy<Value = WorkRejected> {
    let reasons = vec![RejectReason::Full, RejectReason::Draining, RejectReason::NotAccepting];
    (work_ref(), select(reasons)).prop_map(|(work, reason)| WorkRejected { work, reason })
}

fn work_ready() -> impl Strategy<Value = WorkReady> {
    let rows = prop_oneof![Just(0), any::<u64>()];
    (work_ref(), printable(URL_MAX_BYTES), checksum(), rows, any::<(u64, i64, i64, u32)>())
        .prop_map(|(work, url, checksum, row_count, (size_bytes, one, other, version))| {
            // Without rows the two times mean nothing, and any are taken.
            let in_order = (one.min(other), one.max(other));
            let (min_ts, max_ts) = if row_count > 0 { in_order } else { (one, other) };
            let artifact = Artifact {
                url,
                size_bytes,
                checksum,
                row_count,
                min_ts,
                max_ts,
                parquet_schema_version: version,
            };
            WorkReady { work, artifact }
        })
}

fn work_failed() -> impl Strategy<Value = WorkFailed> {
    let codes = vec![
        FailureCode::BadSpec,
        FailureCode::SegmentMissing,
        FailureCode::SegmentCorrupt,
        FailureCode::StoreUnavailable,
        FailureCode::LimitExceeded,
        FailureCode::DiskFull,
        FailureCode::Deadline,
        FailureCode::Internal,
    ];
    (work_ref(), select(codes), any::<bool>(), text(FAILURE_MESSAGE_MAX_BYTES)).prop_map(
        |(work, code, retryable, message)| WorkFailed {
            work,
            failure: Failure { code, retryable, message },
        },
    )
}

fn work_ref() -> impl Strategy<Value = WorkRef> {
    (any::<u128>(), any::<u32>(), 1..=u32::MAX).prop_map(|(query, item, attempt)| WorkRef {
        work_id: WorkId { query: QueryId(query), item },
        attempt: Attempt(attempt),
    })
}

fn checksum() -> impl Strategy<Value = Checksum> {
    any::<[u8; 32]>().prop_map(Checksum)
}

fn name<T: std::fmt::Debug + 'static>(
    check: fn(&str) -> Result<T, BadId>,
) -> impl Strategy<Value = T> {
    let text = prop_oneof!["[A-Za-z0-9._:\\[\\]-]{1,20}", Just("w".repeat(253))];
    text.prop_map(move |text| check(&text).expect("the text is a name"))
}

/// Printable text, now and then as long as it may be.
fn printable(max: usize) -> impl Strategy<Value = String> {
    prop_oneof![9 => "[!-~]{1,40}".boxed(), 1 => Just("/".repeat(max)).boxed()]
}

/// Text for people, now and then as long as it may be.
fn text(max: usize) -> impl Strategy<Value = String> {
    prop_oneof![9 => ".{0,40}".boxed(), 1 => Just("x".repeat(max)).boxed()]
}
