//! The flow of a query: parts of leaves in, in any order, and values out in time order, as soon as
//! all leaves have what a step needs.

use std::collections::BTreeMap;
use std::ops::{Deref, Range};

use crate::annotation::Annotations;
use crate::answer::{Answer, Data, Points};
use crate::eval::exec::{Chunk, Evaluator};
use crate::eval::extended::extended_samples;
use crate::eval::{EvalError, Value};
use crate::frame::{Frame, Row, SameLabels};
use crate::labels::Labels;
use crate::leaf::{LeafPart, MergeSorted, TimeSpan};
use crate::plan::{Plan, Reach, Root};
use crate::window::{Samples, is_absent};

/// A query at work: lines up the parts of all leaves, step by step. The plan is borrowed or shared.
#[derive(Debug)]
pub struct EvalFlow<P> {
    plan: P,
    merges: Vec<MergeSorted>,
    /// Steps whose values were given out.
    done: usize,
    annotations: Annotations,
    /// What is the same at every step, once it is known.
    once: Vec<Option<Value>>,
    /// Values of all parts that came.
    held: u64,
    /// Parts came to more than a query may hold. The last of them were not kept.
    too_much: Option<EvalError>,
}

/// The values of some steps, in time order.
#[derive(Clone, Debug)]
pub struct FlowChunk {
    /// The instants, in milliseconds.
    pub ts: Vec<i64>,
    /// The series, each with a value or the mark of absence for every instant.
    pub rows: Vec<Row>,
}

/// Chunks put together.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    series: BTreeMap<Labels, Points>,
}

impl Gathered {
    /// Takes the next chunk.
    pub fn take(&mut self, chunk: FlowChunk) {
        for row in chunk.rows {
            let points = self
                .series
                .entry(row.labels.clone())
                .or_insert_with(|| Points { labels: row.labels, ..Points::default() });
            let values = chunk.ts.iter().zip(&row.values);
            for (t, value) in values.filter(|(_, value)| !is_absent(**value)) {
                points.ts.push(*t);
                points.values.push(*value);
            }
        }
    }

    /// All series, by labels.
    pub fn finish(self) -> Data {
        Data::Matrix(self.series.into_values().collect())
    }
}

impl<P: Deref<Target = Plan> + Clone> EvalFlow<P> {
    /// Begins; for every leaf of the plan there will be parts of these spans and places.
    pub fn new(plan: P, expected: Vec<Vec<(TimeSpan, u32)>>) -> Self {
        let limits = &plan.options.limits;
        let merges = plan.leaves.iter().zip(expected);
        let merges = merges
            .map(|(planned, expected)| MergeSorted::new(&planned.leaf, expected, limits))
            .collect();
        let once = vec![None; plan.once];
        let annotations = Annotations::default();
        Self { plan, merges, done: 0, annotations, once, held: 0, too_much: None }
    }

    /// Takes a part of a leaf. Where parts are too large together, whatever is asked for next is
    /// the error.
    pub fn add(&mut self, leaf: usize, part: LeafPart) {
        if self.too_much.is_some() || !self.merges[leaf].expects(&part) {
            return;
        }
        self.held += part.size();
        match self.plan.options.limits.values(self.held) {
            Ok(()) => self.merges[leaf].add(part),
            Err(error) => {
                self.too_much = Some(error);
                self.merges.clear();
            }
        }
    }

    /// The steps that can be evaluated now and were not yet.
    pub fn ready(&self) -> Range<usize> {
        let count = self.plan.grid.count;
        let ready = self.plan.leaves.iter().zip(&self.merges).map(|(planned, merge)| {
            let before = merge.complete_before();
            match planned.reach {
                _ if before == i64::MAX => count,
                Reach::Fixed(at) if at < before => count,
                Reach::Fixed(_) => 0,
                // All steps t with t + reach < before.
                Reach::After(reach) => {
                    let last = before.saturating_sub(1).saturating_sub(reach);
                    self.plan.grid.within(i64::MIN / 4, last.clamp(i64::MIN / 4, i64::MAX / 4)).end
                }
            }
        });
        let end = ready.min().unwrap_or(count);
        self.done..end.max(self.done)
    }

    /// Evaluates the steps that are ready, if there are any.
    pub fn next_chunk(&mut self) -> Result<Option<FlowChunk>, EvalError> {
        if let Some(error) = &self.too_much {
            return Err(error.clone());
        }
        let steps = self.ready();
        if steps.is_empty() {
            return Ok(None);
        }
        let Root::Value(_) = &self.plan.root else { return Ok(None) };
        self.done = steps.end;
        let chunk = Chunk { grid: self.plan.grid, steps };
        let rows = match self.value(&chunk)? {
            Value::Vector(frame) => self.named(frame)?,
            Value::Scalar(values) => {
                vec![Row { labels: Labels::default(), drop_name: false, values }]
            }
            Value::String(_) => Vec::new(),
        };
        Ok(Some(FlowChunk { ts: chunk.instants().iter().collect(), rows }))
    }

