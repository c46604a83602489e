//! A cluster at rest: nothing is asked, so nothing may run, wait or be kept, and every process holds
//! what it held before.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::cluster::Cluster;
use crate::process::{Footprint, Process};
use crate::scrape::{Metrics, said};
use crate::verdict::{Promise, Violation};

/// Everything must have come to rest this soon: before queries or artifacts that nobody ended end for want
/// of time.
const PATIENCE: Duration = Duration::from_secs(15);

/// A process may hold this many more files than before, for connections that are on their way out.
const FILES: usize = 24;

/// And this much more memory: allocators give back late, caches of indexes fill once.
const MEMORY: u64 = 192 << 20;

/// And this many more threads.
const THREADS: usize = 16;

/// Gauges of a worker that are zero at rest.
const WORKER_GAUGES: [&str; 5] = [
    "tributary_worker_running",
    "tributary_worker_queue_depth",
    "tributary_worker_stopping",
    "tributary_worker_artifacts_unacknowledged",
    "tributary_worker_artifacts_acknowledged",
];

/// And of an API node.
const API_GAUGES: [&str; 5] = [
    "tributary_api_queries_running",
    "tributary_api_cancelling",
    "tributary_api_fetches",
    "tributary_api_fetches_waiting",
    "tributary_api_result_memory_bytes",
];

/// What every process holds, by name.
pub type Footprints = BTreeMap<String, Footprint>;

/// Waits until all is at rest. What is not, breaks a promise.
pub async fn settle(cluster: &mut Cluster, begun: Instant) -> Vec<Violation> {
    let until = Instant::now() + PATIENCE;
    loop {
        let restless = restless(cluster).await;
        if restless.is_empty() {
            return Vec::new();
        }
        if Instant::now() >= until {
            let at = begun.elapsed();
            let broken = restless.into_iter();
            return broken.map(|what| Violation::new(Promise::NothingLeft, at, what)).collect();
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// What still moves.
async fn restless(cluster: &mut Cluster) -> Vec<String> {
    let mut all = Vec::new();
    for api in &cluster.apis {
        let name = api.name();
        let metrics = Metrics::of(&cluster.client, api.http()).await.unwrap_or_default();
        for gauge in API_GAUGES {
            let value = metrics.get(gauge);
            if value != Some(0.0) {
                all.push(format!("{name} has {gauge} {value:?}"));
            }
        }
        match said(&cluster.client, api.http(), "/monitor/queue").await {
            Some(seen) => {
                for key in ["depth", "queued", "running"] {
                    if seen[key].as_f64() != Some(0.0) {
                        all.push(format!("{name} has {key} {}", seen[key]));
                    }
                }
            }
            None => all.push(format!("{name} does not say how long its queue is")),
        }
    }
    for api in &cluster.apis {
        let queries = said(&cluster.client, api.http(), "/monitor/queries").await;
        if queries.as_ref().and_then(|it| it["queries"].as_array()).is_none_or(|it| !it.is_empty())
        {
            all.push(format!("{} keeps queries: {queries:?}", api.name()));
        }
    }
    for number in cluster.running() {
        let worker = &cluster.workers[number];
        let name = worker.name();
        let metrics = match worker.http() {
            Some(address) => Metrics::of(&cluster.client, address).await,
            None => None,
        };
        let Some(metrics) = metrics else {
            all.push(format!("{name} does not say how it is"));
            continue;
        };
        for gauge in WORKER_GAUGES {
            let value = metrics.get(gauge);
            if value != Some(0.0) {
                all.push(format!("{name} has {gauge} {value:?}"));
            }
        }
        // What is on the disk is on the books: no artifact, and segments as large as is said.
        // Downloads that broke off wait there for the next to go on.
        let (artifacts, segments): (Vec<_>, Vec<_>) =
            worker.cache.files().into_iter().partition(|(path, _)| is_artifact(path));
        for (path, size) in artifacts {
            all.push(format!("{name} keeps {} of {size} bytes", path.display()));
        }
        let held: u64 = segments.iter().map(|(_, size)| *size).sum();
        let booked = metrics.get("tributary_worker_cache_bytes").unwrap_or_default();
        if held as f64 > booked {
            all.push(format!(
                "{name} holds {held} bytes of segments, and {booked} are on its books"
            ));
        }
    }
    all
}

/// Whether a file of a cache directory is an artifact, complete or not.
fn is_artifact(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("spool"))
}

/// What every process holds now.
pub fn footprints(cluster: &Cluster) -> Footprints {
    let workers = cluster.workers.iter().filter_map(|worker| worker.process.as_ref());
    let apis = cluster.apis.iter().filter_map(|api| api.process.as_ref());
    let all = apis.chain(workers);
    all.filter_map(|it| Some((it.name().to_owned(), it.footprint()?))).collect()
}

/// Waits until everybody holds about what they held before. What is more, breaks a promise.
pub async fn back_to(
    before: &Footprints,
    cluster: &Cluster,
    begun: Instant,
) -> (Footprints, Vec<Violation>) {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let now = footprints(cluster);
        let more: Vec<String> = now
            .iter()
            .filter_map(|(name, now)| {
                // Who was not there before is held against those who were.
                let before = before.get(name).or_else(|| before.values().next())?;
                let is_more = now.open_files > before.open_files + FILES
                    || now.rss_bytes > before.rss_bytes + MEMORY
                    || now.threads > before.threads + THREADS;
                is_more.then(|| format!("{name} holds {now:?}; before it held {before:?}"))
            })
            .collect();
        if more.is_empty() || Instant::now() >= until {
            let leaks = more.into_iter();
            let at = begun.elapsed();
            let leaks = leaks.map(|what| Violation::new(Promise::NoLeaks, at, what)).collect();
            return (now, leaks);
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Processes that ended by themselves.
pub fn crashes(cluster: &mut Cluster, expected: &[usize], begun: Instant) -> Vec<Violation> {
    let mut all = Vec::new();
    let at = begun.elapsed();
    for number in expected {
        let worker = &mut cluster.workers[*number];
        if !worker.is_running() {
            let what = format!("{} has ended by itself", worker.name());
            all.push(Violation::new(Promise::NoCrashes, at, what));
        }
    }
    for api in &mut cluster.apis {
        if !api.process.as_mut().is_some_and(Process::is_running) {
            let what = format!("{} has ended by itself", api.name());
            all.push(Violation::new(Promise::NoCrashes, at, what));
        }
    }
    all
}

/// What the logs tell that nobody saw: panics, and streams that an API node closed because a worker did
/// not answer. No fault is that long without silence being noticed first.
pub fn complaints(cluster: &Cluster, begun: Instant) -> Vec<Violation> {
    let mut all = Vec::new();
    let logs = cluster.apis.iter().map(|api| api.log());
    let logs = logs.chain(cluster.workers.iter().map(|worker| worker.log()));
    for log in logs {
        let text = std::fs::read(log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        for line in text.lines() {
            let promise = if line.contains("panicked at") {
                Promise::NoCrashes
            } else if line.contains("stream is closed") && line.contains("reason=Unanswered") {
                Promise::WorkersAnswer
            } else {
                continue;
            };
            let what = format!("{}: {line}", log.display());
            all.push(Violation::new(promise, begun.elapsed(), what));
        }
    }
    all
}
