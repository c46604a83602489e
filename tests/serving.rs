//! `tributary api` and `tributary up` as real processes: what they serve, what they say when they can't,
//! and every way they leave.

mod support;

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::server::{PATIENCE, Server, tributary};
use support::{Place, finished};

/// Samples of the last minutes, so that a query of now finds them.
fn text(value: u32) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("the clock is set").as_secs();
    let samples = (0..10).map(|n| format!("load{{n=\"{n}\"}} {value} {}\n", now - 20));
    let samples: String = samples.collect();
    format!("# TYPE load gauge\n{samples}# EOF\n")
}

fn imported(value: u32) -> Place {
    let place = Place::new();
    import(&place, value);
    place
}

fn import(place: &Place, value: u32) {
    let file = place.file("metrics.txt", text(value));
    place.said(0, "import", &["--shards", "2", file.to_str().expect("UTF-8")]);
}

fn data_dir(place: &Place) -> String {
    place.data_dir().to_str().expect("UTF-8").to_owned()
}

#[test]
fn a_node_and_a_worker_answer_and_leave_in_any_order() {
    let place = imported(3);
    let data_dir = data_dir(&place);
    let cache = place.file("cache", "");
    fs::remove_file(&cache).expect("it was just made");
    let cache = cache.to_str().expect("UTF-8");
    let local = ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let mut args =
        vec!["worker", "--worker-id", "w", "--data-dir", &data_dir, "--cache-dir", cache];
    args.extend(local);
    let worker = Server::start(&args);
    let grpc = worker.address("grpc").to_string();
    let journal = place.file("journal", "");
    fs::remove_file(&journal).expect("it was just made");
    let journal = journal.to_str().expect("UTF-8").to_owned();
    let args = ["api", "--data-dir", &data_dir, "--http", "127.0.0.1:0", "--worker", &grpc];
    let api = Server::start(&[&args[..], &["--journal", &journal]].concat());
    assert_eq!(api.ready, format!("ready http={}\n", api.address("http")));

    assert_eq!(api.value("sum(load)"), Some(30.0));
    let output = tributary(&["query", "--url", &api.url(), "--json", "count(load)"]).output();
    let (frames, _) = finished(output.expect("the binary starts"), 0);
    assert!(frames.contains("\"value\":10"), "{frames}");

    worker.signal(Signal::TERM);
    assert_eq!(worker.ended().0, Some(0));
    api.signal(Signal::TERM);
    let (code, text, _) = api.ended();
    assert_eq!((code, text.as_str()), (Some(0), ""));
    let journals: Vec<_> = fs::read_dir(&journal).expect("it was made").collect();
    assert_eq!(journals.len(), 1);
    let file = journals[0].as_ref().expect("it can be read").path();
    let output = tributary(&["replay", file.to_str().expect("UTF-8")]).output();
    finished(output.expect("the binary starts"), 0);
}

#[test]
fn a_node_without_workers_is_ready_and_a_second_signal_ends_it_at_once() {
    let place = imported(1);
    let data_dir = data_dir(&place);
    let args = ["api", "--data-dir", &data_dir, "--http", "127.0.0.1:0"];
    let api = Server::start(&[&args[..], &["--set", "shutdown.timeout=30s"]].concat());
    assert_eq!(api.get("/readyz").0, 200);
    // This one waits for a worker that never comes.
    let query = tributary(&["query", "--url", &api.url(), "--json", "sum(load)"])
        .stdout(std::process::Stdio::piped())
        .spawn();
    let mut query = query.expect("the binary starts");
    let mut frames = std::io::BufReader::new(query.stdout.take().expect("it is piped"));
    let mut line = String::new();
    while !line.contains("waiting_scale_up") {
        line.clear();
        let read = std::io::BufRead::read_line(&mut frames, &mut line).expect("frames come");
        assert_ne!(read, 0, "the query ended: {line}");
    }
    let begun = Instant::now();
    api.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(200));
    api.signal(Signal::TERM);
    assert_eq!(api.ended().0, Some(143));
    assert!(begun.elapsed() < Duration::from_secs(10));
    // Its answer broke off, or the node's last word was just in time.
    let code = query.wait().expect("it ends").code();
    assert!(matches!(code, Some(2 | 3)), "{code:?}");
}

#[test]
fn settings_that_make_no_sense_are_told() {
    let complaint =
        |args: &[&str]| finished(tributary(args).output().expect("the binary starts"), 2).1;
    assert!(complaint(&["api"]).contains("data_dir or catalog is needed"));
    assert!(complaint(&["api", "--data-dir", "/nowhere/at/all"]).contains("/nowhere/at/all"));
    assert!(complaint(&["api", "--worker", "no-port"]).contains("host:port"));
    assert!(complaint(&["api", "--discovery", "oracle:x"]).contains("discovery"));
    assert!(complaint(&["api", "--set", "query.timeout"]).contains("KEY=VALUE"));
    assert!(complaint(&["up", "--data-dir", "/nowhere/at/all"]).contains("/nowhere/at/all"));
    let output =
        tributary(&["api", "--print-config", "--worker", "a:1", "--worker", "b:2"]).output();
    let (text, _) = finished(output.expect("the binary starts"), 0);
    assert!(text.contains("workers = [\"a:1\", \"b:2\"]"), "{text}");
}

#[test]
fn a_cluster_in_one_process_serves_a_folder_and_what_comes_into_it() {
    let place = imported(2);
    let temporary = tempfile::tempdir().expect("a folder can be made");
    let data_dir = data_dir(&place);
    let args = ["up", "--data-dir", &data_dir, "--http", "127.0.0.1:0", "--workers", "2"];
    let up = Server::start_in(temporary.path(), &args);
    assert_eq!(up.value("sum(load)"), Some(20.0));

    import(&place, 5);
    let begun = Instant::now();
    while up.value("sum(load)") != Some(50.0) {
        assert!(begun.elapsed() < PATIENCE, "what was imported later is not seen");
        std::thread::sleep(Duration::from_millis(20));
    }
    up.signal(Signal::INT);
    let (code, text, complaint) = up.ended();
    assert_eq!((code, text.as_str(), complaint.as_str()), (Some(0), "", ""));
    let left: Vec<_> = fs::read_dir(temporary.path()).expect("it is there").collect();
    assert!(left.is_empty(), "{left:?}");
}
