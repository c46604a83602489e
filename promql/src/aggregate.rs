//! Aggregation over series, step by step: groups whose states can be made on several workers and
//! merged, to the same bits in any order.

mod rank;
mod wire;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::deviation::Deviation;
use crate::eval::EvalError;
use crate::exact::ExactSum;
use crate::expr::Grouping;
use crate::frame::{Frame, Row, nothing, present};
use crate::labels::Labels;
use crate::limits::EvalLimits;
use crate::number::in_full;
use crate::window::is_absent;

pub use rank::{Rank, keep_ranked, members_of_groups};
pub use wire::{GroupColumns, StateColumns};

/// Aggregations that make one series of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// `sum`
    Sum,
    /// `avg`
    Avg,
    /// `count`
    Count,
    /// `group`
    Group,
    /// `min`
    Min,
    /// `max`
    Max,
    /// `stddev`
    Stddev,
    /// `stdvar`
    Stdvar,
}

impl Grouping {
    /// The labels of the group a series belongs to.
    pub fn key(&self, labels: &Labels) -> Labels {
        match self {
            Self::By(names) => labels.only(names),
            Self::Without(names) => labels.without(names),
        }
    }

    /// The labels of the group that counts a value of a series.
    fn key_of_value(&self, labels: &Labels, label: &str, value: f64) -> Labels {
        let text = in_full(value);
        match self {
            Self::By(_) => self.key(labels).with(label, &text),
            Self::Without(names) => labels.with(label, &text).without(names),
        }
    }
}

/// The state of one group at one step.
#[derive(Clone, Debug)]
enum State {
    Sum(ExactSum, u64),
    Count(u64),
    /// The least or the largest so far, and whether there is any.
    Extreme(f64, bool),
    /// Rare, and larger than the others.
    Deviation(Box<Deviation>),
}

/// A group with its state at every step.
#[derive(Clone, Debug)]
struct Group {
    drop_name: bool,
    states: Vec<State>,
}

/// The groups of an aggregation in the making.
#[derive(Clone, Debug)]
pub struct Groups {
    reduction: Reduction,
    steps: usize,
    groups: BTreeMap<Labels, Group>,
    /// Of all groups.
    label_bytes: usize,
}

impl Groups {
    /// No group yet.
    pub fn new(reduction: Reduction, steps: usize) -> Self {
        Self { reduction, steps, groups: BTreeMap::new(), label_bytes: 0 }
    }

    /// No group yet, for `count_values`.
    pub fn counting(steps: usize) -> Self {
        Self::new(Reduction::Count, steps)
    }

