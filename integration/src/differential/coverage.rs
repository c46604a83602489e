//! Which parts of the language a question exercises, by the names under which `page` lists them.

use std::collections::BTreeSet;

use tributary_promql::duration_expr::DurationValue;
use tributary_promql::expr::{At, Cardinality, Grouping, MatchingLabels, Sign, VectorSelector};
use tributary_promql::matcher::{Condition, METRIC_NAME};
use tributary_promql::op::{AggregateOp, BinaryOp};
use tributary_promql::{Expr, functions};

/// Functions that Prometheus 3.5 does not have.
pub const NOT_IN_3_5: &[&str] = &[
    "end",
    "first_over_time",
    "histogram_quantiles",
    "max_of",
    "min_of",
    "range",
    "start",
    "start_timestamp",
    "step",
    "ts_of_first_over_time",
];

/// All aggregations.
pub const AGGREGATIONS: &[AggregateOp] = &[
    AggregateOp::Avg,
    AggregateOp::Bottomk,
    AggregateOp::Count,
    AggregateOp::CountValues,
    AggregateOp::Group,
    AggregateOp::Limitk,
    AggregateOp::LimitRatio,
    AggregateOp::Max,
    AggregateOp::Min,
    AggregateOp::Quantile,
    AggregateOp::Stddev,
    AggregateOp::Stdvar,
    AggregateOp::Sum,
    AggregateOp::Topk,
];

/// All operators between two operands.
pub const OPERATORS: &[BinaryOp] = &[
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Mod,
    BinaryOp::Pow,
    BinaryOp::Atan2,
    BinaryOp::Equal,
    BinaryOp::NotEqual,
    BinaryOp::Less,
    BinaryOp::LessOrEqual,
    BinaryOp::Greater,
    BinaryOp::GreaterOrEqual,
    BinaryOp::TrimUpper,
    BinaryOp::TrimLower,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Unless,
];

