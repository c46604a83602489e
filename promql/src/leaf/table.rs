//! A part as a table: rows of time, series and what is known of it, in the order of time and series.
//! In this shape parts travel. What comes back is not trusted: it fits its leaf or is an error.

use std::collections::BTreeSet;
use std::ops::Range;

use super::part::{Crossing, CrossingSeries, LeafPart, PartValues};
use super::run::LeafRun;
use super::{Leaf, LeafOutput, TimeSpan};
use crate::aggregate::StateColumns;
use crate::bytes::BadState;
use crate::frame::{Row, nothing};
use crate::labels::Labels;
use crate::limits::EvalLimits;
use crate::window::{ABSENT, Fold, is_absent};

/// Rows that are written before it is asked again whether to stop.
const ROWS_AT_ONCE: u32 = 1 << 15;

/// A part in rows, column by column. Rows are sorted by time, then series, then kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartTable {
    /// The series that rows are about.
    pub series: Vec<Labels>,
    /// The instants of steps, or of samples, in milliseconds.
    pub ts: Vec<i64>,
    /// The series of each row, by its place among all.
    pub series_of: Vec<u32>,
    /// What each row is.
    pub kind: Vec<RowKind>,
    /// Whether the metric's name goes at the end.
    pub drop_name: Vec<bool>,
    /// Values, sums and extremes; zero in rows that have none.
    pub value: Vec<f64>,
    /// What rounding took from sums, and counts, of rows that have any, by the number of the row.
    pub counted: Vec<(usize, f64, u64)>,
    /// States that are bytes, by the number of the row.
    pub bytes: Vec<(usize, Vec<u8>)>,
    /// Metrics that had values, with their type label.
    pub metrics: BTreeSet<(String, String)>,
}

/// One row of a part.
#[derive(Clone, Debug, PartialEq)]
struct PartRow {
    ts: i64,
    series: u32,
    kind: RowKind,
    drop_name: bool,
    columns: StateColumns,
}

/// What a row of a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RowKind {
    /// The value of a series at a step.
    Value = 0,
    /// The state of a group at a step.
    Group = 1,
    /// The state of a series' window that crosses an edge, at a step.
    State = 2,
    /// A sample of a series whose windows cross an edge.
    Sample = 3,
}

impl RowKind {
    /// The kind with this number.
    pub const fn of(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Value,
            1 => Self::Group,
            2 => Self::State,
            3 => Self::Sample,
            _ => return None,
        })
    }
}

/// Why a table is no part of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPart {
    /// Columns differ in length.
    #[error("columns differ in length")]
    Columns,
    /// A row names a series that is not there.
    #[error("a row is about a series that is not there")]
    Series,
    /// Rows are not in order, or two are about the same.
    #[error("rows are not in order")]
    Order,
    /// A row is about a time that the part has nothing to say about.
    #[error("a row is about a time outside of the part")]
    Time,
    /// A row is of a kind the leaf does not make.
    #[error("a row is of a kind that the leaf does not make")]
    Kind,
    /// A state makes no sense.
    #[error(transparent)]
    State(#[from] BadState),
}

impl PartTable {
    /// The part as a table.
    pub fn of(leaf: &Leaf, part: &LeafPart) -> Self {
        Self::of_unless(leaf, part, &|| false).expect("nobody cancels it")
    }

