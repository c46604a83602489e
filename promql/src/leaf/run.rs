//! A leaf at work: series in, one by one, and a part out.

use std::ops::Range;

use super::part::{Crossing, CrossingSeries, LeafPart, PartValues, SAMPLES_PER_STATE};
use super::{Leaf, LeafOutput, NameRule, PushedOp, TimeSpan};
use crate::aggregate::{Groups, keep_ranked};
use crate::eval::EvalError;
use crate::frame::{Row, nothing};
use crate::labels::Labels;
use crate::limits::{EvalLimits, Tally};
use crate::window::{ABSENT, Fold, RangeFunction, Samples, Windows, is_absent, slide_unless};

/// The first step whose window does not hold. Windows move with time: those before a bound come
/// first.
fn first(windows: &Windows, holds: &dyn Fn(i64, i64) -> bool) -> usize {
    partition(windows.count, |step| {
        let window = windows.get(step);
        holds(window.start, window.end)
    })
}

/// Steps whose windows touch a span.
pub(super) fn touching(windows: &Windows, span: TimeSpan) -> Range<usize> {
    let from = first(windows, &|_, end| end < span.from);
    let to = first(windows, &|start, _| start < span.to - 1);
    from..to.max(from)
}

/// A leaf over the samples of one span.
#[derive(Debug)]
pub struct LeafRun<'a> {
    leaf: &'a Leaf,
    limits: &'a EvalLimits,
    part: LeafPart,
    /// The values of the series in hand.
    values: Vec<f64>,
    series: u64,
    samples: u64,
    held: u64,
    always_states: bool,
    tally: Tally,
}

impl<'a> LeafRun<'a> {
    /// Begins with a span that holds all samples of its series between its ends.
    pub fn new(leaf: &'a Leaf, span: TimeSpan, place: u32, limits: &'a EvalLimits) -> Self {
        let first = |holds: &dyn Fn(i64, i64) -> bool| first(&leaf.windows, holds);
        let touching = touching(&leaf.windows, span);
        let complete = match leaf.output {
            LeafOutput::Value(_) => {
                let from = first(&|start, _| start < span.from.saturating_sub(1));
                let to = first(&|_, end| end < span.to);
                from..to.max(from)
            }
            LeafOutput::Samples => touching.start..touching.start,
        };
        let steps = complete.len();
        let values = match &leaf.pushed {
            Some(pushed) => match &pushed.op {
                PushedOp::Reduce(reduction) => PartValues::Groups(Groups::new(*reduction, steps)),
                PushedOp::CountValues(_) => PartValues::Groups(Groups::counting(steps)),
                PushedOp::Rank(_) => PartValues::Rows(Vec::new()),
            },
            None => PartValues::Rows(Vec::new()),
        };
        let part = LeafPart {
            span,
            place,
            touching,
            complete,
            values,
            crossing: Vec::new(),
            metrics: std::collections::BTreeSet::new(),
        };
        let values = nothing(steps);
        Self {
            leaf,
            limits,
            part,
            values,
            series: 0,
            samples: 0,
            held: 0,
            always_states: false,
            tally: limits.tally(),
        }
    }

    /// Hands over states even where samples would be smaller, so that tests see more of them.
    pub fn with_states_always(mut self) -> Self {
        self.always_states = true;
        self
    }

    /// Takes in the samples of one series within the span, in time order. A series comes once.
    pub fn push(&mut self, labels: &Labels, samples: Samples<'_>) -> Result<(), EvalError> {
        self.push_unless(labels, samples, &|| false).map(|_| ())
    }

    /// The same, but stops within milliseconds where it is told to, however long the windows of the
    /// series are. False then: there is no use in going on.
    pub fn push_unless(
        &mut self,
        labels: &Labels,
        samples: Samples<'_>,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<bool, EvalError> {
        self.series += 1;
        self.samples += samples.len() as u64;
        self.limits.series(self.series)?;
        self.limits.samples(self.samples)?;
        match self.leaf.output {
            LeafOutput::Value(function) => {
                if !self.push_complete(function, labels, samples, is_cancelled)? {
                    return Ok(false);
                }
                self.push_crossing(function, labels, samples)?;
            }
            LeafOutput::Samples => {
                let (after, up_to) = self.leaf.needs();
                self.cross(labels, unmarked(samples.within(after, up_to)))?;
            }
        }
        Ok(true)
    }

    /// The part, all series having been taken in.
    pub fn finish(mut self) -> LeafPart {
        self.part.crossing.sort_by(|a, b| a.labels.cmp(&b.labels));
        if let PartValues::Rows(rows) = &mut self.part.values {
            rows.sort_by(|a, b| a.labels.cmp(&b.labels));
            if let Some(pushed) = &self.leaf.pushed
                && let PushedOp::Rank(rank) = &pushed.op
            {
                keep_ranked(rows, &pushed.grouping, |_| *rank);
            }
        }
        self.part
    }

