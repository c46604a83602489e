//! Tree → text, in the one canonical form: Prometheus' own, on one line. It reads back as the same
//! tree. Where Prometheus' text would not, this one differs: no millisecond of a duration is lost to
//! rounding, a selector without matchers keeps its braces, label names that are keywords in a list
//! of labels keep their quotes, an infinite base of a power has no sign, and arithmetic after
//! `offset` is kept apart from arithmetic that follows it.
//!
//! The alternate form, `{:#}`, is for an operand before an arithmetic operator: an offset that would
//! take the operator for its own comes before the other modifiers, not after them.

use std::fmt::{self, Display, Formatter};

use crate::duration::PromDuration;
use crate::duration_expr::{DurationExpr, DurationOp, DurationValue};
use crate::expr::{
    Aggregate, At, Binary, Call, Cardinality, Expr, Extension, FillValues, Grouping,
    MatchingLabels, MatrixSelector, Number, StringLiteral, Subquery, VectorMatching,
    VectorSelector,
};
use crate::matcher::{Condition, METRIC_NAME, is_plain_label_name};
use crate::number::{in_full, in_short};
use crate::op::BinaryOp;
use crate::quote::quoted;

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aggregate(aggregate) => aggregate.fmt(f),
            Self::Binary(binary) => binary.fmt(f),
            Self::Call(call) => call.fmt(f),
            Self::Matrix(matrix) => matrix.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Paren(paren) => write!(f, "({})", paren.expr),
            Self::String(string) => string.fmt(f),
            Self::Subquery(subquery) => {
                write!(f, "{}", subquery.expr)?;
                subquery.suffix().fmt(f)
            }
            Self::Unary(unary) => {
                f.write_str(unary.sign.text())?;
                unary.expr.fmt(f)
            }
            Self::Vector(vector) => vector.fmt(f),
        }
    }
}

/// What comes after an expression, as far as its own text depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follower {
    /// `^`
    Power,
    /// Another arithmetic operator.
    Arithmetic,
    /// Anything else, or nothing.
    Other,
}

impl Follower {
    /// After the left operand of this operator.
    pub(crate) const fn of(op: BinaryOp) -> Self {
        match DurationOp::of(op) {
            Some(DurationOp::Pow) => Self::Power,
            Some(_) => Self::Arithmetic,
            None => Self::Other,
        }
    }
}

impl Expr {
    /// As it is printed before what follows.
    pub(crate) fn before(&self, follower: Follower) -> impl Display + '_ {
        fmt::from_fn(move |f| match (self, follower) {
            // Infinity is printed with a plus, but before a power that would be the whole power's.
            (Self::Number(number), Follower::Power) if number.value == f64::INFINITY => {
                f.write_str("Inf")
            }
            (expr, Follower::Power | Follower::Arithmetic) => write!(f, "{expr:#}"),
            (expr, Follower::Other) => write!(f, "{expr}"),
        })
    }
}

impl Display for Aggregate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.head())?;
        if let Some(param) = &self.param {
            write!(f, "{param}, ")?;
        }
        write!(f, "{})", self.expr)
    }
}

impl Aggregate {
    /// All that stands before the arguments.
    pub(crate) fn head(&self) -> impl Display + '_ {
        fmt::from_fn(|f| {
            f.write_str(self.op.text())?;
            match &self.grouping {
                Grouping::By(names) if names.is_empty() => Ok(()),
                Grouping::By(names) => write!(f, " by ({}) ", label_names(names)),
                Grouping::Without(names) => write!(f, " without ({}) ", label_names(names)),
            }
        })
    }
}

impl Display for Binary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.lhs.before(Follower::of(self.op)), self.operator())?;
        self.rhs.fmt(f)
    }
}

impl Binary {
    /// The operator and its modifiers.
    pub(crate) fn operator(&self) -> impl Display + '_ {
        fmt::from_fn(|f| {
            f.write_str(self.op.text())?;
            if self.return_bool {
                f.write_str(" bool")?;
            }
            self.matching.as_ref().map_or(Ok(()), |matching| matching.fmt(f))
        })
    }
}

impl Display for VectorMatching {
    /// A space before each modifier.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let side = match self.cardinality {
            Cardinality::OneToOne | Cardinality::ManyToMany => None,
            Cardinality::ManyToOne => Some("left"),
            Cardinality::OneToMany => Some("right"),
        };
        match &self.labels {
            MatchingLabels::On(names) => write!(f, " on ({})", label_names(names))?,
            MatchingLabels::Ignoring(names) if names.is_empty() && side.is_none() => {}
            MatchingLabels::Ignoring(names) => write!(f, " ignoring ({})", label_names(names))?,
        }
        if let Some(side) = side {
            write!(f, " group_{side} ({})", label_names(&self.include))?;
        }
        self.fill.fmt(f)
    }
}

