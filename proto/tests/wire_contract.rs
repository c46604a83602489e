//! The bytes of every message, spelled out field by field. Peers in other languages and of other
//! releases rely on these numbers: a change here is a change of the protocol.

use std::time::Duration;

use bytes::Bytes;
use core_workcoord::artifact::{Artifact, Checksum};
use core_workcoord::id::{
    AffinityKey, ApiId, Attempt, LeafId, QueryId, SessionId, TenantId, WorkId, WorkerId,
};
use core_workcoord::message::{
    ApiMessage, ArtifactAck, AssignWork, CancelReason, CancelWork, Failure, FailureCode, Heartbeat,
    Hello, RejectReason, Welcome, WorkFailed, WorkReady, WorkRef, WorkRejected, WorkerMessage,
    WorkerStatus,
};
use prost::encoding::{WireType, encode_key, encode_varint};
use tributary_proto::encode;

const QUERY: &str = "0000000000000000000000000000feed";
const WORK: &str = "0000000000000000000000000000feed-17";

/// A message under construction.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn number(mut self, field: u32, value: u64) -> Self {
        encode_key(field, WireType::Varint, &mut self.0);
        encode_varint(value, &mut self.0);
        self
    }

    fn fixed(mut self, field: u32, value: u64) -> Self {
        encode_key(field, WireType::SixtyFourBit, &mut self.0);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u32, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        encode_key(field, WireType::LengthDelimited, &mut self.0);
        encode_varint(value.len() as u64, &mut self.0);
        self.0.extend(value);
        self
    }

    /// As the given kind of message.
    fn of_kind(self, kind: u32) -> Vec<u8> {
        Self::default().bytes(kind, self.0).0
    }
}

fn fields() -> Fields {
    Fields::default()
}

fn work() -> WorkRef {
    WorkRef { work_id: WorkId { query: QueryId(0xfeed), item: 17 }, attempt: Attempt(2) }
}

fn work_fields() -> Fields {
    fields().bytes(1, WORK).number(2, 2)
}

fn said(message: ApiMessage) -> Vec<u8> {
    encode::api_message(message).to_vec()
}

fn answered(message: WorkerMessage) -> Vec<u8> {
    encode::worker_message(message).to_vec()
}

#[test]
fn what_api_nodes_say() {
    let api_id = ApiId::new("api-1").unwrap();
    let hello = Hello { api_id, session_id: SessionId(300), protocol_version: 1 };
    let bytes = fields().bytes(1, "api-1").number(2, 300).number(3, 1).of_kind(1);
    assert_eq!(said(ApiMessage::Hello(hello)), bytes);

    let assign = AssignWork {
        query_id: QueryId(0xfeed),
        leaf_id: LeafId(3),
        work_id: work().work_id,
        attempt: work().attempt,
        affinity_key: AffinityKey(0x0102_0304_0506_0708),
        tenant: TenantId::new("acme").unwrap(),
        deadline: Duration::new(30, 5),
        traceparent: "00-trace".into(),
        spec: Bytes::from_static(b"\x00spec"),
    };
    let bytes = fields()
        .bytes(1, QUERY)
        .number(2, 3)
        .bytes(3, WORK)
        .number(4, 2)
        .fixed(5, 0x0102_0304_0506_0708)
        .bytes(6, "acme")
        .bytes(7, fields().number(1, 30).number(2, 5).0)
        .bytes(8, "00-trace")
        .bytes(9, b"\x00spec")
        .of_kind(2);
    assert_eq!(said(ApiMessage::AssignWork(assign)), bytes);

    let ack = ArtifactAck { work_id: work().work_id, checksum: Checksum([0xab; 32]) };
    let bytes = fields().bytes(1, WORK).bytes(2, "ab".repeat(32)).of_kind(4);
    assert_eq!(said(ApiMessage::ArtifactAck(ack)), bytes);

    let beat = Heartbeat { seq: 1, sent_unix_nanos: 1_700_000_000_000_000_000, echo_seq: 2 };
    let bytes = fields().number(1, 1).number(2, 1_700_000_000_000_000_000).number(3, 2);
    assert_eq!(said(ApiMessage::Heartbeat(beat)), bytes.of_kind(5));
}

