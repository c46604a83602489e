//! Another reader of the same language, the crate `promql-parser`. Where it and this crate disagree
//! about a text, the reason is on a list; where both accept one, they mean the same by it.

use tributary_promql::{Expr, Features, Options, parse};

use super::support::{all, cases, placeless, script_queries};

/// Why it refuses what is accepted here, by a mark in the text. Prometheus accepts all of these.
const UNKNOWN_TO_IT: [(&str, &str); 11] = [
    ("[- -", "signs before a range"),
    ("</", "operators that trim histograms"),
    (">/", "operators that trim histograms"),
    ("anchored", "extended range selectors"),
    ("smoothed", "extended range selectors"),
    ("1_0", "underscores in numbers"),
    ("0X_", "underscores in numbers"),
    ("0s", "durations of zero"),
    ("a:b) bar", "label names with a colon"),
    ("fill(5m)", "durations as fill values"),
    ("info(", "selectors of everything as second argument of `info`"),
];

/// Why it accepts what is refused here, by our error. Prometheus refuses all of these.
const UNCHECKED_BY_IT: [(&str, &str); 14] = [
    ("not enabled", "it has no switches for experimental parts"),
    ("must be enabled", "it has no switches for experimental parts"),
    ("unary expression only allowed on", "it lets a plus stand before a string"),
    ("bad number or duration syntax: \"0x1e\"", "it takes a last `e` for a digit"),
    ("value out of range", "it reads numbers beyond the largest float as infinite"),
    ("duration out of range", "its durations are longer"),
    ("duration must be greater than 0", "it lets a number of zero be a range"),
    ("timestamp out of bounds", "its times are further away"),
    ("invalid label name for grouping", "it does not check quoted label names"),
    ("filling in missing series", "it does not check where `fill` stands"),
    ("expected label selectors only", "it does not check the second argument of `info`"),
    ("invalid nested repetition operator", "its regular expressions are not Go's"),
    ("invalid repeat count", "its regular expressions are not Go's"),
    ("invalid escape sequence", "its regular expressions are not Go's"),
];

/// What it accepts and prints so that it means something else, by a mark in the text.
const PRINTED_DIFFERENTLY_BY_IT: [(&str, &str); 6] = [
    ("\"without\"", "label names that need quotes"),
    ("\\x", "bytes that are not UTF-8"),
    ("@ -", "times before 1970"),
    ("+foo", "a plus before a vector"),
    ("+http_requests_total", "a plus before a vector"),
    ("ignoring() group_right", "`group_right` without labels to ignore"),
];

/// Panics there.
const HARMFUL_TO_IT: [&str; 1] = ["foo offset Inf"];

/// Why it refuses a text that is accepted here.
fn why_unknown(text: &str) -> Option<&'static str> {
    let features = Features { duration_expressions: false, ..Features::ALL };
    let needs_arithmetic = parse(text, &Options { features, ..all() }).is_err();
    if needs_arithmetic || text.contains("offset -(") || text.contains("offset +(") {
        return Some("arithmetic on durations");
    }
    UNKNOWN_TO_IT.iter().find(|(mark, _)| text.contains(mark)).map(|(_, why)| *why)
}

/// The tree without places, and with durations as plain numbers, as it prints them.
fn in_seconds(expr: Expr) -> Expr {
    fn forget_units(expr: &mut Expr) {
        if let Expr::Number(number) = expr {
            number.is_duration = false;
        }
        expr.children_mut().into_iter().for_each(forget_units);
    }
    let mut expr = placeless(expr);
    forget_units(&mut expr);
    expr
}

#[test]
fn disagreements_with_another_parser_are_all_explained() {
    let mut texts: Vec<_> =
        cases().into_iter().map(|case| (case.query, case.options, case.place)).collect();
    texts.extend(script_queries().into_iter().map(|case| (case.query, all(), case.place)));
    texts.retain(|(text, ..)| !HARMFUL_TO_IT.contains(&text.as_str()));
    let (mut agreed, mut explained) = (0, 0);
    for (text, options, place) in &texts {
        let ours = parse(text, options);
        let theirs = promql_parser::parser::parse(text);
        match (ours, theirs) {
            (Err(_), Err(_)) => agreed += 1,
            (Ok(ours), Ok(theirs)) => {
                let printed = theirs.to_string();
                let theirs = parse(&printed, &all()).map(in_seconds);
                if theirs == Ok(in_seconds(ours)) {
                    agreed += 1;
                } else {
                    let mut marks = PRINTED_DIFFERENTLY_BY_IT.iter();
                    let listed = marks.any(|(mark, _)| text.contains(mark));
                    assert!(listed, "{place}: {text}\nthey print: {printed}");
                    explained += 1;
                }
            }
            (Ok(_), Err(error)) => {
                assert!(why_unknown(text).is_some(), "{place}: {text}\nthey say: {error}");
                explained += 1;
            }
            (Err(error), Ok(_)) => {
                let listed = UNCHECKED_BY_IT.iter().any(|(mark, _)| error.message.contains(mark));
                assert!(listed, "{place}: {text}\nwe say: {error}");
                explained += 1;
            }
        }
    }
    assert!(agreed > 2 * explained, "{agreed} agreements, {explained} explained disagreements");
}
