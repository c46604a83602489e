//! Types: what each construct asks of its parts, checked in Prometheus' order and refused in its
//! words. Also settles what only the types decide: how a set operator matches, that operators
//! between scalars match nothing, and the order of matchers.

use std::collections::BTreeSet;

use crate::error::ParseError;
use crate::expr::{
    Aggregate, Binary, Call, Cardinality, Expr, MatchingLabels, Subquery, Unary, VectorSelector,
};
use crate::functions::Arity;
use crate::lex::is_space;
use crate::matcher::METRIC_NAME;
use crate::op::AggregateOp;
use crate::quote::quoted;
use crate::span::Span;
use crate::value_type::ValueType;

/// Boxed, because a tree may be high and every level holds one of these on the stack.
type Checked<T> = Result<T, Box<ParseError>>;

/// Checks a tree read from `text`, and gives its type.
pub(crate) fn check(expr: &mut Expr, text: &str) -> Result<ValueType, ParseError> {
    Checker { text }.expr(expr).map_err(|error| *error)
}

struct Checker<'a> {
    text: &'a str,
}

impl Checker<'_> {
    /// The one function that recurses, with little on the stack: what needs more is elsewhere.
    fn expr(&self, expr: &mut Expr) -> Checked<ValueType> {
        match expr {
            Expr::Number(_) => Ok(ValueType::Scalar),
            Expr::String(_) => Ok(ValueType::String),
            Expr::Aggregate(aggregate) => self.aggregate(aggregate),
            Expr::Binary(binary) => {
                let lhs = self.expr(&mut binary.lhs)?;
                let rhs = self.expr(&mut binary.rhs)?;
                self.binary(binary, lhs, rhs)
            }
            Expr::Call(call) => self.call(call),
            Expr::Paren(paren) => self.expr(&mut paren.expr),
            Expr::Matrix(matrix) => self.vector(&mut matrix.vector, false, ValueType::Matrix),
            Expr::Vector(vector) => self.vector(vector, false, ValueType::Vector),
            Expr::Subquery(subquery) => {
                let value_type = self.expr(&mut subquery.expr)?;
                self.subquery(subquery, value_type)
            }
            Expr::Unary(unary) => {
                let value_type = self.expr(&mut unary.expr)?;
                self.unary(unary, value_type)
            }
        }
    }

    fn subquery(&self, subquery: &Subquery, value_type: ValueType) -> Checked<ValueType> {
        if value_type == ValueType::Vector {
            return Ok(ValueType::Matrix);
        }
        let message =
            format!("subquery is only allowed on instant vector, got {value_type} instead");
        Err(self.refused(subquery.span, message))
    }

    fn unary(&self, unary: &Unary, value_type: ValueType) -> Checked<ValueType> {
        if matches!(value_type, ValueType::Scalar | ValueType::Vector) {
            return Ok(value_type);
        }
        let got = quoted(value_type.documented_name().as_bytes());
        let message = format!(
            "unary expression only allowed on expressions of type scalar or instant vector, \
             got {got}"
        );
        Err(self.refused(unary.span, message))
    }

    fn aggregate(&self, aggregate: &mut Aggregate) -> Checked<ValueType> {
        self.expect(&mut aggregate.expr, ValueType::Vector, "aggregation expression")?;
        if let Some(param) = &mut aggregate.param {
            let wanted = match aggregate.op {
                AggregateOp::CountValues => ValueType::String,
                _ => ValueType::Scalar,
            };
            self.expect(param, wanted, "aggregation parameter")?;
        }
        Ok(ValueType::Vector)
    }

    fn binary(&self, binary: &mut Binary, lhs: ValueType, rhs: ValueType) -> Checked<ValueType> {
        let op = binary.op;
        if binary.return_bool && !op.is_comparison() {
            let message = "bool modifier can only be used on comparison operators";
            return Err(self.refused(self.operator_span(binary), message));
        }
        let scalars = (lhs, rhs) == (ValueType::Scalar, ValueType::Scalar);
        if op.is_comparison() && !binary.return_bool && scalars {
            let message = "comparisons between scalars must use BOOL modifier";
            return Err(self.refused(self.operator_span(binary), message));
        }
        self.labels_in_one_place(binary)?;
        for (operand, value_type) in [(&binary.lhs, lhs), (&binary.rhs, rhs)] {
            if !matches!(value_type, ValueType::Scalar | ValueType::Vector) {
                let message = "binary expression must contain only scalar and instant vector types";
                return Err(self.refused(operand.span(), message));
            }
        }
        if (lhs, rhs) == (ValueType::Vector, ValueType::Vector) {
            if op.is_set_operator() {
                self.set_matching(binary)?;
            }
            return Ok(ValueType::Vector);
        }
        let span = binary.span();
        if let Some(matching) = binary.matching.take() {
            if !matching.labels.names().is_empty() {
                let message = "vector matching only allowed between instant vectors";
                return Err(self.refused(span, message));
            }
            if !matching.fill.is_empty() {
                let message = "filling in missing series only allowed between instant vectors";
                return Err(self.refused(span, message));
            }
        }
        if op.is_set_operator() {
            let op = quoted(op.text().as_bytes());
            let message = format!("set operator {op} not allowed in binary scalar expression");
            return Err(self.refused(span, message));
        }
        Ok(ValueType::of_binary(lhs, rhs))
    }

    /// A label two series are matched on is in the result already.
    fn labels_in_one_place(&self, binary: &Binary) -> Checked<()> {
        let Some(matching) = &binary.matching else {
            return Ok(());
        };
        let MatchingLabels::On(labels) = &matching.labels else {
            return Ok(());
        };
        let included: BTreeSet<_> = matching.include.iter().collect();
        match labels.iter().find(|label| included.contains(label)) {
            None => Ok(()),
            Some(label) => {
                let label = quoted(label.as_bytes());
                let message =
                    format!("label {label} must not occur in ON and GROUP clause at once");
                Err(self.refused(self.operator_span(binary), message))
            }
        }
    }

    /// Set operators match many with many, whatever is asked for.
    fn set_matching(&self, binary: &mut Binary) -> Checked<()> {
        let (op, span) = (binary.op, binary.span());
        let matching = binary.matching.get_or_insert_default();
        if matching.cardinality != Cardinality::OneToOne {
            let op = quoted(op.text().as_bytes());
            let message = format!("no grouping allowed for {op} operation");
            return Err(self.refused(span, message));
        }
        if !matching.fill.is_empty() {
            let message = "filling in missing series not allowed for set operators";
            return Err(self.refused(span, message));
        }
        matching.cardinality = Cardinality::ManyToMany;
        Ok(())
    }

    fn call(&self, call: &mut Call) -> Checked<ValueType> {
        self.argument_count(call)?;
        let function = call.function;
        let name = quoted(function.name.as_bytes());
        let is_info = function.name == "info";
        if is_info && let Some(selectors) = call.args.get(1) {
            self.label_selectors(selectors, call.span)?;
        }
        for (index, arg) in call.args.iter_mut().enumerate() {
            let Some(wanted) = function.argument_type(index) else {
                break;
            };
            let got = match &mut *arg {
                // It names labels to be added, so it need not narrow anything down.
                Expr::Vector(vector) if is_info && index == 1 => {
                    self.vector(vector, true, ValueType::Vector)?
                }
                arg => self.expr(arg)?,
            };
            if got != wanted {
                return Err(self.wrong_type(arg, wanted, &format!("call to function {name}"), got));
            }
        }
        Ok(function.returns)
    }

    fn argument_count(&self, call: &Call) -> Checked<()> {
        let got = call.args.len();
        let wanted = match call.function.arity {
            Arity::Exactly(exactly) if got != exactly => format!("{exactly}"),
            Arity::Between(least, _) | Arity::AtLeast(least) if got < least => {
                format!("at least {least}")
            }
            Arity::Between(_, most) if got > most => format!("at most {most}"),
            Arity::Exactly(_) | Arity::Between(..) | Arity::AtLeast(_) => return Ok(()),
        };
        let name = quoted(call.function.name.as_bytes());
        let message = format!("expected {wanted} argument(s) in call to {name}, got {got}");
        Err(self.refused(call.span, message))
    }

    /// The second argument of `info`: matchers in braces, without a metric's name before them.
    fn label_selectors(&self, selectors: &Expr, call: Span) -> Checked<()> {
        let got = selectors.value_type();
        if got != ValueType::Vector {
            let message = wrong_type(ValueType::Vector, "call to function \"info\"", got);
            return Err(self.refused(call, message));
        }
        let message = match selectors {
            Expr::Vector(vector) if vector.name.is_none() => return Ok(()),
            Expr::Vector(_) => "expected label selectors only, got vector selector instead",
            _ => "expected label selectors only",
        };
        Err(self.refused(selectors.span(), message))
    }

    fn vector(
        &self,
        vector: &mut VectorSelector,
        may_match_everything: bool,
        value_type: ValueType,
    ) -> Checked<ValueType> {
        let message =
            match &vector.name {
                Some(name) => {
                    // The last matcher is the name's own.
                    let others = &vector.matchers[..vector.matchers.len() - 1];
                    others.iter().find(|matcher| matcher.name == METRIC_NAME).map(|second| {
                        format!(
                            "metric name must not be set twice: {} or {}",
                            quoted(name.as_bytes()),
                            quoted(second.value().as_bytes())
                        )
                    })
                }
                None if may_match_everything => None,
                None => vector.matchers.iter().all(|matcher| matcher.matches_empty()).then(|| {
                    "vector selector must contain at least one non-empty matcher".to_owned()
                }),
            };
        if let Some(message) = message {
            return Err(self.refused(vector.span, message));
        }
        if vector.matchers.len() > 1 {
            vector.matchers.sort_by_cached_key(ToString::to_string);
        }
        Ok(value_type)
    }

    fn expect(&self, expr: &mut Expr, wanted: ValueType, context: &str) -> Checked<()> {
        let got = self.expr(expr)?;
        if got == wanted { Ok(()) } else { Err(self.wrong_type(expr, wanted, context, got)) }
    }

    fn wrong_type(
        &self,
        expr: &Expr,
        wanted: ValueType,
        context: &str,
        got: ValueType,
    ) -> Box<ParseError> {
        self.refused(expr.span(), wrong_type(wanted, context, got))
    }

    /// The text between the operands, without the space around it.
    fn operator_span(&self, binary: &Binary) -> Span {
        let (start, end) = (binary.lhs.span().end, binary.rhs.span().start);
        let between = &self.text[start..end];
        let start = end - between.trim_start_matches(is_space).len();
        Span::new(start, start + self.text[start..end].trim_end_matches(is_space).len())
    }

    fn refused(&self, span: Span, message: impl Into<String>) -> Box<ParseError> {
        Box::new(ParseError::language(self.text, span, message))
    }
}

fn wrong_type(wanted: ValueType, context: &str, got: ValueType) -> String {
    let (wanted, got) = (wanted.documented_name(), got.documented_name());
    format!("expected type {wanted} in {context}, got {got}")
}
