//! A worker as a real process with real leaves over real segments: the control protocol to the
//! letter, peers that break it, kills at random moments, many items, and how fast it answers while it
//! is busy. Whatever happens, nothing is lost and nothing leaks.
//!
//! Sizes and rounds are small by default. What raises them: `TRIBUTARY_TEST_KILLS`,
//! `TRIBUTARY_SOAK_ITEMS`, `TRIBUTARY_LATENCY_ROUNDS`; figures are printed with `--nocapture`.

mod abuse;
mod killed;
mod latency;
mod protocol;
mod soak;
mod violations;

use std::env;
use std::time::Duration;

use tokio::time::timeout;
use tributary_integration::worker_suite::PATIENCE;
use tributary_integration::worker_suite::api::Api;
use tributary_integration::worker_suite::field::Field;
use tributary_integration::worker_suite::process::WorkerProcess;

/// The binary under test, built by cargo for these tests.
const BINARY: &str = env!("CARGO_BIN_EXE_tributary");

/// A worker on a field, with these settings.
fn worker_on(field: &Field, settings: &[&str]) -> WorkerProcess {
    WorkerProcess::start(BINARY, &field.store(), &field.cache("cache"), settings)
}

/// How many, unless the environment says otherwise.
fn count_of(variable: &str, default: u32) -> u32 {
    env::var(variable).map_or(default, |count| count.parse().expect("a number"))
}

/// The worker does its work, and does it right.
async fn still_works(worker: &WorkerProcess, field: &Field, name: &str, number: u32) {
    let mut api = Api::greeted(worker.grpc, name, 1).await;
    let tiny = field.tiny();
    let file = api.done(0, tiny.spec(number)).await;
    assert_eq!(tiny.answer(number, file), [[3.0; 8]]);
}

/// Nobody is served any more, nothing runs, nothing is kept.
async fn comes_to_rest(worker: &WorkerProcess) {
    for name in ["streams", "connections", "running", "queue_depth", "stopping", "artifacts"] {
        worker.until(name, 0).await;
    }
    worker.until("spool_bytes", 0).await;
}

/// Waits until there are no more files open than this: the connection that asked for metrics a moment
/// ago may still be among them.
async fn until_files(worker: &WorkerProcess, at_most: usize) {
    let waiting = async {
        while worker.footprint().open_files > at_most {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "{:?}, not {at_most}: {}", worker.footprint(), worker.log());
}
