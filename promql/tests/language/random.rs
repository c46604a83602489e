//! Random trees survive printing; random texts do no harm.

use proptest::prelude::{
    BoxedStrategy, Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof,
    proptest,
};
use proptest::sample::select;
use tributary_promql::functions::functions;
use tributary_promql::quote::quoted;
use tributary_promql::{Limits, Options, ValueType, parse, parse_selector, parse_series};

use super::support::{all, cases, none, placeless, tree};

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = String> {
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
fn expression() -> BoxedStrategy<String> {
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

/// A text of the case files, cut in two places and joined with another.
fn mutated() -> impl Strategy<Value = String> {
    let queries: Vec<String> = cases().into_iter().map(|case| case.query).collect();
    let pieces = one_of(&[
        "(", ")", "[", "]", "{", "}", ",", ":", "\"", "'", "`", "#", "\\", "@", "5m", "offset ",
        "by ", " and ", "=~", "{{", "}}", "\u{fffd}", "é", "\0", "0x", "1e", "_", "^-", "on(", "x",
    ]);
    let cut = |text: &str, at: usize| {
        let at = at % (text.len() + 1);
        (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
    };
    (select(queries.clone()), any::<usize>(), pieces, select(queries), any::<usize>()).prop_map(
        move |(one, one_cut, piece, other, other_cut)| {
            let (head, tail) = (&one[..cut(&one, one_cut)], &other[cut(&other, other_cut)..]);
            format!("{head}{piece}{tail}")
        },
    )
}

/// Reads a text in every way there is; whatever comes out is fine as long as something does.
fn read_in_every_way(text: &str) {
    let small = Limits { max_nesting: 8, max_height: 8, ..Limits::default() };
    for options in [all(), none(), Options { limits: small, ..all() }] {
        if let Ok(expr) = parse(text, &options) {
            assert!(expr.span().end <= text.len());
        }
        let _ = parse_selector(text, &options);
        if let Ok(description) = parse_series(text, &options) {
            let _ = description.values().take(100).count();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn printed_trees_read_back_as_themselves(text in expression()) {
        // Some combinations have the wrong types; they are not what this is about.
        if let Ok(expr) = parse(&text, &all()) {
            let expr = placeless(expr);
            prop_assert_eq!(&tree(&expr.to_string()), &expr, "{}", expr);
            prop_assert_eq!(&tree(&expr.pretty()), &expr, "{}", expr.pretty());
        }
    }

    #[test]
    fn mutated_queries_do_no_harm(text in mutated()) {
        read_in_every_way(&text);
    }

    #[test]
    fn any_text_does_no_harm(text in any::<String>()) {
        read_in_every_way(&text);
    }

    #[test]
    fn any_bytes_read_as_text_do_no_harm(bytes in any::<Vec<u8>>()) {
        read_in_every_way(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn most_random_expressions_have_a_place_in_the_language(text in expression()) {
        let outcome = parse(&text, &all()).map_err(|error| error.message);
        let syntax = outcome.as_ref().err().is_some_and(|message| message.starts_with("unexpected"));
        prop_assert!(!syntax, "{text}\n{outcome:?}");
    }
}