#[test]
fn why_api_nodes_cancel() {
    for (code, reason) in [
        (1, CancelReason::ClientGone),
        (2, CancelReason::QueryFailed),
        (3, CancelReason::Deadline),
        (4, CancelReason::Draining),
        (5, CancelReason::Superseded),
        (6, CancelReason::ArtifactUnusable),
    ] {
        let cancel = CancelWork { work_id: work().work_id, attempt: work().attempt, reason };
        let bytes = work_fields().number(3, code).of_kind(3);
        assert_eq!(said(ApiMessage::CancelWork(cancel)), bytes);
    }
}

#[test]
fn what_workers_say_of_themselves() {
    let welcome = Welcome {
        worker_id: WorkerId::new("worker-1").unwrap(),
        version: "0.1.0".into(),
        slots: 4,
        artifact_base_url: "http://worker-1/".into(),
        artifact_token: "token".into(),
    };
    let bytes = fields()
        .bytes(1, "worker-1")
        .bytes(2, "0.1.0")
        .number(3, 4)
        .bytes(4, "http://worker-1/")
        .bytes(5, "token")
        .of_kind(1);
    assert_eq!(answered(WorkerMessage::Welcome(welcome)), bytes);

    let beat = Heartbeat { seq: 1, sent_unix_nanos: 3, echo_seq: 2 };
    let bytes = fields().number(1, 1).number(2, 3).number(3, 2).of_kind(2);
    assert_eq!(answered(WorkerMessage::Heartbeat(beat)), bytes);

    let status = WorkerStatus {
        alive: true,
        accepting_work: true,
        draining: true,
        queued: 4,
        running: 5,
        slots: 6,
        spool_bytes: 7,
        cache_bytes: 8,
        free_bytes: 9,
    };
    let flags = fields().number(1, 1).number(2, 1).number(3, 1);
    let bytes = (4..=9).fold(flags, |fields, field| fields.number(field, field.into()));
    assert_eq!(answered(WorkerMessage::Status(status)), bytes.of_kind(3));
    // A flag that is not set, and a number that is zero, is not sent.
    let draining = WorkerStatus { alive: false, accepting_work: false, queued: 0, ..status };
    let bytes =
        (5..=9).fold(fields().number(3, 1), |fields, field| fields.number(field, field.into()));
    assert_eq!(answered(WorkerMessage::Status(draining)), bytes.of_kind(3));
}

#[test]
fn what_workers_say_of_work() {
    assert_eq!(answered(WorkerMessage::Accepted(work())), work_fields().of_kind(4));
    assert_eq!(answered(WorkerMessage::Started(work())), work_fields().of_kind(5));
    assert_eq!(answered(WorkerMessage::Cancelled(work())), work_fields().of_kind(9));
    assert_eq!(answered(WorkerMessage::ArtifactLost(work())), work_fields().of_kind(10));

    let artifact = Artifact {
        url: "http://worker-1/17".into(),
        size_bytes: 4,
        checksum: Checksum([0xab; 32]),
        row_count: 6,
        min_ts: -7,
        max_ts: 8,
        parquet_schema_version: 9,
    };
    let bytes = work_fields()
        .bytes(3, "http://worker-1/17")
        .number(4, 4)
        .bytes(5, "ab".repeat(32))
        .number(6, 6)
        .number(7, (-7_i64).cast_unsigned())
        .number(8, 8)
        .number(9, 9)
        .of_kind(7);
    assert_eq!(answered(WorkerMessage::Ready(WorkReady { work: work(), artifact })), bytes);
}

#[test]
fn why_workers_refuse_and_fail() {
    for (code, reason) in
        [(1, RejectReason::Full), (2, RejectReason::Draining), (3, RejectReason::NotAccepting)]
    {
        let rejected = WorkRejected { work: work(), reason };
        let bytes = work_fields().number(3, code).of_kind(6);
        assert_eq!(answered(WorkerMessage::Rejected(rejected)), bytes);
    }
    for (reason, code) in [
        (1, FailureCode::BadSpec),
        (2, FailureCode::SegmentMissing),
        (3, FailureCode::SegmentCorrupt),
        (4, FailureCode::StoreUnavailable),
        (5, FailureCode::LimitExceeded),
        (6, FailureCode::DiskFull),
        (7, FailureCode::Deadline),
        (8, FailureCode::Internal),
    ] {
        let failure = Failure { code, retryable: true, message: "why".into() };
        let bytes = work_fields().number(3, reason).number(4, 1).bytes(5, "why").of_kind(8);
        let failed = WorkFailed { work: work(), failure };
        assert_eq!(answered(WorkerMessage::Failed(failed)), bytes);
    }
}
