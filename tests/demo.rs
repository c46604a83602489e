//! `tributary demo` as a real process: from nothing to answers, again on what is there, and beside
//! others.

mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::server::{PATIENCE, Server, tributary};
use support::{Place, finished, kill};

fn args(place: &Place) -> Vec<String> {
    let data_dir = place.data_dir().to_str().expect("UTF-8").to_owned();
    let args = ["demo", "--http", "127.0.0.1:0", "--history", "30m", "--data-dir"];
    args.map(str::to_owned).into_iter().chain([data_dir]).collect()
}

fn start(place: &Place, temporary: &Path) -> Server {
    let args = args(place);
    Server::start_in(temporary, &args.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_demo_answers_about_now_goes_on_growing_and_leaves_nothing_but_its_data() {
    let place = Place::new();
    let temporary = tempfile::tempdir().expect("a folder can be made");
    let demo = start(&place, temporary.path());
    assert!(demo.took < Duration::from_secs(20), "{:?}", demo.took);
    let targets = demo.value("count(up)").expect("there are targets");
    assert!(targets > 50.0, "{targets}");
    let rate = demo.value("sum(rate(http_requests_total[5m]))").expect("there are requests");
    assert!(rate > 100.0, "{rate}");

    // Samples of later than the start.
    let newest = "max(timestamp(up))";
    let first = demo.value(newest).expect("there is one");
    let begun = Instant::now();
    while demo.value(newest).is_none_or(|newest| newest <= first + 1.0) {
        assert!(begun.elapsed() < PATIENCE, "no new samples came");
        std::thread::sleep(Duration::from_millis(100));
    }

    // The first of the queries to paste, with the client that is told.
    let url = demo.url();
    let query = "sum by (job) (rate(http_requests_total[5m]))";
    let output = tributary(&["query", "--url", &url, "--start", "now-10m", query]).output();
    let (table, _) = finished(output.expect("the binary starts"), 0);
    assert_eq!(table.lines().count(), 6, "a head and five services: {table}");
    assert!(table.contains("{job=\"checkout\"}"), "{table}");

    demo.signal(Signal::INT);
    let (code, text, complaint) = demo.ended();
    assert_eq!(code, Some(0), "{complaint}");
    assert!(text.contains(query) && text.contains(&url), "{text}");
    assert!(complaint.starts_with("making demo data\ndemo data: "), "{complaint}");
    assert_eq!(complaint.lines().count(), 2, "{complaint}");
    assert_eq!(fs::read_dir(temporary.path()).expect("it is there").count(), 0);

    // A second start finds the data and makes only what is missing.
    let before = place.ids();
    let again = start(&place, temporary.path());
    assert!(again.value(newest).expect("there is one") > first);
    again.signal(Signal::TERM);
    let (code, _, complaint) = again.ended();
    assert_eq!((code, complaint.as_str()), (Some(0), ""));
    let after = place.ids();
    let kept = before.iter().filter(|id| after.contains(id)).count();
    assert!(kept > 0 || after.len() < before.len(), "{before:?} {after:?}");
}

#[test]
fn a_demo_that_was_killed_while_it_made_its_data_begins_anew() {
    let place = Place::new();
    let data_dir = place.data_dir();
    let folder = data_dir.to_str().expect("UTF-8");
    let child = tributary(&["demo", "--http", "127.0.0.1:0", "--data-dir", folder])
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the binary starts");
    let begun = Instant::now();
    // In the middle of it: some files are there, and nothing is registered.
    while !place.stored().iter().any(|file| file.contains(".parquet")) {
        assert!(begun.elapsed() < PATIENCE, "it makes nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(child);
    assert!(place.ids().is_empty(), "it was too quick for this test");
    let temporary = tempfile::tempdir().expect("a folder can be made");
    let demo = start(&place, temporary.path());
    assert!(demo.value("count(up)").is_some());
    demo.signal(Signal::INT);
    assert_eq!(demo.ended().0, Some(0));
    let segments = place.ids().len();
    let files = place.stored().iter().filter(|file| file.ends_with(".parquet")).count();
    assert_eq!(files, segments * 2, "nothing of the killed one is left");
}

#[test]
fn a_folder_belongs_to_one_demo_and_to_nobody_else() {
    let place = Place::new();
    let temporary = tempfile::tempdir().expect("a folder can be made");
    let demo = start(&place, temporary.path());
    let complain = |place: &Place| {
        let args = args(place);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        finished(tributary(&args).output().expect("the binary starts"), 2).1
    };
    assert!(complain(&place).contains("another demo is at work"));
    demo.signal(Signal::INT);
    assert_eq!(demo.ended().0, Some(0));

    let other = Place::new();
    let file = other.file("a.txt", "# TYPE a gauge\na 1 1700000000\n# EOF\n");
    other.said(0, "import", &[file.to_str().expect("UTF-8")]);
    assert!(complain(&other).contains("other data than the demo's"));
    assert_eq!(other.ids().len(), 1);
}
