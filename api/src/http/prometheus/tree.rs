//! A query as a tree of JSON objects, as Prometheus' own page draws it.

use serde_json::{Value, json};
use tributary_promql::duration::PromDuration;
use tributary_promql::duration_expr::{DurationExpr, DurationValue, Pick};
use tributary_promql::expr::{
    At, Binary, Cardinality, Expr, Extension, Grouping, MatchingLabels, Number, VectorSelector,
};
use tributary_promql::functions::Arity;
use tributary_promql::matcher::Condition;

use crate::http::json::push_float_in_full;

/// Writes the tree of an expression.
pub(super) fn push(out: &mut Vec<u8>, expr: &Expr) {
    out.extend_from_slice(tree(expr).to_string().as_bytes());
}

fn tree(expr: &Expr) -> Value {
    match expr {
        Expr::Aggregate(aggregate) => {
            let (names, without) = match &aggregate.grouping {
                Grouping::By(names) => (names, false),
                Grouping::Without(names) => (names, true),
            };
            json!({
                "type": "aggregation",
                "op": aggregate.op.text(),
                "expr": tree(&aggregate.expr),
                "param": aggregate.param.as_deref().map(tree),
                "grouping": names,
                "without": without,
            })
        }
        Expr::Binary(binary) => json!({
            "type": "binaryExpr",
            "op": binary.op.text(),
            "lhs": tree(&binary.lhs),
            "rhs": tree(&binary.rhs),
            "matching": matching(binary),
            "bool": binary.return_bool,
        }),
        Expr::Call(call) => {
            let function = call.function;
            let variadic = match function.arity {
                Arity::Exactly(_) => 0,
                Arity::Between(least, most) => i64::try_from(most - least).unwrap_or(-1),
                Arity::AtLeast(_) => -1,
            };
            json!({
                "type": "call",
                "func": {
                    "name": function.name,
                    "argTypes": function.args.iter().map(|arg| arg.name()).collect::<Vec<_>>(),
                    "variadic": variadic,
                    "returnType": function.returns.name(),
                },
                "args": call.args.iter().map(tree).collect::<Vec<_>>(),
            })
        }
        Expr::Matrix(matrix) => {
            let mut object = selector("matrixSelector", &matrix.vector);
            object["range"] = millis(Some(&matrix.range));
            object["rangeExpr"] = computed(Some(&matrix.range));
            object
        }
        Expr::Vector(vector) => selector("vectorSelector", vector),
        Expr::Subquery(subquery) => json!({
            "type": "subquery",
            "expr": tree(&subquery.expr),
            "range": millis(Some(&subquery.range)),
            "rangeExpr": computed(Some(&subquery.range)),
            "offset": millis(subquery.offset.as_ref()),
            "offsetExpr": computed(subquery.offset.as_ref()),
            "step": millis(subquery.step.as_ref()),
            "stepExpr": computed(subquery.step.as_ref()),
            "timestamp": timestamp(subquery.at),
            "startOrEnd": start_or_end(subquery.at),
        }),
        Expr::Number(number) => json!({ "type": "numberLiteral", "val": in_full(number.value) }),
        Expr::Paren(paren) => json!({ "type": "parenExpr", "expr": tree(&paren.expr) }),
        Expr::String(string) => json!({
            "type": "stringLiteral",
            "val": String::from_utf8_lossy(&string.bytes),
        }),
        Expr::Unary(unary) => json!({
            "type": "unaryExpr",
            "op": unary.sign.text(),
            "expr": tree(&unary.expr),
        }),
    }
}

fn selector(kind: &str, selector: &VectorSelector) -> Value {
    let matchers = selector.matchers.iter().map(|matcher| {
        let operator = match &matcher.condition {
            Condition::Equal(_) => "=",
            Condition::NotEqual(_) => "!=",
            Condition::Matches(_) => "=~",
            Condition::MatchesNot(_) => "!~",
        };
        json!({ "name": matcher.name, "value": matcher.value(), "type": operator })
    });
    json!({
        "type": kind,
        "name": selector.name.as_deref().unwrap_or_default(),
        "offset": millis(selector.offset.as_ref()),
        "offsetExpr": computed(selector.offset.as_ref()),
        "matchers": matchers.collect::<Vec<_>>(),
        "timestamp": timestamp(selector.at),
        "startOrEnd": start_or_end(selector.at),
        "anchored": selector.extension == Some(Extension::Anchored),
        "smoothed": selector.extension == Some(Extension::Smoothed),
    })
}

fn matching(binary: &Binary) -> Value {
    let Some(matching) = &binary.matching else { return Value::Null };
    let cardinality = match matching.cardinality {
        Cardinality::OneToOne => "one-to-one",
        Cardinality::ManyToOne => "many-to-one",
        Cardinality::OneToMany => "one-to-many",
        Cardinality::ManyToMany => "many-to-many",
    };
    json!({
        "card": cardinality,
        "labels": matching.labels.names(),
        "on": matches!(matching.labels, MatchingLabels::On(_)),
        "include": matching.include,
        "fillValues": { "lhs": matching.fill.left, "rhs": matching.fill.right },
    })
}

fn timestamp(at: Option<At>) -> Value {
    match at {
        Some(At::Timestamp(millis)) => millis.into(),
        Some(At::Start | At::End) | None => Value::Null,
    }
}

fn start_or_end(at: Option<At>) -> Value {
    match at {
        Some(At::Start) => "start".into(),
        Some(At::End) => "end".into(),
        Some(At::Timestamp(_)) | None => Value::Null,
    }
}

/// The duration where the text says it; zero where there is none, or it has to be computed.
fn millis(duration: Option<&DurationValue>) -> Value {
    match duration {
        Some(DurationValue::Fixed(fixed)) => fixed.as_millis().into(),
        Some(DurationValue::Computed(_)) | None => PromDuration::ZERO.as_millis().into(),
    }
}

fn computed(duration: Option<&DurationValue>) -> Value {
    match duration {
        Some(DurationValue::Computed(expr)) => arithmetic(expr, false),
        Some(DurationValue::Fixed(_)) | None => Value::Null,
    }
}

fn arithmetic(expr: &DurationExpr, wrapped: bool) -> Value {
    let object = |op: &str, lhs: Value, rhs: Value| json!({ "type": "durationExpr", "op": op, "lhs": lhs, "rhs": rhs, "wrapped": wrapped });
    match expr {
        DurationExpr::Number(Number { value, is_duration, .. }) => {
            json!({ "type": "numberLiteral", "val": in_full(*value), "duration": is_duration })
        }
        DurationExpr::Step(_) => object("step", Value::Null, Value::Null),
        DurationExpr::Range(_) => object("range", Value::Null, Value::Null),
        DurationExpr::Negative { operand, .. } => {
            object("-", Value::Null, arithmetic(operand, false))
        }
        DurationExpr::Pick { pick, left, right } => {
            let op = match pick {
                Pick::Max => "max_of",
                Pick::Min => "min_of",
            };
            object(op, arithmetic(left, false), arithmetic(right, false))
        }
        DurationExpr::Binary { op, left, right } => {
            object(op.text(), arithmetic(left, false), arithmetic(right, false))
        }
        DurationExpr::Paren { inner, .. } => arithmetic(inner, true),
    }
}

fn in_full(value: f64) -> String {
    let mut out = Vec::new();
    push_float_in_full(&mut out, value);
    String::from_utf8(out).unwrap_or_default()
}
