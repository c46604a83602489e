//! Leaves: what of a query runs where the samples are. A leaf is one selector with its range function
//! and, where that is exact, the aggregation around it.
//!
//! A worker makes a [`LeafPart`] of each span of time with a [`LeafRun`]; [`MergeSorted`] makes one
//! frame of all parts. Steps whose window lies inside a span are finished by the worker; what
//! crosses its edge travels as states or samples and is finished by the merge with the same code.
//! The answer has the same bits however the samples were cut. Where samples come from, and how
//! parts travel, is decided elsewhere.

mod merge;
mod part;
mod run;
mod table;

use crate::expr::Grouping;
use crate::matcher::Matcher;
use crate::window::{RangeFunction, Windows};

pub use merge::{LeafFrame, MergeSorted};
pub use part::{Crossing, CrossingSeries, LeafPart, PartValues};
pub use run::LeafRun;
pub use table::{BadPart, PartTable, RowKind};

/// One selector and what is done to its samples on the spot.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// Which series.
    pub matchers: Vec<Matcher>,
    /// The window of every step.
    pub windows: Windows,
    /// What a window comes to.
    pub output: LeafOutput,
    /// What happens to the metric's name.
    pub name: NameRule,
    /// The aggregation over the series that is begun on the spot.
    pub pushed: Option<Pushed>,
}

/// What a leaf makes of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeafOutput {
    /// A value.
    Value(RangeFunction),
    /// The samples as they are, for functions whose parameters change from step to step.
    Samples,
}

/// What happens to the metric's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// It stays.
    Keep,
    /// It goes at the end of the query.
    DropLater,
    /// It goes at once.
    DropNow,
}

/// An aggregation that is begun on the spot. What is emitted is merged to the same bits as if all
/// series had been aggregated in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Pushed {
    /// Which one.
    pub op: PushedOp,
    /// Which series come together.
    pub grouping: Grouping,
}

/// Aggregations that can be begun on a part of the series.
#[derive(Clone, Debug, PartialEq)]
pub enum PushedOp {
    /// One series per group.
    Reduce(crate::aggregate::Reduction),
    /// `count_values`, with the label that takes the value.
    CountValues(String),
    /// `topk` or `bottomk`: only series that can be among the first of their group.
    Rank(crate::aggregate::Rank),
}

/// A span of time, from its first instant up to, not including, its end. `i64::MIN` and
/// `i64::MAX` stand for no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeSpan {
    /// The first instant.
    pub from: i64,
    /// The instant after the last.
    pub to: i64,
}

impl TimeSpan {
    /// All of time.
    pub const ALL: Self = Self { from: i64::MIN, to: i64::MAX };
}

impl Leaf {
    /// The instants of samples that any window needs: after the first, up to the second, both in
    /// milliseconds.
    pub fn needs(&self) -> (i64, i64) {
        let first = self.windows.get(0);
        let last = self.windows.get(self.windows.count.saturating_sub(1));
        (first.start, last.end)
    }

    /// The leaf at those of its steps alone whose windows touch a span, and the number of the first
    /// of them; none where no window does. What comes of it over the span says nothing of where the
    /// query begins and ends, as long as both are far from the span.
    pub fn over(&self, span: TimeSpan) -> Option<(usize, Self)> {
        let touching = run::touching(&self.windows, span);
        if touching.is_empty() {
            return None;
        }
        Some((touching.start, Self { windows: self.windows.part(&touching), ..self.clone() }))
    }
}

#[cfg(test)]
mod tests;
