//! Range functions whose samples come here: those over subqueries, those whose parameters change
//! from step to step, and those whose windows are extended beyond their range. All others are
//! leaves' business.

use super::exec::{Chunk, Evaluator, ExecNode};
use super::extended::{extended_value, smoothed_value};
use super::{EvalError, Steps, Value};
use crate::answer::Points;
use crate::expr::Extension;
use crate::frame::{Frame, Row, nothing};
use crate::limits::Tally;
use crate::span::Span;
use crate::window::{ABSENT, Fold, RangeFunction, Samples, Window, Windows, is_absent, slide};

/// A range function over samples that come here.
#[derive(Clone, Debug)]
pub struct RangeNode {
    /// Which function.
    pub function: RangeCall,
    /// Its parameters, in order.
    pub params: Vec<ExecNode>,
    /// Where the samples come from.
    pub input: RangeInput,
    /// The window of each step.
    pub window: WindowRule,
    /// How the window's edges are treated.
    pub extension: Option<Extension>,
    /// Where the call's first argument stands.
    pub first_arg: Span,
}

/// Where the samples of a range function come from.
#[derive(Clone, Debug)]
pub enum RangeInput {
    /// A leaf of samples.
    Leaf(usize),
    /// An expression evaluated at steps of its own.
    Subquery {
        /// The expression.
        node: ExecNode,
        /// Its steps.
        grid: Steps,
    },
}

/// Which window belongs to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowRule {
    /// The length of the window, in milliseconds.
    pub range: i64,
    /// How far before its step it ends.
    pub offset: i64,
    /// It ends so far before this instant instead.
    pub at: Option<i64>,
    /// How far an instant selector looks back: extended windows reach as far beyond their edges.
    pub lookback: i64,
}

impl WindowRule {
    /// The windows of steps; just one where it is the same for all of them.
    pub fn windows(&self, steps: Steps) -> Windows {
        let Steps { start: at, step, count } = steps;
        let range = self.range;
        match self.at {
            None => Windows { at, offset: self.offset, step, count, range },
            Some(fixed) => Windows { at, offset: at - fixed + self.offset, step, count: 1, range },
        }
    }

    pub(crate) fn window(&self, t: i64) -> Window {
        let end = self.at.unwrap_or(t) - self.offset;
        Window { start: end - self.range, end, at: t }
    }
}

/// An instant selector with `smoothed`.
#[derive(Clone, Copy, Debug)]
pub struct SmoothedNode {
    /// The leaf of samples.
    pub leaf: usize,
    /// Where its instants are; the range says nothing.
    pub window: WindowRule,
}

impl SmoothedNode {
    pub(crate) fn eval(
        &self,
        evaluator: &mut Evaluator<'_>,
        chunk: &Chunk,
    ) -> Result<Frame, EvalError> {
        let steps = chunk.instants();
        let series = evaluator.merges[self.leaf].samples().into_iter();
        let mut tally = evaluator.options.limits.tally();
        let rows = series.map(|points| {
            tally.values(steps.count)?;
            let samples = Samples { ts: &points.ts, values: &points.values };
            let value =
                |t| smoothed_value(samples, self.window.window(t).end, self.window.lookback);
            let values = steps.iter().map(value).collect();
            Ok(Row { labels: points.labels, drop_name: false, values })
        });
        Ok(Frame::collect(rows.collect::<Result<_, EvalError>>()?)?)
    }
}

/// A range function without its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RangeCall {
    /// All that is known.
    Known(RangeFunction),
    /// `quantile_over_time`, with the quantile as parameter.
    Quantile,
    /// `predict_linear`, with the seconds ahead.
    PredictLinear,
    /// `double_exponential_smoothing`, with both factors.
    Smoothing,
}

