//! The control stream of a worker over real sockets: what an API node hears in every turn of a
//! work item's life, and how a stream ends.

mod support;

use std::time::{Duration, Instant};

use core_workcoord::message::{
    ApiMessage, FailureCode, Hello, RejectReason, WorkFailed, WorkRejected, WorkerMessage,
};
use support::{Api, PATIENCE, Stage, assign, config, fetch, hello, stage, work};
use tonic::Code;
use tributary_worker::config::Span;

#[tokio::test]
async fn work_is_accepted_started_ready_fetched_and_acknowledged() {
    let mut config = config(1);
    config.artifacts.ttl_after_ack = Span::millis(50);
    let stage = stage(&config).await;
    let mut api = stage.api("api-1").await;
    let welcome = api.welcome.clone().unwrap();
    assert_eq!((welcome.worker_id.as_str(), welcome.slots), ("worker-1", 1));
    assert_eq!(welcome.artifact_base_url, format!("http://{}/artifacts/", stage.http()));
    assert_eq!(welcome.artifact_token.len(), 64);

    api.start(0, "size:20").await;
    let artifact = api.ready(0).await;
    assert!(artifact.url.starts_with(&welcome.artifact_base_url), "{}", artifact.url);
    assert_eq!(api.fetch(&artifact).await, (200, "size:20size:20size:2".into()));
    assert_eq!(fetch(&artifact.url, "wrong").await.0, 404);
    api.acknowledge(0, &artifact).await;
    stage.until("the artifact is gone", async |stage: &Stage| stage.shelf.count() == 0).await;
    assert_eq!(api.fetch(&artifact).await.0, 404);
    assert_eq!(stage.metric("artifacts_acknowledged_total").await, 1.0);
    assert_eq!(stage.metric("ready_to_ack_seconds_count").await, 1.0);
}

#[tokio::test]
async fn a_full_worker_refuses_and_says_when_there_is_room() {
    let mut config = config(1);
    config.execution.queue_limit = 1;
    let stage = stage(&config).await;
    let mut api = stage.api("api-1").await;
    api.start(0, "sleep:300s").await;
    api.assign(1, "").await;
    assert_eq!(api.answer().await, WorkerMessage::Accepted(work(1)));
    api.assign(2, "").await;
    let refused = WorkRejected { work: work(2), reason: RejectReason::Full };
    assert_eq!(api.answer().await, WorkerMessage::Rejected(refused));
    api.cancel(0).await;
    assert_eq!(api.answer().await, WorkerMessage::Cancelled(work(0)));
    assert_eq!(api.answer().await, WorkerMessage::Started(work(1)));
    api.ready(1).await;
    api.start(2, "").await;
    api.ready(2).await;
}

#[tokio::test]
async fn failures_and_panics_are_told_and_cost_nothing_but_their_run() {
    let stage = stage(&config(1)).await;
    let mut api = stage.api("api-1").await;
    for (item, spec, code, retryable) in [
        (0, "fail:retryable", FailureCode::StoreUnavailable, true),
        (1, "fail:final", FailureCode::SegmentMissing, false),
        (2, "panic", FailureCode::Internal, true),
        (3, "no-such-word", FailureCode::BadSpec, false),
    ] {
        api.start(item, spec).await;
        let WorkerMessage::Failed(WorkFailed { work: told, failure }) = api.answer().await else {
            panic!("{spec} does not fail")
        };
        assert_eq!((told, failure.code, failure.retryable), (work(item), code, retryable));
        assert!(!failure.message.is_empty());
    }
    api.start(4, "").await;
    api.ready(4).await;
}

#[tokio::test]
async fn work_whose_time_is_up_is_stopped_and_told() {
    let stage = stage(&config(1)).await;
    let mut api = stage.api("api-1").await;
    let mut short = assign(0, "sleep:300s");
    short.deadline = Duration::from_millis(50);
    api.tell(ApiMessage::AssignWork(short)).await;
    assert_eq!(api.answer().await, WorkerMessage::Accepted(work(0)));
    assert_eq!(api.answer().await, WorkerMessage::Started(work(0)));
    let WorkerMessage::Failed(failed) = api.answer().await else { panic!("it goes on") };
    assert_eq!((failed.work, failed.failure.code), (work(0), FailureCode::Deadline));
    stage
        .until("the slot is free", async |stage: &Stage| stage.metric("running").await == 0.0)
        .await;
}

