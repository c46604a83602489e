//! Rules about the text of files: how a file opens, how long it is, what must not stand in it.

use super::code::{has_word, used_paths, without_words};
use super::{Finding, Tree};

/// The most lines a Rust file may have.
const MAX_LINES: usize = 500;

/// Crates that compute and nothing else, by folder.
const PURE_CRATES: &[&str] = &["core-workcoord", "promql"];

/// What a pure crate does not touch, and where it gets the thing from instead.
const IMPURE: &[(&str, &str)] = &[
    ("Instant::now", "the moment comes in with the input"),
    ("time::Instant", "the moment comes in with the input"),
    ("SystemTime", "the moment comes in with the input"),
    ("rand::", "a seed comes in"),
    ("thread_rng", "a seed comes in"),
    ("HashMap", "its order differs from run to run: use BTreeMap"),
    ("HashSet", "its order differs from run to run: use BTreeSet"),
    ("tokio", "drivers await, this crate answers"),
    ("async", "drivers await, this crate answers"),
    ("std::fs", "files belong to the driver"),
    ("std::net", "sockets belong to the driver"),
    ("io::Read", "bytes are read by the driver"),
    ("io::Write", "bytes are written by the driver"),
    ("std::thread", "threads belong to the driver"),
    ("print!", "actions come out, text does not"),
    ("println!", "actions come out, text does not"),
    ("eprint!", "actions come out, text does not"),
    ("eprintln!", "actions come out, text does not"),
];

/// What is not left behind in any crate.
const UNFINISHED: &[&str] = &["todo!", "unimplemented!", "dbg!"];

/// Brings generated protocol types in; their home is the folder `proto`.
const GENERATED: &str = "include_proto!";

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for (path, text) in tree.files() {
        // The lock file is written by cargo.
        if !path.ends_with(".lock") {
            no_trailing_whitespace(path, text, findings);
        }
        if path.ends_with(".rs") {
            opens_with_a_promise(path, text, findings);
            short(path, text, findings);
            let code = without_words(text);
            nothing_unfinished(path, &code, findings);
            generated_types_stay_home(path, &code, findings);
            if is_pure(path) {
                pure(path, &code, findings);
            }
        }
    }
}

fn no_trailing_whitespace(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (line, content) in numbered(text) {
        if content.ends_with(char::is_whitespace) {
            findings.push(Finding::new(path, line, "whitespace at the end of the line"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let last = text.lines().count();
        findings.push(Finding::new(path, last, "the last line is not ended"));
    }
}

fn opens_with_a_promise(path: &str, text: &str, findings: &mut Vec<Finding>) {
    if !text.starts_with("//! ") {
        let what = "the file does not begin with `//!`: what lives here, what is left to others";
        findings.push(Finding::new(path, 1, what));
    }
}

fn short(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let lines = text.lines().count();
    if lines > MAX_LINES {
        let what = format!("{lines} lines, {MAX_LINES} are allowed: there is a second idea inside");
        findings.push(Finding::new(path, lines, what));
    }
}

fn nothing_unfinished(path: &str, code: &str, findings: &mut Vec<Finding>) {
    for (line, content) in numbered(code) {
        for word in UNFINISHED.iter().filter(|word| has_word(content, word)) {
            findings.push(Finding::new(path, line, format!("`{word}` is left behind")));
        }
    }
}

fn generated_types_stay_home(path: &str, code: &str, findings: &mut Vec<Finding>) {
    if path.starts_with("proto/") {
        return;
    }
    for (line, content) in numbered(code) {
        if has_word(content, GENERATED) {
            let what = format!("`{GENERATED}` outside `proto`, the one crate naming such types");
            findings.push(Finding::new(path, line, what));
        }
    }
}

fn is_pure(path: &str) -> bool {
    PURE_CRATES
        .iter()
        .any(|folder| path.strip_prefix(folder).is_some_and(|inside| inside.starts_with("/src/")))
}

fn pure(path: &str, code: &str, findings: &mut Vec<Finding>) {
    let lines = numbered(code).map(|(line, content)| (line, content.to_owned()));
    for (line, content) in lines.chain(used_paths(code)) {
        for (word, instead) in IMPURE.iter().filter(|(word, _)| has_word(&content, word)) {
            let what = format!("`{word}` in a pure crate: {instead}");
            findings.push(Finding::new(path, line, what));
        }
    }
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // `lines` would hide a carriage return, which is whitespace at the end of a line too.
    text.split('\n').enumerate().map(|(index, content)| (index + 1, content))
}
