//! The control protocol from the introduction to the acknowledgement, as an API node sees it.

use std::time::{Duration, Instant};

use core_workcoord::message::{FailureCode, RejectReason, WorkerMessage};
use tonic::Code;
use tributary_integration::worker_suite::api::{Api, assignment, work};
use tributary_integration::worker_suite::field::Field;
use tributary_integration::worker_suite::http::{get, request};

use super::{comes_to_rest, still_works, worker_on};

#[tokio::test]
async fn an_item_goes_all_the_way_and_its_artifact_after_it() {
    let field = Field::sown();
    let worker = worker_on(&field, &["execution.slots=3", "artifacts.ttl_after_ack=1s"]);
    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    let welcome = api.welcome().clone();
    assert_eq!((welcome.worker_id.as_str(), welcome.slots), ("worker-1", 3));
    assert_eq!(welcome.artifact_base_url, format!("http://{}/artifacts/", worker.http));

    let tiny = field.tiny();
    api.start(0, tiny.spec(0)).await;
    let artifact = api.ready(0).await;
    assert!(artifact.url.starts_with(&welcome.artifact_base_url), "{artifact:?}");
    let file = api.fetch(&artifact).await.expect("size and checksum are as announced");
    assert_eq!(tiny.answer(0, file.clone()), [[3.0; 8]]);

    // The token counts in the header or in the address, whole or for a range; the ETag is the sum.
    let path = artifact.url.strip_prefix(&format!("http://{}", worker.http)).expect("it is here");
    let authorization = format!("Authorization: Bearer {}", api.token());
    let head = request(worker.http, "HEAD", path, &[&authorization]).await;
    assert_eq!(head.header("content-length"), Some(&*artifact.size_bytes.to_string()));
    assert_eq!(head.header("etag"), Some(&*format!("\"{}\"", artifact.checksum)));
    let part = get(worker.http, path, &[&authorization, "Range: bytes=4-7"]).await;
    assert_eq!((part.status, part.body), (206, file[4..8].to_vec()));
    let by_address = get(worker.http, &format!("{path}?token={}", api.token()), &[]).await;
    assert_eq!((by_address.status, by_address.body), (200, file.to_vec()));

    // Equal work is answered from disk, to the bit.
    api.start(1, tiny.spec(0)).await;
    let again = api.ready(1).await;
    assert_eq!((again.checksum, again.size_bytes), (artifact.checksum, artifact.size_bytes));
    assert_eq!(worker.metric("artifacts_reused_total").await, 1);
    assert_eq!(worker.metric("artifacts_committed_total").await, 1);

    api.acknowledge(0, &artifact).await;
    api.acknowledge(1, &again).await;
    for name in ["artifacts", "spool_bytes", "artifacts_acknowledged"] {
        worker.until(name, 0).await;
    }
    assert!(api.fetch(&artifact).await.is_err(), "what was let go is not served");
    drop(api);
    comes_to_rest(&worker).await;
}

#[tokio::test]
async fn a_worker_that_is_full_says_so_and_takes_work_again_when_it_is_not() {
    let field = Field::sown();
    let worker = worker_on(&field, &["execution.slots=1", "execution.queue_limit=1"]);
    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    let busy = field.busy();
    api.start(0, busy.spec(0)).await;
    api.assign(1, busy.spec(1)).await;
    assert_eq!(api.answer().await, WorkerMessage::Accepted(work(1)));
    api.assign(2, busy.spec(2)).await;
    let WorkerMessage::Rejected(rejected) = api.answer().await else { panic!("it is full") };
    assert_eq!((rejected.work, rejected.reason), (work(2), RejectReason::Full));
    // What waits is given back before it runs, what runs is stopped.
    api.cancel(1).await;
    assert_eq!(api.answer().await, WorkerMessage::Cancelled(work(1)));
    api.cancel(0).await;
    assert_eq!(api.answer().await, WorkerMessage::Cancelled(work(0)));
    api.done(2, field.tiny().spec(2)).await;
    assert_eq!(worker.metric("rejected_total").await, 1);
}

