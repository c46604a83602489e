//! Annotations: what an evaluation has to say besides its answer, in Prometheus' words. Equal ones
//! are told once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::span::{LineColumn, Span};

/// How much an annotation matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The answer may not be what was asked for.
    Warning,
    /// Something is unusual.
    Info,
}

/// The annotations of one evaluation, in a fixed order.
#[derive(Clone, Debug, Default)]
pub struct Annotations {
    /// By level and message: where it was met first, and details that were gathered.
    notes: BTreeMap<(Level, String), Note>,
}

#[derive(Clone, Debug)]
struct Note {
    span: Span,
    forced: Option<Forced>,
}

/// Buckets of a classic histogram that had to be made monotonic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forced {
    /// First and last instant, in milliseconds.
    pub times: (i64, i64),
    /// The lowest and the highest bound among the buckets.
    pub buckets: (f64, f64),
    /// The largest change.
    pub max_diff: f64,
    /// In how many samples.
    pub count: u64,
}

impl Annotations {
    /// Adds a warning.
    pub fn warn(&mut self, span: Span, message: impl Into<String>) {
        self.add(Level::Warning, span, message.into(), None);
    }

    /// Adds an info.
    pub fn info(&mut self, span: Span, message: impl Into<String>) {
        self.add(Level::Info, span, message.into(), None);
    }

    /// Adds the info that buckets had to be made monotonic.
    pub fn forced(&mut self, span: Span, message: impl Into<String>, forced: Forced) {
        self.add(Level::Info, span, message.into(), Some(forced));
    }

    /// Takes in the annotations of another part of the evaluation.
    pub fn merge(&mut self, other: Self) {
        for ((level, message), note) in other.notes {
            self.add(level, note.span, message, note.forced);
        }
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// The annotations of one level as users see them, with their places in the query.
    pub fn texts(&self, level: Level, query: &str) -> Vec<String> {
        let notes = self.notes.iter().filter(|((of, _), _)| *of == level);
        notes.map(|((level, message), note)| note.text(*level, message, query)).collect()
    }

    fn add(&mut self, level: Level, span: Span, message: String, forced: Option<Forced>) {
        let note = Note { span, forced };
        self.notes
            .entry((level, message))
            .and_modify(|held| {
                // The first place is told, whichever part of the query was evaluated first.
                held.span = held.span.min(span);
                held.forced = match (held.forced, forced) {
                    (Some(mine), Some(theirs)) => Some(mine.joined(theirs)),
                    (mine, theirs) => mine.or(theirs),
                };
            })
            .or_insert(note);
    }
}

impl Forced {
    fn joined(self, other: Self) -> Self {
        Self {
            times: (self.times.0.min(other.times.0), self.times.1.max(other.times.1)),
            buckets: (self.buckets.0.min(other.buckets.0), self.buckets.1.max(other.buckets.1)),
            max_diff: self.max_diff.max(other.max_diff),
            count: self.count + other.count,
        }
    }
}

impl Note {
    fn text(&self, level: Level, message: &str, query: &str) -> String {
        let kind = match level {
            Level::Warning => "warning",
            Level::Info => "info",
        };
        let mut text = format!("PromQL {kind}: {message}");
        if let Some(forced) = self.forced {
            text.push_str(&crate::annotation::forced_text(forced));
        }
        if let Some(place) = LineColumn::of(query, self.span.start) {
            let _ = write!(text, " ({place})");
        }
        text
    }
}

fn forced_text(forced: Forced) -> String {
    let Forced { times, buckets, max_diff, count } = forced;
    format!(
        ", from buckets {} to {}, with a max diff of {max_diff:.2e}, over {count} samples from {} to {}",
        buckets.0, buckets.1, times.0, times.1
    )
}
