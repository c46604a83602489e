//! What a report says of runs that are made up.

use std::time::Duration;

use super::*;

fn report(outcomes: Vec<Outcome>, violations: Vec<Violation>) -> Report {
    let second = Duration::from_secs;
    let asked = outcomes.into_iter().zip(1..).map(|(outcome, at)| Asked {
        question: 0,
        class: "rate",
        api: 0,
        from: second(at),
        to: second(at) + Duration::from_millis(40),
        first_result: None,
        is_eager: true,
        outcome,
    });
    let fault = Happened {
        kind: Kind::KillWorker,
        what: "worker-1 <b>".to_owned(),
        from: second(2),
        healed: second(3),
        recovered: second(4),
        drains: vec![second(1)],
    };
    let store = "a <store>".to_owned();
    let (kinds, without) = (vec![Kind::KillWorker], vec![(Kind::DiskFull, "no root")]);
    Report {
        seed: 7,
        ran: second(10),
        apis: 1,
        clients: 2,
        machine: Machine { kinds, without, links: "a <proxy>".to_owned(), store, cores: 2 },
        questions: vec!["#0 <up>".to_owned()],
        faults: vec![fault],
        asked: asked.collect(),
        violations,
        before: Footprints::new(),
        after: Footprints::new(),
        api_metrics: Metrics::default(),
    }
}

#[test]
fn a_good_run_says_so_and_a_bad_one_says_why() {
    let good = report(vec![Outcome::Right, Outcome::Left, Outcome::Error("x".into())], vec![]);
    assert!(good.is_good() && good.verdict().contains("1 right, 0 wrong, 0 hung"));
    let page = page::of(&good);
    assert!(page.contains("Every promise was kept."));
    assert!(page.contains("worker-1 &lt;b&gt;") && !page.contains("<b> at"), "texts are escaped");
    assert!(page.contains("disk-full (no root)"));
    assert!(page.contains("Links fall ill by a &lt;proxy&gt;."));
    assert!(page.contains("The store is a &lt;store&gt;."));
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing is loaded");

    let what = Violation::new(Promise::RightAnswers, Duration::from_secs(5), "other bytes");
    let bad = report(vec![Outcome::Wrong("other bytes".into())], vec![what]);
    assert!(!bad.is_good() && bad.verdict().starts_with("PROMISES WERE BROKEN"));
    let page = page::of(&bad);
    assert!(page.contains("Promises were broken.") && page.contains("other bytes"));
    assert!(page.contains("class=\"wrong\""));
}

#[test]
fn figures_are_counted_by_kind() {
    let report = report(vec![Outcome::Right; 6], vec![]);
    let json = report.json();
    assert_eq!(json["kinds"][0]["faults"], 1);
    // Those that ended while it lasted.
    assert_eq!(json["kinds"][0]["queries"], 2);
    assert_eq!(json["queries"]["right"], 6);
    assert_eq!(json["drain_ms"]["p50"], 1000.0);
    assert_eq!(json["latency_ms"]["otherwise"]["count"], 3);
}

#[test]
fn both_files_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let report = report(vec![Outcome::Right], vec![]);
    report.write(&folder.path().join("new")).unwrap();
    let text = std::fs::read_to_string(folder.path().join("new/report.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), report.json());
    assert!(folder.path().join("new/report.html").exists());
}
