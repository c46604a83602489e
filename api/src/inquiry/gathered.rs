//! What workers tell of series, put together: each thing once, in order, no more than are wanted and
//! no more than there is memory for.

use std::collections::BTreeSet;

use tributary_leafwork::{MetricTold, label_told, metric_told};
use tributary_promql::eval::EvalError;
use tributary_promql::leaf::{LeafPart, PartValues};
use tributary_promql::{EvalLimits, Labels};

use crate::error::QueryError;
use crate::memory::Charge;
use crate::question::{Found, FoundItems, MetricInfo, Wanted};

/// Bytes that a thing takes in memory beyond its text.
const BYTES_PER_THING: u64 = 64;

/// Things found so far.
#[derive(Debug)]
pub(super) struct Gathered {
    wanted: Wanted,
    things: Things,
    /// One more than are wanted, so that it shows whether there are more.
    most: usize,
    limit: Option<usize>,
    limits: EvalLimits,
    bytes: u64,
    charge: Charge,
}

#[derive(Debug)]
enum Things {
    Series(BTreeSet<Labels>),
    Texts(BTreeSet<String>),
    Metrics(BTreeSet<MetricInfo>),
}

impl Gathered {
    /// Nothing yet.
    pub(super) fn new(
        wanted: Wanted,
        limit: Option<usize>,
        limits: EvalLimits,
        charge: Charge,
    ) -> Self {
        let things = match &wanted {
            Wanted::Series => Things::Series(BTreeSet::new()),
            Wanted::LabelNames | Wanted::LabelValues(_) => Things::Texts(BTreeSet::new()),
            Wanted::Metrics => Things::Metrics(BTreeSet::new()),
        };
        let most = limit.map_or(usize::MAX, |limit| limit.saturating_add(1));
        Self { wanted, things, most, limit, limits, bytes: 0, charge }
    }

    /// Takes what a worker tells.
    pub(super) fn take(&mut self, part: LeafPart) -> Result<(), QueryError> {
        let PartValues::Rows(rows) = part.values else { return Ok(()) };
        for row in rows {
            match &self.wanted {
                Wanted::Series => self.series(row.labels),
                Wanted::LabelNames => self.push_text(label_told(&row.labels)),
                Wanted::LabelValues(label) => self.push_text(row.labels.value(label)),
                Wanted::Metrics => self.metric(metric_told(&row.labels)),
            }
            self.check()?;
        }
        self.charge.change_to(self.bytes)
    }

    /// Takes the name or a value of a label.
    pub(super) fn text(&mut self, text: &str) -> Result<(), QueryError> {
        self.push_text(text);
        self.check()?;
        self.charge.change_to(self.bytes)
    }

    fn series(&mut self, labels: Labels) {
        let Things::Series(all) = &mut self.things else { return };
        let size = |labels: &Labels| labels.size_bytes() as u64;
        self.bytes = self.bytes.saturating_add_signed(insert(all, labels, self.most, size));
    }

    fn push_text(&mut self, text: &str) {
        let Things::Texts(all) = &mut self.things else { return };
        if !text.is_empty() && !all.contains(text) {
            let size = |text: &String| text.len() as u64;
            let text = text.to_owned();
            self.bytes = self.bytes.saturating_add_signed(insert(all, text, self.most, size));
        }
    }

    fn metric(&mut self, told: MetricTold) {
        let Things::Metrics(all) = &mut self.things else { return };
        let MetricTold { name, kind, help, unit } = told;
        let info = MetricInfo { name, kind, help, unit };
        let size = |info: &MetricInfo| {
            (info.name.len() + info.kind.len() + info.help.len() + info.unit.len()) as u64
        };
        self.bytes = self.bytes.saturating_add_signed(insert(all, info, self.most, size));
    }

    fn check(&self) -> Result<(), QueryError> {
        let EvalLimits { max_series, max_label_bytes, .. } = self.limits;
        if self.count() as u64 > max_series {
            let what = "series, labels or metrics in one answer";
            return Err(EvalError::Limit { what, limit: max_series, setting: "max_series" }.into());
        }
        if self.bytes > max_label_bytes {
            let (what, setting) = ("bytes of labels", "max_label_bytes");
            return Err(EvalError::Limit { what, limit: max_label_bytes, setting }.into());
        }
        Ok(())
    }

    fn count(&self) -> usize {
        match &self.things {
            Things::Series(all) => all.len(),
            Things::Texts(all) => all.len(),
            Things::Metrics(all) => all.len(),
        }
    }

    /// The answer.
    pub(super) fn finish(self) -> Found {
        let wanted = self.limit.unwrap_or(usize::MAX);
        let truncated = self.count() > wanted;
        let items = match self.things {
            Things::Series(all) => FoundItems::Series(all.into_iter().take(wanted).collect()),
            Things::Texts(all) => FoundItems::Texts(all.into_iter().take(wanted).collect()),
            Things::Metrics(all) => FoundItems::Metrics(all.into_iter().take(wanted).collect()),
        };
        Found { items, truncated }
    }
}

/// Puts a thing among the others, and takes the last away where they become too many. Gives by how
/// many bytes they grow.
fn insert<T: Ord>(all: &mut BTreeSet<T>, thing: T, most: usize, size: impl Fn(&T) -> u64) -> i64 {
    let bytes = |thing: &T| (size(thing) + BYTES_PER_THING).cast_signed();
    let more = bytes(&thing);
    if !all.insert(thing) {
        return 0;
    }
    if all.len() <= most {
        return more;
    }
    more - all.pop_last().map_or(0, |last| bytes(&last))
}
