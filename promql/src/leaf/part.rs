//! What a leaf makes of the samples in one span of time: values of the steps that are complete
//! there, and the states or samples of windows that cross the span's edges.

use std::collections::BTreeSet;
use std::ops::Range;

use super::TimeSpan;
use crate::aggregate::Groups;
use crate::frame::Row;
use crate::labels::Labels;
use crate::window::Fold;

/// A state is about as large as so many samples.
pub(super) const SAMPLES_PER_STATE: usize = 3;

/// The outcome of a leaf over one span.
#[derive(Clone, Debug)]
pub struct LeafPart {
    /// The span.
    pub span: TimeSpan,
    /// Place among parts of the same span: shards, say. Parts are merged in the order of span and
    /// place.
    pub place: u32,
    /// Steps whose windows touch the span.
    pub touching: Range<usize>,
    /// Steps whose windows lie inside the span.
    pub complete: Range<usize>,
    /// The values of these.
    pub values: PartValues,
    /// What crosses the span's edges, by labels.
    pub crossing: Vec<CrossingSeries>,
    /// Metrics of which a complete step had a value, with their type label: what annotations are
    /// about.
    pub metrics: BTreeSet<(String, String)>,
}

impl LeafPart {
    /// Steps whose windows touch the span and reach beyond it, before and after the complete ones.
    pub fn crossing_steps(&self) -> [Range<usize>; 2] {
        if self.complete.is_empty() {
            return [self.touching.clone(), 0..0];
        }
        [self.touching.start..self.complete.start, self.complete.end..self.touching.end]
    }

    /// The part as one of a leaf whose first steps, so many, the part's own leaf did not have.
    #[must_use]
    pub fn moved(mut self, steps: usize) -> Self {
        for range in [&mut self.touching, &mut self.complete] {
            *range = range.start + steps..range.end + steps;
        }
        for series in &mut self.crossing {
            if let Crossing::States(states) = &mut series.crossing {
                states.iter_mut().for_each(|(step, _)| *step += steps);
            }
        }
        self
    }

    /// How many values it holds, in rows, states and samples.
    pub fn size(&self) -> u64 {
        let complete = match &self.values {
            PartValues::Rows(rows) => rows.len() * self.complete.len(),
            PartValues::Groups(groups) => groups.len(),
        };
        let crossing = self.crossing.iter().map(|series| match &series.crossing {
            Crossing::States(states) => states.len() * SAMPLES_PER_STATE,
            Crossing::Samples(ts, _) => ts.len(),
        });
        (complete + crossing.sum::<usize>()) as u64
    }
}

/// Values of complete steps.
#[derive(Clone, Debug)]
pub enum PartValues {
    /// One row for every series, by labels; each has the values of the complete steps.
    Rows(Vec<Row>),
    /// Aggregated so far.
    Groups(Groups),
}

/// What of one series crosses the edges of a span.
#[derive(Clone, Debug)]
pub struct CrossingSeries {
    /// The series.
    pub labels: Labels,
    /// What crosses.
    pub crossing: Crossing,
}

/// What crosses the edges of a span: whichever is smaller.
#[derive(Clone, Debug)]
pub enum Crossing {
    /// The state of every window that has samples on this side, by the number of its step.
    States(Vec<(usize, Fold)>),
    /// The samples that lie in such windows.
    Samples(Vec<i64>, Vec<f64>),
}
