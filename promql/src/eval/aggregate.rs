//! Aggregations over the rows of a frame.

use super::{Context, EvalError, Value};
use crate::aggregate::{Groups, Rank, Reduction, keep_ranked, members_of_groups};
use crate::eval::exec::ExecNode;
use crate::expr::Grouping;
use crate::frame::{Frame, Row, nothing, present};
use crate::number::in_short;
use crate::op::AggregateOp;
use crate::quote::quoted;
use crate::span::Span;
use crate::window::{ABSENT, is_absent, quantile};

/// An aggregation.
#[derive(Clone, Debug)]
pub struct AggregateNode {
    /// Which one.
    pub op: AggregateOp,
    /// Its parameter.
    pub param: Option<ExecNode>,
    /// The vector.
    pub expr: ExecNode,
    /// Which series come together.
    pub grouping: Grouping,
    /// Where the parameter stands.
    pub param_span: Span,
}

/// The aggregations that make one series of a group and need no parameter.
pub(crate) fn reduction_of(op: AggregateOp) -> Option<Reduction> {
    Some(match op {
        AggregateOp::Sum => Reduction::Sum,
        AggregateOp::Avg => Reduction::Avg,
        AggregateOp::Count => Reduction::Count,
        AggregateOp::Group => Reduction::Group,
        AggregateOp::Min => Reduction::Min,
        AggregateOp::Max => Reduction::Max,
        AggregateOp::Stddev => Reduction::Stddev,
        AggregateOp::Stdvar => Reduction::Stdvar,
        _ => return None,
    })
}

/// Aggregates a vector.
pub(crate) fn aggregate(
    node: &AggregateNode,
    param: Option<Value>,
    frame: Frame,
    ctx: &mut Context,
) -> Result<Frame, EvalError> {
    let grouping = &node.grouping;
    if let Some(reduction) = reduction_of(node.op) {
        let mut groups = Groups::new(reduction, ctx.steps.count);
        for row in &frame.rows {
            groups.add(grouping, &row.labels, row.drop_name, &row.values, 0);
        }
        return Ok(groups.finish());
    }
    match (node.op, param) {
        (AggregateOp::CountValues, Some(Value::String(label))) => {
            let label = label_name(&label)?;
            let mut groups = Groups::counting(ctx.steps.count);
            for row in &frame.rows {
                let (labels, values) = (&row.labels, &row.values);
                groups.count_values(grouping, &label, labels, values, 0, &ctx.limits)?;
            }
            Ok(groups.finish())
        }
        (AggregateOp::Quantile, Some(Value::Scalar(param))) => {
            note_quantiles(&param, node.param_span, ctx);
            Ok(quantiles(&frame, grouping, &param))
        }
        (AggregateOp::LimitRatio, Some(Value::Scalar(param))) => {
            limit_ratio(frame, &param, node.param_span, ctx)
        }
        (op, Some(Value::Scalar(param))) => ranked(op, frame, grouping, &param, ctx),
        (op, param) => unreachable!("the parser gives {op} a parameter of its type: {param:?}"),
    }
}