    /// The same, unless it is told to stop: it asks within milliseconds.
    pub fn of_unless(
        leaf: &Leaf,
        part: &LeafPart,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Option<Self> {
        let mut table = Self { metrics: part.metrics.clone(), ..Self::default() };
        let at = |step: usize| leaf.windows.get(step).at;
        let mut others = Vec::new();
        let mut rows: &[Row] = &[];
        match &part.values {
            PartValues::Rows(values) => {
                rows = values;
                rows.iter().for_each(|row| _ = table.series_number(&row.labels));
            }
            PartValues::Groups(groups) => {
                for group in groups.columns() {
                    let series = table.series_number(group.labels);
                    for (step, columns) in group.states {
                        let (ts, drop_name) = (at(part.complete.start + step), group.drop_name);
                        let kind = RowKind::Group;
                        others.push(PartRow { ts, series, kind, drop_name, columns });
                    }
                }
            }
        }
        for crossing in &part.crossing {
            if is_cancelled() {
                return None;
            }
            table.add_crossing(crossing, at, &mut others);
        }
        others.sort_by_key(|row| (row.ts, row.series, row.kind));
        let mut others = others.into_iter().peekable();
        for (place, step) in part.complete.clone().enumerate() {
            let ts = at(step);
            for (series, row) in (0..).zip(rows) {
                if series % ROWS_AT_ONCE == 0 && is_cancelled() {
                    return None;
                }
                let value = row.values[place];
                if is_absent(value) {
                    continue;
                }
                while let Some(other) =
                    others.next_if(|other| (other.ts, other.series) < (ts, series))
                {
                    table.push(other);
                }
                table.push_row(ts, series, RowKind::Value, row.drop_name, value);
            }
        }
        others.for_each(|other| table.push(other));
        Some(table)
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.ts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ts.is_empty()
    }

    /// The part of a leaf over a span that a table is.
    pub fn into_part(self, leaf: &Leaf, span: TimeSpan, place: u32) -> Result<LeafPart, BadPart> {
        // An empty run knows which steps the span is about, and of which kind its values are.
        let limits = EvalLimits::default();
        let mut part = LeafRun::new(leaf, span, place, &limits).finish();
        part.metrics = self.metrics;
        let columns =
            [self.series_of.len(), self.kind.len(), self.drop_name.len(), self.value.len()];
        if columns.iter().any(|length| *length != self.ts.len()) {
            return Err(BadPart::Columns);
        }
        let key = |row: usize| (self.ts[row], self.series_of[row], self.kind[row]);
        if !(1..self.ts.len()).all(|row| key(row - 1) < key(row)) {
            return Err(BadPart::Order);
        }
        let mut counted = self.counted.into_iter().peekable();
        let mut bytes = self.bytes.into_iter().peekable();
        let mut assembly = Assembly::new(leaf, &part, &self.series);
        for number in 0..self.ts.len() {
            let (ts, series, kind) = (self.ts[number], self.series_of[number], self.kind[number]);
            let (drop_name, value) = (self.drop_name[number], self.value[number]);
            let labels = self.series.get(series as usize).ok_or(BadPart::Series)?;
            let (low, count) = counted
                .next_if(|(row, ..)| *row == number)
                .map_or((0.0, 0), |(_, low, count)| (low, count));
            let bytes = bytes.next_if(|(row, _)| *row == number).map(|(_, bytes)| bytes);
            let columns = StateColumns { value, low, count, bytes };
            let row = PartRow { ts, series, kind, drop_name, columns };
            match (kind, &mut part.values) {
                (RowKind::Value, PartValues::Rows(_)) => assembly.value(&row)?,
                (RowKind::Group, PartValues::Groups(groups)) => {
                    let step = assembly.complete_step(ts)?;
                    groups.set(labels, drop_name, step, &row.columns)?;
                }
                (RowKind::State, _) => assembly.state(&row)?,
                (RowKind::Sample, _) => assembly.sample(&row)?,
                _ => return Err(BadPart::Kind),
            }
        }
        let (rows, crossing) = assembly.finish();
        if let PartValues::Rows(held) = &mut part.values {
            *held = rows;
        }
        part.crossing = crossing;
        Ok(part)
    }

    fn series_number(&mut self, labels: &Labels) -> u32 {
        self.series.push(labels.clone());
        u32::try_from(self.series.len() - 1).expect("series are limited to far less")
    }

    fn push_row(&mut self, ts: i64, series: u32, kind: RowKind, drop_name: bool, value: f64) {
        self.ts.push(ts);
        self.series_of.push(series);
        self.kind.push(kind);
        self.drop_name.push(drop_name);
        self.value.push(value);
    }

    fn push(&mut self, row: PartRow) {
        let (number, columns) = (self.ts.len(), row.columns);
        self.push_row(row.ts, row.series, row.kind, row.drop_name, columns.value);
        if columns.count > 0 {
            self.counted.push((number, columns.low, columns.count));
        }
        if let Some(bytes) = columns.bytes {
            self.bytes.push((number, bytes));
        }
    }

    fn add_crossing(
        &mut self,
        crossing: &CrossingSeries,
        at: impl Fn(usize) -> i64,
        rows: &mut Vec<PartRow>,
    ) {
        let series = self.series_number(&crossing.labels);
        let mut push = |ts, kind, columns| {
            rows.push(PartRow { ts, series, kind, drop_name: false, columns });
        };
        match &crossing.crossing {
            Crossing::States(states) => {
                for (step, fold) in states {
                    let mut bytes = Vec::new();
                    fold.write(&mut bytes);
                    let columns = StateColumns { bytes: Some(bytes), ..StateColumns::default() };
                    push(at(*step), RowKind::State, columns);
                }
            }
            Crossing::Samples(ts, values) => {
                for (t, value) in ts.iter().zip(values) {
                    let columns = StateColumns { value: *value, ..StateColumns::default() };
                    push(*t, RowKind::Sample, columns);
                }
            }
        }
    }
}

/// Series of a part being put together.
struct Assembly<'a> {
    leaf: &'a Leaf,
    series: &'a [Labels],
    span: TimeSpan,
    complete: Range<usize>,
    crossing_steps: [Range<usize>; 2],
    rows: Vec<Option<Row>>,
    crossing: Vec<Option<Crossing>>,
}

