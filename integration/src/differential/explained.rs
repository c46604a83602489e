//! Differences that are known and right, each with its reason. Kept small: a difference that has no
//! place here is a bug on one side or the other. We follow the newest Prometheus; most of what is
//! here is what has changed since version 3.5.

use std::collections::BTreeSet;

use tributary_promql::Expr;
use tributary_promql::op::AggregateOp;

use super::compare::Difference;

/// A reason for which outcomes may differ.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// The reason, as a sentence.
    pub reason: &'static str,
    /// Whether it is the reason of a difference in a part whose operands are the same. The part is
    /// none if it is no expression for us.
    applies: fn(Option<&Expr>, &Difference) -> bool,
}

/// The reason that is found by asking for the operands, so that it is no row of the table.
pub const ROUNDING: &str = "An operand differs within the tolerance, and what is computed from it \
                            (a comparison, a rank, a rounding, a difference) makes that visible.";

/// Every known reason.
pub const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        reason: "Which two of several series that must not all match are told, and in which order, \
                 is up to chance in 3.5.",
        applies: |_, difference| match difference {
            Difference::Error { peer: Some(peer), ours: Some(ours) } => {
                duplicates(peer).is_some_and(|peer| Some(peer) == duplicates(ours))
            }
            _ => false,
        },
    },
    Explanation {
        reason: "Two series of one side that match the same one are now an error for a comparison \
                 that filters, even where it lets only one of them through.",
        applies: |part, difference| match (part, difference) {
            (Some(Expr::Binary(binary)), Difference::Error { peer: None, ours: Some(ours) }) => {
                binary.op.is_comparison()
                    && !binary.return_bool
                    && ours.starts_with("multiple matches for labels: many-to-one")
            }
            _ => false,
        },
    },
    Explanation {
        reason: "A text that is no expression is refused at the same place in other words.",
        applies: |part, difference| match (part, difference) {
            (None, Difference::Error { peer: Some(peer), ours: Some(ours) }) => {
                let start = |text: &str| {
                    text.find("parse error: unexpected").map(|at| text[..at].to_owned())
                };
                start(peer).is_some_and(|peer| Some(peer) == start(ours))
            }
            _ => false,
        },
    },
    Explanation {
        reason: "A number of series that is NaN or too large is now refused in other words, and even \
                 where there are no series.",
        applies: |part, difference| match (part, difference) {
            (Some(Expr::Aggregate(aggregate)), Difference::Error { peer, ours: Some(ours) }) => {
                let counts = [
                    AggregateOp::Topk,
                    AggregateOp::Bottomk,
                    AggregateOp::Limitk,
                    AggregateOp::LimitRatio,
                ];
                let refused = |text: &String| {
                    ["Scalar value ", "Parameter value ", "Ratio value "]
                        .iter()
                        .any(|start| text.starts_with(start))
                };
                counts.contains(&aggregate.op) && refused(ours) && peer.as_ref().is_none_or(refused)
            }
            _ => false,
        },
    },
    Explanation {
        reason: "histogram_fraction now takes the first bucket of a classic histogram to begin at \
                 zero, as histogram_quantile does; in 3.5 it has no beginning.",
        applies: |part, difference| {
            is_call(part, "histogram_fraction") && matches!(difference, Difference::Value { .. })
        },
    },
    Explanation {
        reason: "Prometheus forgets where a subquery stands and tells the first place of the query in \
                 annotations about it; we tell its place.",
        applies: |part, difference| match (part, difference) {
            (Some(Expr::Call(call)), Difference::Notes { missing, extra }) => {
                let of_subquery = call.args.iter().any(|arg| matches!(arg, Expr::Subquery(_)));
                let words = |texts: &[String]| -> BTreeSet<String> {
                    texts.iter().map(|text| place(text).0.to_owned()).collect()
                };
                of_subquery
                    && words(missing) == words(extra)
                    && missing.iter().all(|text| place(text).1 == " (1:1)")
            }
            _ => false,
        },
    },
    Explanation {
        reason: "info has been corrected in many ways since 3.5: series mixed up, names lost, `@` and \
                 `offset` ignored, several matchers of the name.",
        applies: |part, _| part.is_some_and(|part| contains_call(part, "info")),
    },
    Explanation {
        reason: "Annotations say more or less than in 3.5: the name of a metric, the details of \
                 buckets that had to be made monotonic, and that sorting has no effect over a range.",
        applies: |_, difference| match difference {
            Difference::Notes { missing, extra } => {
                let plain = |texts: &[String]| -> BTreeSet<String> {
                    texts.iter().map(|text| plain_note(text)).filter(|text| !is_new(text)).collect()
                };
                plain(missing) == plain(extra)
            }
            _ => false,
        },
    },
];