/// A part of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A function.
    Function(&'static str),
    /// An aggregation.
    Aggregation(&'static str),
    /// An operator between two operands.
    Operator(&'static str),
    /// Anything else.
    Syntax(Syntax),
}

impl Part {
    /// The function, aggregation or operator that an expression is, parentheses taken off.
    pub fn of(expr: &Expr) -> Option<Self> {
        Some(match expr {
            Expr::Paren(paren) => return Self::of(&paren.expr),
            Expr::Call(call) => Self::Function(call.function.name),
            Expr::Aggregate(aggregate) => Self::Aggregation(aggregate.op.text()),
            Expr::Binary(binary) => Self::Operator(binary.op.text()),
            Expr::Unary(_) => Self::Syntax(Syntax::Negation),
            Expr::Subquery(_) => Self::Syntax(Syntax::Subquery),
            Expr::Matrix(_) | Expr::Number(_) | Expr::String(_) | Expr::Vector(_) => return None,
        })
    }
}

/// Parts of the language that are neither functions nor operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Syntax {
    /// `foo`
    InstantSelector,
    /// `foo[5m]`
    RangeSelector,
    /// `{"foo.bar"}`
    QuotedNames,
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Matches,
    /// `!~`
    MatchesNot,
    /// `offset 5m`
    Offset,
    /// `offset -5m`
    NegativeOffset,
    /// `@ 1609746000`
    AtTime,
    /// `@ start()`
    AtStart,
    /// `@ end()`
    AtEnd,
    /// `[5m * 2]`
    DurationExpression,
    /// `foo[5m:1m]`
    Subquery,
    /// `foo[5m:]`
    SubqueryDefaultStep,
    /// A subquery inside another.
    NestedSubquery,
    /// `by (…)`
    By,
    /// `without (…)`
    Without,
    /// `bool`
    Bool,
    /// `on (…)`
    On,
    /// `ignoring (…)`
    Ignoring,
    /// `group_left`
    GroupLeft,
    /// `group_right`
    GroupRight,
    /// `group_left(a)`
    GroupLabels,
    /// `-foo`
    Negation,
    /// `"…"`
    StringLiteral,
    /// `1.5`
    NumberLiteral,
    /// `step()` and the like where a duration is expected.
    QueryDuration,
    /// `anchored`
    Anchored,
    /// `smoothed`
    Smoothed,
    /// `fill(0)`
    Fill,
}

impl Syntax {
    /// All of them with the way they are written.
    pub const ALL: &[(Self, &str)] = &[
        (Self::InstantSelector, "`foo`"),
        (Self::RangeSelector, "`foo[5m]`"),
        (Self::QuotedNames, "`{\"foo.bar\", \"a.b\"=\"c\"}`"),
        (Self::Equal, "`a=\"b\"`"),
        (Self::NotEqual, "`a!=\"b\"`"),
        (Self::Matches, "`a=~\"b\"`"),
        (Self::MatchesNot, "`a!~\"b\"`"),
        (Self::Offset, "`offset 5m`"),
        (Self::NegativeOffset, "`offset -5m`"),
        (Self::AtTime, "`@ 1609746000`"),
        (Self::AtStart, "`@ start()`"),
        (Self::AtEnd, "`@ end()`"),
        (Self::DurationExpression, "`foo[5m * 2]`"),
        (Self::Subquery, "`…[1h:5m]`"),
        (Self::SubqueryDefaultStep, "`…[1h:]`"),
        (Self::NestedSubquery, "a subquery in a subquery"),
        (Self::By, "`by (…)`"),
        (Self::Without, "`without (…)`"),
        (Self::Bool, "`bool`"),
        (Self::On, "`on (…)`"),
        (Self::Ignoring, "`ignoring (…)`"),
        (Self::GroupLeft, "`group_left`"),
        (Self::GroupRight, "`group_right`"),
        (Self::GroupLabels, "`group_left(a)`, `group_right(a)`"),
        (Self::Negation, "`-foo`"),
        (Self::StringLiteral, "`\"text\"`"),
        (Self::NumberLiteral, "`1.5`, `0x1F`, `1h30m`, `Inf`"),
        (Self::QueryDuration, "`foo[step()]`, `foo[range()]`, `foo[max_of(5m, step())]`"),
        (Self::Anchored, "`foo[5m] anchored`"),
        (Self::Smoothed, "`foo[5m] smoothed`"),
        (Self::Fill, "`fill(0)`, `fill_left(0)`, `fill_right(0)`"),
    ];

    /// Whether it is here, and the feature it needs.
    pub const fn support(self) -> (&'static str, &'static str) {
        match self {
            Self::DurationExpression => ("yes", "`promql-duration-expr`"),
            Self::QueryDuration => ("yes, new since 3.5", "`promql-duration-expr`"),
            Self::Anchored | Self::Smoothed => {
                ("yes, new since 3.5", "`promql-extended-range-selectors`")
            }
            Self::Fill => ("yes, new since 3.5", "`promql-binop-fill-modifiers`"),
            _ => ("yes", "–"),
        }
    }
}

/// Every part, in the order of the page.
pub fn all_parts() -> Vec<Part> {
    let functions = functions::functions().iter().map(|function| Part::Function(function.name));
    let aggregations = AGGREGATIONS.iter().map(|op| Part::Aggregation(op.text()));
    let operators = OPERATORS.iter().map(|op| Part::Operator(op.text()));
    let syntax = Syntax::ALL.iter().map(|(syntax, _)| Part::Syntax(*syntax));
    functions.chain(aggregations).chain(operators).chain(syntax).collect()
}

/// The parts of the language that an expression consists of.
pub fn parts(expr: &Expr) -> BTreeSet<Part> {
    let mut seen = BTreeSet::new();
    collect(expr, 0, &mut seen);
    seen
}

fn collect(expr: &Expr, subqueries: usize, seen: &mut BTreeSet<Part>) {
    let mut inside = subqueries;
    let mut syntax = |part: Syntax| {
        seen.insert(Part::Syntax(part));
    };
    match expr {
        Expr::Aggregate(aggregate) => {
            match &aggregate.grouping {
                Grouping::By(names) if names.is_empty() => {}
                Grouping::By(_) => syntax(Syntax::By),
                Grouping::Without(_) => syntax(Syntax::Without),
            }
            seen.insert(Part::Aggregation(aggregate.op.text()));
        }
        Expr::Binary(binary) => {
            if binary.return_bool {
                syntax(Syntax::Bool);
            }
            if let Some(matching) = &binary.matching {
                match &matching.labels {
                    MatchingLabels::On(_) => syntax(Syntax::On),
                    MatchingLabels::Ignoring(names) if names.is_empty() => {}
                    MatchingLabels::Ignoring(_) => syntax(Syntax::Ignoring),
                }
                match matching.cardinality {
                    Cardinality::ManyToOne => syntax(Syntax::GroupLeft),
                    Cardinality::OneToMany => syntax(Syntax::GroupRight),
                    Cardinality::OneToOne | Cardinality::ManyToMany => {}
                }
                if !matching.include.is_empty() {
                    syntax(Syntax::GroupLabels);
                }
            }
            seen.insert(Part::Operator(binary.op.text()));
        }
        Expr::Call(call) => {
            seen.insert(Part::Function(call.function.name));
        }
        Expr::Matrix(matrix) => {
            syntax(Syntax::RangeSelector);
            duration(Some(&matrix.range), &mut syntax);
            selector(&matrix.vector, &mut syntax);
        }
        Expr::Vector(vector) => {
            syntax(Syntax::InstantSelector);
            selector(vector, &mut syntax);
        }
        Expr::Subquery(subquery) => {
            syntax(Syntax::Subquery);
            if subquery.step.is_none() {
                syntax(Syntax::SubqueryDefaultStep);
            }
            if subqueries > 0 {
                syntax(Syntax::NestedSubquery);
            }
            inside += 1;
            duration(Some(&subquery.range), &mut syntax);
            duration(subquery.step.as_ref(), &mut syntax);
            times(subquery.offset.as_ref(), subquery.at, &mut syntax);
        }
        Expr::Unary(unary) => match unary.sign {
            Sign::Minus => syntax(Syntax::Negation),
            Sign::Plus => {}
        },
        Expr::String(_) => syntax(Syntax::StringLiteral),
        Expr::Number(_) => syntax(Syntax::NumberLiteral),
        Expr::Paren(_) => {}
    }
    for child in expr.children() {
        collect(child, inside, seen);
    }
}

fn selector(selector: &VectorSelector, syntax: &mut impl FnMut(Syntax)) {
    for matcher in &selector.matchers {
        let named = matcher.name == METRIC_NAME && matches!(matcher.condition, Condition::Equal(_));
        if matcher.name.contains('.') || (named && matcher.value().contains('.')) {
            syntax(Syntax::QuotedNames);
        }
        if matcher.name == METRIC_NAME && selector.name.is_some() {
            continue;
        }
        syntax(match matcher.condition {
            Condition::Equal(_) => Syntax::Equal,
            Condition::NotEqual(_) => Syntax::NotEqual,
            Condition::Matches(_) => Syntax::Matches,
            Condition::MatchesNot(_) => Syntax::MatchesNot,
        });
    }
    times(selector.offset.as_ref(), selector.at, syntax);
}

fn times(offset: Option<&DurationValue>, at: Option<At>, syntax: &mut impl FnMut(Syntax)) {
    duration(offset, syntax);
    match offset {
        None => {}
        Some(DurationValue::Fixed(by)) if by.is_negative() => syntax(Syntax::NegativeOffset),
        Some(_) => syntax(Syntax::Offset),
    }
    match at {
        None => {}
        Some(At::Timestamp(_)) => syntax(Syntax::AtTime),
        Some(At::Start) => syntax(Syntax::AtStart),
        Some(At::End) => syntax(Syntax::AtEnd),
    }
}

fn duration(duration: Option<&DurationValue>, syntax: &mut impl FnMut(Syntax)) {
    if let Some(DurationValue::Computed(_)) = duration {
        syntax(Syntax::DurationExpression);
    }
}

#[cfg(test)]
mod tests {
    use tributary_promql::parse;

    use super::*;
    use crate::differential::rewrite;

    fn parts_of(text: &str) -> BTreeSet<Part> {
        parts(&parse(text, &rewrite::options()).unwrap())
    }

    #[test]
    fn parts_are_told_wherever_they_stand() {
        let seen = parts_of(
            "sum by (a) (rate({\"b.c\"}[2m:] offset -1m)) > bool on (a) group_left (x) max_over_time(d{e!~\"f\"}[1m:10s] @ end())",
        );
        for part in [
            Part::Aggregation("sum"),
            Part::Function("rate"),
            Part::Operator(">"),
            Part::Syntax(Syntax::Bool),
            Part::Syntax(Syntax::On),
            Part::Syntax(Syntax::GroupLeft),
            Part::Syntax(Syntax::GroupLabels),
            Part::Syntax(Syntax::SubqueryDefaultStep),
            Part::Syntax(Syntax::NegativeOffset),
            Part::Syntax(Syntax::QuotedNames),
            Part::Syntax(Syntax::MatchesNot),
            Part::Syntax(Syntax::AtEnd),
            Part::Syntax(Syntax::By),
        ] {
            assert!(seen.contains(&part), "{part:?} in {seen:?}");
        }
        assert!(!seen.contains(&Part::Syntax(Syntax::NestedSubquery)));
        let seen = parts_of("max_over_time(sum_over_time(a[5m:1m])[1h:2m * 2] offset 1m)");
        assert!(seen.contains(&Part::Syntax(Syntax::NestedSubquery)));
        assert!(seen.contains(&Part::Syntax(Syntax::DurationExpression)));
    }

    #[test]
    fn every_part_is_listed_once() {
        let all = all_parts();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        for name in NOT_IN_3_5 {
            assert!(functions::function_named(name).is_some(), "{name}");
        }
    }
}
