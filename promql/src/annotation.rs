//! Annotations: what an evaluation has to say besides its answer, in Prometheus' words. Equal ones
//! are told once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::calendar::Date;
use crate::number::{in_short, in_two_digits};
use crate::span::{LineColumn, Span};

/// The most annotations an evaluation keeps: the first in their order, whichever came first. Some
/// name a value of every step, and nobody reads thousands.
const MOST: usize = 1_000;

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

/// Classic histograms whose buckets had to be made monotonic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forced {
    /// First and last instant, in milliseconds.
    pub times: (i64, i64),
    /// The lowest and the highest bound of the buckets that were changed.
    pub buckets: (f64, f64),
    /// The largest change.
    pub max_diff: f64,
    /// How many histograms; one series counts once for every step.
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
            .and_modify(|held| match (&mut held.forced, forced) {
                // Details are gathered at the first place; without any, the last place is told.
                (Some(mine), Some(theirs)) => {
                    *mine = mine.joined(theirs);
                    held.span = held.span.min(span);
                }
                (_, theirs) => {
                    held.forced = held.forced.or(theirs);
                    held.span = held.span.max(span);
                }
            })
            .or_insert(note);
        if self.notes.len() > MOST {
            self.notes.pop_last();
        }
    }
}

impl Forced {
    /// Both together.
    pub fn joined(self, other: Self) -> Self {
        Self {
            times: (self.times.0.min(other.times.0), self.times.1.max(other.times.1)),
            buckets: (self.buckets.0.min(other.buckets.0), self.buckets.1.max(other.buckets.1)),
            max_diff: self.max_diff.max(other.max_diff),
            count: self.count + other.count,
        }
    }

    fn text(self) -> String {
        let Self { times, buckets, max_diff, count } = self;
        let (lowest, highest) = (in_short(buckets.0), in_short(buckets.1));
        let max_diff = in_two_digits(max_diff);
        let time = |millis: i64| Date::of_unix_seconds(millis / 1000).rfc3339();
        let (first, last) = (time(times.0), time(times.1));
        format!(
            ", from buckets {lowest} to {highest}, with a max diff of {max_diff}, \
             over {count} samples from {first} to {last}"
        )
    }
}

impl Note {
    fn text(&self, level: Level, message: &str, query: &str) -> String {
        let kind = match level {
            Level::Warning => "warning",
            Level::Info => "info",
        };
        let mut text = format!("PromQL {kind}: {message}");
        let Some(place) = LineColumn::of(query, self.span.start) else { return text };
        if let Some(forced) = self.forced {
            text.push_str(&forced.text());
        }
        let _ = write!(text, " ({place})");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_annotations_are_told_once_and_warnings_apart_from_infos() {
        let mut notes = Annotations::default();
        notes.warn(Span::new(4, 5), "odd");
        notes.warn(Span::new(0, 1), "odd");
        notes.info(Span::new(0, 1), "odd");
        assert_eq!(notes.texts(Level::Warning, "a + b"), ["PromQL warning: odd (1:5)"]);
        assert_eq!(notes.texts(Level::Info, "a + b"), ["PromQL info: odd (1:1)"]);
        assert_eq!(notes.texts(Level::Info, ""), ["PromQL info: odd"]);
    }

    #[test]
    fn forced_buckets_are_gathered_into_one_info() {
        let forced = |t, buckets, max_diff| Forced { times: (t, t), buckets, max_diff, count: 1 };
        let mut notes = Annotations::default();
        notes.forced(Span::new(3, 9), "fixed", forced(1_735_084_800_999, (5.0, 100.0), 3.0));
        let mut others = Annotations::default();
        others.forced(Span::new(5, 9), "fixed", forced(1_703_462_400_000, (2.5, 75.0), 123.0));
        notes.merge(others);
        assert_eq!(
            notes.texts(Level::Info, "up * rate(x)"),
            ["PromQL info: fixed, from buckets 2.5 to 100, with a max diff of 1.2e+02, over 2 \
              samples from 2023-12-25T00:00:00Z to 2024-12-25T00:00:00Z (1:4)"]
        );
    }
}