    /// How many states it holds.
    pub fn len(&self) -> usize {
        self.groups.len() * self.steps
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Takes in a series: its values from step number `at` on.
    pub fn add(
        &mut self,
        grouping: &Grouping,
        labels: &Labels,
        drop_name: bool,
        values: &[f64],
        at: usize,
    ) {
        let reduction = self.reduction;
        let group = self.group(grouping.key(labels));
        group.drop_name |= drop_name;
        for (state, value) in group.states[at..].iter_mut().zip(values) {
            if !is_absent(*value) {
                state.add(reduction, *value);
            }
        }
    }

    /// Counts each of a series' values, from step number `at` on, in the group of that value.
    pub fn count_values(
        &mut self,
        grouping: &Grouping,
        label: &str,
        labels: &Labels,
        values: &[f64],
        at: usize,
        limits: &EvalLimits,
    ) -> Result<(), EvalError> {
        // Values repeat from step to step: the last one's group is likely the next one's, too.
        let mut last: Option<(u64, Labels)> = None;
        for (step, value) in (at..).zip(values).filter(|(_, value)| !is_absent(**value)) {
            let key = match last.take() {
                Some((bits, key)) if bits == value.to_bits() => key,
                _ => grouping.key_of_value(labels, label, *value),
            };
            self.group(key.clone()).states[step].add(Reduction::Count, 1.0);
            // A single series may have as many values as there are steps, each with a group.
            self.check(limits)?;
            last = Some((value.to_bits(), key));
        }
        Ok(())
    }

    /// Refuses to hold more than is allowed.
    pub(crate) fn check(&self, limits: &EvalLimits) -> Result<(), EvalError> {
        limits.values(self.len() as u64)?;
        limits.label_bytes(self.label_bytes as u64)
    }

    /// Takes in some steps of the groups of other series, the first of them being step number `at`
    /// here.
    pub fn merge(&mut self, other: &Self, steps: Range<usize>, at: usize) {
        let reduction = self.reduction;
        for (labels, theirs) in &other.groups {
            let mine = self.group(labels.clone());
            mine.drop_name |= theirs.drop_name;
            let theirs = &theirs.states[steps.clone()];
            for (state, other) in mine.states[at..].iter_mut().zip(theirs) {
                state.merge(reduction, other);
            }
        }
    }

    fn group(&mut self, labels: Labels) -> &mut Group {
        let (reduction, steps) = (self.reduction, self.steps);
        let label_bytes = &mut self.label_bytes;
        self.groups.entry(labels).or_insert_with_key(|labels| {
            *label_bytes += labels.size_bytes();
            Group { drop_name: false, states: vec![State::new(reduction); steps] }
        })
    }

    /// One series for every group, by labels.
    pub fn finish(self) -> Frame {
        let reduction = self.reduction;
        let row = |(labels, group): (Labels, Group)| {
            let mut values = nothing(group.states.len());
            for (value, state) in values.iter_mut().zip(&group.states) {
                if state.is_there() {
                    *value = present(state.value(reduction));
                }
            }
            Row { labels, drop_name: group.drop_name, values }
        };
        let rows = self.groups.into_iter().map(row).filter(Row::has_values);
        Frame { rows: rows.collect() }
    }
}

impl State {
    fn new(reduction: Reduction) -> Self {
        match reduction {
            Reduction::Sum | Reduction::Avg => Self::Sum(ExactSum::default(), 0),
            Reduction::Count | Reduction::Group => Self::Count(0),
            Reduction::Min | Reduction::Max => Self::Extreme(f64::NAN, false),
            Reduction::Stddev | Reduction::Stdvar => Self::Deviation(Box::default()),
        }
    }

    fn add(&mut self, reduction: Reduction, value: f64) {
        match self {
            Self::Sum(sum, count) => {
                sum.add(value);
                *count += 1;
            }
            Self::Count(count) => *count += 1,
            Self::Extreme(held, there) => {
                if !*there || outdoes(reduction, *held, value) {
                    *held = value;
                }
                *there = true;
            }
            Self::Deviation(deviation) => deviation.add(value),
        }
    }

    fn merge(&mut self, reduction: Reduction, other: &Self) {
        match (self, other) {
            (Self::Sum(mine, count), Self::Sum(theirs, their_count)) => {
                mine.merge(theirs);
                *count += their_count;
            }
            (Self::Count(mine), Self::Count(theirs)) => *mine += theirs,
            (mine @ Self::Extreme(..), Self::Extreme(theirs, true)) => mine.add(reduction, *theirs),
            (Self::Extreme(..), Self::Extreme(_, false)) => {}
            (Self::Deviation(mine), Self::Deviation(theirs)) => mine.merge(theirs),
            (mine, theirs) => {
                unreachable!("states of one aggregation are of one kind: {mine:?}, {theirs:?}")
            }
        }
    }

    fn is_there(&self) -> bool {
        match self {
            Self::Sum(_, count) | Self::Count(count) => *count > 0,
            Self::Extreme(_, there) => *there,
            Self::Deviation(deviation) => deviation.count() > 0,
        }
    }

