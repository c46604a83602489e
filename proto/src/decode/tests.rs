//! One refusal after the other, each by its name: a good message with one field spoiled.

use core_workcoord::id::BadId;

use super::*;

const QUERY: &str = "0000000000000000000000000000feed";
const WORK: &str = "0000000000000000000000000000feed-17";

fn assign_work() -> wire::AssignWork {
    wire::AssignWork {
        query_id: QUERY.into(),
        leaf_id: 2,
        work_id: WORK.into(),
        attempt: 1,
        affinity_key: 9,
        tenant: "acme".into(),
        deadline: Some(prost_types::Duration { seconds: 30, nanos: 5 }),
        traceparent: String::new(),
        spec: Bytes::from_static(b"spec"),
    }
}

fn welcome() -> wire::Welcome {
    wire::Welcome {
        worker_id: "worker-1".into(),
        version: "0.1.0".into(),
        slots: 4,
        artifact_base_url: "http://worker-1:9001/".into(),
        artifact_token: "secret".into(),
    }
}

fn work_ready() -> wire::WorkReady {
    wire::WorkReady {
        work_id: WORK.into(),
        attempt: 1,
        artifact_url: "http://worker-1:9001/artifacts/1".into(),
        artifact_size_bytes: 4_096,
        artifact_checksum: "ab".repeat(32),
        row_count: 2,
        min_ts: 1,
        max_ts: 2,
        parquet_schema_version: 1,
    }
}

/// What is wrong with an assignment after it was spoiled.
fn assigned(spoil: impl FnOnce(&mut wire::AssignWork)) -> Option<DecodeError> {
    let mut work = assign_work();
    spoil(&mut work);
    from_api(wire::api_message::Kind::AssignWork(work))
}

fn welcomed(spoil: impl FnOnce(&mut wire::Welcome)) -> Option<DecodeError> {
    let mut said = welcome();
    spoil(&mut said);
    from_worker(wire::worker_message::Kind::Welcome(said))
}

fn announced(spoil: impl FnOnce(&mut wire::WorkReady)) -> Option<DecodeError> {
    let mut said = work_ready();
    spoil(&mut said);
    from_worker(wire::worker_message::Kind::WorkReady(said))
}

fn from_api(kind: wire::api_message::Kind) -> Option<DecodeError> {
    api_message(wire::ApiMessage { kind: Some(kind) }.encode_to_vec().into()).err()
}

fn from_worker(kind: wire::worker_message::Kind) -> Option<DecodeError> {
    worker_message(wire::WorkerMessage { kind: Some(kind) }.encode_to_vec().into()).err()
}

fn missing(field: &'static str) -> Option<DecodeError> {
    Some(DecodeError::Missing { field })
}

#[test]
fn unspoiled_messages_are_taken() {
    assert_eq!(assigned(|_| ()), None);
    assert_eq!(welcomed(|_| ()), None);
    assert_eq!(announced(|_| ()), None);
}

#[test]
fn what_is_forgotten_is_missing() {
    assert_eq!(assigned(|work| work.query_id.clear()), missing("AssignWork.query_id"));
    assert_eq!(assigned(|work| work.work_id.clear()), missing("AssignWork.work_id"));
    assert_eq!(assigned(|work| work.attempt = 0), missing("AssignWork.attempt"));
    assert_eq!(assigned(|work| work.tenant.clear()), missing("AssignWork.tenant"));
    assert_eq!(assigned(|work| work.deadline = None), missing("AssignWork.deadline"));
    assert_eq!(
        welcomed(|said| said.artifact_base_url.clear()),
        missing("Welcome.artifact_base_url")
    );
    assert_eq!(welcomed(|said| said.artifact_token.clear()), missing("Welcome.artifact_token"));
    assert_eq!(announced(|said| said.artifact_url.clear()), missing("WorkReady.artifact_url"));
    let checksum = missing("WorkReady.artifact_checksum");
    assert_eq!(announced(|said| said.artifact_checksum.clear()), checksum);
    assert_eq!(announced(|said| said.attempt = 0), missing("WorkReady.attempt"));
}

