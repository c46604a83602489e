//! Arithmetic on durations, kept symbolic until a query's step and range are known, and its
//! evaluation. Plain durations are `duration`'s.

use thiserror::Error;

use crate::duration::{PromDuration, is_in_range};
use crate::expr::Number;
use crate::op::BinaryOp;
use crate::span::Span;

/// A range, a step or an offset as a query gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DurationValue {
    /// It is known from the text alone.
    Fixed(PromDuration),
    /// It depends on the query's step or range, or was written as arithmetic.
    Computed(Box<DurationExpr>),
}

/// Arithmetic on durations. Numbers are seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DurationExpr {
    /// `300` or `5m`.
    Number(Number),
    /// `step()`: the query's step.
    Step(Span),
    /// `range()`: the query's end less its start.
    Range(Span),
    /// `-…`
    Negative {
        /// What is negated.
        operand: Box<DurationExpr>,
        /// Where the sign stands.
        start: usize,
    },
    /// `max_of(…, …)` or `min_of(…, …)`.
    Pick {
        /// Which of the two.
        pick: Pick,
        /// The first.
        left: Box<DurationExpr>,
        /// The second.
        right: Box<DurationExpr>,
    },
    /// Two operands and an operator between them.
    Binary {
        /// The operator.
        op: DurationOp,
        /// The operand before it.
        left: Box<DurationExpr>,
        /// The operand after it.
        right: Box<DurationExpr>,
    },
    /// `(…)`. Never directly inside another.
    Paren {
        /// What stands between the parentheses.
        inner: Box<DurationExpr>,
        /// Where it begins, for error messages.
        start: usize,
    },
}

/// Which of two durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The longer one.
    Max,
    /// The shorter one.
    Min,
}

/// An operator between durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `^`
    Pow,
}

impl DurationOp {
    /// The operator that durations share with other operands, if they do.
    pub(crate) const fn of(op: BinaryOp) -> Option<Self> {
        Some(match op {
            BinaryOp::Add => Self::Add,
            BinaryOp::Sub => Self::Sub,
            BinaryOp::Mul => Self::Mul,
            BinaryOp::Div => Self::Div,
            BinaryOp::Mod => Self::Mod,
            BinaryOp::Pow => Self::Pow,
            _ => return None,
        })
    }

    /// The operator as it is printed.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Pow => "^",
        }
    }
}

/// What durations may refer to: the query that is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryTimes {
    /// Time between two evaluations.
    pub step: PromDuration,
    /// Time from the first evaluation to the last.
    pub range: PromDuration,
}

/// Why a duration has no usable value. Prints as Prometheus does, with the bytes it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{}:{}: {what}", span.start, span.end)]
pub struct DurationError {
    /// The bytes of the query's text.
    pub span: Span,
    /// What is wrong with it.
    pub what: DurationProblem,
}

/// What is wrong with a duration's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DurationProblem {
    /// It is divided by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// It is the remainder of a division by zero.
    #[error("modulo by zero")]
    ModuloByZero,
    /// It is no finite number.
    #[error("duration is NaN or infinite")]
    NotFinite,
    /// It is zero or less where only more makes sense.
    #[error("duration must be greater than 0")]
    NotPositive,
    /// It is longer than about 292 years.
    #[error("duration is out of range")]
    OutOfRange,
}

impl DurationValue {
    /// The value of a range or a step, which is above zero.
    pub fn positive(&self, times: QueryTimes) -> Result<PromDuration, DurationError> {
        self.value(times, true)
    }

    /// The value of an offset, of either sign.
    pub fn signed(&self, times: QueryTimes) -> Result<PromDuration, DurationError> {
        self.value(times, false)
    }

    fn value(&self, times: QueryTimes, above_zero: bool) -> Result<PromDuration, DurationError> {
        match self {
            Self::Fixed(duration) => Ok(*duration),
            Self::Computed(expr) => expr.value(times, above_zero),
        }
    }
}

impl DurationExpr {
    /// The value in seconds, before it is known to be a usable duration.
    pub fn seconds(&self, times: QueryTimes) -> Result<f64, DurationError> {
        Ok(match self {
            Self::Number(number) => number.value,
            Self::Step(_) => times.step.as_seconds(),
            Self::Range(_) => times.range.as_seconds(),
            Self::Negative { operand, .. } => -operand.seconds(times)?,
            Self::Paren { inner, .. } => inner.seconds(times)?,
            Self::Pick { pick, left, right } => {
                pick.of(left.seconds(times)?, right.seconds(times)?)
            }
            Self::Binary { op, left, right } => {
                let (left, right) = (left.seconds(times)?, right.seconds(times)?);
                match op {
                    DurationOp::Add => left + right,
                    DurationOp::Sub => left - right,
                    DurationOp::Mul => left * right,
                    DurationOp::Div if right == 0.0 => {
                        return Err(self.problem(DurationProblem::DivisionByZero));
                    }
                    DurationOp::Div => left / right,
                    DurationOp::Mod if right == 0.0 => {
                        return Err(self.problem(DurationProblem::ModuloByZero));
                    }
                    DurationOp::Mod => left % right,
                    DurationOp::Pow => left.powf(right),
                }
            }
        })
    }

    /// The value as a duration of whole milliseconds.
    fn value(&self, times: QueryTimes, above_zero: bool) -> Result<PromDuration, DurationError> {
        let seconds = self.seconds(times)?;
        if !seconds.is_finite() {
            return Err(self.problem(DurationProblem::NotFinite));
        }
        if above_zero && seconds <= 0.0 {
            return Err(self.problem(DurationProblem::NotPositive));
        }
        if !is_in_range(seconds) {
            return Err(self.problem(DurationProblem::OutOfRange));
        }
        #[expect(clippy::cast_possible_truncation, reason = "towards zero, and in range")]
        let millis = (seconds * 1_000.0) as i64;
        if above_zero && millis == 0 {
            // Nothing happens within a millisecond, and steps of no length never get anywhere.
            return Err(self.problem(DurationProblem::NotPositive));
        }
        Ok(PromDuration::from_millis(millis))
    }

    /// The bytes an error message gives. They leave out some parentheses, as Prometheus' do.
    pub fn span(&self) -> Span {
        match self {
            Self::Number(number) => number.span,
            Self::Step(span) | Self::Range(span) => *span,
            Self::Negative { operand, start } => Span::new(*start, operand.span().end),
            Self::Pick { left, right, .. } | Self::Binary { left, right, .. } => {
                left.span().to(right.span())
            }
            Self::Paren { inner, start } => match **inner {
                Self::Number(number) => Span::new(*start, number.span.end),
                _ => inner.span(),
            },
        }
    }

    fn problem(&self, what: DurationProblem) -> DurationError {
        DurationError { span: self.span(), what }
    }
}

impl Pick {
    /// The word for it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Max => "max_of",
            Self::Min => "min_of",
        }
    }

    /// The pick of the two; not a number if either is none.
    fn of(self, left: f64, right: f64) -> f64 {
        if left.is_nan() || right.is_nan() {
            return f64::NAN;
        }
        match self {
            Self::Max => left.max(right),
            Self::Min => left.min(right),
        }
    }
}