/// The reason of a difference, if it is a known one.
pub fn reason(part: Option<&Expr>, difference: &Difference) -> Option<&'static str> {
    EXPLANATIONS.iter().find(|known| (known.applies)(part, difference)).map(|known| known.reason)
}

fn is_call(part: Option<&Expr>, name: &str) -> bool {
    matches!(part, Some(Expr::Call(call)) if call.function.name == name)
}

fn contains_call(part: &Expr, name: &str) -> bool {
    is_call(Some(part), name) || part.children().into_iter().any(|child| contains_call(child, name))
}

/// The side of an operator that an error about two matching series is about.
fn duplicates(error: &str) -> Option<&str> {
    error.strip_prefix("found duplicate series for the match group ")?;
    let side = error.split(" on the ").last()?.split(" hand-side").next();
    side.filter(|_| error.contains("many-to-many matching not allowed"))
}

/// An annotation without the name of a metric and without details.
fn plain_note(text: &str) -> String {
    let (mut words, place) = place(text);
    for detail in [", from buckets ", " for metric name \""] {
        words = words.split(detail).next().unwrap_or(words);
    }
    format!("{words}{place}")
}

/// The words of an annotation, and its place in the query.
fn place(text: &str) -> (&str, &str) {
    text.split_at(text.rfind(" (").unwrap_or(text.len()))
}

fn is_new(note: &str) -> bool {
    note.starts_with("PromQL warning: sort is ineffective for range queries")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_is_the_same_with_and_without_its_details() {
        let old = "PromQL info: fixed for metric name \"a b\" (1:23)";
        let new = "PromQL info: fixed, from buckets 1 to 2, with a max diff of 1, over 2 samples from x to y (1:23)";
        assert_eq!(plain_note(old), "PromQL info: fixed (1:23)");
        assert_eq!(plain_note(new), "PromQL info: fixed (1:23)");
        let notes = |missing: &str, extra: &str| Difference::Notes {
            missing: vec![missing.to_owned()],
            extra: vec![extra.to_owned()],
        };
        assert!(reason(None, &notes(old, new)).is_some());
        assert!(reason(None, &notes(old, "PromQL info: broken (1:23)")).is_none());
        assert!(reason(None, &notes(old, "PromQL info: fixed (1:1)")).is_none());
    }

    #[test]
    fn two_series_that_match_may_be_any_but_of_the_same_side() {
        let error = |side: &str, series: &str| {
            Some(format!(
                "found duplicate series for the match group {{}} on the {side} hand-side of the \
                 operation: [{series}];many-to-many matching not allowed"
            ))
        };
        let difference = |side: &str, series: &str| Difference::Error {
            peer: error("left", "{a=\"1\"}, {b=\"2\"}"),
            ours: error(side, series),
        };
        assert!(reason(None, &difference("left", "{b=\"2\"}, {a=\"1\"}")).is_some());
        assert!(reason(None, &difference("right", "{b=\"2\"}, {a=\"1\"}")).is_none());
    }

    #[test]
    fn a_text_must_be_refused_at_the_same_place() {
        let error = |text: &str| Some(text.to_owned());
        let difference = |ours: &str| Difference::Error {
            peer: error("1:3: parse error: unexpected identifier in offset"),
            ours: error(ours),
        };
        assert!(reason(None, &difference("1:3: parse error: unexpected <op:@>")).is_some());
        assert!(reason(None, &difference("1:4: parse error: unexpected <op:@>")).is_none());
    }
}
