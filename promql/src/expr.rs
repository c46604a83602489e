//! The tree a query is: selectors, calls, aggregations, operators, literals, each with its place in
//! the text. Made by `parse`, which checks types; printed by `print` and `pretty`. What a tree is
//! worth is evaluation's.

use crate::duration_expr::DurationValue;
use crate::functions::Function;
use crate::matcher::Matcher;
use crate::op::{AggregateOp, BinaryOp};
use crate::span::Span;
use crate::value_type::ValueType;

/// A query or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// `sum by (job) (…)`
    Aggregate(Aggregate),
    /// `… + …`
    Binary(Box<Binary>),
    /// `rate(…)`
    Call(Call),
    /// `foo[5m]`
    Matrix(Box<MatrixSelector>),
    /// `1.5` or `5m`
    Number(Number),
    /// `(…)`
    Paren(Paren),
    /// `"…"`
    String(StringLiteral),
    /// `…[1h:5m]`
    Subquery(Box<Subquery>),
    /// `-…`
    Unary(Unary),
    /// `foo{bar="baz"}`
    Vector(Box<VectorSelector>),
}

/// An aggregation over the series of a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// Which one.
    pub op: AggregateOp,
    /// Its parameter, for those that take one.
    pub param: Option<Box<Expr>>,
    /// The vector.
    pub expr: Box<Expr>,
    /// Which series come together.
    pub grouping: Grouping,
    /// Where it stands.
    pub span: Span,
}

/// Which series an aggregation brings together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Those that agree on these labels; without any, all of them.
    By(Vec<String>),
    /// Those that agree on all labels but these.
    Without(Vec<String>),
}

/// An operator between two operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// The operator.
    pub op: BinaryOp,
    /// The operand before it.
    pub lhs: Expr,
    /// The operand after it.
    pub rhs: Expr,
    /// A comparison answers 0 or 1 instead of filtering.
    pub return_bool: bool,
    /// How series of both sides find each other. None unless both operands are vectors.
    pub matching: Option<VectorMatching>,
}

/// How series of both sides of an operator find each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorMatching {
    /// How many of one side go with how many of the other.
    pub cardinality: Cardinality,
    /// The labels they are compared by.
    pub labels: MatchingLabels,
    /// Labels the result takes from the side with fewer series.
    pub include: Vec<String>,
    /// Values for series that find no partner.
    pub fill: FillValues,
}

/// How many series of the left side go with how many of the right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cardinality {
    /// One with one.
    #[default]
    OneToOne,
    /// `group_left`: many with one.
    ManyToOne,
    /// `group_right`: one with many.
    OneToMany,
    /// Many with many, as set operators do.
    ManyToMany,
}

/// The labels two series are compared by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchingLabels {
    /// These.
    On(Vec<String>),
    /// All but these.
    Ignoring(Vec<String>),
}

/// Values that stand in for series without a partner.
#[derive(Clone, Copy, Debug, Default)]
pub struct FillValues {
    /// For a series missing on the left.
    pub left: Option<f64>,
    /// For a series missing on the right.
    pub right: Option<f64>,
}

/// A function applied to arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function.
    pub function: &'static Function,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// Series and the samples of each in a window that ends at the time of evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixSelector {
    /// The series, with the offset, the `@` and the extension of the whole.
    pub vector: VectorSelector,
    /// The length of the window.
    pub range: DurationValue,
    /// Where it stands.
    pub span: Span,
}

/// A number.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Its value; of a duration, seconds.
    pub value: f64,
    /// It was written as a duration and is printed as one.
    pub is_duration: bool,
    /// Where it stands.
    pub span: Span,
}

/// An expression in parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paren {
    /// What stands between them.
    pub expr: Box<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// A string. Escapes can spell bytes that are not UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StringLiteral {
    /// What it stands for.
    pub bytes: Vec<u8>,
    /// Where it stands.
    pub span: Span,
}

/// An expression evaluated at every step of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subquery {
    /// What is evaluated.
    pub expr: Expr,
    /// The length of the window.
    pub range: DurationValue,
    /// Time between two evaluations; none means the default.
    pub step: Option<DurationValue>,
    /// How far back the window is moved.
    pub offset: Option<DurationValue>,
    /// The time that stands for the time of evaluation.
    pub at: Option<At>,
    /// Where it stands.
    pub span: Span,
}

/// A sign before an operand that is no number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unary {
    /// Which sign.
    pub sign: Sign,
    /// The operand.
    pub expr: Box<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// A sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// `+`
    Plus,
    /// `-`
    Minus,
}

/// Series, by their labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorSelector {
    /// The metric's name if it stands before the braces.
    pub name: Option<String>,
    /// Every condition, the name's among them, in the order they are printed.
    pub matchers: Vec<Matcher>,
    /// How far back it looks.
    pub offset: Option<DurationValue>,
    /// The time that stands for the time of evaluation.
    pub at: Option<At>,
    /// How the edges of a window are treated.
    pub extension: Option<Extension>,
    /// Where it stands.
    pub span: Span,
}

