//! Operators between two operands, and the sign before one, over all steps at once. Operands come
//! evaluated. Numbers are dealt with here; two vectors meet in `join` and in `set`.

mod arithmetic;
mod join;
mod matching;
mod merge;
#[cfg(test)]
mod naive;
mod set;
mod step_set;
#[cfg(test)]
mod tests;

use super::{Context, EvalError, Value};
use crate::expr::VectorMatching;
use crate::frame::{Frame, Row, present};
use crate::op::BinaryOp;
use crate::span::Span;
use crate::window::is_absent;

use arithmetic::Calculation;

/// What an operator makes of its operands at every step. `matching` says how series of two vectors
/// find each other, `span` where the whole expression stands.
pub(crate) fn binary(
    op: BinaryOp,
    matching: Option<&VectorMatching>,
    return_bool: bool,
    lhs: Value,
    rhs: Value,
    span: Span,
    ctx: &mut Context,
) -> Result<Value, EvalError> {
    match (lhs, rhs) {
        (Value::Scalar(lhs), Value::Scalar(rhs)) => Ok(Value::Scalar(of_scalars(op, lhs, &rhs)?)),
        (Value::Vector(vector), Value::Scalar(scalar)) => {
            let operands = WithScalar { op, return_bool, scalar: &scalar, scalar_first: false };
            operands.evaluate(vector, span, ctx).map(Value::Vector)
        }
        (Value::Scalar(scalar), Value::Vector(vector)) => {
            let operands = WithScalar { op, return_bool, scalar: &scalar, scalar_first: true };
            operands.evaluate(vector, span, ctx).map(Value::Vector)
        }
        (Value::Vector(lhs), Value::Vector(rhs)) => {
            let default = VectorMatching::default();
            let matching = matching.unwrap_or(&default);
            let frame = match op {
                BinaryOp::And => set::and(matching, lhs, &rhs, ctx),
                BinaryOp::Or => set::or(matching, lhs, rhs, ctx)?,
                BinaryOp::Unless => set::unless(matching, lhs, &rhs, ctx),
                _ => join::join(op, matching, return_bool, (&lhs, &rhs), span, ctx)?,
            };
            Ok(Value::Vector(frame))
        }
        (Value::String(_), _) | (_, Value::String(_)) => Err(EvalError::invalid(
            "binary expression must contain only scalar and instant vector types",
        )),
    }
}

/// The opposite of a value at every step. A vector's metrics lose their names.
pub(crate) fn negate(value: Value, ctx: &Context) -> Result<Value, EvalError> {
    match value {
        Value::Scalar(mut values) => {
            values.iter_mut().for_each(|value| *value = present(-*value));
            Ok(Value::Scalar(values))
        }
        Value::Vector(mut frame) => {
            frame.rows.retain(Row::has_values);
            for row in &mut frame.rows {
                ctx.drop_name(row);
                for value in row.values.iter_mut().filter(|value| !is_absent(**value)) {
                    *value = present(-*value);
                }
            }
            unnamed(frame.rows, ctx).map(Value::Vector)
        }
        Value::String(_) => Err(EvalError::invalid(
            "unary expression only allowed on expressions of type scalar or instant vector, \
             got \"string\"",
        )),
    }
}

/// Rows whose names have been dropped. While names stay to the end, rows still differ by them.
fn unnamed(rows: Vec<Row>, ctx: &Context) -> Result<Frame, EvalError> {
    let rows = if ctx.delayed_name_removal { rows } else { merge::merged(rows)? };
    Ok(Frame { rows })
}

pub(crate) fn of_scalars(
    op: BinaryOp,
    mut lhs: Vec<f64>,
    rhs: &[f64],
) -> Result<Vec<f64>, EvalError> {
    // Between numbers there is nothing to filter: a comparison always answers 0 or 1.
    let Some(calculation) = Calculation::of(op, true) else {
        let message = format!("operator \"{op}\" not allowed for Scalar operations");
        return Err(EvalError::invalid(message));
    };
    for (left, right) in lhs.iter_mut().zip(rhs) {
        *left = calculation.apply(*left, *right);
    }
    Ok(lhs)
}

/// Says that an operator found no use for two floats, in Prometheus' words.
fn note_incompatible_floats(op: BinaryOp, span: Span, ctx: &mut Context) {
    let message = format!(
        "incompatible sample types encountered for binary operator \"{op}\": float {op} float"
    );
    ctx.annotations.info(span, message);
}

/// An operator between a vector and a number.
struct WithScalar<'a> {
    op: BinaryOp,
    return_bool: bool,
    scalar: &'a [f64],
    /// The number stands before the operator, the vector after it.
    scalar_first: bool,
}

impl WithScalar<'_> {
    fn evaluate(
        &self,
        mut vector: Frame,
        span: Span,
        ctx: &mut Context,
    ) -> Result<Frame, EvalError> {
        let Some(calculation) = Calculation::of(self.op, self.return_bool) else {
            if self.op.is_set_operator() {
                let message =
                    format!("set operator {} not allowed in binary scalar expression", self.op);
                return Err(EvalError::invalid(message));
            }
            if vector.rows.iter().any(Row::has_values) {
                note_incompatible_floats(self.op, span, ctx);
            }
            return Ok(Frame::default());
        };
        for row in &mut vector.rows {
            for (value, scalar) in row.values.iter_mut().zip(self.scalar) {
                if !is_absent(*value) {
                    let (left, right) =
                        if self.scalar_first { (*scalar, *value) } else { (*value, *scalar) };
                    // The value that passes a filter is the vector's, on whichever side it is.
                    *value = calculation.apply_keeping(left, right, *value);
                }
            }
        }
        vector.rows.retain(Row::has_values);
        if !calculation.changes_meaning() {
            return Ok(vector);
        }
        vector.rows.iter_mut().for_each(|row| ctx.drop_name(row));
        unnamed(vector.rows, ctx)
    }
}