impl Display for FillValues {
    /// A space before each modifier.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match (self.left, self.right) {
            (Some(left), Some(right)) if left == right => {
                return write!(f, " fill ({})", in_short(left));
            }
            _ => {}
        }
        if let Some(left) = self.left {
            write!(f, " fill_left ({})", in_short(left))?;
        }
        if let Some(right) = self.right {
            write!(f, " fill_right ({})", in_short(right))?;
        }
        Ok(())
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.function.name)?;
        for (index, arg) in self.args.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{arg}")?;
        }
        f.write_str(")")
    }
}

impl Display for VectorSelector {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.series())?;
        let (at, extension) = (at(self.at), extension(self.extension));
        with_offset(f, self.offset.as_ref(), format_args!("{at}{extension}"))
    }
}

impl VectorSelector {
    /// The name and the matchers, without any modifier.
    fn series(&self) -> impl Display + '_ {
        fmt::from_fn(|f| {
            let name = self.name.as_deref().unwrap_or("");
            f.write_str(name)?;
            let mut opened = false;
            for matcher in &self.matchers {
                let is_the_name = matcher.name == METRIC_NAME
                    && !name.is_empty()
                    && matches!(&matcher.condition, Condition::Equal(value) if value == name);
                if is_the_name {
                    continue;
                }
                f.write_str(if opened { "," } else { "{" })?;
                opened = true;
                matcher.fmt(f)?;
            }
            if opened {
                f.write_str("}")
            } else if name.is_empty() {
                f.write_str("{}")
            } else {
                Ok(())
            }
        })
    }
}

impl Display for MatrixSelector {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let vector = &self.vector;
        write!(f, "{}[{}]", vector.series(), self.range)?;
        let (at, extension) = (at(vector.at), extension(vector.extension));
        with_offset(f, vector.offset.as_ref(), format_args!("{extension}{at}"))
    }
}

impl Subquery {
    /// The brackets and all that follows them.
    pub(crate) fn suffix(&self) -> impl Display + '_ {
        fmt::from_fn(|f| {
            write!(f, "[{}:", self.range)?;
            if let Some(step) = &self.step {
                step.fmt(f)?;
            }
            f.write_str("]")?;
            with_offset(f, self.offset.as_ref(), format_args!("{}", at(self.at)))
        })
    }
}

impl Display for Number {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match PromDuration::from_seconds(self.value) {
            Some(cut) if self.is_duration => {
                // In the longest durations a float's milliseconds fall short of whole ones.
                let next = if self.value < 0.0 { -1 } else { 1 };
                let next = PromDuration::from_millis(cut.as_millis() + next);
                if next.as_seconds() == self.value { next.fmt(f) } else { cut.fmt(f) }
            }
            _ => f.write_str(&in_full(self.value)),
        }
    }
}

impl Display for StringLiteral {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(&self.bytes))
    }
}

impl DurationValue {
    /// After `offset`, arithmetic that follows would be part of it.
    fn goes_on(&self) -> bool {
        matches!(self, Self::Computed(expr) if expr.goes_on())
    }
}

impl Display for DurationValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(duration) => duration.fmt(f),
            Self::Computed(expr) => expr.fmt(f),
        }
    }
}

impl Display for DurationExpr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Step(_) => f.write_str("step()"),
            Self::Range(_) => f.write_str("range()"),
            Self::Negative { operand, .. } => write!(f, "-{operand}"),
            Self::Paren { inner, .. } => write!(f, "({inner})"),
            Self::Pick { pick, left, right } => write!(f, "{}({left}, {right})", pick.text()),
            Self::Binary { op, left, right } => write!(f, "{left} {} {right}", op.text()),
        }
    }
}

/// The offset after the other modifiers, or before them where it would take for its own what
/// follows the whole.
fn with_offset(
    f: &mut Formatter<'_>,
    offset: Option<&DurationValue>,
    others: fmt::Arguments<'_>,
) -> fmt::Result {
    match offset {
        None => f.write_fmt(others),
        Some(offset) if f.alternate() && offset.goes_on() => {
            write!(f, " offset {offset}{others}")
        }
        Some(offset) => write!(f, "{others} offset {offset}"),
    }
}

fn extension(extension: Option<Extension>) -> impl Display {
    fmt::from_fn(move |f| extension.map_or(Ok(()), |extension| write!(f, " {}", extension.text())))
}

fn at(at: Option<At>) -> impl Display {
    fmt::from_fn(move |f| match at {
        None => Ok(()),
        Some(At::Start) => f.write_str(" @ start()"),
        Some(At::End) => f.write_str(" @ end()"),
        Some(At::Timestamp(millis)) => write!(f, " @ {:.3}", millis as f64 / 1_000.0),
    })
}

fn label_names(names: &[String]) -> impl Display + '_ {
    fmt::from_fn(|f| {
        for (index, name) in names.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            if is_plain_label_name(name) && !is_taken(name) {
                f.write_str(name)?;
            } else {
                f.write_str(&quoted(name.as_bytes()))?;
            }
        }
        Ok(())
    })
}

/// Words that are something else than a label name even in a list of label names.
fn is_taken(name: &str) -> bool {
    ["without", "inf", "nan"].iter().any(|word| name.eq_ignore_ascii_case(word))
}
