//! All parts of a leaf as one: complete steps side by side, states and samples that crossed edges
//! joined in time order and finished, both kinds in one aggregation. Parts may arrive in any order;
//! they are merged in the order of their spans.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::part::{Crossing, LeafPart, PartValues};
use super::run::named;
use super::{Leaf, LeafOutput, NameRule, PushedOp, TimeSpan};
use crate::aggregate::Groups;
use crate::answer::Points;
use crate::eval::EvalError;
use crate::frame::{Frame, Row, SameLabels, nothing};
use crate::labels::Labels;
use crate::limits::{EvalLimits, Tally};
use crate::window::{ABSENT, Fold, RangeFunction, Samples, is_absent, slide};

/// The parts of one leaf, merged in time order.
#[derive(Clone, Debug)]
pub struct MergeSorted {
    leaf: Leaf,
    limits: EvalLimits,
    /// Spans of parts that have not arrived.
    missing: Vec<(TimeSpan, u32)>,
    /// Those that have, by span and place.
    parts: Vec<LeafPart>,
}

/// The values of a leaf at some of its steps.
#[derive(Clone, Debug)]
pub struct LeafFrame {
    /// The values.
    pub frame: Frame,
    /// Metrics that had values, with their type label, for functions whose annotations ask.
    pub metrics: BTreeSet<(String, String)>,
}

impl MergeSorted {
    /// Waits for parts of these spans and places.
    pub fn new(leaf: &Leaf, expected: Vec<(TimeSpan, u32)>, limits: &EvalLimits) -> Self {
        let (leaf, limits) = (leaf.clone(), *limits);
        Self { leaf, limits, missing: expected, parts: Vec::new() }
    }

    /// Takes a part; one that is not expected, or not any more, changes nothing.
    pub fn add(&mut self, part: LeafPart) {
        let key = (part.span, part.place);
        let Some(at) = self.missing.iter().position(|missing| *missing == key) else { return };
        self.missing.swap_remove(at);
        let at = self.parts.partition_point(|other| (other.span, other.place) < key);
        self.parts.insert(at, part);
    }

    /// Whether a part is expected and did not come yet.
    pub fn expects(&self, part: &LeafPart) -> bool {
        self.missing.contains(&(part.span, part.place))
    }

    /// The instant before which all samples have been taken into account.
    pub fn complete_before(&self) -> i64 {
        self.missing.iter().map(|(span, _)| span.from).min().unwrap_or(i64::MAX)
    }

    /// The values at some of the leaf's steps.
    pub fn frame(&self, steps: Range<usize>) -> Result<LeafFrame, EvalError> {
        let LeafOutput::Value(function) = self.leaf.output else {
            unreachable!("a leaf of samples is asked for samples");
        };
        let mut metrics = BTreeSet::new();
        for part in &self.parts {
            metrics.extend(part.metrics.iter().cloned());
        }
        let mut sink = self.sink(steps.len());
        for part in &self.parts {
            sink.take_part(part, &steps, &self.limits)?;
        }
        let drop_name = self.leaf.name != NameRule::Keep;
        let mut tally = self.limits.tally();
        for (labels, entries) in self.crossing() {
            let values = finish_crossing(function, &self.leaf, &entries, &steps, &mut tally)?;
            if values.iter().all(|value| value.to_bits() == ABSENT.to_bits()) {
                continue;
            }
            if function.wants_counters() {
                metrics.insert((labels.metric().to_owned(), labels.value("__type__").to_owned()));
            }
            sink.take_series(named(self.leaf.name, labels), drop_name, values, &self.limits)?;
        }
        Ok(LeafFrame { frame: sink.finish()?, metrics })
    }

    /// The samples of all series, for a leaf of samples.
    pub fn samples(&self) -> Vec<Points> {
        let series = self.crossing().into_iter().map(|(labels, entries)| {
            let mut points = Points { labels: labels.clone(), ..Points::default() };
            for (_, crossing) in entries {
                if let Crossing::Samples(ts, values) = crossing {
                    points.ts.extend_from_slice(ts);
                    points.values.extend_from_slice(values);
                }
            }
            points
        });
        series.collect()
    }

    /// What crosses edges, series by series, each in time order.
    fn crossing(&self) -> BTreeMap<&Labels, Vec<(&LeafPart, &Crossing)>> {
        let mut series: BTreeMap<&Labels, Vec<(&LeafPart, &Crossing)>> = BTreeMap::new();
        for part in &self.parts {
            for crossing in &part.crossing {
                series.entry(&crossing.labels).or_default().push((part, &crossing.crossing));
            }
        }
        series
    }

    fn sink(&self, steps: usize) -> Sink<'_> {
        match self.leaf.pushed.as_ref().map(|pushed| (pushed, &pushed.op)) {
            Some((_, PushedOp::Reduce(reduction))) => {
                Sink::Groups(&self.leaf, Groups::new(*reduction, steps))
            }
            Some((_, PushedOp::CountValues(_))) => {
                Sink::Groups(&self.leaf, Groups::counting(steps))
            }
            Some((_, PushedOp::Rank(_))) | None => Sink::Rows(JoinedRows::new(steps)),
        }
    }
}

/// Where the values of all parts come together.
enum Sink<'a> {
    Rows(JoinedRows),
    Groups(&'a Leaf, Groups),
}

/// Rows that are put together from several parts: a series has one, however many parts it is in.
struct JoinedRows {
    steps: usize,
    rows: Vec<Row>,
    /// Only ever asked for one series; the order of the result is that of the labels.
    by_labels: BTreeMap<Labels, usize>,
}

impl JoinedRows {
    fn new(steps: usize) -> Self {
        Self { steps, rows: Vec::new(), by_labels: BTreeMap::new() }
    }

