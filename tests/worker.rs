//! A worker as a real process: its command line, a session from the introduction to the
//! acknowledgement, and every way it leaves.

#[path = "../worker/tests/support/collector.rs"]
mod collector;
#[path = "../worker/tests/support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use collector::Collector;
use core_workcoord::message::WorkerMessage;
use rustix::process::{Pid, Signal, kill_process};
use support::{Api, PATIENCE, get, request, work};
use tonic::Code;

/// A process that is killed with its test.
struct Process {
    child: Child,
    http: SocketAddr,
    grpc: SocketAddr,
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
    command.arg("worker").args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TRIBUTARY_") {
            command.env_remove(name);
        }
    }
    command
}

impl Process {
    fn start(args: &[&str]) -> Self {
        let loopback = ["--rehearse", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"];
        let mut command = command(&loopback);
        command.args(["--worker-id", "worker-1"]).args(args);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("it says something");
        let words: Vec<_> = line.split_whitespace().collect();
        let ["ready", http, grpc] = words[..] else { panic!("{line:?}") };
        let address = |word: &str, prefix| {
            word.strip_prefix(prefix).expect("it is named").parse().expect("an address")
        };
        Self { child, http: address(http, "http="), grpc: address(grpc, "grpc=") }
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("a process has an id"), signal).expect("it is ours");
    }

