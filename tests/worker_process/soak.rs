//! Many items through one worker: memory and open files stay flat, and at the end nothing is kept.

use std::collections::VecDeque;
use std::time::Instant;

use core_workcoord::message::WorkerMessage;
use tributary_integration::worker_suite::api::Api;
use tributary_integration::worker_suite::field::Field;

use super::{comes_to_rest, count_of, worker_on};

/// Items that the worker has in hand at once.
const AT_ONCE: usize = 64;

/// Points of the curves.
const POINTS: u32 = 20;

/// What memory may grow by from the second fifth of the items to the last: room for what an
/// allocator keeps and for the odd large buffer, and far less than a leak of some hundred bytes an
/// item would be over 100,000 items.
const GROWTH_MAX_BYTES: u64 = 24 << 20;

#[tokio::test]
async fn many_items_leave_nothing_behind() {
    let items = count_of("TRIBUTARY_SOAK_ITEMS", 2_000);
    let field = Field::sown();
    let settings = ["artifacts.ttl_after_ack=200ms", "execution.queue_limit=256"];
    let worker = worker_on(&field, &settings);
    let begun = Instant::now();
    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    let tiny = field.tiny();
    let mut curve = vec![worker.footprint()];
    let mut waiting = VecDeque::new();
    let mut next = 0;
    let (mut done, mut cancelled, mut fetched) = (0, 0, 0);
    while done < items {
        while waiting.len() < AT_ONCE && next < items {
            // Every fifth is work that was done a moment ago, every fiftieth is taken back.
            let number = if next % 5 == 4 { next - 3 } else { next };
            api.assign(next, tiny.spec(number)).await;
            if next % 50 == 49 {
                api.cancel(next).await;
            }
            waiting.push_back(next);
            next += 1;
        }
        let (item, artifact) = match api.answer().await {
            WorkerMessage::Accepted(_) | WorkerMessage::Started(_) => continue,
            WorkerMessage::Ready(ready) => (ready.work.work_id.item, Some(ready.artifact)),
            WorkerMessage::Cancelled(work) => (work.work_id.item, None),
            other => panic!("{other:?}\n{}", worker.log()),
        };
        match artifact {
            // An artifact that was ready before it was taken back is followed by the answer to that.
            Some(_) if item % 50 == 49 => continue,
            Some(artifact) => {
                if item % 10 == 0 {
                    let file = api.fetch(&artifact).await.expect("it is served");
                    let number = if item % 5 == 4 { item - 3 } else { item };
                    assert_eq!(tiny.answer(number, file), [[3.0; 8]]);
                    fetched += 1;
                }
                api.acknowledge(item, &artifact).await;
            }
            None => cancelled += 1,
        }
        let at = waiting.iter().position(|waits| *waits == item);
        waiting.remove(at.expect("each item ends once"));
        done += 1;
        if done % (items / POINTS).max(1) == 0 {
            curve.push(worker.footprint());
        }
    }
    let took = begun.elapsed();
    let committed = worker.metric("artifacts_committed_total").await;
    let reused = worker.metric("artifacts_reused_total").await;
    for name in ["artifacts", "spool_bytes", "running", "queue_depth"] {
        worker.until(name, 0).await;
    }
    let rested = worker.footprint();
    drop(api);
    comes_to_rest(&worker).await;
    let rss: Vec<u64> = curve.iter().map(|point| point.rss_bytes >> 20).collect();
    let open: Vec<usize> = curve.iter().map(|point| point.open_files).collect();
    println!(
        "{items} items in {took:.1?} ({committed} made, {reused} reused, {cancelled} cancelled, \
         {fetched} fetched)\nRSS in MiB: {rss:?}, at rest {}\nopen files: {open:?}, at rest {}",
        rested.rss_bytes >> 20,
        rested.open_files,
    );
    assert_eq!(worker.metric("accepted_total").await, u64::from(items));
    // From the second fifth on, when pools and allocators have what they need.
    let warm = curve[curve.len() / 5..].iter();
    let (low, high) = (curve[curve.len() / 5].rss_bytes, warm.map(|point| point.rss_bytes).max());
    let high = high.expect("there are points");
    assert!(high - low < GROWTH_MAX_BYTES, "{rss:?}");
    let files_max = curve.iter().map(|point| point.open_files).max().expect("there are points");
    assert!(files_max <= curve[0].open_files + 16, "{open:?}");
}
