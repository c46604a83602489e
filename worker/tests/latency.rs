//! How fast a saturated worker answers. Figures are printed (`--nocapture`); what is asserted leaves
//! room for a busy machine and an unoptimised build.

mod support;

use std::time::{Duration, Instant};

use core_workcoord::message::{ApiMessage, Heartbeat, WorkerMessage};
use support::{Api, config, stage, work};

const ROUNDS: u32 = 200;

/// Far beyond the aims, which are for a quiet machine and an optimised build.
const AT_MOST: Duration = Duration::from_millis(500);

fn report(what: &str, mut times: Vec<Duration>) -> Duration {
    times.sort();
    let at = |per_cent: usize| times[(times.len() - 1) * per_cent / 100];
    println!("{what}: p50 {:?}, p99 {:?}, max {:?}", at(50), at(99), at(100));
    at(50)
}

/// Round trips of heartbeats on a stream with nothing else on it.
async fn heartbeats(api: &mut Api) -> Vec<Duration> {
    let mut times = Vec::new();
    for seq in 1..=u64::from(ROUNDS) {
        let begun = Instant::now();
        api.tell(ApiMessage::Heartbeat(Heartbeat { seq, ..Heartbeat::default() })).await;
        loop {
            if let WorkerMessage::Heartbeat(beat) = api.hear_anything().await
                && beat.echo_seq == seq
            {
                break;
            }
        }
        times.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    times
}

#[tokio::test]
async fn cancellations_and_heartbeats_are_answered_while_every_core_is_busy() {
    let mut config = config(0);
    config.execution.queue_limit = 1_000;
    let slots = config.slots();
    let stage = stage(&config).await;
    // Every slot but one is kept busy; the last one is what is cancelled again and again.
    let mut busy = stage.api("api-busy").await;
    for item in 0..slots - 1 {
        busy.start(item, "spin:300s").await;
    }
    let mut beating = Api::greeted(stage.grpc(), "api-beats", 1).await;
    beating.fall_silent();
    let beating = tokio::spawn(async move { heartbeats(&mut beating).await });
    let mut api = stage.api("api-cancels").await;
    let mut times = Vec::new();
    for item in 0..ROUNDS {
        api.start(item, "spin:300s").await;
        let begun = Instant::now();
        api.cancel(item).await;
        assert_eq!(api.answer().await, WorkerMessage::Cancelled(work(item)));
        times.push(begun.elapsed());
    }
    let cancels = report("cancellation under saturation", times);
    let beats = report("heartbeat under saturation", beating.await.unwrap());
    assert!(cancels < AT_MOST && beats < AT_MOST);
    assert!(stage.metric("cancel_seconds_count").await >= f64::from(ROUNDS));
}

#[tokio::test]
async fn a_tiny_item_is_announced_soon_after_it_was_assigned() {
    let stage = stage(&config(1)).await;
    let mut api = stage.api("api-1").await;
    let mut times = Vec::new();
    for item in 0..ROUNDS {
        let begun = Instant::now();
        api.start(item, "").await;
        let artifact = api.ready(item).await;
        times.push(begun.elapsed());
        api.acknowledge(item, &artifact).await;
    }
    assert!(report("AssignWork to WorkReady", times) < AT_MOST);
}
