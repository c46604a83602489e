//! What is written down while a story is told, and what is made of it in the end.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tributary_api::error::QueryError;

use super::fault::Kind;

/// What is found when everything is quiet again, one line a table that is not empty.
pub(super) type Leftovers = Vec<String>;

/// How it went for one client.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// When it asked.
    pub(super) asked: Duration,
    /// Which life of the API node it asked.
    pub(super) life: u64,
    /// Its last event, and when it came.
    pub(super) end: Option<(Duration, End)>,
}

/// A last event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    /// The right answer.
    Answered,
    /// Something else.
    Wrong(String),
    /// An error.
    Failed(QueryError),
    /// The client did not wait for it.
    Left,
}

/// The book itself, shared by everybody in the story.
#[derive(Clone, Default)]
pub(super) struct Book(Arc<Mutex<Pages>>);

#[derive(Default)]
pub(super) struct Pages {
    pub(super) log: Vec<String>,
    pub(super) clients: BTreeMap<usize, Entry>,
    pub(super) violations: Vec<String>,
    /// Of every host that was looked at in the end.
    pub(super) looks: BTreeMap<String, Leftovers>,
}

impl Book {
    pub(super) fn open(&self) -> MutexGuard<'_, Pages> {
        // Nothing in the lock can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line, with the time.
    pub(super) fn note(&self, at: Duration, words: &str) {
        self.open().log.push(line(at, words));
    }

    /// Something that must never happen.
    pub(super) fn violation(&self, at: Duration, words: &str) {
        let mut pages = self.open();
        pages.log.push(line(at, &format!("VIOLATION: {words}")));
        pages.violations.push(words.to_owned());
    }
}

fn line(at: Duration, words: &str) -> String {
    format!("{:>9.3} {words}", at.as_secs_f64())
}

/// What a story came to.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Its seed.
    pub seed: u64,
    /// Everything that must never happen and did.
    pub violations: Vec<String>,
    /// What happened, in order.
    pub log: Vec<String>,
    /// Of everything that happened, and of every message on the network where that was listened to.
    pub hash: u64,
    /// Faults by kind.
    pub faults: BTreeMap<Kind, u32>,
    /// How queries ended.
    pub ends: BTreeMap<String, u32>,
    /// How long it took in the story.
    pub time: Duration,
}

impl Verdict {
    /// Closes a book.
    pub(super) fn of(seed: u64, pages: &Pages, heard: u64, time: Duration) -> Self {
        let mut hash = DefaultHasher::new();
        (&pages.log, heard).hash(&mut hash);
        Self {
            seed,
            violations: pages.violations.clone(),
            log: pages.log.clone(),
            hash: hash.finish(),
            time,
            ..Self::default()
        }
    }

    /// Adds another story's figures.
    pub fn add(&mut self, other: &Self) {
        for (kind, count) in &other.faults {
            *self.faults.entry(*kind).or_default() += count;
        }
        for (end, count) in &other.ends {
            *self.ends.entry(end.clone()).or_default() += count;
        }
        self.time += other.time;
    }
}