/// The label `count_values` writes to.
pub(crate) fn label_name(bytes: &[u8]) -> Result<String, EvalError> {
    match str::from_utf8(bytes) {
        Ok(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(EvalError::invalid(format!("invalid label name {}", quoted(bytes)))),
    }
}

/// Least and largest parameter; NaN if any is.
fn extent(param: &[f64]) -> (f64, f64) {
    if param.iter().any(|value| value.is_nan()) {
        return (f64::NAN, f64::NAN);
    }
    let least = param.iter().copied().fold(f64::INFINITY, f64::min);
    (least, param.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

/// `topk`, `bottomk` and `limitk`.
fn ranked(
    op: AggregateOp,
    mut frame: Frame,
    grouping: &Grouping,
    param: &[f64],
    ctx: &Context,
) -> Result<Frame, EvalError> {
    let (least, largest) = extent(param);
    if largest < 1.0 {
        return Ok(Frame::default());
    }
    if largest.is_nan() {
        return Err(EvalError::invalid("Parameter value is NaN"));
    }
    if least <= -9_223_372_036_854_775_808.0 {
        let value = in_short(least);
        return Err(EvalError::invalid(format!("Scalar value {value} underflows int64")));
    }
    if largest >= 9_223_372_036_854_775_807.0 {
        let value = in_short(largest);
        return Err(EvalError::invalid(format!("Scalar value {value} overflows int64")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least zero")]
    let count = |step: usize| param[step].max(0.0) as usize;
    if op == AggregateOp::Limitk {
        keep_first(&mut frame.rows, grouping, count);
        return Ok(frame);
    }
    let largest = op == AggregateOp::Topk;
    keep_ranked(&mut frame.rows, grouping, |step| Rank { count: count(step), largest });
    if ctx.is_instant {
        // The first of each group come first, groups in the order they are met.
        let groups = members_of_groups(&frame.rows, grouping);
        let rank = Rank { count: 0, largest };
        let order = groups.into_iter().flat_map(|mut members| {
            members.sort_by(|one, other| {
                rank.compare(frame.rows[*one].values[0], frame.rows[*other].values[0])
            });
            members
        });
        frame.rows = order.map(|index| frame.rows[index].clone()).collect();
    }
    Ok(frame)
}

/// Keeps the first series of each group that are there.
fn keep_first(rows: &mut Vec<Row>, grouping: &Grouping, count: impl Fn(usize) -> usize) {
    let steps = rows.first().map_or(0, |row| row.values.len());
    for members in members_of_groups(rows, grouping) {
        for step in 0..steps {
            let mut left = count(step);
            for index in &members {
                let value = &mut rows[*index].values[step];
                if is_absent(*value) {
                    continue;
                }
                if left == 0 {
                    *value = ABSENT;
                } else {
                    left -= 1;
                }
            }
        }
    }
    rows.retain(Row::has_values);
}

fn limit_ratio(
    mut frame: Frame,
    param: &[f64],
    span: Span,
    ctx: &mut Context,
) -> Result<Frame, EvalError> {
    let (least, largest) = extent(param);
    if least == 0.0 && largest == 0.0 {
        return Ok(Frame::default());
    }
    if largest.is_nan() {
        return Err(EvalError::invalid("Ratio value is NaN"));
    }
    for (value, cap) in [(largest, 1.0), (least, -1.0)] {
        if value * cap > 1.0 {
            let value = in_short(value);
            let message =
                format!("ratio value should be between -1 and 1, got {value}, capping to {cap}");
            ctx.annotations.warn(span, message);
        }
    }
    for row in &mut frame.rows {
        #[expect(clippy::cast_precision_loss, reason = "a place between 0 and 1")]
        let place = row.labels.prometheus_hash() as f64 / u64::MAX as f64;
        for (value, ratio) in row.values.iter_mut().zip(param) {
            let ratio = ratio.clamp(-1.0, 1.0);
            let stays = if ratio >= 0.0 { place < ratio } else { place >= 1.0 + ratio };
            if !stays {
                *value = ABSENT;
            }
        }
    }
    frame.rows.retain(Row::has_values);
    Ok(frame)
}

fn note_quantiles(param: &[f64], span: Span, ctx: &mut Context) {
    let mut note = |value| ctx.annotations.warn(span, super::bad_quantile(value));
    if param.iter().any(|value| value.is_nan()) {
        note(f64::NAN);
    }
    let known = || param.iter().copied().filter(|value| !value.is_nan());
    let largest = known().fold(f64::NEG_INFINITY, f64::max);
    if largest > 1.0 {
        note(largest);
    }
    let least = known().fold(f64::INFINITY, f64::min);
    if least < 0.0 {
        note(least);
    }
}

fn quantiles(frame: &Frame, grouping: &Grouping, param: &[f64]) -> Frame {
    let mut scratch = Vec::new();
    let groups = members_of_groups(&frame.rows, grouping).into_iter().map(|members| {
        let mut values = nothing(param.len());
        for (step, out) in values.iter_mut().enumerate() {
            scratch.clear();
            let there = members.iter().map(|index| frame.rows[*index].values[step]);
            scratch.extend(there.filter(|value| !is_absent(*value)));
            if !scratch.is_empty() {
                *out = present(quantile(param[step], &mut scratch));
            }
        }
        let first = &frame.rows[members[0]];
        let drop_name = members.iter().any(|index| frame.rows[*index].drop_name);
        Row { labels: grouping.key(&first.labels), drop_name, values }
    });
    let mut rows: Vec<Row> = groups.filter(Row::has_values).collect();
    rows.sort_by(|a, b| a.labels.cmp(&b.labels));
    Frame { rows }
}
