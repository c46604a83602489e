//! The one side of a join: for every group the series it has at each step, of which there must be
//! one at most.

use std::borrow::Cow;
use std::cell::LazyCell;

use super::failure::{Failures, Kind};
use crate::eval::binary::matching::MatchGroups;
use crate::eval::binary::step_set::StepSet;
use crate::expr::VectorMatching;
use crate::frame::Frame;
use crate::window::is_absent;

/// The partners that the one side has to offer, by group.
pub(super) struct Partners<'a> {
    groups: Vec<Option<Column<'a>>>,
}

/// The values of a group at every step.
struct Column<'a> {
    values: Cow<'a, [f64]>,
    rows: Rows,
}

/// Which row the values are from.
enum Rows {
    One(usize),
    /// At every step.
    Several(Vec<usize>),
}

impl<'a> Partners<'a> {
    /// Brings the rows of a group into one column. Two of them at a step are an error, if the sides
    /// meet at that step at all.
    pub(super) fn of(
        groups: &MatchGroups,
        (many, one): (&Frame, &'a Frame),
        matching: &VectorMatching,
        steps: usize,
        failures: &mut Failures,
    ) -> Self {
        // Without anything on the many side Prometheus does not look at the one side, unless
        // something may be filled in.
        let met = LazyCell::new(|| {
            let mut present = StepSet::none(steps);
            many.rows.iter().for_each(|row| present.insert_present(&row.values));
            present
        });
        let mut columns: Vec<Option<Column<'a>>> = Vec::new();
        columns.resize_with(groups.keys.len(), || None);
        for (index, (row, group)) in one.rows.iter().zip(&groups.second).enumerate() {
            let Some(column) = &mut columns[*group] else {
                let values = Cow::Borrowed(&row.values[..]);
                columns[*group] = Some(Column { values, rows: Rows::One(index) });
                continue;
            };
            let (values, rows) = column.of_several();
            for (step, value) in row.values.iter().enumerate() {
                if is_absent(*value) {
                    continue;
                }
                if is_absent(values[step]) {
                    values[step] = *value;
                    rows[step] = index;
                } else if !matching.fill.is_empty() || met.contains(step) {
                    let first = rows[step];
                    failures.add(step, Kind::Duplicate { second: index, first, group: *group });
                }
            }
        }
        Self { groups: columns }
    }

    /// Whether a group has any series here.
    pub(super) fn has_any(&self, group: usize) -> bool {
        self.groups[group].is_some()
    }

    /// The row and the value a group has at a step.
    #[inline]
    pub(super) fn at(&self, group: usize, step: usize) -> Option<(usize, f64)> {
        let column = self.groups[group].as_ref()?;
        let value = column.values[step];
        let row = match &column.rows {
            Rows::One(row) => *row,
            Rows::Several(rows) => rows[step],
        };
        (!is_absent(value)).then_some((row, value))
    }
}

impl Column<'_> {
    /// The values and the rows they are from, to be changed.
    fn of_several(&mut self) -> (&mut [f64], &mut [usize]) {
        if let Rows::One(row) = self.rows {
            self.rows = Rows::Several(vec![row; self.values.len()]);
        }
        let Rows::Several(rows) = &mut self.rows else {
            unreachable!("a single row has just been written out");
        };
        (self.values.to_mut(), rows)
    }
}
