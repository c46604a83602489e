//! Faults against a cluster of processes of this binary: a bounded selection with a fixed seed, and the
//! stories with a number at their end, short. TRIBUTARY_CHAOS_SECONDS makes the selection longer,
//! TRIBUTARY_CHAOS_SEED another one; `tributary chaos` runs as long as one likes, and writes a report.
//! TRIBUTARY_CHAOS_S3 names a real S3 server, see chaos/with-s3.sh.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tributary_chaos::scenario::{Size, Story};
use tributary_chaos::{Kind, Report, Scenario, Terms};

/// Faults are done for this long, in seconds.
const SECONDS: u64 = 90;

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
    run(&Terms::of(binary(), time, number("TRIBUTARY_CHAOS_SEED", 1)));
}

/// Not run where there is no server; `TRIBUTARY_CHAOS_S3` says where it is.
#[test]
fn a_real_s3_server_may_fall_ill_too() {
    let Ok(endpoint) = std::env::var("TRIBUTARY_CHAOS_S3") else {
        // Straight to the terminal: what a test prints is shown only where it fails.
        let _ = writeln!(std::io::stderr(), "skipped: TRIBUTARY_CHAOS_S3 names no S3 server");
        return;
    };
    let _alone = alone();
    let kinds = vec![
        Kind::SegmentsMissing,
        Kind::SegmentsTruncated,
        Kind::SegmentsSwapped,
        Kind::StoreErring,
        Kind::StoreSlow,
        Kind::KillWorker,
    ];
    let s3 = Some(endpoint.clone());
    let terms = Terms { s3, kinds, ..Terms::of(binary(), Duration::from_secs(20), 5) };
    let report = run(&terms);
    let host = endpoint.trim_start_matches("http://").trim_end_matches('/');
    assert!(report.machine.store.contains(host), "{}", report.machine.store);
}

#[test]
fn a_run_says_that_its_s3_server_can_not_be_reached() {
    let _alone = alone();
    for (endpoint, expected) in [
        ("http://127.0.0.1:1", "the S3 server at http://127.0.0.1:1 can't be reached"),
        ("127.0.0.1:9000", "is no address of an S3 server: it has the form http://HOST:PORT"),
        ("https://127.0.0.1:9000", "is no address of an S3 server"),
    ] {
        let s3 = Some(endpoint.to_owned());
        let terms = Terms { s3, ..Terms::of(binary(), Duration::from_secs(1), 1) };
        let error = block_on(tributary_chaos::run(&terms, &mut |_| ())).expect_err("no server");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

fn run(terms: &Terms) -> Report {
    let mut tell = |line: &str| eprintln!("{line}");
    let report = block_on(tributary_chaos::run(terms, &mut tell)).expect("the cluster starts");
    println!("{}", report.verdict());
    for violation in &report.violations {
        println!("at {} ms: {}: {}", violation.at_ms, violation.promise.words(), violation.what);
    }
    assert!(report.is_good(), "{}", report.verdict());
    assert!(report.faults.len() >= 5 && report.counts()[0] > 100, "too little was done");
    report
}

/// Faults of the network alone, done by the binary, which may move into a network of its own.
fn network_faults(network: &str, faults: &[&str]) -> serde_json::Value {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut command = Command::new(binary());
    command.args(["chaos", "--minutes", "0.4", "--seed", "3", "--network", network, "--report"]);
    command.arg(folder.path());
    // Nothing of the machine's own network is reached from another one.
    command.env_remove("TRIBUTARY_CHAOS_S3");
    command.args(faults.iter().flat_map(|fault| ["--fault", fault]));
    let said = command.output().expect("the binary runs");
    let (out, log) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success(), "{out}\n{log}");
    let report = std::fs::read(folder.path().join("report.json")).expect("there is a report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("it is JSON");
    let links = report["links"].as_str().expect("it says how links fell ill");
    assert!(log.contains(links), "the terminal says the same:\n{log}");
    report
}

#[test]
fn faults_of_the_network_break_no_promise_in_namespaces() {
    if let Err(error) = tributary_chaos::network::rehearsed(&binary(), "chaos") {
        println!("no network of its own can be had here: {error}");
        return;
    }
    let report = network_faults("namespaces", &["loss", "cut-both-ways", "half-open", "delay"]);
    assert!(report["links"].as_str().is_some_and(|links| links.starts_with("network namespaces")));
    assert!(report["faults"].as_array().is_some_and(|faults| faults.len() >= 3), "{report}");
}

#[test]
fn faults_of_the_network_break_no_promise_over_the_proxy() {
    let report = network_faults("proxy", &["loss", "cut-to-api", "resets", "bandwidth"]);
    assert!(report["links"].as_str().is_some_and(|links| links.starts_with("a TCP proxy")));
    assert_eq!(report["not_done_here"][0]["kind"], "loss");
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
