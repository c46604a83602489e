//! What is remembered of queries, of their work, and how much at most.

use std::time::Duration;

use bytes::Bytes;
use core_workcoord::artifact::Artifact;
use core_workcoord::id::{AffinityKey, Attempt, LeafId, TenantId, WorkId};
use core_workcoord::message::{AssignWork, CancelWork, Welcome, WorkReady};
use serde_json::json;

use super::sheet::{ATTEMPTS, ITEMS};
use super::*;
use crate::monitor::tests::order;

const QUERY: QueryId = QueryId(7);
const ONE: SessionId = SessionId(1);
const TWO: SessionId = SessionId(2);

fn at(ms: u64) -> Moment {
    // The clock of a node that has run for a while.
    Moment::from_millis(5_000 + ms)
}

fn work(item: u32, attempt: u32) -> WorkRef {
    WorkRef { work_id: WorkId { query: QUERY, item }, attempt: Attempt(attempt) }
}

fn message(session: SessionId, message: WorkerMessage) -> Input {
    Input::Message { session, message }
}

fn welcome(session: SessionId, name: &str) -> Input {
    let welcome = Welcome {
        worker_id: WorkerId::new(name).unwrap(),
        version: String::new(),
        slots: 2,
        artifact_base_url: String::new(),
        artifact_token: String::new(),
    };
    message(session, WorkerMessage::Welcome(welcome))
}

fn assign(session: SessionId, work: WorkRef) -> Action {
    let assigned = AssignWork {
        query_id: QUERY,
        leaf_id: LeafId(0),
        work_id: work.work_id,
        attempt: work.attempt,
        affinity_key: AffinityKey(0),
        tenant: TenantId::new("t").unwrap(),
        deadline: Duration::from_secs(1),
        traceparent: String::new(),
        spec: Bytes::new(),
    };
    Action::Send { session, message: ApiMessage::AssignWork(assigned) }
}

fn artifact() -> Artifact {
    Artifact {
        url: "http://w1:80/artifacts/0f".to_owned(),
        size_bytes: 900,
        checksum: "0f".repeat(32).parse().unwrap(),
        row_count: 30,
        min_ts: 0,
        max_ts: 1,
        parquet_schema_version: 1,
    }
}

fn ready(session: SessionId, work: WorkRef) -> Input {
    message(session, WorkerMessage::Ready(WorkReady { work, artifact: artifact() }))
}

#[test]
fn every_moment_of_an_item_is_told() {
    let mut records = Records::default();
    records.told(at(0), &welcome(ONE, "w1"));
    records.begin(at(0), &order(7, 2));
    records.wanted(at(1), &assign(ONE, work(0, 1)));
    records.told(at(2), &message(ONE, WorkerMessage::Accepted(work(0, 1))));
    records.told(at(3), &message(ONE, WorkerMessage::Started(work(0, 1))));
    records.told(at(9), &ready(ONE, work(0, 1)));
    let (work_ref, artifact) = (work(0, 1), Box::new(artifact()));
    records.wanted(at(10), &Action::Fetch { work: work_ref, session: ONE, artifact });
    let result = FetchResult::Verified;
    records.told(at(12), &Input::FetchEnded { work: work_ref, session: ONE, result });
    let (leaf, attempt) = (LeafId(0), Attempt(1));
    records.wanted(at(13), &Action::Deliver { work: work_ref.work_id, leaf, attempt });

    let told = serde_json::to_value(records.get(QUERY).unwrap()).unwrap();
    assert_eq!(told["query_id"], "00000000000000000000000000000007");
    assert_eq!((&told["outcome"], &told["ended_ms"]), (&json!("running"), &json!(null)));
    assert_eq!(
        (&told["total"], &told["done"], &told["inquiry"]),
        (&json!(2), &json!(1), &json!(true))
    );
    let expected = json!({
        "item": 0, "leaf": 0, "from_ms": null, "to_ms": null, "segments": 0,
        "delivered_ms": 13.0, "tries": 1,
        "attempts": [{
            "attempt": 1, "worker": "w1", "assigned_ms": 1.0, "accepted_ms": 2.0,
            "started_ms": 3.0, "ready_ms": 9.0, "fetching_ms": 10.0, "ended_ms": 12.0,
            "end": "fetched", "size_bytes": 900, "rows": 30,
        }],
    });
    assert_eq!(told["items"][0], expected);
    assert_eq!(told["items"][1]["attempts"], json!([]));

    records.ended(at(20), QUERY, Err(&QueryError::ShuttingDown));
    let brief = &records.briefs()[0];
    assert_eq!((brief.outcome, brief.ended_ms), (RecordOutcome::Failed, Some(20.0)));
    assert_eq!(brief.error.as_deref(), Some(QueryError::ShuttingDown.to_string().as_str()));
}

