//! Items a second through a real stream beside messages a second through a bare one, and how long
//! one item takes.

use std::time::{Duration, Instant};

use bytes::Bytes;
use core_workcoord::message::{ApiMessage, WorkerMessage};
use tokio_stream::StreamExt;
use tributary_integration::worker_suite::api::{Api, assignment};
use tributary_integration::worker_suite::field::Field;
use tributary_integration::worker_suite::figures::Times;
use tributary_proto::encode::api_message;

use super::stage::Stage;
use super::{echo, is_wanted};

/// Items, and messages, on their way at once.
const IN_FLIGHT: [usize; 2] = [1, 256];

/// A spec for each number.
type Specs<'a> = &'a dyn Fn(u32) -> Bytes;

pub(super) async fn compare(field: &Field, span: Duration) {
    let tiny = field.tiny();
    let message = api_message(ApiMessage::AssignWork(assignment(0, tiny.spec(0))));
    println!("an assignment of a tiny item has {} bytes", message.len());
    let address = echo::start();
    let folder = tempfile::tempdir().expect("a folder can be made");
    let leaves = Stage::with_leaves(field, &folder.path().join("disk"));
    let rehearsal = Stage::rehearsing();
    for in_flight in IN_FLIGHT {
        let bare = echo::rate(address, message.clone(), in_flight, span).await;
        println!("{in_flight} in flight: bare tonic echo, {bare:.0} messages/s");
        let mut offset = 0;
        let mut row = async |what: &str, stage: &Stage, specs: Specs<'_>| {
            if !is_wanted(&format!("{in_flight} in flight: {what}")) {
                return;
            }
            offset += 1;
            let name = format!("api-{in_flight}-{offset}");
            let mut api = Api::greeted(stage.worker().grpc(), &name, 1).await;
            let (rate, times) = items(&mut api, in_flight, span, specs).await;
            let share = 100.0 * rate / bare;
            println!("{in_flight} in flight: {what}, {rate:.0} items/s, {share:.1} % of the echo");
            println!("    AssignWork to WorkReady: {times}");
        };
        row("items that do nothing", &rehearsal, &|_| Bytes::from_static(b"size:100")).await;
        row("tiny items answered from disk", &leaves, &|_| tiny.spec(u32::MAX)).await;
        let base = u32::try_from(in_flight).expect("a few") << 24;
        row("tiny items that are made", &leaves, &|n| tiny.spec(base + n)).await;
    }
}

/// Items a second, each assigned, made, announced and acknowledged, and how long each took.
async fn items(api: &mut Api, in_flight: usize, span: Duration, specs: Specs<'_>) -> (f64, Times) {
    let mut assigned = Vec::new();
    let mut times = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < span {
        while assigned.len() < times.len() + in_flight {
            let item = u32::try_from(assigned.len()).expect("not so many");
            assigned.push(Instant::now());
            api.assign(item, specs(item)).await;
        }
        match api.said.next().await.expect("the stream is open").expect("the protocol is kept") {
            WorkerMessage::Ready(ready) => {
                let item = ready.work.work_id.item;
                times.push(assigned[item as usize].elapsed());
                api.acknowledge(item, &ready.artifact).await;
            }
            WorkerMessage::Failed(failed) => panic!("{failed:?}"),
            WorkerMessage::Rejected(rejected) => panic!("{rejected:?}"),
            _ => {}
        }
    }
    let count = u32::try_from(times.len()).expect("not so many");
    let rate = f64::from(count) / begun.elapsed().as_secs_f64();
    // Nobody is left at work when the next measurement begins.
    while times.len() < assigned.len() {
        if let Some(Ok(WorkerMessage::Ready(ready))) = api.said.next().await {
            times.push(assigned[ready.work.work_id.item as usize].elapsed());
            api.acknowledge(ready.work.work_id.item, &ready.artifact).await;
        }
    }
    (rate, Times::new(times))
}
