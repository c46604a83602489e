//! Functions of vectors, scalars and strings, whole rows of values at a time. Functions of windows
//! are the leaves' business, and what depends on the query alone is the plan's: `start()`, `end()`,
//! `step()`, `range()`, and the labels that `absent()` gives.

mod bucket;
mod date;
mod histogram;
mod info;
mod label;
mod math;
mod sort;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::vec;

use super::{CallSite, Context, EvalError, Value};
use crate::frame::{Frame, Row, SameLabels, nothing, present};
use crate::labels::Labels;
use crate::window::{ABSENT, is_absent};

pub(crate) use info::{info, info_matchers};

/// What a call is worth, given what its arguments are worth. Arguments have the types and the
/// number that the function asks for; parsing has seen to it.
pub(crate) fn call(
    site: &CallSite,
    args: Vec<Value>,
    ctx: &mut Context,
) -> Result<Value, EvalError> {
    if let Some(function) = math::of_one_value(site.name) {
        return unnamed(Arguments::new(args).frame().map(function), ctx).map(Value::Vector);
    }
    if let Some(part) = date::part(site.name) {
        return date::call(part, args, ctx).map(Value::Vector);
    }
    let mut args = Arguments::new(args);
    let frame = match site.name {
        "pi" => return Ok(Value::Scalar(vec![std::f64::consts::PI; ctx.steps.count])),
        "time" => return Ok(Value::Scalar(ctx.steps.iter().map(seconds).collect())),
        "scalar" => return Ok(Value::Scalar(scalar(&args.frame(), ctx))),
        "max_of" => {
            return Ok(Value::Scalar(math::of_both(args.scalar(), args.scalar(), math::max)));
        }
        "min_of" => {
            return Ok(Value::Scalar(math::of_both(args.scalar(), args.scalar(), math::min)));
        }
        "vector" => Ok(vector(args.scalar())),
        "timestamp" => timestamp(args.frame(), ctx),
        "clamp" => math::clamp(args.frame(), &args.scalar(), &args.scalar(), ctx),
        "clamp_min" => {
            let highest = vec![f64::INFINITY; ctx.steps.count];
            math::clamp(args.frame(), &args.scalar(), &highest, ctx)
        }
        "clamp_max" => {
            let lowest = vec![f64::NEG_INFINITY; ctx.steps.count];
            math::clamp(args.frame(), &lowest, &args.scalar(), ctx)
        }
        "round" => math::round(args.frame(), args.optional_scalar().as_deref(), ctx),
        "sort" => Ok(sort::by_value(args.frame(), sort::Direction::Up, site, ctx)),
        "sort_desc" => Ok(sort::by_value(args.frame(), sort::Direction::Down, site, ctx)),
        "sort_by_label" => {
            Ok(sort::by_label(args.frame(), &args.strings(), sort::Direction::Up, site, ctx))
        }
        "sort_by_label_desc" => {
            Ok(sort::by_label(args.frame(), &args.strings(), sort::Direction::Down, site, ctx))
        }
        "label_replace" => label::replace(args.frame(), &args.strings(), ctx),
        "label_join" => label::join(args.frame(), &args.strings(), ctx),
        "histogram_quantile" => histogram::quantile(site, &args.scalar(), &args.frame(), ctx),
        "histogram_quantiles" => {
            let (frame, label) = (args.frame(), args.string());
            histogram::quantiles(site, &frame, &label, &args.scalars(), ctx)
        }
        "histogram_fraction" => {
            histogram::fraction(site, &args.scalar(), &args.scalar(), &args.frame(), ctx)
        }
        // Floats are no native histograms and do not tell when their series began.
        "histogram_avg" | "histogram_count" | "histogram_sum" | "histogram_stddev"
        | "histogram_stdvar" | "start_timestamp" => Ok(Frame::default()),
        name => {
            let message = format!("unexpected nil implementation for function {name:?}");
            Err(EvalError::invalid(message))
        }
    };
    frame.map(Value::Vector)
}

