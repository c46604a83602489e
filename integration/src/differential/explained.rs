//! Differences that are known and right, each with its reason. Kept small: a difference that has no
//! place here is a bug on one side or the other. We follow the newest Prometheus; most of what is
//! here is what has changed since version 3.5.

mod notes;
mod values;

use std::collections::BTreeSet;

use tributary_promql::Expr;
use tributary_promql::expr::Call;
use tributary_promql::op::AggregateOp;

use super::compare::Difference;
use super::outcome::Outcome;

/// A difference in a part of an expression whose operands are the same on both sides.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The part; none if the question is no expression for us.
    pub part: Option<&'a Expr>,
    /// What came of it there.
    pub peer: &'a Outcome,
    /// What came of it here.
    pub ours: &'a Outcome,
    /// Where they part.
    pub difference: &'a Difference,
}

/// A reason for which outcomes may differ.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// The reason, as a sentence.
    pub reason: &'static str,
    applies: fn(Seen<'_>) -> bool,
}

/// The reason that is found by asking for the operands, so that it is no row of the table.
pub const ROUNDING: &str = "An operand differs within the tolerance, and what is computed from it \
                            (a comparison, a rank, a rounding, a difference) makes that visible.";

/// The reason that is found by asking again.
pub const CHANCE: &str = "Prometheus answers the same question now like this, now like that: it walks \
                          through maps at random, and what comes first can matter.";