    /// Takes the values of a series from step number `at` on.
    fn take(
        &mut self,
        labels: &Labels,
        drop_name: bool,
        values: &[f64],
        at: usize,
        limits: &EvalLimits,
    ) -> Result<(), EvalError> {
        let Some(place) = self.by_labels.get(labels) else {
            limits.values((self.rows.len() as u64 + 1) * self.steps as u64)?;
            let mut row = nothing(self.steps);
            row[at..at + values.len()].copy_from_slice(values);
            self.by_labels.insert(labels.clone(), self.rows.len());
            self.rows.push(Row { labels: labels.clone(), drop_name, values: row });
            return Ok(());
        };
        let row = &mut self.rows[*place];
        row.drop_name &= drop_name;
        for (mine, theirs) in row.values[at..].iter_mut().zip(values) {
            match (is_absent(*mine), is_absent(*theirs)) {
                (true, _) => *mine = *theirs,
                (false, true) => {}
                (false, false) => return Err(SameLabels.into()),
            }
        }
        Ok(())
    }
}

impl Sink<'_> {
    fn take_part(
        &mut self,
        part: &LeafPart,
        steps: &Range<usize>,
        limits: &EvalLimits,
    ) -> Result<(), EvalError> {
        let from = part.complete.start.max(steps.start);
        let to = part.complete.end.min(steps.end);
        if from >= to {
            return Ok(());
        }
        let theirs = from - part.complete.start..to - part.complete.start;
        let at = from - steps.start;
        match (self, &part.values) {
            (Self::Rows(rows), PartValues::Rows(new)) => {
                for row in new {
                    let values = &row.values[theirs.clone()];
                    rows.take(&row.labels, row.drop_name, values, at, limits)?;
                }
            }
            (Self::Groups(_, groups), PartValues::Groups(new)) => {
                groups.merge(new, theirs, at);
                groups.check(limits)?;
            }
            _ => unreachable!("parts of one leaf are of one kind"),
        }
        Ok(())
    }

    fn take_series(
        &mut self,
        labels: Labels,
        drop_name: bool,
        values: Vec<f64>,
        limits: &EvalLimits,
    ) -> Result<(), EvalError> {
        match self {
            Self::Rows(rows) => rows.take(&labels, drop_name, &values, 0, limits)?,
            Self::Groups(leaf, groups) => {
                if let Some(pushed) = &leaf.pushed {
                    match &pushed.op {
                        PushedOp::CountValues(label) => {
                            let grouping = &pushed.grouping;
                            groups.count_values(grouping, label, &labels, &values, 0, limits)?;
                        }
                        _ => groups.add(&pushed.grouping, &labels, drop_name, &values, 0),
                    }
                }
                groups.check(limits)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Frame, EvalError> {
        match self {
            Self::Rows(joined) => Ok(Frame::collect(joined.rows)?),
            Self::Groups(_, groups) => Ok(groups.finish()),
        }
    }
}

/// The values of one series at steps whose windows crossed edges.
fn finish_crossing(
    function: RangeFunction,
    leaf: &Leaf,
    entries: &[(&LeafPart, &Crossing)],
    steps: &Range<usize>,
    tally: &mut Tally,
) -> Result<Vec<f64>, EvalError> {
    let mut out = nothing(steps.len());
    let mut ranges: Vec<Range<usize>> = entries
        .iter()
        .flat_map(|(part, _)| part.crossing_steps())
        .map(|range| range.start.max(steps.start)..range.end.min(steps.end))
        .filter(|range| !range.is_empty())
        .collect();
    ranges.sort_by_key(|range| (range.start, range.end));
    // Neighbours tell of the same windows from both sides of an edge.
    let mut done = steps.start;
    let samples = joined_samples(entries);
    for range in ranges {
        let range = range.start.max(done)..range.end.max(done);
        if range.is_empty() {
            continue;
        }
        done = range.end;
        let place = range.start - steps.start..range.end - steps.start;
        match &samples {
            Some((ts, values)) => {
                let windows = leaf.windows.part(&range);
                if function.looks_at_all() {
                    tally.window_samples(windows.samples_in_all(ts))?;
                }
                slide(function, Samples { ts, values }, windows, &mut out[place]);
            }
            None => {
                for (step, out) in range.zip(&mut out[place]) {
                    *out = fold_step(function, leaf, entries, step);
                }
            }
        }
    }
    Ok(out)
}

/// The samples of all parts one after the other, if nothing but samples crossed.
fn joined_samples(entries: &[(&LeafPart, &Crossing)]) -> Option<(Vec<i64>, Vec<f64>)> {
    let (mut all_ts, mut all_values) = (Vec::new(), Vec::new());
    for (_, crossing) in entries {
        let Crossing::Samples(ts, values) = crossing else { return None };
        all_ts.extend_from_slice(ts);
        all_values.extend_from_slice(values);
    }
    Some((all_ts, all_values))
}

/// One step's window, joined from the states and samples of all parts.
fn fold_step(
    function: RangeFunction,
    leaf: &Leaf,
    entries: &[(&LeafPart, &Crossing)],
    step: usize,
) -> f64 {
    let window = leaf.windows.get(step);
    let mut fold = Fold::new(function);
    for (_, crossing) in entries {
        match crossing {
            Crossing::States(states) => {
                if let Ok(at) = states.binary_search_by_key(&step, |(step, _)| *step) {
                    fold.merge(function, &states[at].1);
                }
            }
            Crossing::Samples(ts, values) => {
                let samples = Samples { ts, values };
                fold.extend(function, samples.within(window.start, window.end));
            }
        }
    }
    fold.finish(function, window)
}