    fn value(&self, reduction: Reduction) -> f64 {
        match (self, reduction) {
            (Self::Sum(sum, count), Reduction::Avg) => sum.mean(*count),
            (Self::Sum(sum, _), _) => sum.value(),
            (Self::Count(_), Reduction::Group) => 1.0,
            #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
            (Self::Count(count), _) => *count as f64,
            (Self::Extreme(value, _), _) => *value,
            (Self::Deviation(deviation), Reduction::Stddev) => deviation.variance().sqrt(),
            (Self::Deviation(deviation), _) => deviation.variance(),
        }
    }
}

/// Whether a value takes the place of the one held. Of two zeros the smaller one is the negative
/// one, and of two NaN either is NaN: so the order of the series does not matter.
fn outdoes(reduction: Reduction, held: f64, value: f64) -> bool {
    match (held.is_nan(), value.is_nan()) {
        (true, true) => value.to_bits() < held.to_bits(),
        (true, false) => true,
        (false, true) => false,
        (false, false) if reduction == Reduction::Min => value.total_cmp(&held).is_lt(),
        (false, false) => value.total_cmp(&held).is_gt(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matcher::METRIC_NAME;
    use crate::window::ABSENT;

    const ALL: [Reduction; 8] = [
        Reduction::Sum,
        Reduction::Avg,
        Reduction::Count,
        Reduction::Group,
        Reduction::Min,
        Reduction::Max,
        Reduction::Stddev,
        Reduction::Stdvar,
    ];

    fn by(names: &[&str]) -> Grouping {
        Grouping::By(names.iter().map(|name| (*name).into()).collect())
    }

    fn row(region: &str, host: &str, values: &[f64]) -> Row {
        let labels = Labels::new([(METRIC_NAME, "m"), ("region", region), ("host", host)]).unwrap();
        Row { labels, drop_name: false, values: values.to_vec() }
    }

    fn reduce(reduction: Reduction, grouping: &Grouping, rows: &[Row]) -> Vec<(String, Vec<f64>)> {
        let mut groups = Groups::new(reduction, rows[0].values.len());
        for row in rows {
            groups.add(grouping, &row.labels, row.drop_name, &row.values, 0);
        }
        let frame = groups.finish();
        frame.rows.into_iter().map(|row| (row.labels.to_string(), row.values)).collect()
    }

    #[test]
    fn groups_have_the_labels_asked_for() {
        let rows = [
            row("eu", "a", &[1.0, 2.0]),
            row("eu", "b", &[3.0, ABSENT]),
            row("us", "c", &[5.0, 6.0]),
        ];
        let sums = reduce(Reduction::Sum, &by(&["region"]), &rows);
        assert_eq!(sums[0], (r#"{region="eu"}"#.into(), vec![4.0, 2.0]));
        assert_eq!(sums[1], (r#"{region="us"}"#.into(), vec![5.0, 6.0]));
        let without = Grouping::Without(vec!["host".into()]);
        assert_eq!(reduce(Reduction::Sum, &without, &rows), sums);
        assert_eq!(reduce(Reduction::Count, &by(&[]), &rows)[0], ("{}".into(), vec![3.0, 2.0]));
        assert_eq!(reduce(Reduction::Avg, &by(&["region"]), &rows)[0].1, [2.0, 2.0]);
        assert_eq!(reduce(Reduction::Stdvar, &by(&[]), &rows[..2])[0].1, [1.0, 0.0]);
        assert_eq!(reduce(Reduction::Group, &by(&[]), &rows)[0].1, [1.0, 1.0]);
    }

    fn value() -> impl Strategy<Value = f64> {
        prop_oneof![6 => -1e3..1e3, 1 => Just(ABSENT), 1 => Just(f64::NAN), 1 => any::<f64>(),
            1 => Just(0.0), 1 => Just(-0.0), 1 => Just(f64::INFINITY)]
    }

    proptest! {
        #[test]
        fn groups_made_apart_and_merged_in_any_order_have_the_same_bits(
            values in prop::collection::vec((0..3_u8, prop::array::uniform3(value())), 1..20),
            cut in 0..20_usize,
        ) {
            let rows: Vec<Row> = (0..)
                .zip(&values)
                .map(|(i, (region, values))| row(&region.to_string(), &i.to_string(), values))
                .collect();
            let grouping = by(&["region"]);
            for reduction in ALL {
                let expected = reduce(reduction, &grouping, &rows);
                let (left, right) = rows.split_at(cut.min(rows.len()));
                let mut merged = Groups::new(reduction, 3);
                for part in [right, left] {
                    let mut groups = Groups::new(reduction, 3);
                    for row in part.iter().rev() {
                        groups.add(&grouping, &row.labels, row.drop_name, &row.values, 0);
                    }
                    merged.merge(&groups, 0..3, 0);
                }
                let bits = |rows: Vec<(String, Vec<f64>)>| -> Vec<(String, Vec<u64>)> {
                    let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect();
                    rows.into_iter().map(|(labels, values)| (labels, bits(values))).collect()
                };
                let merged = merged.finish().rows.into_iter();
                let merged = merged.map(|row| (row.labels.to_string(), row.values)).collect();
                prop_assert_eq!(bits(merged), bits(expected), "{:?}", reduction);
            }
        }
    }
}
