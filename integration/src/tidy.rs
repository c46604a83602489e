//! The house rules, as functions from a tree of files to findings. Reading the tree is here, the
//! rules are beside it; `tests/tidy.rs` holds them against this repository.

mod code;
mod docs;
mod manifest;
mod source;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// Endings of the files the rules speak of. Everything else, such as data, is not read.
const TEXT_ENDINGS: &[&str] = &[
    ".css", ".html", ".js", ".lock", ".md", ".proto", ".rs", ".sh", ".toml", ".ts", ".yaml", ".yml",
];

/// Folders that are not the repository's own text.
const SKIPPED_FOLDERS: &[&str] = &[".git", "node_modules", "target"];

/// The text files of a repository by their path from its root, with `/` between folders.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

/// A rule that is not kept, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, from the root of the repository.
    pub path: String,
    /// The line, counted from one.
    pub line: usize,
    /// What is wrong, as a sentence.
    pub what: String,
}

/// Holds every rule against the tree. The findings are sorted by file and line.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    source::check(tree, &mut findings);
    manifest::check(tree, &mut findings);
    docs::check(tree, &mut findings);
    findings.sort();
    findings.dedup();
    findings
}

impl Tree {
    /// Reads every text file below `root`.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    /// Adds a file, or replaces it.
    #[must_use]
    pub fn with(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }

    /// Takes a file away.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        self.files.remove(path);
        self
    }

    /// The text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Every file, by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
                self.read_folder(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() && is_text(&path) {
                self.files.insert(path, fs::read_to_string(entry.path())?);
            }
        }
        Ok(())
    }
}

/// The scripts in `.ci` have no ending.
fn is_text(path: &str) -> bool {
    path.starts_with(".ci/") || TEXT_ENDINGS.iter().any(|ending| path.ends_with(ending))
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}
