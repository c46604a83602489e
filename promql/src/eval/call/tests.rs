//! Calls from end to end: arguments in, series and annotations out. Expected values are those that
//! Prometheus gives.

mod histogram;
mod info;
mod label;
mod value;

use super::*;
use crate::annotation::{Annotations, Level};
use crate::eval::Steps;
use crate::features::Options;
use crate::functions::function_named;
use crate::limits::EvalLimits;
use crate::parse::{SeriesItem, parse_series};
use crate::span::Span;

/// The context of a range query of so many minutes, from zero on, as Prometheus has it by default
/// in its own tests.
fn minutes(count: usize) -> Context {
    Context {
        steps: Steps { start: 0, step: 60_000, count },
        delayed_name_removal: true,
        is_instant: false,
        annotations: Annotations::default(),
        limits: EvalLimits::default(),
    }
}

/// The context of an instant query at zero.
fn instant() -> Context {
    Context { is_instant: true, ..minutes(1) }
}

fn without_delay(ctx: Context) -> Context {
    Context { delayed_name_removal: false, ..ctx }
}

/// Series as test scripts describe them: `up{job="a"} 1 _ 3`.
fn frame(series: &[&str]) -> Frame {
    let row = |text: &&str| {
        let description = parse_series(text, &Options::default()).unwrap();
        let mut values = Vec::new();
        for item in description.items {
            match item {
                SeriesItem::Missing { count } => (0..count).for_each(|_| values.push(ABSENT)),
                SeriesItem::Floats { first, change, more } => {
                    values.extend((0..=more).map(|at| first + change * at as f64));
                }
                SeriesItem::Histograms { .. } => unreachable!("there are none in these tests"),
            }
        }
        Row { labels: Labels::new(&description.labels).unwrap(), drop_name: false, values }
    };
    Frame { rows: series.iter().map(row).collect() }
}

fn series(texts: &[&str]) -> Value {
    Value::Vector(frame(texts))
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}

/// A scalar of one step.
fn number(value: f64) -> Value {
    Value::Scalar(vec![value])
}

/// Calls a function whose arguments stand at the second, twelfth, twenty-second … column.
fn try_call(name: &str, args: Vec<Value>, ctx: &mut Context) -> Result<Value, EvalError> {
    let spans = (0..args.len()).map(|at| Span::new(1 + 10 * at, 9 + 10 * at)).collect();
    let name = function_named(name).expect("there is such a function").name;
    call(&CallSite { name, span: Span::new(0, 99), args: spans }, args, ctx)
}

/// The series of a frame as they would be answered, in their order: labels and values.
fn shown(frame: Frame) -> Vec<String> {
    let row = |row: Row| {
        let labels = if row.drop_name { row.labels.without_metadata() } else { row.labels };
        let values = row.values.iter().map(|value| match value {
            value if is_absent(*value) => " _".to_owned(),
            value => format!(" {value}"),
        });
        format!("{labels}{}", values.collect::<String>())
    };
    frame.rows.into_iter().map(row).collect()
}

/// Calls a function that gives a vector.
fn vector_of(name: &str, args: Vec<Value>, ctx: &mut Context) -> Vec<String> {
    match try_call(name, args, ctx) {
        Ok(Value::Vector(frame)) => shown(frame),
        other => panic!("{name}: {other:?}"),
    }
}

/// Calls a function that gives a scalar.
fn scalar_of(name: &str, args: Vec<Value>, ctx: &mut Context) -> Vec<f64> {
    match try_call(name, args, ctx) {
        Ok(Value::Scalar(values)) => values,
        other => panic!("{name}: {other:?}"),
    }
}

/// Calls a function that fails.
fn error_of(name: &str, args: Vec<Value>, ctx: &mut Context) -> String {
    try_call(name, args, ctx).unwrap_err().to_string()
}

/// The annotations of a context, without the places they are at.
fn warnings(ctx: &Context) -> Vec<String> {
    ctx.annotations.texts(Level::Warning, "")
}
