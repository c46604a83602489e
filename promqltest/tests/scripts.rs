//! Scripts that must pass in every way: our own, and Prometheus' corpus where it lies beside the
//! repository.

use std::path::{Path, PathBuf};

use tributary_promqltest::{Report, Script, find_scripts, local_ways, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn run_all(folder: &Path, seeds: u64) -> Report {
    let ways = local_ways(seeds);
    let mut report = Report::default();
    for path in find_scripts(&[folder.to_owned()]).expect("the scripts are found") {
        let text = std::fs::read_to_string(&path).expect("the script is read");
        let script = Script::parse(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        report.files.push(run(&path.display().to_string(), &script, &ways, || {}));
    }
    report
}

fn assert_passes(report: &Report) {
    let mut text = Vec::new();
    report.write(&mut text).expect("memory takes it");
    assert_eq!(report.failed(), 0, "{}", String::from_utf8_lossy(&text));
    assert!(report.passed() > 0, "no case was found");
}

#[test]
fn our_own_scripts_pass_in_every_way() {
    assert_passes(&run_all(&root().join("promql/tests/golden"), 8));
}

#[test]
fn the_corpus_passes_in_every_way_where_it_is_at_hand() {
    let corpus = root().join("../shared/promqltest");
    if !corpus.is_dir() {
        eprintln!("skipped: no corpus beside the repository");
        return;
    }
    let report = run_all(&corpus, 2);
    assert_passes(&report);
    assert!(report.passed() >= 841, "only {} passed", report.passed());
}
