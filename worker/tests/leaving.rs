//! How a worker leaves: at once in word, and in deed when nothing is owed or the time is up.

mod support;

use std::time::{Duration, Instant};

use core_workcoord::message::{RejectReason, WorkRejected, WorkerMessage};
use support::{PATIENCE, config, get, request, stage, work};
use tokio::time::timeout;
use tonic::Code;
use tributary_worker::config::Span;

#[tokio::test]
async fn a_drain_finishes_what_runs_and_serves_it_until_it_is_acknowledged() {
    let stage = stage(&config(1)).await;
    let (http, mut api) = (stage.http(), stage.api("api-1").await);
    assert_eq!(get(http, "/readyz", &[]).await, (200, "ready\n".into()));
    api.start(0, "sleep:300ms size:7").await;
    api.assign(1, "").await;
    assert_eq!(api.answer().await, WorkerMessage::Accepted(work(1)));
    assert_eq!(request(http, "POST", "/drain", &[]).await.0, 202);
    let status = api.status(|status| status.draining).await;
    assert!(!status.accepting_work);
    assert_eq!(get(http, "/readyz", &[]).await, (503, "draining\n".into()));
    assert_eq!(get(http, "/healthz", &[]).await.0, 200);

    // What has not started goes back, and nothing new is taken.
    api.cancel(1).await;
    assert_eq!(api.answer().await, WorkerMessage::Cancelled(work(1)));
    api.assign(2, "").await;
    let refused = WorkRejected { work: work(2), reason: RejectReason::Draining };
    assert_eq!(api.answer().await, WorkerMessage::Rejected(refused));
    // What runs is finished, and waits to be fetched.
    let artifact = api.ready(0).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(api.fetch(&artifact).await, (200, "sleep:3".into()));
    api.acknowledge(0, &artifact).await;
    let end = api.end().await;
    assert_eq!((end.code(), end.message()), (Code::Unavailable, "the worker has drained"));
    assert!(timeout(PATIENCE, stage.worker.ended()).await.expect("it ends"), "nothing was cut");
    assert_eq!(stage.shelf.count(), 0, "it cleans up after itself");
}

#[tokio::test]
async fn a_drain_ends_when_its_time_is_up() {
    let mut config = config(1);
    config.drain.timeout = Span::millis(200);
    let stage = stage(&config).await;
    let mut api = stage.api("api-1").await;
    api.start(0, "").await;
    api.ready(0).await;
    api.start(1, "sleep:300s").await;
    let begun = Instant::now();
    stage.worker.handle().drain().await;
    assert_eq!(api.end().await.code(), Code::Unavailable);
    assert!(!timeout(PATIENCE, stage.worker.ended()).await.expect("it ends"), "work was cut short");
    assert!(begun.elapsed() >= Duration::from_millis(200));
    assert_eq!(stage.shelf.count(), 0);
}

#[tokio::test]
async fn a_worker_that_owes_nothing_leaves_at_once() {
    let stage = stage(&config(1)).await;
    let mut api = stage.api("api-1").await;
    stage.worker.handle().drain().await;
    assert_eq!(api.end().await.code(), Code::Unavailable);
    assert!(timeout(PATIENCE, stage.worker.ended()).await.expect("it ends"));
}

#[tokio::test]
async fn http_drains_only_where_it_may() {
    let mut config = config(1);
    config.drain.over_http = false;
    let stage = stage(&config).await;
    assert_eq!(request(stage.http(), "POST", "/drain", &[]).await.0, 403);
    assert_eq!(get(stage.http(), "/drain", &[]).await.0, 405);
    assert_eq!(get(stage.http(), "/readyz", &[]).await.0, 200);
}