    fn push_complete(
        &mut self,
        function: RangeFunction,
        labels: &Labels,
        samples: Samples<'_>,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<bool, EvalError> {
        if self.part.complete.is_empty() {
            return Ok(true);
        }
        let windows = self.leaf.windows.part(&self.part.complete);
        if function.looks_at_all() {
            self.tally.window_samples(windows.samples_in_all(samples.ts))?;
        }
        if !slide_unless(function, samples, windows, &mut self.values, is_cancelled) {
            return Ok(false);
        }
        if self.values.iter().all(|value| is_absent(*value)) {
            return Ok(true);
        }
        if function.wants_counters() {
            self.part
                .metrics
                .insert((labels.metric().to_owned(), labels.value("__type__").to_owned()));
        }
        let labels = named(self.leaf.name, labels);
        let drop_name = self.leaf.name != NameRule::Keep;
        match (&mut self.part.values, &self.leaf.pushed) {
            (PartValues::Groups(groups), Some(pushed)) => {
                match &pushed.op {
                    PushedOp::CountValues(label) => {
                        let grouping = &pushed.grouping;
                        groups.count_values(
                            grouping,
                            label,
                            &labels,
                            &self.values,
                            0,
                            self.limits,
                        )?;
                    }
                    _ => groups.add(&pushed.grouping, &labels, drop_name, &self.values, 0),
                }
                groups.check(self.limits)?;
            }
            (PartValues::Rows(rows), _) => {
                self.held += self.values.len() as u64;
                self.limits.values(self.held)?;
                rows.push(Row { labels, drop_name, values: self.values.clone() });
            }
            (PartValues::Groups(_), None) => unreachable!("groups are made for an aggregation"),
        }
        Ok(true)
    }

    fn push_crossing(
        &mut self,
        function: RangeFunction,
        labels: &Labels,
        samples: Samples<'_>,
    ) -> Result<(), EvalError> {
        let sides = self.part.crossing_steps();
        let steps: usize = sides.iter().map(Range::len).sum();
        if steps == 0 || samples.is_empty() {
            return Ok(());
        }
        let needed = sides.clone().map(|side| self.samples_of(&side, samples));
        let count: usize = needed.iter().map(Range::len).sum();
        if count == 0 {
            return Ok(());
        }
        let are_smaller = steps * SAMPLES_PER_STATE >= count && !self.always_states;
        if function.looks_at_all() || are_smaller {
            let (mut ts, mut values) = (Vec::with_capacity(count), Vec::with_capacity(count));
            let mut next = 0;
            for needed in needed {
                let needed = needed.start.max(next)..needed.end.max(next);
                next = needed.end;
                let samples = samples.part(needed);
                for (t, v) in samples.iter() {
                    if !is_absent(v) || function.sees_marks() {
                        ts.push(t);
                        values.push(v);
                    }
                }
            }
            return self.cross(labels, (ts, values));
        }
        let mut states = Vec::with_capacity(steps);
        for step in sides.into_iter().flatten() {
            let window = self.leaf.windows.get(step);
            let inside = samples.within(window.start, window.end);
            if !inside.is_empty() {
                let mut fold = Fold::new(function);
                fold.extend(function, inside);
                states.push((step, fold));
            }
        }
        self.held += (states.len() * SAMPLES_PER_STATE) as u64;
        self.limits.values(self.held)?;
        let crossing = Crossing::States(states);
        self.part.crossing.push(CrossingSeries { labels: labels.clone(), crossing });
        Ok(())
    }

    fn cross(&mut self, labels: &Labels, samples: (Vec<i64>, Vec<f64>)) -> Result<(), EvalError> {
        if samples.0.is_empty() {
            return Ok(());
        }
        self.held += samples.0.len() as u64;
        self.limits.values(self.held)?;
        let crossing = Crossing::Samples(samples.0, samples.1);
        self.part.crossing.push(CrossingSeries { labels: labels.clone(), crossing });
        Ok(())
    }

    /// The samples that windows of these steps need.
    fn samples_of(&self, steps: &Range<usize>, samples: Samples<'_>) -> Range<usize> {
        if steps.is_empty() {
            return 0..0;
        }
        let (first, last) =
            (self.leaf.windows.get(steps.start), self.leaf.windows.get(steps.end - 1));
        let from = samples.ts.partition_point(|t| *t <= first.start);
        from..samples.ts.partition_point(|t| *t <= last.end).max(from)
    }
}

/// The labels after the function.
pub(super) fn named(rule: NameRule, labels: &Labels) -> Labels {
    match rule {
        NameRule::Keep | NameRule::DropLater => labels.clone(),
        NameRule::DropNow => labels.without_metadata(),
    }
}

/// The samples without staleness marks.
fn unmarked(samples: Samples<'_>) -> (Vec<i64>, Vec<f64>) {
    samples.iter().filter(|(_, v)| v.to_bits() != ABSENT.to_bits()).unzip()
}

/// How many of the steps, from the first, a condition holds for.
fn partition(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