    /// How it ended, and what it wrote to its log.
    fn ended(mut self) -> (ExitStatus, String) {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("it was started here") {
                Some(status) => break status,
                None => assert!(begun.elapsed() < PATIENCE, "it does not end"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut log = String::new();
        let stderr: Option<ChildStderr> = self.child.stderr.take();
        stderr.expect("it is piped").read_to_string(&mut log).expect("the log is text");
        (status, log)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_session_with_a_real_process_and_a_drain_by_sigterm() {
    let worker = Process::start(&["--slots", "1", "--set", "log.filter=debug"]);
    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    assert_eq!(get(worker.http, "/readyz", &[]).await, (200, "ready\n".into()));
    api.start(0, "sleep:200ms size:6").await;
    worker.signal(Signal::TERM);
    api.status(|status| status.draining).await;
    let artifact = api.ready(0).await;
    assert_eq!(api.fetch(&artifact).await, (200, "sleep:".into()));
    api.acknowledge(0, &artifact).await;
    assert_eq!(api.end().await.code(), Code::Unavailable);
    let (status, log) = worker.ended();
    assert_eq!(status.code(), Some(0), "{log}");
    let query_id = work(0).work_id.query.to_string();
    let about_work: Vec<_> = log.lines().filter(|line| line.contains(" work ")).collect();
    assert!(about_work.len() >= 3, "{log}");
    for line in about_work {
        let named = line.contains(&format!("query_id={query_id}"))
            && line.contains(&format!("work_id={query_id}-0"));
        assert!(named, "{line}");
    }
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let worker = Process::start(&["--slots", "1"]);
    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    api.start(0, "stubborn:300s").await;
    worker.signal(Signal::TERM);
    api.status(|status| status.draining).await;
    let begun = Instant::now();
    worker.signal(Signal::TERM);
    let (status, log) = worker.ended();
    assert_eq!(status.code(), Some(143), "{log}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_drain_over_http_whose_time_is_up_exits_with_zero() {
    let worker = Process::start(&["--slots", "1", "--set", "drain.timeout=300ms"]);
    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    api.start(0, "stubborn:300s").await;
    assert_eq!(request(worker.http, "POST", "/drain", &[]).await.0, 202);
    let (status, log) = worker.ended();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("clean=false"), "{log}");
}

#[tokio::test]
async fn a_killed_worker_breaks_its_streams_at_once() {
    let worker = Process::start(&["--slots", "1"]);
    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    api.start(0, "sleep:300s").await;
    let begun = Instant::now();
    worker.signal(Signal::KILL);
    assert_ne!(api.end().await.code(), Code::Ok);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn log_lines_can_be_json_and_the_environment_can_say_so() {
    let mut command = command(&["--rehearse", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    command.env("TRIBUTARY_WORKER_LOG_FORMAT", "json").env("TRIBUTARY_WORKER_LOG_FILTER", "debug");
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("ready");
    let grpc = line.trim().rsplit("grpc=").next().expect("it is named").parse().expect("address");
    let worker = Process { child, grpc, http: grpc };
    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    api.start(0, "fail:final").await;
    assert!(matches!(api.answer().await, WorkerMessage::Failed(_)));
    worker.signal(Signal::TERM);
    let (status, log) = worker.ended();
    assert_eq!(status.code(), Some(0), "{log}");
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let failed = lines.iter().find(|line| line["message"] == "work failed").expect("it is told");
    assert_eq!(failed["work_id"], work(0).work_id.to_string());
    assert_eq!(failed["query_id"], work(0).work_id.query.to_string());
}

#[tokio::test]
async fn spans_are_sent_before_a_drained_worker_exits() {
    let collector = Collector::start().await;
    let endpoint = format!("traces.otlp_endpoint={}", collector.endpoint());
    let worker = Process::start(&["--set", &endpoint, "--set", "traces.service_name=pool"]);
    let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
    api.start(0, "size:6").await;
    let artifact = api.ready(0).await;
    api.acknowledge(0, &artifact).await;
    worker.signal(Signal::TERM);
    let (status, log) = tokio::task::spawn_blocking(|| worker.ended()).await.expect("it ends");
    assert_eq!(status.code(), Some(0), "{log}");
    let spans = collector.spans();
    let [run] = &spans[..] else { panic!("{spans:?}\n{log}") };
    assert_eq!(run.trace_id, "0af7651916cd43dd8448eb211c80319c");
    assert_eq!((run.name.as_str(), run.service["service.name"].as_str()), ("run", "pool"));
    assert_eq!((run.attributes["rows"].as_str(), run.attributes["bytes"].as_str()), ("1", "6"));
}

/// A collector that is not there, and one that takes connections and says nothing.
#[tokio::test]
async fn a_collector_that_does_not_answer_holds_nothing_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let silent = silent.local_addr().map(|address| (silent, address)).expect("it is bound");
    for address in ["127.0.0.1:1".parse().expect("an address"), silent.1] {
        let endpoint = format!("traces.otlp_endpoint=http://{address}");
        let worker = Process::start(&["--set", &endpoint]);
        let mut api = Api::greeted(worker.grpc, "api-1", 1).await;
        let begun = Instant::now();
        // So many that a wait for each, however short, would be noticed.
        for item in 0..2_000 {
            api.start(item, "size:1").await;
            let artifact = api.ready(item).await;
            api.acknowledge(item, &artifact).await;
        }
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
        let asked = Instant::now();
        worker.signal(Signal::TERM);
        let (status, log) = tokio::task::spawn_blocking(|| worker.ended()).await.expect("it ends");
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
        assert!(log.contains("span"), "nobody is told: {log}");
    }
}

#[test]
fn the_configuration_is_printed_with_file_environment_and_flags_in_it() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("worker.toml");
    std::fs::write(&file, "[execution]\nqueue_limit = 3\nnice = 1\n").expect("it is written");
    let file = file.to_str().expect("UTF-8");
    let mut command = command(&["--config", file, "--slots", "7", "--print-config"]);
    let output = command.env("TRIBUTARY_WORKER_EXECUTION_NICE", "2").output().expect("it starts");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{text}");
    for line in ["slots = 7", "queue_limit = 3", "nice = 2", "heartbeat_interval = \"1s\""] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in {text}");
    }
    assert!(text.contains("[TRIBUTARY_WORKER_EXECUTION_SLOTS]"), "{text}");
}

#[test]
fn a_configuration_that_makes_no_sense_is_refused_by_name() {
    for (args, words) in [
        (&["--set", "slots=1"][..], "--set slots: there is no such setting"),
        (&["--slots", "many"], "--slots: \"many\" is no whole number"),
        (&["--grpc", "nowhere"], "--grpc: "),
        (&["--config", "/no/such/file"], "/no/such/file: "),
        (&["--store", "s3://b", "--data-dir", "d"], "both given"),
        (&["--set", "control.heartbeat_timeout=1s"], "heartbeat_timeout must exceed"),
    ] {
        let output = command(args).arg("--rehearse").output().expect("it starts");
        let complaint = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {complaint}");
        assert!(complaint.contains(words), "{args:?}: {complaint}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = taken.local_addr().expect("it is bound").to_string();
    let output = command(&["--rehearse", "--grpc", &address]).output().expect("it starts");
    let complaint = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains(&format!("{address} can't be listened at")), "{complaint}");
}
