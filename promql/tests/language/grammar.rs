//! Expressions made by chance, of texts that are valid on their own.

use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use tributary_promql::ValueType;
use tributary_promql::functions::functions;
use tributary_promql::quote::quoted;

/// One of some words.
pub fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(words).prop_map(str::to_owned)
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        one_of(&["\"a\"", "'b c'", "`d`", "\"\\x41\\u00b5\\n\"", "\"\"", "\"é\"", "'\\''"]),
        // Prometheus takes the replacement character for bytes that are not UTF-8.
        any::<String>().prop_map(|text| quoted(text.replace('\u{fffd}', "?").as_bytes())),
    ]
}

fn duration() -> BoxedStrategy<String> {
    let leaf = one_of(&["5m", "1h30m", "300", "1.5", "step()", "range()", "1d", "0x10", "7ms"]);
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            (inner.clone(), one_of(&["+", "-", "*", "/", "%", "^"]), inner.clone())
                .prop_map(|(left, op, right)| format!("{left} {op} {right}")),
            inner.clone().prop_map(|inner| format!("({inner})")),
            inner.clone().prop_map(|inner| format!("-{inner}")),
            inner.clone().prop_map(|inner| format!("+{inner}")),
            (one_of(&["max_of", "min_of"]), inner.clone(), inner)
                .prop_map(|(pick, left, right)| format!("{pick}({left}, {right})")),
        ]
    })
    .boxed()
}

fn label() -> impl Strategy<Value = String> {
    one_of(&["a", "b", "__name__x", "sum", "on", "\"a b\"", "'without'", "\"é\"", "by", "le"])
}

fn labels() -> impl Strategy<Value = String> {
    proptest::collection::vec(label(), 0..3).prop_map(|labels| format!("({})", labels.join(", ")))
}

fn selector() -> impl Strategy<Value = String> {
    let name = one_of(&["foo", "bar:baz", "sum", "and", "offset", "start", "_x1", "fill", "NaNs"]);
    let label = one_of(&["a", "b", "sum", "without", "\"a b\"", "'é'"]);
    let operator = one_of(&["=", "!=", "=~", "!~"]);
    let pattern = one_of(&["\"x\"", "\"a|b\"", "'.+'", "`[a-c]*`", "\"\""]);
    let matcher = (label, operator, prop_oneof![pattern, Just("\"v\\\"\"".to_owned())])
        .prop_map(|(label, operator, value)| format!("{label}{operator}{value}"));
    (name, proptest::collection::vec(matcher, 0..4))
        .prop_map(|(name, matchers)| format!("{name}{{{}}}", matchers.join(",")))
}

/// An `@` and an offset behind an operand. An offset that ends with a parenthesis would take an
/// operator after it for its own, so all of it goes into parentheses then, unless an `@` comes last.
fn modified(operand: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let at = one_of(&["", "", " @ start()", " @ end()", " @ 10", " @ -1.2345", " @ 1h"]);
    let closed = one_of(&["", "5m", "-5m", "+300", "-1.5", "step()", "-range()", "max_of(1m, 2)"]);
    let open = (one_of(&["(", "-(", "(1m) + (", "--(1m) * ("]), duration())
        .prop_map(|(start, duration)| format!("{start}{duration})"));
    let offset = prop_oneof![closed, open].prop_map(|offset| match offset.as_str() {
        "" => offset,
        _ => format!(" offset {offset}"),
    });
    (operand, at, offset, any::<bool>()).prop_map(|(operand, at, offset, at_first)| {
        if !offset.ends_with(')') {
            format!("{operand}{at}{offset}")
        } else if at_first || at.is_empty() {
            format!("({operand}{at}{offset})")
        } else {
            format!("{operand}{offset}{at}")
        }
    })
}

fn vector() -> impl Strategy<Value = String> {
    let extension = one_of(&["", "", "", " anchored", " smoothed"]);
    modified((selector(), extension).prop_map(|(selector, extension)| selector + &extension))
}

/// Expressions of every type, built from texts that are valid on their own.
pub fn expression() -> BoxedStrategy<String> {
    let number = one_of(&["1", ".5", "0x1f", "1e9", "Inf", "NaN", "5m", "-2", "017", "1_000"]);
    let leaf = prop_oneof![vector(), number, vector()];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let vectors = inner.clone();
        let range = (selector(), duration(), one_of(&["", "", " anchored", " smoothed"]))
            .prop_map(|(selector, range, extension)| format!("{selector}[{range}]{extension}"));
        let operator = one_of(&[
            "+",
            "-",
            "*",
            "/",
            "%",
            "^",
            "atan2",
            "== bool",
            "> bool",
            "== bool on(a)",
            "+ on(a)",
            "/ ignoring(a) group_left(b)",
            "* on() group_right ()",
            "and",
            "or on(a)",
            "unless",
            "+ fill(1)",
            "- fill_left(-1) fill_right(NaN)",
            "</",
            ">/",
        ]);
        let aggregation = one_of(&["sum", "avg", "count", "group", "stddev", "MIN", "max"]);
        let with_param =
            one_of(&["topk(2, ", "quantile(0.9, ", "count_values('v', ", "limitk(3, "]);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
            inner.clone().prop_map(|inner| format!("({inner})")),
            inner.clone().prop_map(|inner| format!("-{inner}")),
            inner.prop_map(|inner| format!("+{inner}")),
            (aggregation, one_of(&["by", "without"]), labels(), vectors.clone())
                .prop_map(|(op, how, labels, inner)| format!("{op} {how} {labels} ({inner})")),
            (with_param, vectors.clone()).prop_map(|(op, inner)| format!("{op}{inner})")),
            modified(
                (vectors.clone(), duration())
                    .prop_map(|(inner, range)| format!("({inner})[1m * {range}:]"))
            ),
            (vectors.clone(), duration(), duration())
                .prop_map(|(inner, range, step)| format!("({inner})[1m + {range}:{step}]")),
            (select(range_functions()), modified(range)).prop_map(|(name, range)| {
                // A range may not stand in parentheses here.
                let range =
                    range.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(&range);
                format!("{name}({range})")
            }),
            (vectors, string(), string())
                .prop_map(|(inner, one, other)| format!("label_join({inner}, {one}, {other})")),
        ]
    })
    .boxed()
}

/// Functions of one range vector.
fn range_functions() -> Vec<&'static str> {
    let of_one_range = |args: &[ValueType]| args == [ValueType::Matrix];
    functions().iter().filter(|it| of_one_range(it.args)).map(|it| it.name).collect()
}