#[test]
fn another_spelling_of_an_id_is_another_thing() {
    let upper = assigned(|work| work.query_id = QUERY.to_uppercase());
    assert!(matches!(
        upper,
        Some(DecodeError::Id { field: "AssignWork.query_id", source: BadId::Form { .. } })
    ));
    let padded = assigned(|work| work.work_id = format!("{QUERY}-017"));
    assert!(matches!(padded, Some(DecodeError::Id { field: "AssignWork.work_id", .. })));
    let path = assigned(|work| work.tenant = "../other".into());
    assert!(matches!(
        path,
        Some(DecodeError::Id { source: BadId::Character { found: '/', .. }, .. })
    ));
    let long = welcomed(|said| said.worker_id = "w".repeat(254));
    assert!(matches!(long, Some(DecodeError::Id { field: "Welcome.worker_id", .. })));
    let upper = announced(|said| said.artifact_checksum = "AB".repeat(32));
    assert!(matches!(
        upper,
        Some(DecodeError::Checksum { field: "WorkReady.artifact_checksum", .. })
    ));
    let foreign = assigned(|work| work.work_id = format!("{}-17", QUERY.replace("feed", "beef")));
    assert!(matches!(foreign, Some(DecodeError::ForeignWork { query: QueryId(0xfeed), .. })));
}

#[test]
fn a_deadline_is_never_negative_nor_beyond_all_bounds() {
    let span = |seconds, nanos| {
        assigned(|work| work.deadline = Some(prost_types::Duration { seconds, nanos }))
    };
    assert_eq!(span(0, 0), None);
    assert_eq!(span(315_576_000_000, 0), None);
    for (seconds, nanos) in [
        (-1, 0),
        (0, -1),
        (1, -1),
        (i64::MIN, i32::MIN),
        (0, 1_000_000_000),
        (315_576_000_000, 1),
        (i64::MAX, i32::MAX),
    ] {
        let field = "AssignWork.deadline";
        assert_eq!(span(seconds, nanos), Some(DecodeError::BadDuration { field, seconds, nanos }));
    }
}

#[test]
fn what_goes_into_a_request_is_short_and_printable() {
    let url = announced(|said| said.artifact_url = "u".repeat(URL_MAX_BYTES + 1));
    let (len, max) = (URL_MAX_BYTES + 1, URL_MAX_BYTES);
    assert_eq!(url, Some(DecodeError::TooLong { field: "WorkReady.artifact_url", len, max }));
    for (text, at) in [("http://a b", 8), ("http://a\r\nHost: b", 8), ("http://é", 7), ("\0", 0)] {
        let refused = announced(|said| said.artifact_url = text.into());
        let field = "WorkReady.artifact_url";
        assert_eq!(refused, Some(DecodeError::NotPrintable { field, at }));
    }
    let token = welcomed(|said| said.artifact_token = "t".repeat(TOKEN_MAX_BYTES + 1));
    assert!(matches!(token, Some(DecodeError::TooLong { field: "Welcome.artifact_token", .. })));
    let version = welcomed(|said| said.version = "v".repeat(VERSION_MAX_BYTES + 1));
    assert!(matches!(version, Some(DecodeError::TooLong { field: "Welcome.version", .. })));
    let trace = assigned(|work| work.traceparent = "0".repeat(TRACEPARENT_MAX_BYTES + 1));
    assert!(matches!(trace, Some(DecodeError::TooLong { field: "AssignWork.traceparent", .. })));
}