#[tokio::test]
async fn work_that_can_not_be_done_fails_by_name_and_costs_nobody_else() {
    let field = Field::sown();
    let worker = worker_on(&field, &["artifacts.ttl_after_ack=200ms"]);
    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    let tiny = field.tiny();
    let good = tiny.segment();
    let escaping = |path: &str| {
        let mut segment = good.clone();
        segment.samples.0 = path.to_owned();
        tiny.over(0, segment)
    };
    let mut newer = tiny.spec(0).to_vec();
    assert_eq!(newer[..2], [8, 1], "a spec begins with its version");
    newer[1] = 2;
    let mut tampered = good.clone();
    tampered.samples.1 += 1;
    for (item, (spec, code)) in (0..).zip([
        (newer.into(), FailureCode::BadSpec),
        (b"no spec at all".as_slice().into(), FailureCode::BadSpec),
        (bytes::Bytes::new(), FailureCode::BadSpec),
        (vec![0xff; 4 << 20].into(), FailureCode::BadSpec),
        (escaping("segments/acme/../../../etc/passwd"), FailureCode::BadSpec),
        (escaping("/etc/passwd"), FailureCode::BadSpec),
        (
            escaping("segments/somebody-else/upload/hits_total.samples.parquet"),
            FailureCode::BadSpec,
        ),
        (escaping("segments/acme/upload/gone.samples.parquet"), FailureCode::SegmentMissing),
        (tiny.over(0, tampered), FailureCode::SegmentCorrupt),
    ]) {
        api.start(item, spec).await;
        let WorkerMessage::Failed(failed) = api.answer().await else { panic!("it can't succeed") };
        assert_eq!((failed.work, failed.failure.code), (work(item), code), "{failed:?}");
        assert!(!failed.failure.retryable && !failed.failure.message.is_empty(), "{failed:?}");
    }
    api.done(100, tiny.spec(0)).await;
    // Time that is up before it began is a failure too, and one that says so.
    let late = assignment(101, tiny.spec(1));
    let late = core_workcoord::message::AssignWork { deadline: Duration::ZERO, ..late };
    api.tell(core_workcoord::message::ApiMessage::AssignWork(late)).await;
    loop {
        match api.answer().await {
            WorkerMessage::Accepted(_) | WorkerMessage::Started(_) => {}
            WorkerMessage::Failed(failed) => {
                assert_eq!(failed.failure.code, FailureCode::Deadline, "{failed:?}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    drop(api);
    comes_to_rest(&worker).await;
}

#[tokio::test]
async fn two_api_nodes_do_not_get_in_each_others_way() {
    let field = Field::sown();
    let worker = worker_on(&field, &["execution.slots=2", "artifacts.ttl_after_ack=200ms"]);
    let mut one = Api::greeted(worker.grpc, "api-1", 1).await;
    let mut two = Api::greeted(worker.grpc, "api-2", 1).await;
    assert_ne!(one.token(), two.token());
    let tiny = field.tiny();
    for item in 0..20 {
        // The same ids on both streams, and every other time the same work.
        one.assign(item, tiny.spec(item)).await;
        two.assign(item, tiny.spec(item + 50 * (item % 2))).await;
        for api in [&mut one, &mut two] {
            assert_eq!(api.answer().await, WorkerMessage::Accepted(work(item)));
            assert_eq!(api.answer().await, WorkerMessage::Started(work(item)));
        }
        let artifacts = [one.ready(item).await, two.ready(item).await];
        assert_ne!(artifacts[0].url, artifacts[1].url, "each has an address of its own");
        assert!(two.fetch(&artifacts[0]).await.is_err(), "what is one's is not the other's");
        assert!(one.fetch(&artifacts[1]).await.is_err(), "what is one's is not the other's");
        for (api, artifact) in [&one, &two].into_iter().zip(&artifacts) {
            api.fetch(artifact).await.expect("it is served to its owner");
            api.acknowledge(item, artifact).await;
        }
    }
    // One leaves in the middle of its work: that stops, the other's goes on.
    two.start(40, field.busy().spec(0)).await;
    one.start(40, field.busy().spec(1)).await;
    drop(two);
    worker.until("running", 1).await;
    one.cancel(40).await;
    assert_eq!(one.answer().await, WorkerMessage::Cancelled(work(40)));
    one.done(41, tiny.spec(200)).await;
    drop(one);
    comes_to_rest(&worker).await;
}

#[tokio::test]
async fn a_new_stream_of_the_same_api_node_ends_the_old_one() {
    let field = Field::sown();
    let worker = worker_on(&field, &["execution.slots=1"]);
    let mut old = Api::greeted(worker.grpc, "api-1", 1).await;
    let tiny = field.tiny();
    old.start(0, tiny.spec(0)).await;
    let artifact = old.ready(0).await;
    old.start(1, field.busy().spec(0)).await;
    let mut new = Api::greeted(worker.grpc, "api-1", 2).await;
    assert_eq!(old.end().await.code(), Code::Aborted);
    // Nothing of the old session counts: its work stops, its token opens nothing.
    worker.until("streams", 1).await;
    worker.until("artifacts", 0).await;
    assert!(old.fetch(&artifact).await.is_err());
    let file = new.done(0, tiny.spec(0)).await;
    assert_eq!(tiny.answer(0, file), [[3.0; 8]]);
    drop((old, new));
    comes_to_rest(&worker).await;
}

#[tokio::test]
async fn an_api_node_that_falls_silent_is_dropped_after_three_seconds_with_its_work() {
    let field = Field::sown();
    let worker = worker_on(&field, &["execution.slots=1"]);
    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    let tiny = field.tiny();
    api.start(0, tiny.spec(0)).await;
    api.ready(0).await;
    // Long enough to be still running when the silence has lasted.
    api.start(1, field.endless().spec(0)).await;
    let begun = Instant::now();
    api.fall_silent();
    assert_eq!(api.end().await.code(), Code::DeadlineExceeded);
    let silence = begun.elapsed();
    assert!(silence > Duration::from_millis(2_400), "{silence:?}");
    for name in ["running", "stopping", "artifacts", "spool_bytes"] {
        worker.until(name, 0).await;
    }
    assert_eq!(worker.metric("streams_closed_total{reason=\"silent\"}").await, 1);
    still_works(&worker, &field, "api-2", 1).await;
}