/// Every other known reason.
pub const EXPLANATIONS: &[Explanation] = &[
    Explanation {
        reason: "Which two of several series that must not all match are told, and in which order, \
                 is up to chance in 3.5.",
        applies: |seen| match seen.errors() {
            (Some(peer), Some(ours)) => {
                duplicates(peer).is_some_and(|peer| Some(peer) == duplicates(ours))
            }
            _ => false,
        },
    },
    Explanation {
        reason: "Two series of one side that match the same one are now an error for a comparison \
                 that filters, even where it lets only one of them through.",
        applies: |seen| match (seen.part, seen.errors()) {
            (Some(Expr::Binary(binary)), (None, Some(ours))) => {
                binary.op.is_comparison()
                    && !binary.return_bool
                    && ours.starts_with("multiple matches for labels: ")
            }
            _ => false,
        },
    },
    Explanation {
        reason: "A text that is no expression is refused at the same place in other words.",
        applies: |seen| match (seen.part, seen.errors()) {
            (None, (Some(peer), Some(ours))) => {
                let place = |text: &str| {
                    text.find("parse error: unexpected").map(|at| text[..at].to_owned())
                };
                place(peer).is_some_and(|peer| Some(peer) == place(ours))
            }
            _ => false,
        },
    },
    Explanation {
        reason: "An operator after `offset -(…)` belongs to the duration in 3.5, and no longer does.",
        applies: |seen| match (seen.part, seen.errors()) {
            (Some(Expr::Binary(_)), (Some(peer), ours)) => {
                let is_refused = |text: &str| text.contains("parse error: ");
                is_refused(peer) && !ours.is_some_and(is_refused)
            }
            _ => false,
        },
    },
    Explanation {
        reason: "A number of series that is NaN or too large is now refused in other words, and even \
                 where there are no series.",
        applies: |seen| match (seen.aggregation(), seen.errors()) {
            (Some(op), (peer, Some(ours))) => {
                let starts = ["Scalar value ", "Parameter value ", "Ratio value "];
                let is_refused = |text: &str| starts.iter().any(|start| text.starts_with(start));
                takes_some(op) && is_refused(ours) && peer.is_none_or(is_refused)
            }
            _ => false,
        },
    },
    Explanation {
        reason: "Prometheus looks at the texts that label_replace and label_join are given before it \
                 evaluates their vector, so that of two errors it tells the other one.",
        applies: |seen| match (seen.call(), seen.errors()) {
            (Some(call), (Some(peer), Some(_))) => {
                call.function.name.starts_with("label_")
                    && peer.starts_with("invalid ")
                    && peer.contains(&format!(" in {}(): ", call.function.name))
            }
            _ => false,
        },
    },
    Explanation {
        reason: "histogram_fraction now takes the first bucket of a classic histogram to begin at \
                 zero, as histogram_quantile does; in 3.5 it has no beginning.",
        applies: |seen| seen.calls("histogram_fraction") && seen.values().is_some(),
    },
    Explanation {
        reason: "mad_over_time now is NaN where a sample is.",
        applies: |seen| {
            seen.calls("mad_over_time") && seen.values().is_some_and(|(_, ours)| ours.is_nan())
        },
    },
    Explanation {
        reason: "last_over_time of a subquery now drops the names that the subquery has dropped.",
        applies: |seen| {
            let of_subquery = |call: &Call| matches!(call.args.last(), Some(Expr::Subquery(_)));
            seen.calls("last_over_time")
                && seen.call().is_some_and(of_subquery)
                && values::same_without_names(seen.peer, seen.ours)
        },
    },
    Explanation {
        reason: "timestamp of a selector with both `@` and `offset`: Prometheus forgets the offset \
                 when it evaluates, but not when it reads samples, so that what it finds depends on \
                 the rest of the query.",
        applies: |seen| match seen.call() {
            Some(call) if call.function.name == "timestamp" => {
                match without_parens(&call.args[0]) {
                    Expr::Vector(vector) => vector.at.is_some() && vector.offset.is_some(),
                    _ => false,
                }
            }
            _ => false,
        },
    },
    Explanation {
        reason: "Which label absent takes from a selector that has several matchers of it depends \
                 on how the storage has sorted them; ours are in the order they are printed.",
        applies: |seen| {
            let selector = match seen.call() {
                Some(call) if call.function.name.starts_with("absent") => &call.args[0],
                _ => return false,
            };
            let matchers = match without_parens(selector) {
                Expr::Vector(vector) => &vector.matchers,
                Expr::Matrix(matrix) => &matrix.vector.matchers,
                _ => return false,
            };
            let names: BTreeSet<&str> = matchers.iter().map(|one| one.name.as_str()).collect();
            names.len() < matchers.len() && matches!(seen.difference, Difference::Series { .. })
        },
    },
    Explanation {
        reason: "Of equal values ours keep the first in the order of labels; in Prometheus topk and \
                 bottomk keep what a heap happens to keep, and limitk what comes first, which after \
                 an operator, an aggregation or a histogram function is up to chance.",
        applies: |seen| match seen.aggregation() {
            Some(AggregateOp::Topk | AggregateOp::Bottomk) => {
                values::same_apart_from_labels(seen.peer, seen.ours)
            }
            Some(AggregateOp::Limitk) => values::same_count(seen.peer, seen.ours),
            _ => false,
        },
    },
    Explanation {
        reason: "Standard deviations and variances lose digits in Prometheus where the mean is large \
                 against them; ours are exact.",
        applies: |seen| {
            seen.deviates()
                && seen.values().is_some_and(|(peer, ours)| values::near(peer, ours, 1e-5))
        },
    },
    Explanation {
        reason: "A variance that no float can hold is infinite here; in Prometheus it is infinite or \
                 NaN, depending on the order of the values.",
        applies: |seen| {
            let beyond = |(peer, ours): (f64, f64)| peer.is_nan() && ours.is_infinite();
            seen.deviates() && seen.values().is_some_and(beyond)
        },
    },
    Explanation {
        reason: "Go's logarithm is wrong below the smallest normal number on the machines of today's \
                 servers.",
        applies: |seen| {
            let below = |value: f64| value < f64::MIN_POSITIVE.ln();
            seen.calls("ln") && seen.values().is_some_and(|(_, ours)| below(ours))
        },
    },
    Explanation {
        reason: "info has been corrected in many ways since 3.5: series mixed up, names lost, `@` and \
                 `offset` ignored, several matchers of the name.",
        applies: |seen| seen.part.is_some_and(|part| contains_call(part, "info")),
    },
    Explanation {
        reason: "Annotations say more or less than in 3.5: the name of a metric, the details of \
                 buckets that had to be made monotonic, and that sorting has no effect over a range.",
        applies: |seen| notes::same_in_short(seen.difference),
    },
    Explanation {
        reason: "The place that an annotation names: Prometheus forgets where a subquery stands and \
                 tells the beginning of the query, and 3.5 counts parentheses to what they enclose.",
        applies: |seen| {
            let moved = |arg: &Expr| matches!(arg, Expr::Subquery(_) | Expr::Paren(_));
            let moves = seen.part.is_some_and(|part| part.children().into_iter().any(moved));
            moves && notes::same_but_for_places(seen.difference)
        },
    },
];