impl<'a> Assembly<'a> {
    fn new(leaf: &'a Leaf, part: &LeafPart, series: &'a [Labels]) -> Self {
        Self {
            leaf,
            series,
            span: part.span,
            complete: part.complete.clone(),
            crossing_steps: part.crossing_steps(),
            rows: vec![None; series.len()],
            crossing: vec![None; series.len()],
        }
    }

    /// The number of the step at an instant.
    fn step(&self, ts: i64) -> Result<usize, BadPart> {
        let windows = &self.leaf.windows;
        let distance = ts.checked_sub(windows.at).ok_or(BadPart::Time)?;
        if distance % windows.step != 0 {
            return Err(BadPart::Time);
        }
        let step = usize::try_from(distance / windows.step).map_err(|_| BadPart::Time)?;
        if step < windows.count { Ok(step) } else { Err(BadPart::Time) }
    }

    /// The place of an instant among the complete steps.
    fn complete_step(&self, ts: i64) -> Result<usize, BadPart> {
        let step = self.step(ts)?;
        if self.complete.contains(&step) {
            Ok(step - self.complete.start)
        } else {
            Err(BadPart::Time)
        }
    }

    fn value(&mut self, row: &PartRow) -> Result<(), BadPart> {
        let step = self.complete_step(row.ts)?;
        let series = row.series as usize;
        let held = self.rows[series].get_or_insert_with(|| Row {
            labels: self.series[series].clone(),
            drop_name: row.drop_name,
            values: nothing(self.complete.len()),
        });
        if row.columns.value.to_bits() == ABSENT.to_bits() {
            return Err(BadPart::Kind);
        }
        held.values[step] = row.columns.value;
        Ok(())
    }

    fn state(&mut self, row: &PartRow) -> Result<(), BadPart> {
        let LeafOutput::Value(function) = self.leaf.output else { return Err(BadPart::Kind) };
        let step = self.step(row.ts)?;
        if !self.crossing_steps.iter().any(|steps| steps.contains(&step)) {
            return Err(BadPart::Time);
        }
        let bytes = row.columns.bytes.as_deref().ok_or(BadState)?;
        let fold = Fold::read(function, bytes)?;
        let crossing = &mut self.crossing[row.series as usize];
        match crossing.get_or_insert_with(|| Crossing::States(Vec::new())) {
            Crossing::States(states) => states.push((step, fold)),
            Crossing::Samples(..) => return Err(BadPart::Kind),
        }
        Ok(())
    }

    fn sample(&mut self, row: &PartRow) -> Result<(), BadPart> {
        if row.ts < self.span.from || row.ts >= self.span.to {
            return Err(BadPart::Time);
        }
        let crossing = &mut self.crossing[row.series as usize];
        match crossing.get_or_insert_with(|| Crossing::Samples(Vec::new(), Vec::new())) {
            Crossing::Samples(ts, values) => {
                ts.push(row.ts);
                values.push(row.columns.value);
            }
            Crossing::States(_) => return Err(BadPart::Kind),
        }
        Ok(())
    }

    fn finish(self) -> (Vec<Row>, Vec<CrossingSeries>) {
        let mut rows: Vec<Row> = self.rows.into_iter().flatten().collect();
        rows.sort_by(|one, other| one.labels.cmp(&other.labels));
        let crossing = self.series.iter().zip(self.crossing).filter_map(|(labels, crossing)| {
            Some(CrossingSeries { labels: labels.clone(), crossing: crossing? })
        });
        let mut crossing: Vec<CrossingSeries> = crossing.collect();
        crossing.sort_by(|one, other| one.labels.cmp(&other.labels));
        (rows, crossing)
    }
}
