//! Every numbered promise in the code has its sentence in `docs/invariants.md`, and the other way
//! round.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The numbers in `hold(7, …` of a file; the number may stand on the next line.
fn checked(path: &str) -> BTreeSet<u32> {
    let text = read(path);
    let calls = text.split("hold(").skip(1);
    let number = |call: &str| {
        let digits: String = call.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    calls.filter_map(number).collect()
}

/// The rows `| 7 | sentence |` of the document, with the prefix taken off the number.
fn written(prefix: &str) -> Vec<(u32, String)> {
    let text = read("docs/invariants.md");
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        let number = cells.next()?.strip_prefix(prefix)?.parse().ok()?;
        Some((number, cells.next()?.to_owned()))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn every_check_of_the_state_machines_has_a_sentence() {
    let mut checked_there = checked("core-workcoord/src/coordinator/audit.rs");
    checked_there.append(&mut checked("core-workcoord/src/intake/audit.rs"));
    let written: BTreeSet<u32> = written("").into_iter().map(|(number, _)| number).collect();
    assert!(checked_there.len() > 25, "only {} checks were found", checked_there.len());
    assert_eq!(checked_there, written);
}

#[test]
fn every_promise_of_the_simulator_has_its_sentence() {
    let source = read("simulation/src/checker/promises.rs");
    let list = source.split("\npromises! {").nth(1).and_then(|rest| rest.split("\n}").next());
    let mut sentences = Vec::new();
    let mut sentence = String::new();
    for line in list.expect("the list of promises").lines().map(str::trim) {
        match line.strip_prefix("/// ") {
            Some(part) if sentence.is_empty() => sentence.push_str(part),
            Some(part) => sentence.extend([" ", part]),
            None if line.is_empty() => {}
            None => sentences.push(std::mem::take(&mut sentence)),
        }
    }
    let written = written("S");
    assert!(sentences.len() > 40, "only {} promises were found", sentences.len());
    let expected: Vec<(u32, String)> = (1..).zip(sentences).collect();
    assert_eq!(written, expected);
}