/// The reason of a difference, if it is a known one.
pub fn reason(mut seen: Seen<'_>) -> Option<&'static str> {
    seen.part = seen.part.map(without_parens);
    EXPLANATIONS.iter().find(|known| (known.applies)(seen)).map(|known| known.reason)
}

impl<'a> Seen<'a> {
    /// What both sides say, if at least one of them is an error.
    fn errors(self) -> (Option<&'a str>, Option<&'a str>) {
        match self.difference {
            Difference::Error { peer, ours } => (peer.as_deref(), ours.as_deref()),
            _ => (None, None),
        }
    }

    /// Two values that differ.
    fn values(self) -> Option<(f64, f64)> {
        match self.difference {
            Difference::Value { peer, ours, .. } => Some((*peer, *ours)),
            _ => None,
        }
    }

    fn call(self) -> Option<&'a Call> {
        match self.part? {
            Expr::Call(call) => Some(call),
            _ => None,
        }
    }

    fn calls(self, name: &str) -> bool {
        self.call().is_some_and(|call| call.function.name == name)
    }

    /// The part is a standard deviation or a variance.
    fn deviates(self) -> bool {
        match (self.aggregation(), self.call()) {
            (Some(op), _) => matches!(op, AggregateOp::Stddev | AggregateOp::Stdvar),
            (_, Some(call)) => call.function.name.starts_with("std"),
            _ => false,
        }
    }

    fn aggregation(self) -> Option<AggregateOp> {
        match self.part? {
            Expr::Aggregate(aggregate) => Some(aggregate.op),
            _ => None,
        }
    }
}

/// Aggregations that keep some of the series.
fn takes_some(op: AggregateOp) -> bool {
    use AggregateOp::{Bottomk, LimitRatio, Limitk, Topk};
    matches!(op, Topk | Bottomk | Limitk | LimitRatio)
}

fn contains_call(part: &Expr, name: &str) -> bool {
    matches!(part, Expr::Call(call) if call.function.name == name)
        || part.children().into_iter().any(|child| contains_call(child, name))
}

fn without_parens(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(paren) => without_parens(&paren.expr),
        other => other,
    }
}

/// The side of an operator that an error about two matching series is about.
fn duplicates(error: &str) -> Option<&str> {
    error.strip_prefix("found duplicate series for the match group ")?;
    let side = error.split(" on the ").last()?.split(" hand-side").next();
    side.filter(|_| error.contains("many-to-many matching not allowed"))
}

#[cfg(test)]
mod tests {
    use tributary_promql::parse;

    use super::*;
    use crate::differential::rewrite;

    fn explained(part: Option<&str>, peer: Option<&str>, ours: Option<&str>) -> bool {
        let part = part.map(|text| parse(text, &rewrite::options()).unwrap());
        let text = |error: Option<&str>| error.map(str::to_owned);
        let difference = Difference::Error { peer: text(peer), ours: text(ours) };
        let (peer, ours) = (Outcome::Failed(String::new()), Outcome::Failed(String::new()));
        let seen = Seen { part: part.as_ref(), peer: &peer, ours: &ours, difference: &difference };
        reason(seen).is_some()
    }

    #[test]
    fn two_series_that_match_may_be_any_but_of_the_same_side() {
        let error = |side: &str, series: &str| {
            format!(
                "found duplicate series for the match group {{}} on the {side} hand-side of the \
                 operation: [{series}];many-to-many matching not allowed"
            )
        };
        let peer = error("left", "{a=\"1\"}, {b=\"2\"}");
        assert!(explained(None, Some(&peer), Some(&error("left", "{b=\"2\"}, {a=\"1\"}"))));
        assert!(!explained(None, Some(&peer), Some(&error("right", "{b=\"2\"}, {a=\"1\"}"))));
        assert!(!explained(None, Some(&peer), None));
    }

    #[test]
    fn a_text_must_be_refused_at_the_same_place() {
        let peer = Some("1:3: parse error: unexpected identifier in offset");
        assert!(explained(None, peer, Some("1:3: parse error: unexpected <op:@>")));
        assert!(!explained(None, peer, Some("1:4: parse error: unexpected <op:@>")));
        assert!(!explained(None, peer, None));
    }

    #[test]
    fn an_error_is_explained_only_for_the_part_it_belongs_to() {
        let ours = Some("multiple matches for labels: many-to-one matching must be explicit");
        assert!(explained(Some("a > b"), None, ours));
        assert!(!explained(Some("a > bool b"), None, ours));
        assert!(!explained(Some("a + b"), None, ours));
        let (peer, ours) =
            (Some("Scalar value NaN overflows int64"), Some("Parameter value is NaN"));
        assert!(explained(Some("topk(NaN, a)"), peer, ours));
        assert!(!explained(Some("quantile(NaN, a)"), peer, ours));
        let peer = Some("invalid destination label name in label_join(): ");
        assert!(explained(Some("label_join(a, \"\", \"\")"), peer, Some("other")));
        assert!(!explained(Some("label_join(a, \"\", \"\")"), peer, None));
        assert!(!explained(Some("label_replace(a, \"\", \"\", \"\", \"\")"), peer, Some("other")));
    }
}
