//! Which series there are, answered from the indexes of segments alone. What is found travels as a
//! part like any other: each thing is a series with the value 1 at the only step of a leaf.
//!
//! A series counts if its samples in some segment begin no later and end no earlier than the time
//! that is asked about: one that has a gap just there counts too, for samples are not looked at.

use std::collections::BTreeSet;

use tributary_promql::eval::EvalError;
use tributary_promql::leaf::{Leaf, LeafOutput, LeafPart, LeafRun, NameRule};
use tributary_promql::window::{RangeFunction, Samples, Windows};
use tributary_promql::{EvalLimits, Labels, Matcher};
use tributary_segment::{METRIC_NAME, Matcher as Selector, SeriesIndex, TimeRange};

use crate::run::{Cancelled, RunError};
use crate::spec::Work;

/// Series are asked for rather than samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesInquiry {
    /// Those with samples from this instant on, in milliseconds,
    pub from: i64,
    /// up to and including this one.
    pub to: i64,
    /// What is told of them.
    pub tell: Tell,
    /// No more than so many things, the first in order; zero for all.
    pub limit: u64,
}

/// What is told of the series that are found, each thing once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tell {
    /// All their labels, in the order of labels.
    Series,
    /// The names of their labels, in order.
    LabelNames,
    /// The values of one label, in order.
    LabelValues(String),
    /// Their metrics, in the order of name, kind, help and unit.
    Metrics,
}

/// What is known of a metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetricTold {
    /// Its name.
    pub name: String,
    /// Its kind, as OpenMetrics calls it.
    pub kind: String,
    /// What it says of itself, or nothing.
    pub help: String,
    /// Its unit, or nothing.
    pub unit: String,
}

/// The label by which the name of a label is told.
const LABEL: &str = "label";
/// Labels by which kind, unit and help of a metric are told.
const KIND: &str = "__type__";
const UNIT: &str = "__unit__";
const HELP: &str = "__help__";

/// The instant at which everything is told. It means nothing.
const AT: i64 = 0;

/// So many series are looked at before somebody is asked whether to go on.
const AT_ONCE: usize = 1_024;

/// The leaf of an inquiry, with the matchers that choose its series.
pub fn inquiry_leaf(matchers: Vec<Matcher>) -> Leaf {
    Leaf {
        matchers,
        windows: Windows { at: AT, offset: 0, step: 1, count: 1, range: 1 },
        output: LeafOutput::Value(RangeFunction::Last),
        name: NameRule::Keep,
        pushed: None,
    }
}

/// The name of a label as [`Tell::LabelNames`] tells it.
pub fn label_told(told: &Labels) -> &str {
    told.value(LABEL)
}

/// A metric as [`Tell::Metrics`] tells it.
pub fn metric_told(told: &Labels) -> MetricTold {
    let value = |name| told.value(name).to_owned();
    MetricTold { name: value(METRIC_NAME), kind: value(KIND), help: value(HELP), unit: value(UNIT) }
}

impl Work {
    /// Answers the inquiry from the indexes of the segments. `is_cancelled` is asked now and then.
    pub fn inquire(
        &self,
        inquiry: &SeriesInquiry,
        indexes: &[&SeriesIndex],
        is_cancelled: impl Fn() -> bool,
    ) -> Result<LeafPart, RunError> {
        let matchers = self.leaf.matchers.iter().map(Selector::try_from);
        let matchers = matchers.collect::<Result<Vec<_>, _>>()?;
        let chosen = Chosen { inquiry, indexes, matchers, is_cancelled, limits: &self.limits };
        let mut run = LeafRun::new(&self.leaf, self.span, self.place, &self.limits);
        let mut tell = |labels: &Labels| {
            run.push(labels, Samples { ts: &[AT], values: &[1.0] }).map_err(RunError::from)
        };
        match &inquiry.tell {
            Tell::Series => chosen.series()?.iter().try_for_each(tell)?,
            Tell::LabelNames => {
                for name in chosen.label_names()? {
                    tell(&Labels::from_sorted([(LABEL, name)].into_iter()))?;
                }
            }
            Tell::LabelValues(label) => {
                for value in chosen.label_values(label)? {
                    tell(&Labels::from_sorted([(label.as_str(), value)].into_iter()))?;
                }
            }
            Tell::Metrics => {
                for [name, kind, help, unit] in chosen.metrics()? {
                    let pairs = [(HELP, help), (METRIC_NAME, name), (KIND, kind), (UNIT, unit)];
                    tell(&Labels::from_sorted(pairs.into_iter()))?;
                }
            }
        }
        Ok(run.finish())
    }
}