impl RangeCall {
    /// The function of this name, if it is one of a range vector.
    pub fn named(name: &str) -> Option<Self> {
        use RangeFunction as F;
        Some(Self::Known(match name {
            "rate" => F::Rate { counter: true, per_second: true },
            "increase" => F::Rate { counter: true, per_second: false },
            "delta" => F::Rate { counter: false, per_second: false },
            "irate" => F::Instant { counter: true },
            "idelta" => F::Instant { counter: false },
            "changes" => F::Changes,
            "resets" => F::Resets,
            "count_over_time" => F::Count,
            "present_over_time" => F::Present,
            "sum_over_time" => F::Sum,
            "avg_over_time" => F::Avg,
            "min_over_time" => F::Min,
            "max_over_time" => F::Max,
            "first_over_time" => F::FirstOverTime,
            // Only whether there is a value counts, and names stay, so that series stay apart.
            "last_over_time" | "absent_over_time" => F::LastOverTime,
            "ts_of_first_over_time" => F::TsOfFirst,
            "ts_of_last_over_time" => F::TsOfLast,
            "ts_of_min_over_time" => F::TsOfMin,
            "ts_of_max_over_time" => F::TsOfMax,
            "stddev_over_time" => F::Stddev,
            "stdvar_over_time" => F::Stdvar,
            "mad_over_time" => F::Mad,
            "deriv" => F::Deriv,
            "quantile_over_time" => return Some(Self::Quantile),
            "predict_linear" => return Some(Self::PredictLinear),
            "double_exponential_smoothing" => return Some(Self::Smoothing),
            _ => return None,
        }))
    }

    /// The function with its parameters.
    pub fn with(self, params: &[f64]) -> Result<RangeFunction, EvalError> {
        Ok(match self {
            Self::Known(function) => function,
            Self::Quantile => RangeFunction::Quantile(params[0]),
            Self::PredictLinear => RangeFunction::PredictLinear(params[0]),
            Self::Smoothing => {
                let (factor, trend) = (params[0], params[1]);
                let outside = |value: f64| value <= 0.0 || value >= 1.0;
                if outside(factor) {
                    return Err(EvalError::invalid(format!(
                        "invalid smoothing factor. Expected: 0 < sf < 1, got: {factor:.6}"
                    )));
                }
                if outside(trend) {
                    return Err(EvalError::invalid(format!(
                        "invalid trend factor. Expected: 0 < tf < 1, got: {trend:.6}"
                    )));
                }
                RangeFunction::Smoothing { factor, trend }
            }
        })
    }

    /// Whether the metric's name keeps its meaning.
    pub fn keeps_name(self) -> bool {
        use RangeFunction as F;
        matches!(self, Self::Known(F::LastOverTime | F::FirstOverTime))
    }
}

impl RangeNode {
    pub(crate) fn eval(
        &self,
        evaluator: &mut Evaluator<'_>,
        chunk: &Chunk,
    ) -> Result<Frame, EvalError> {
        let params = self.params(evaluator, chunk)?;
        let before = evaluator.held;
        evaluator.held += (params.len() * chunk.len()) as u64;
        let series = self.input.series(evaluator, &self.window, chunk)?;
        evaluator.held = before;
        let mut rows = Vec::with_capacity(series.len());
        let mut tally = evaluator.options.limits.tally();
        for Series { points, drop_name } in series {
            let samples = Samples { ts: &points.ts, values: &points.values };
            let values = self.values(evaluator, chunk, &params, samples, &mut tally)?;
            if values.iter().all(|value| is_absent(*value)) {
                continue;
            }
            tally.values(values.len())?;
            let mut row = Row { labels: points.labels, drop_name, values };
            if self.function.wants_counters() {
                let (metric, kind) = (row.labels.metric(), row.labels.value("__type__"));
                evaluator.note_counter(metric, kind, self.first_arg);
            }
            if !self.function.keeps_name() {
                row.drop_name = true;
            }
            if row.drop_name && !evaluator.options.delayed_name_removal {
                row.labels = row.labels.without_metadata();
            }
            rows.push(row);
        }
        Ok(Frame::collect(rows)?)
    }