#[tokio::test]
async fn a_run_that_does_not_hear_keeps_its_slot_until_it_ends() {
    let stage = stage(&config(1)).await;
    let mut api = stage.api("api-1").await;
    api.start(0, "stubborn:300ms").await;
    api.cancel(0).await;
    api.assign(1, "").await;
    assert_eq!(api.answer().await, WorkerMessage::Accepted(work(1)));
    assert_eq!(api.answer().await, WorkerMessage::Cancelled(work(0)), "only when it ended");
    assert_eq!(api.answer().await, WorkerMessage::Started(work(1)));
    api.ready(1).await;
    stage.until("only one is kept", async |stage: &Stage| stage.shelf.count() == 1).await;
}

#[tokio::test]
async fn every_violation_ends_the_stream_with_a_reason() {
    let stage = stage(&config(1)).await;
    let closed = async |messages: &[ApiMessage]| {
        let mut api = Api::open(stage.grpc()).await;
        for message in messages {
            api.tell(message.clone()).await;
        }
        let status = api.end().await;
        (status.code(), status.message().to_owned())
    };
    let work = || ApiMessage::AssignWork(assign(0, "sleep:300s"));
    let Hello { api_id, session_id, .. } = match hello("api-v", 1) {
        ApiMessage::Hello(hello) => hello,
        _ => unreachable!("it is a Hello"),
    };
    let old = ApiMessage::Hello(Hello { api_id, session_id, protocol_version: 99 });
    for (messages, code, words) in [
        (vec![work()], Code::FailedPrecondition, "Hello must come first"),
        (vec![hello("a", 1), hello("a", 2)], Code::FailedPrecondition, "Hello came twice"),
        (vec![old], Code::FailedPrecondition, "version of the protocol"),
        (vec![hello("b", 1), work(), work()], Code::FailedPrecondition, "can't follow"),
    ] {
        let (told, message) = closed(&messages).await;
        assert_eq!(told, code, "{messages:?}: {message}");
        assert!(message.contains(words), "{messages:?}: {message}");
    }
    assert_eq!(stage.metric("streams").await, 0.0);
    stage
        .until("nothing runs on", async |stage: &Stage| stage.metric("running").await == 0.0)
        .await;
}

#[tokio::test]
async fn a_message_larger_than_any_may_be_ends_the_stream() {
    let stage = stage(&config(1)).await;
    let mut api = stage.api("api-1").await;
    let mut huge = assign(0, "");
    huge.spec = vec![b' '; 5 << 20].into();
    api.tell(ApiMessage::AssignWork(huge)).await;
    let status = api.end().await;
    assert_ne!(status.code(), Code::Ok, "{status:?}");
    stage
        .until("the session is over", async |stage: &Stage| stage.metric("streams").await == 0.0)
        .await;
    // And the worker serves the next one.
    let mut api = stage.api("api-2").await;
    api.start(0, "").await;
    api.ready(0).await;
}

#[tokio::test]
async fn a_stream_that_never_introduces_itself_is_ended() {
    let mut config = config(1);
    config.control.hello_timeout = Span::millis(100);
    let stage = stage(&config).await;
    let status = Api::open(stage.grpc()).await.end().await;
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(status.message().contains("no Hello"), "{status:?}");
}

#[tokio::test]
async fn an_api_node_that_falls_silent_loses_its_session_and_its_work() {
    let mut config = config(1);
    config.control.heartbeat_interval = Span::millis(50);
    config.control.heartbeat_timeout = Span::millis(1500);
    let stage = stage(&config).await;
    let mut api = stage.api("api-1").await;
    api.start(0, "").await;
    api.ready(0).await;
    api.start(1, "sleep:300s").await;
    api.fall_silent();
    let begun = Instant::now();
    let status = api.end().await;
    assert!(begun.elapsed() > Duration::from_millis(800), "{:?}", begun.elapsed());
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert!(status.message().contains("nothing was heard"), "{status:?}");
    stage
        .until("its work is stopped", async |stage: &Stage| {
            stage.metric("running").await == 0.0 && stage.shelf.count() == 0
        })
        .await;
    assert_eq!(stage.metric("orphans_stopped_total").await, 1.0);
}