#[test]
fn a_lost_worker_ends_its_attempts_and_what_it_says_later_counts_for_nothing() {
    let mut records = Records::default();
    records.told(at(0), &welcome(ONE, "w1"));
    records.told(at(0), &welcome(TWO, "w2"));
    records.begin(at(0), &order(7, 1));
    records.wanted(at(1), &assign(ONE, work(0, 1)));
    records.told(at(5), &Input::StreamClosed { session: ONE });
    records.wanted(at(6), &assign(TWO, work(0, 2)));
    records.told(at(7), &ready(ONE, work(0, 1)));
    records.told(at(8), &ready(ONE, work(0, 2)));
    let item = &records.get(QUERY).unwrap().items[0];
    assert_eq!(item.tries, 2);
    let [first, second] = item.attempts.as_slice() else { panic!("{item:?}") };
    assert_eq!((first.end, first.ended_ms), (Some(AttemptEnd::WorkerLost), Some(5.0)));
    assert_eq!((first.ready_ms, first.worker.as_str()), (None, "w1"));
    assert_eq!((second.ready_ms, second.end), (None, None), "another session's word");

    let cancel = |reason| {
        let work = work(0, 2);
        let cancel = CancelWork { work_id: work.work_id, attempt: work.attempt, reason };
        Action::Send { session: TWO, message: ApiMessage::CancelWork(cancel) }
    };
    records.wanted(at(9), &cancel(CancelReason::Draining));
    records.wanted(at(10), &cancel(CancelReason::ClientGone));
    records.ended(at(11), QUERY, Err(&QueryError::Cancelled));
    let record = records.get(QUERY).unwrap();
    assert_eq!(record.items[0].attempts[1].end, Some(AttemptEnd::Drained), "the first end counts");
    assert_eq!(record.brief.outcome, RecordOutcome::Cancelled);
}

#[test]
fn no_more_is_remembered_than_there_is_room_for() {
    let mut records = Records::default();
    records.told(at(0), &welcome(ONE, "w1"));
    records.begin(at(0), &order(7, ITEMS + 88));
    for number in 1..=20 {
        records.wanted(at(1), &assign(ONE, work(0, number)));
        let result = FetchResult::Gone;
        records.told(at(2), &Input::FetchEnded { work: work(0, number), session: ONE, result });
    }
    // An item that is not remembered changes nothing.
    records.wanted(at(3), &assign(ONE, work(550, 1)));
    let record = records.get(QUERY).unwrap();
    assert_eq!((record.items.len(), record.brief.total), (ITEMS, ITEMS + 88));
    let attempts: Vec<u32> =
        record.items[0].attempts.iter().map(|attempt| attempt.attempt).collect();
    assert_eq!((attempts.len(), record.items[0].tries), (ATTEMPTS, 20));
    assert_eq!(attempts, [1, 2, 3, 4, 5, 6, 7, 20], "the first and the last");

    // Those that have ended go first, the oldest of them before others.
    for query in 100..100 + QUERIES as u128 {
        records.begin(at(4), &order(query, 1));
        records.ended(at(5), QueryId(query), Ok(()));
    }
    assert_eq!(records.briefs().len(), QUERIES);
    assert!(records.get(QUERY).is_some(), "it runs");
    assert!(records.get(QueryId(100)).is_none() && records.get(QueryId(101)).is_some());
    assert_eq!(records.briefs()[0].query_id, QueryId(99 + QUERIES as u128), "the latest first");

    let mut long = order(8, 1);
    long.text = "ü".repeat(2_000);
    records.begin(at(6), &long);
    let kept = &records.get(QueryId(8)).unwrap().brief.text;
    assert!(kept.len() < 1_030 && kept.ends_with("ü…"), "{}", kept.len());
}
