//! `tributary promqltest --workers`: scripts through a real cluster of processes.

mod support;

use std::fs;
use std::path::Path;

use support::server::tributary;
use support::{Place, finished};

/// Runs scripts with temporary files in a folder of their own. Gives what was printed.
#[track_caller]
fn run(workers: &str, code: i32, paths: &[&Path]) -> String {
    let temporary = tempfile::tempdir().expect("a folder can be made");
    let mut command = tributary(&["promqltest", "--workers", workers]);
    let output = command.args(paths).env("TMPDIR", temporary.path()).output();
    let (text, complaint) = finished(output.expect("the binary starts"), code);
    assert_eq!(complaint, "");
    let left: Vec<_> = fs::read_dir(temporary.path()).expect("it is there").collect();
    assert!(left.is_empty(), "{left:?}");
    text
}

fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("promql/tests/golden").join(name)
}

#[test]
fn scripts_give_the_same_through_any_number_of_workers() {
    let scripts = [golden("overlapping_loads.test"), golden("offsets.test")];
    let [one, other] = [&scripts[0], &scripts[1]].map(|script| script.as_path());
    let alone = run("1", 0, &[one, other]);
    assert!(alone.lines().last().is_some_and(|line| line.ends_with(" 0 failed, 0 skipped")));
    assert_eq!(run("3", 0, &[one, other]), alone);
}

#[test]
fn a_case_that_fails_in_a_cluster_is_reported() {
    let place = Place::new();
    let script = "load 1m\n  a 1+1x10\n\neval instant at 5m sum(a)\n  {} 6\n\n\
                  eval instant at 5m a\n  a 7\n";
    let script = place.file("wrong.test", script);
    let text = run("2", 1, &[&script]);
    assert!(text.contains("instant at 5m a"), "{text}");
    assert!(text.ends_with("\n1 passed, 1 failed, 0 skipped\n"), "{text}");
    let output = tributary(&["promqltest", "--workers", "0", "x"]).output();
    finished(output.expect("the binary starts"), 2);
}