/// `absent`: one at the steps where the argument has no series at all.
pub(crate) fn absent(labels: Labels, arg: &Frame, ctx: &Context) -> Frame {
    let mut values = vec![1.0; ctx.steps.count];
    for row in &arg.rows {
        for (value, there) in values.iter_mut().zip(&row.values) {
            if !is_absent(*there) {
                *value = ABSENT;
            }
        }
    }
    let mut frame = Frame::of_one(labels, values);
    frame.rows.retain(Row::has_values);
    frame
}

/// The values of a call's arguments, taken one after the other.
struct Arguments(vec::IntoIter<Value>);

impl Arguments {
    fn new(args: Vec<Value>) -> Self {
        Self(args.into_iter())
    }

    fn frame(&mut self) -> Frame {
        match self.0.next() {
            Some(Value::Vector(frame)) => frame,
            other => unreachable!("parsing checks that a vector stands here, not {other:?}"),
        }
    }

    fn optional_scalar(&mut self) -> Option<Vec<f64>> {
        match self.0.next() {
            None => None,
            Some(Value::Scalar(values)) => Some(values),
            other => unreachable!("parsing checks that a scalar stands here, not {other:?}"),
        }
    }

    fn scalar(&mut self) -> Vec<f64> {
        self.optional_scalar().expect("parsing checks the number of arguments")
    }

    fn scalars(&mut self) -> Vec<Vec<f64>> {
        std::iter::from_fn(|| self.optional_scalar()).collect()
    }

    fn optional_string(&mut self) -> Option<Vec<u8>> {
        match self.0.next() {
            None => None,
            Some(Value::String(bytes)) => Some(bytes),
            other => unreachable!("parsing checks that a string stands here, not {other:?}"),
        }
    }

    fn string(&mut self) -> Vec<u8> {
        self.optional_string().expect("parsing checks the number of arguments")
    }

    fn strings(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.optional_string()).collect()
    }
}

/// Milliseconds as seconds.
fn seconds(millis: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "exact for the next two hundred thousand years")]
    let millis = millis as f64;
    millis / 1000.0
}

/// Says that the metrics' names have lost their meaning. Without them series may be equal.
fn unnamed(mut frame: Frame, ctx: &Context) -> Result<Frame, EvalError> {
    frame.rows.iter_mut().for_each(|row| ctx.drop_name(row));
    if ctx.delayed_name_removal {
        frame.rows.retain(Row::has_values);
        return Ok(frame);
    }
    settled(frame.rows, ctx)
}

/// A frame of rows whose labels may have become equal. Keeps the order of an instant query.
fn settled(mut rows: Vec<Row>, ctx: &Context) -> Result<Frame, EvalError> {
    if !ctx.is_instant {
        return Ok(Frame::collect(rows)?);
    }
    rows.retain(Row::has_values);
    let mut seen = BTreeSet::new();
    if !rows.iter().all(|row| seen.insert(&row.labels)) {
        return Err(SameLabels.into());
    }
    Ok(Frame { rows })
}

/// The value of the one series there is, and NaN at steps with none or several.
fn scalar(frame: &Frame, ctx: &Context) -> Vec<f64> {
    let mut values = nothing(ctx.steps.count);
    for row in &frame.rows {
        for (held, value) in values.iter_mut().zip(&row.values) {
            if !is_absent(*value) {
                *held = if is_absent(*held) { *value } else { f64::NAN };
            }
        }
    }
    values.iter_mut().for_each(|value| *value = present(*value));
    values
}

fn vector(mut values: Vec<f64>) -> Frame {
    values.iter_mut().for_each(|value| *value = present(*value));
    Frame::of_one(Labels::default(), values)
}

/// The time of the step, which is the time of everything that was computed.
fn timestamp(mut frame: Frame, ctx: &Context) -> Result<Frame, EvalError> {
    for row in &mut frame.rows {
        for (value, at) in row.values.iter_mut().zip(ctx.steps.iter()) {
            if !is_absent(*value) {
                *value = seconds(at);
            }
        }
    }
    unnamed(frame, ctx)
}