    /// What there is to say so far.
    pub fn annotations(&self) -> &Annotations {
        &self.annotations
    }

    /// The whole answer, all parts having come.
    pub fn answer(mut self) -> Result<Answer, EvalError> {
        if let Some(error) = self.too_much {
            return Err(error);
        }
        let data = match &self.plan.root {
            Root::Samples { .. } => self.samples()?,
            Root::Value(_) if self.plan.is_instant => self.instant()?,
            Root::Value(_) => self.range()?,
        };
        Ok(Answer { data, annotations: self.annotations })
    }

    fn value(&mut self, chunk: &Chunk) -> Result<Value, EvalError> {
        let plan = self.plan.clone();
        let Root::Value(root) = &plan.root else {
            unreachable!("a query for samples has no values");
        };
        let mut evaluator = self.evaluator();
        let value = root.eval(&mut evaluator, chunk);
        self.annotations = evaluator.annotations;
        value
    }

    fn evaluator(&mut self) -> Evaluator<'_> {
        let annotations = std::mem::take(&mut self.annotations);
        let (merges, options) = (&self.merges, &self.plan.options);
        let held = self.once.iter().flatten().map(Value::size).sum();
        Evaluator { merges, options, annotations, held, once: &mut self.once }
    }

    /// The rows as the answer has them: names that lost their meaning are gone.
    fn named(&self, frame: Frame) -> Result<Vec<Row>, EvalError> {
        let mut rows = frame.rows;
        for row in rows.iter_mut().filter(|row| row.drop_name) {
            row.labels = row.labels.without_metadata();
        }
        if self.plan.grid.count > 1 {
            return Ok(Frame::collect(rows)?.rows);
        }
        // One step alone: the order of the series may have been asked for.
        rows.retain(Row::has_values);
        let mut labels: Vec<&Labels> = rows.iter().map(|row| &row.labels).collect();
        labels.sort();
        if labels.windows(2).any(|two| two[0] == two[1]) {
            return Err(SameLabels.into());
        }
        Ok(rows)
    }

    fn instant(&mut self) -> Result<Data, EvalError> {
        let t = self.plan.grid.start;
        Ok(match self.value(&Chunk::all(self.plan.grid))? {
            Value::Scalar(values) => Data::Scalar { t, value: values[0] },
            Value::String(bytes) => Data::String { t, bytes },
            Value::Vector(frame) => {
                let rows = self.named(frame)?.into_iter();
                Data::Vector { t, series: rows.map(|row| (row.labels, row.values[0])).collect() }
            }
        })
    }

    fn range(&mut self) -> Result<Data, EvalError> {
        let mut gathered = Gathered::default();
        let mut held = 0;
        while let Some(chunk) = self.next_chunk()? {
            held += (chunk.rows.len() * chunk.ts.len()) as u64;
            self.plan.options.limits.values(held)?;
            gathered.take(chunk);
        }
        Ok(gathered.finish())
    }

    fn samples(&mut self) -> Result<Data, EvalError> {
        let plan = self.plan.clone();
        let Root::Samples { input, window, extension } = &plan.root else {
            unreachable!("a query for values has no samples");
        };
        let chunk = Chunk::all(self.plan.grid);
        let span = window.window(self.plan.grid.start);
        let mut evaluator = self.evaluator();
        let series = input.series(&mut evaluator, window, &chunk);
        self.annotations = evaluator.annotations;
        let mut all = Vec::new();
        for series in series? {
            let mut points = match extension {
                Some(extension) => {
                    extended_samples(*extension, &series.points, span, window.lookback)
                }
                None => {
                    let Points { labels, ts, values } = series.points;
                    let samples = Samples { ts: &ts, values: &values };
                    let inside = samples.within(span.start, span.end);
                    Points { labels, ts: inside.ts.to_vec(), values: inside.values.to_vec() }
                }
            };
            if series.drop_name {
                points.labels = points.labels.without_metadata();
            }
            if !points.ts.is_empty() {
                all.push(points);
            }
        }
        all.sort_by(|one, other| one.labels.cmp(&other.labels));
        if all.windows(2).any(|two| two[0].labels == two[1].labels) {
            return Err(SameLabels.into());
        }
        Ok(Data::Matrix(all))
    }
}