#[tokio::test]
async fn two_api_nodes_share_the_slots_and_neither_hurts_the_other() {
    let stage = stage(&config(1)).await;
    let (mut one, mut two) = (stage.api("api-1").await, stage.api("api-2").await);
    one.start(0, "sleep:300s").await;
    // Ids are each API node's own.
    two.assign(0, "size:5").await;
    assert_eq!(two.answer().await, WorkerMessage::Accepted(work(0)));
    two.assign(1, "sleep:300s").await;
    assert_eq!(two.answer().await, WorkerMessage::Accepted(work(1)));
    let token = one.token().to_owned();
    drop(one);
    assert_eq!(two.answer().await, WorkerMessage::Started(work(0)));
    let artifact = two.ready(0).await;
    assert_eq!(fetch(&artifact.url, &token).await.0, 404, "another session's token");
    assert_eq!(two.fetch(&artifact).await, (200, "size:".into()));
    assert_eq!(two.answer().await, WorkerMessage::Started(work(1)));
}

#[tokio::test]
async fn a_reconnect_is_a_new_session_and_nothing_of_the_old_one_counts() {
    let stage = stage(&config(1)).await;
    let mut old = stage.api("api-1").await;
    old.start(0, "").await;
    let artifact = old.ready(0).await;
    old.start(1, "sleep:300s").await;
    let mut new = Api::greeted(stage.grpc(), "api-1", 2).await;
    assert_eq!(old.end().await.code(), Code::Aborted, "superseded");
    assert_eq!(fetch(&artifact.url, new.token()).await.0, 404);
    assert_ne!(old.token(), new.token());
    // The slot was freed, and the same work may come again.
    new.start(1, "").await;
    new.ready(1).await;
    // An older number than the one in use is refused, and hurts nobody.
    let mut late = Api::open(stage.grpc()).await;
    late.tell(hello("api-1", 1)).await;
    assert_eq!(late.end().await.code(), Code::FailedPrecondition);
    new.start(2, "").await;
    new.ready(2).await;
}

#[tokio::test]
async fn an_evicted_artifact_is_told_to_its_owner() {
    let stage = stage(&config(1)).await;
    let mut api = stage.api("api-1").await;
    api.start(0, "").await;
    api.ready(0).await;
    stage.shelf.lose_everything().await;
    assert_eq!(api.answer().await, WorkerMessage::ArtifactLost(work(0)));
    assert_eq!(stage.metric("artifacts_evicted_total").await, 1.0);
}

#[tokio::test]
async fn an_artifact_nobody_fetches_expires_and_its_owner_is_told() {
    let mut config = config(1);
    config.artifacts.ttl = Span::millis(100);
    config.artifacts.ttl_after_ack = Span::millis(50);
    let stage = stage(&config).await;
    let mut api = stage.api("api-1").await;
    api.start(0, "").await;
    api.ready(0).await;
    assert_eq!(api.answer().await, WorkerMessage::ArtifactLost(work(0)));
    stage.until("it is gone", async |stage: &Stage| stage.shelf.count() == 0).await;
}

#[tokio::test]
async fn a_full_disk_closes_admission_and_opens_it_again_by_itself() {
    let stage = stage(&config(1)).await;
    let mut api = stage.api("api-1").await;
    stage.shelf.set_full(true);
    let status = api.status(|status| !status.accepting_work).await;
    assert_eq!((status.alive, status.draining, status.free_bytes), (true, false, 0));
    api.assign(0, "").await;
    let refused = WorkRejected { work: work(0), reason: RejectReason::NotAccepting };
    assert_eq!(api.answer().await, WorkerMessage::Rejected(refused));
    stage.shelf.set_full(false);
    api.status(|status| status.accepting_work).await;
    api.start(0, "").await;
    api.ready(0).await;
}

#[tokio::test]
async fn one_stream_too_many_is_refused() {
    let mut config = config(1);
    config.control.max_sessions = 2;
    let stage = stage(&config).await;
    let _held = (stage.api("api-1").await, stage.api("api-2").await);
    let status = Api::open(stage.grpc()).await.end().await;
    assert_eq!(status.code(), Code::ResourceExhausted);
    tokio::time::timeout(
        PATIENCE,
        stage.until("still two", async |stage: &Stage| stage.metric("streams").await == 2.0),
    )
    .await
    .unwrap();
}