/// The series that an inquiry is about.
struct Chosen<'a, C> {
    inquiry: &'a SeriesInquiry,
    indexes: &'a [&'a SeriesIndex],
    matchers: Vec<Selector>,
    is_cancelled: C,
    limits: &'a EvalLimits,
}

impl<'a, C: Fn() -> bool> Chosen<'a, C> {
    /// Walks over the series of all segments.
    fn each(
        &self,
        mut visit: impl FnMut(&'a SeriesIndex, u32) -> Result<(), EvalError>,
    ) -> Result<(), RunError> {
        let range = TimeRange { start: self.inquiry.from, end: self.inquiry.to };
        for index in self.indexes {
            for some in index.select(&self.matchers, range).chunks(AT_ONCE) {
                if (self.is_cancelled)() {
                    return Err(Cancelled.into());
                }
                some.iter().try_for_each(|series| visit(index, *series))?;
            }
        }
        Ok(())
    }

    fn series(&self) -> Result<BTreeSet<Labels>, RunError> {
        let mut found = Found::new(self.inquiry, self.limits);
        self.each(|index, series| {
            let labels = index.labels(series);
            found.add(labels, Labels::size_bytes)
        })?;
        Ok(found.things)
    }

    fn label_names(&self) -> Result<BTreeSet<&'a str>, RunError> {
        let mut found = Found::new(self.inquiry, self.limits);
        self.each(|index, series| {
            if !index.metric(series).is_empty() {
                found.add(METRIC_NAME, |name| name.len())?;
            }
            index.pairs(series).try_for_each(|(name, _)| found.add(name, |name| name.len()))
        })?;
        Ok(found.things)
    }

    fn label_values(&self, label: &str) -> Result<BTreeSet<&'a str>, RunError> {
        let mut found = Found::new(self.inquiry, self.limits);
        self.each(|index, series| match index.label(series, label) {
            Some(value) => found.add(value, |value| value.len()),
            None => Ok(()),
        })?;
        Ok(found.things)
    }

    fn metrics(&self) -> Result<BTreeSet<[&'a str; 4]>, RunError> {
        let mut found = Found::new(self.inquiry, self.limits);
        self.each(|index, series| {
            let family = index.family(series);
            let said = [index.metric(series), family.kind.as_str(), &family.help, &family.unit];
            if said[0].is_empty() {
                return Ok(());
            }
            found.add(said, |said| said.iter().map(|text| text.len()).sum())
        })?;
        Ok(found.things)
    }
}

/// Things found so far, each once and in order: no more of them than are wanted, and no more bytes
/// than are allowed.
struct Found<'a, T> {
    things: BTreeSet<T>,
    most: usize,
    bytes: u64,
    limits: &'a EvalLimits,
}

impl<'a, T: Ord> Found<'a, T> {
    fn new(inquiry: &SeriesInquiry, limits: &'a EvalLimits) -> Self {
        let most = usize::try_from(inquiry.limit).ok().filter(|most| *most > 0);
        Self { things: BTreeSet::new(), most: most.unwrap_or(usize::MAX), bytes: 0, limits }
    }

    fn add(&mut self, thing: T, size: impl Fn(&T) -> usize) -> Result<(), EvalError> {
        let bytes = size(&thing) as u64;
        if self.things.insert(thing) {
            self.bytes += bytes;
        }
        if self.things.len() > self.most
            && let Some(last) = self.things.pop_last()
        {
            self.bytes -= size(&last) as u64;
        }
        let EvalLimits { max_series, max_label_bytes, .. } = *self.limits;
        // Neither is what the leaf would say first: it counts series only as it takes them in.
        if self.things.len() as u64 > max_series {
            let what = "series in one selector";
            return Err(EvalError::Limit { what, limit: max_series, setting: "max_series" });
        }
        if self.bytes > max_label_bytes {
            let (what, setting) = ("bytes of labels", "max_label_bytes");
            return Err(EvalError::Limit { what, limit: max_label_bytes, setting });
        }
        Ok(())
    }
}
