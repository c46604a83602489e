//! The results of a join, in the order in which they are made.

use std::collections::BTreeMap;

use crate::eval::{Context, EvalError};
use crate::frame::{Frame, Row, nothing};
use crate::labels::Labels;
use crate::limits::Tally;
use crate::window::is_absent;

/// Rows in the making, one for all results with the same labels.
pub(super) struct Outputs {
    rows: Vec<Row>,
    by_labels: BTreeMap<Labels, usize>,
    steps: usize,
    drop_name: bool,
    /// Results with equal labels stand side by side. So it is in Prometheus at a single step while
    /// names go at the end: an aggregation further out may still take them.
    side_by_side: bool,
    tally: Tally,
}

impl Outputs {
    /// No results yet.
    pub(super) fn new(ctx: &Context, drop_name: bool) -> Self {
        Self {
            rows: Vec::new(),
            by_labels: BTreeMap::new(),
            steps: ctx.steps.count,
            drop_name,
            side_by_side: ctx.steps.count == 1 && ctx.delayed_name_removal,
            tally: ctx.limits.tally(),
        }
    }

    /// The row of results with these labels.
    pub(super) fn with_labels(&mut self, labels: Labels) -> Result<usize, EvalError> {
        if let Some(row) = self.by_labels.get(&labels) {
            return Ok(*row);
        }
        let row = self.add(labels.clone())?;
        self.by_labels.insert(labels, row);
        Ok(row)
    }

    /// Sets the result at a step; false if there is one already.
    #[inline]
    pub(super) fn put(&mut self, row: usize, step: usize, value: f64) -> Result<bool, EvalError> {
        let place = &mut self.rows[row].values[step];
        if is_absent(*place) {
            *place = value;
            return Ok(true);
        }
        if self.side_by_side {
            let row = self.add(self.rows[row].labels.clone())?;
            self.rows[row].values[step] = value;
        }
        Ok(self.side_by_side)
    }

    /// The rows that have results.
    pub(super) fn finish(mut self) -> Frame {
        self.rows.retain(Row::has_values);
        Frame { rows: self.rows }
    }

    fn add(&mut self, labels: Labels) -> Result<usize, EvalError> {
        self.tally.row(&labels, self.steps)?;
        let values = nothing(self.steps);
        self.rows.push(Row { labels, drop_name: self.drop_name, values });
        Ok(self.rows.len() - 1)
    }
}
