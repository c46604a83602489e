//! Faults against a cluster of processes of this binary: a bounded selection with a fixed seed, and the
//! stories with a number at their end, short. TRIBUTARY_CHAOS_SECONDS makes the selection longer,
//! TRIBUTARY_CHAOS_SEED another one; `tributary chaos` runs as long as one likes, and writes a report.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tributary_chaos::scenario::{Size, Story};
use tributary_chaos::{Scenario, Terms};

/// Faults are done for this long, in seconds.
const SECONDS: u64 = 60;

/// One cluster at a time: they are measured.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(variable: &str, usual: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text:?}")),
        Err(_) => usual,
    }
}

fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_tributary"))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(future)
}

fn play(scenario: Scenario, rounds: usize, queries: usize) -> Story {
    let _alone = alone();
    let size = Size { rounds, queries };
    let mut tell = |line: &str| eprintln!("{line}");
    let story = block_on(scenario.play(Path::new(&binary()), None, 1, size, &mut tell));
    let story = story.expect("the cluster starts");
    let lines = story.lines().join("\n");
    println!("{lines}");
    assert!(story.is_good(), "{lines}");
    story
}

#[test]
fn faults_of_all_kinds_break_no_promise() {
    let _alone = alone();
    let time = Duration::from_secs(number("TRIBUTARY_CHAOS_SECONDS", SECONDS));
    let terms = Terms::of(binary(), time, number("TRIBUTARY_CHAOS_SEED", 1));
    let mut tell = |line: &str| eprintln!("{line}");
    let report = block_on(tributary_chaos::run(&terms, &mut tell)).expect("the cluster starts");
    println!("{}", report.verdict());
    for violation in &report.violations {
        println!("at {} ms: {}: {}", violation.at_ms, violation.promise.words(), violation.what);
    }
    assert!(report.is_good(), "{}", report.verdict());
    assert!(report.faults.len() >= 5 && report.counts()[0] > 100, "too little was done");
}

#[test]
fn a_killed_worker_costs_no_answer() {
    let story = play(Scenario::WorkerKilled, 5, 40);
    assert!(story.count("losses that hit work under way") > 0, "nothing was hit");
}

#[test]
fn a_frozen_worker_costs_no_answer() {
    play(Scenario::WorkerFrozen, 2, 40);
}

#[test]
fn work_of_a_client_that_leaves_stops_on_every_worker() {
    let story = play(Scenario::ClientGone, 30, 1);
    assert!(story.count("of these with work on workers") > 0, "nobody left in the middle");
}

#[test]
fn two_api_nodes_share_their_workers_and_one_may_die() {
    play(Scenario::TwoApis, 2, 30);
}
