//! Rules about what is written for people: the README's map and the notes on decisions.

use std::collections::BTreeMap;

use super::manifest::crate_folders;
use super::{Finding, Tree};

const README: &str = "README.md";
const DECISIONS: &str = "docs/decisions/";

/// What every note on a decision tells, in this order.
const NOTE_PARTS: &[&str] = &["## Context", "## Choice", "## Consequence"];

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    readme_names_every_crate(tree, findings);
    decisions_have_their_parts(tree, findings);
    decisions_are_numbered_once(tree, findings);
}

fn readme_names_every_crate(tree: &Tree, findings: &mut Vec<Finding>) {
    let Some(readme) = tree.text(README) else {
        findings.push(Finding::new(README, 1, "there is no README"));
        return;
    };
    for folder in crate_folders(tree).filter(|folder| !folder.is_empty()) {
        if !readme.contains(&format!("`{folder}/`")) {
            let what = format!("the code map does not name the crate folder `{folder}/`");
            findings.push(Finding::new(README, 1, what));
        }
    }
}

/// The notes with their names, the folder taken off.
fn notes(tree: &Tree) -> impl Iterator<Item = (&str, &str, &str)> {
    tree.files().filter_map(|(path, text)| Some((path, path.strip_prefix(DECISIONS)?, text)))
}

fn decisions_have_their_parts(tree: &Tree, findings: &mut Vec<Finding>) {
    for (path, _, text) in notes(tree) {
        if !text.starts_with("# ") {
            findings.push(Finding::new(path, 1, "the note does not begin with its title"));
        }
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        for part in NOTE_PARTS.iter().filter(|part| !headings.contains(part)) {
            let last = text.lines().count().max(1);
            findings.push(Finding::new(path, last, format!("the note has no `{part}`")));
        }
    }
}

fn decisions_are_numbered_once(tree: &Tree, findings: &mut Vec<Finding>) {
    let mut taken: BTreeMap<&str, &str> = BTreeMap::new();
    for (path, name, _) in notes(tree) {
        let number = name.split('-').next().unwrap_or(name);
        if number.len() != 4 || !number.bytes().all(|b| b.is_ascii_digit()) {
            findings.push(Finding::new(path, 1, "a note is named NNNN-title.md"));
        } else if let Some(other) = taken.insert(number, name) {
            findings.push(Finding::new(path, 1, format!("the number is taken by {other}")));
        }
    }
}