/// A time that stands for the time of evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Milliseconds since 1970.
    Timestamp(i64),
    /// The first evaluation of the query.
    Start,
    /// The last evaluation of the query.
    End,
}

/// How the edges of a window are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// With real samples on both edges.
    Anchored,
    /// With values interpolated on both edges.
    Smoothed,
}

impl Expr {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Self::Aggregate(aggregate) => aggregate.span,
            Self::Binary(binary) => binary.span(),
            Self::Call(call) => call.span,
            Self::Matrix(matrix) => matrix.span,
            Self::Number(number) => number.span,
            Self::Paren(paren) => paren.span,
            Self::String(string) => string.span,
            Self::Subquery(subquery) => subquery.span,
            Self::Unary(unary) => unary.span,
            Self::Vector(vector) => vector.span,
        }
    }

    /// The type of its value.
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::Aggregate(_) | Self::Vector(_) => ValueType::Vector,
            Self::Matrix(_) | Self::Subquery(_) => ValueType::Matrix,
            Self::Number(_) => ValueType::Scalar,
            Self::String(_) => ValueType::String,
            Self::Call(call) => call.function.returns,
            Self::Paren(paren) => paren.expr.value_type(),
            Self::Unary(unary) => unary.expr.value_type(),
            Self::Binary(binary) => {
                ValueType::of_binary(binary.lhs.value_type(), binary.rhs.value_type())
            }
        }
    }

    /// What stands within the parentheses around it, if there are any.
    pub fn without_parens(&self) -> &Self {
        match self {
            Self::Paren(paren) => paren.expr.without_parens(),
            other => other,
        }
    }

    /// The parts directly below it, in the order of evaluation: an aggregation's vector before its
    /// parameter.
    pub fn children(&self) -> Vec<&Self> {
        match self {
            Self::Aggregate(aggregate) => {
                let param = aggregate.param.as_deref();
                std::iter::once(&*aggregate.expr).chain(param).collect()
            }
            Self::Binary(binary) => vec![&binary.lhs, &binary.rhs],
            Self::Call(call) => call.args.iter().collect(),
            Self::Paren(paren) => vec![&paren.expr],
            Self::Subquery(subquery) => vec![&subquery.expr],
            Self::Unary(unary) => vec![&unary.expr],
            Self::Matrix(_) | Self::Number(_) | Self::String(_) | Self::Vector(_) => Vec::new(),
        }
    }

    /// The parts directly below it, to be changed, in the same order.
    pub fn children_mut(&mut self) -> Vec<&mut Self> {
        match self {
            Self::Aggregate(aggregate) => {
                let param = aggregate.param.as_deref_mut();
                std::iter::once(&mut *aggregate.expr).chain(param).collect()
            }
            Self::Binary(binary) => vec![&mut binary.lhs, &mut binary.rhs],
            Self::Call(call) => call.args.iter_mut().collect(),
            Self::Paren(paren) => vec![&mut paren.expr],
            Self::Subquery(subquery) => vec![&mut subquery.expr],
            Self::Unary(unary) => vec![&mut unary.expr],
            Self::Matrix(_) | Self::Number(_) | Self::String(_) | Self::Vector(_) => Vec::new(),
        }
    }
}

impl Binary {
    /// Where it stands: from its left operand to its right one.
    pub fn span(&self) -> Span {
        self.lhs.span().to(self.rhs.span())
    }
}

impl Default for Grouping {
    fn default() -> Self {
        Self::By(Vec::new())
    }
}

impl Default for MatchingLabels {
    fn default() -> Self {
        Self::Ignoring(Vec::new())
    }
}

impl MatchingLabels {
    /// The labels, whether compared or ignored.
    pub fn names(&self) -> &[String] {
        match self {
            Self::On(names) | Self::Ignoring(names) => names,
        }
    }
}

impl FillValues {
    /// No value for either side.
    pub const fn is_empty(&self) -> bool {
        self.left.is_none() && self.right.is_none()
    }
}

// A tree equals itself even with a NaN in it, and one NaN is as good as another.
fn same_float(one: f64, other: f64) -> bool {
    one.to_bits() == other.to_bits() || (one.is_nan() && other.is_nan())
}

impl PartialEq for FillValues {
    fn eq(&self, other: &Self) -> bool {
        let same = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => same_float(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        same(self.left, other.left) && same(self.right, other.right)
    }
}

impl Eq for FillValues {}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        same_float(self.value, other.value)
            && self.is_duration == other.is_duration
            && self.span == other.span
    }
}

impl Eq for Number {}

impl Sign {
    /// The sign as it is printed.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
        }
    }
}

impl Extension {
    /// The word for it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Anchored => "anchored",
            Self::Smoothed => "smoothed",
        }
    }
}

impl StringLiteral {
    /// The string as text, unless it is not UTF-8.
    pub fn text(&self) -> Option<&str> {
        str::from_utf8(&self.bytes).ok()
    }
}