#[test]
fn slots_are_counted_in_thousands_at_most() {
    let max = SLOTS_MAX;
    for value in [0, SLOTS_MAX + 1, u32::MAX] {
        let refused = DecodeError::OutOfRange { field: "Welcome.slots", value, min: 1, max };
        assert_eq!(welcomed(|said| said.slots = value), Some(refused));
    }
    assert_eq!(welcomed(|said| said.slots = SLOTS_MAX), None);
    let status = |slots| {
        let status = wire::WorkerStatus { slots, ..Default::default() };
        from_worker(wire::worker_message::Kind::WorkerStatus(status))
    };
    // A worker that can't go on may well say so with no slots left.
    assert_eq!(status(0), None);
    let (field, value) = ("WorkerStatus.slots", max + 1);
    assert_eq!(status(value), Some(DecodeError::OutOfRange { field, value, min: 0, max }));
}

#[test]
fn rows_have_their_times_in_order_and_no_rows_have_none() {
    let reversed = announced(|said| (said.min_ts, said.max_ts) = (2, 1));
    assert_eq!(reversed, Some(DecodeError::TimesReversed { min_ts: 2, max_ts: 1 }));
    let no_rows = announced(|said| (said.row_count, said.min_ts, said.max_ts) = (0, 2, 1));
    assert_eq!(no_rows, None);
}

#[test]
fn a_reason_is_given_and_known() {
    use wire::api_message::Kind as Api;
    use wire::worker_message::Kind as Worker;
    for code in [0, 99, -1] {
        let unknown = |field| Some(DecodeError::UnknownReason { field, code });
        let (work_id, attempt, reason) = (WORK.to_owned(), 1, code);
        let cancel = wire::CancelWork { work_id: work_id.clone(), attempt, reason };
        assert_eq!(from_api(Api::CancelWork(cancel)), unknown("CancelWork.reason"));
        let rejected = wire::WorkRejected { work_id: work_id.clone(), attempt, reason };
        assert_eq!(from_worker(Worker::WorkRejected(rejected)), unknown("WorkRejected.reason"));
        let message = "no".to_owned();
        let failed = wire::WorkFailed { work_id, attempt, reason, retryable: true, message };
        assert_eq!(from_worker(Worker::WorkFailed(failed)), unknown("WorkFailed.reason"));
    }
}

#[test]
fn a_sentence_about_a_failure_has_an_end() {
    let failed = |len| {
        from_worker(wire::worker_message::Kind::WorkFailed(wire::WorkFailed {
            work_id: WORK.into(),
            attempt: 1,
            reason: wire::FailureReason::Internal.into(),
            retryable: false,
            message: "x".repeat(len),
        }))
    };
    assert_eq!(failed(FAILURE_MESSAGE_MAX_BYTES), None);
    let (len, max) = (FAILURE_MESSAGE_MAX_BYTES + 1, FAILURE_MESSAGE_MAX_BYTES);
    let refused = DecodeError::TooLong { field: "WorkFailed.message", len, max };
    assert_eq!(failed(len), Some(refused));
}

#[test]
fn a_refusal_reads_well_and_keeps_secrets() {
    let refused = welcomed(|said| said.artifact_token = "my secret".into()).unwrap();
    let text = format!("{refused} {refused:?}");
    assert!(text.starts_with("Welcome.artifact_token has a character that is not printable"));
    assert!(!text.contains("my") && !text.contains("secret"), "{text}");
    let refused = assigned(|work| work.attempt = 0).unwrap();
    assert_eq!(refused.to_string(), "AssignWork.attempt is missing");
}

#[test]
fn a_field_of_a_newer_peer_is_ignored() {
    let mut bytes = wire::ApiMessage {
        kind: Some(wire::api_message::Kind::Heartbeat(wire::Heartbeat {
            seq: 1,
            sent_unix_nanos: 2,
            echo_seq: 3,
        })),
    }
    .encode_to_vec();
    // Field 100 of the envelope, a number.
    bytes.extend([0xa0, 0x06, 0x2a]);
    let heard = Heartbeat { seq: 1, sent_unix_nanos: 2, echo_seq: 3 };
    assert_eq!(api_message(bytes.into()), Ok(ApiMessage::Heartbeat(heard)));
}