    /// The parameters at every step.
    fn params(
        &self,
        evaluator: &mut Evaluator<'_>,
        chunk: &Chunk,
    ) -> Result<Vec<Vec<f64>>, EvalError> {
        let scalars = self.params.iter().map(|param| match param.eval(evaluator, chunk)? {
            Value::Scalar(values) => Ok(values),
            other => unreachable!("parameters of range functions are scalars, not {other:?}"),
        });
        scalars.collect()
    }

    fn values(
        &self,
        evaluator: &mut Evaluator<'_>,
        chunk: &Chunk,
        params: &[Vec<f64>],
        samples: Samples<'_>,
        tally: &mut Tally,
    ) -> Result<Vec<f64>, EvalError> {
        let steps = chunk.instants();
        let mut out = nothing(steps.count);
        if let (RangeCall::Known(function), None) = (self.function, self.extension) {
            let windows = self.window.windows(steps);
            if function.looks_at_all() {
                tally.window_samples(windows.samples_in_all(samples.ts))?;
            }
            slide(function, samples, windows, &mut out[..windows.count]);
            if self.window.at.is_some() {
                let value = out[0];
                out.fill(value);
            }
            return Ok(out);
        }
        for ((step, t), out) in steps.iter().enumerate().zip(&mut out) {
            let window = self.window.window(t);
            let inside = samples.within(window.start, window.end);
            tally.window_samples(inside.len() as u64)?;
            if let (RangeCall::Known(function), Some(extension)) = (self.function, self.extension) {
                *out = extended_value(function, extension, samples, window, self.window.lookback);
                continue;
            }
            if inside.is_empty() {
                continue;
            }
            let params: Vec<f64> = params.iter().map(|values| values[step]).collect();
            let function = self.function.with(&params)?;
            if let RangeFunction::Quantile(quantile) = function
                && !(0.0..=1.0).contains(&quantile)
            {
                evaluator.annotations.warn(self.first_arg, super::bad_quantile(quantile));
            }
            let mut fold = Fold::new(function);
            fold.extend(function, inside);
            *out = fold.finish(function, window);
        }
        Ok(out)
    }
}

impl RangeCall {
    fn wants_counters(self) -> bool {
        matches!(self, Self::Known(function) if function.wants_counters())
    }
}

/// A series with its samples.
pub(crate) struct Series {
    pub(crate) points: Points,
    pub(crate) drop_name: bool,
}

impl RangeInput {
    /// The samples of every series that windows of a chunk may need, without staleness marks.
    pub(crate) fn series(
        &self,
        evaluator: &mut Evaluator<'_>,
        window: &WindowRule,
        chunk: &Chunk,
    ) -> Result<Vec<Series>, EvalError> {
        match self {
            Self::Leaf(leaf) => {
                let series = evaluator.merges[*leaf].samples().into_iter();
                Ok(series.map(|points| Series { points, drop_name: false }).collect())
            }
            Self::Subquery { node, grid } => {
                let steps = chunk.instants();
                let first = window.window(steps.at(0));
                let last = window.window(steps.at(steps.count - 1));
                let inner = Chunk { grid: *grid, steps: grid.within(first.start, last.end) };
                if inner.steps.is_empty() {
                    return Ok(Vec::new());
                }
                let frame = node.vector(evaluator, &inner)?;
                let instants = inner.instants();
                Ok(frame.rows.into_iter().map(|row| series_of(row, instants)).collect())
            }
        }
    }
}

/// A row as the samples of a series.
fn series_of(row: Row, steps: Steps) -> Series {
    let there =
        steps.iter().zip(row.values).filter(|(_, value)| value.to_bits() != ABSENT.to_bits());
    let (ts, values) = there.unzip();
    Series { points: Points { labels: row.labels, ts, values }, drop_name: row.drop_name }
}
