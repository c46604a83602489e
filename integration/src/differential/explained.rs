//! Differences that are known and right, each with its reason. Kept small: a difference that has no
//! place here is a bug on one side or the other. We follow the newest Prometheus; most of what is
//! here is what has changed since version 3.5.

mod notes;
mod trees;
mod values;

use tributary_promql::Expr;
use tributary_promql::expr::Call;
use tributary_promql::op::{AggregateOp, BinaryOp};

use super::compare::Difference;
use super::outcome::Outcome;
use trees::{
    contains_call, contains_paren, contains_subquery, has_ambiguous_absence, has_computed_offset,
    is_moved_window_of_fixed, literal, repeats, without_parens,
};

/// A difference in a part of an expression whose operands are the same on both sides.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The part; none if the question is no expression for us.
    pub part: Option<&'a Expr>,
    /// It was asked for one instant only.
    pub instant: bool,
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

const SAME_LABELS: &str = "vector cannot contain metrics with the same labelset";

/// The reason that is found by asking for the operands, so that it is no row of the table.
pub const ROUNDING: &str = "An operand differs within the tolerance, and what is computed from it \
                            (a comparison, a rank, a rounding, a difference) makes that visible.";

/// The reason that is found by asking for the largest terms of a sum.
pub const DIGITS: &str = "Sums, averages, variances and deviations lose digits in Prometheus where the \
                          result is small against the terms; ours are exact.";

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
            (Some(Expr::Binary(binary)), (_, Some(ours))) => {
                binary.op.is_comparison()
                    && !binary.return_bool
                    && ours.starts_with("multiple matches for labels: ")
            }
            _ => false,
        },
    },
    Explanation {
        reason: "A text that is no expression is refused in other words or at another place.",
        applies: |seen| match (seen.part, seen.errors()) {
            (None, (Some(peer), Some(ours))) => refusals(peer, ours),
            _ => false,
        },
    },
    Explanation {
        reason: "A duration that is not a number is refused here; Prometheus computes nonsense.",
        applies: |seen| match (seen.part, seen.errors()) {
            (None, (None, Some(ours))) => ours.ends_with("parse error: duration out of range"),
            _ => false,
        },
    },
    Explanation {
        reason: "Series that end up with the same labels, but never at the same time, are one series; \
                 in 3.5 that is an error, and in the newest Prometheus it still is for some functions.",
        applies: |seen| {
            let over_time = !seen.instant || seen.part.is_some_and(contains_subquery);
            over_time && seen.errors() == (Some(SAME_LABELS), None)
        },
    },
    Explanation {
        reason: "An operator after `offset -(…)` belongs to the duration in 3.5, and no longer does.",
        applies: |seen| match seen.part {
            Some(Expr::Binary(binary)) => has_computed_offset(&binary.lhs),
            _ => false,
        },
    },
    Explanation {
        reason: "A number of series that is NaN or too large is now refused in other words, and even \
                 where there are no series.",
        applies: |seen| match seen.errors() {
            (peer, Some(ours)) => {
                let starts = ["Scalar value ", "Parameter value ", "Ratio value "];
                let is_refused = |text: &str| starts.iter().any(|start| text.starts_with(start));
                is_refused(ours) && peer.is_none_or(is_refused)
            }
            _ => false,
        },
    },
    Explanation {
        reason: "Which of two errors is told: Prometheus looks at the texts that label_replace and \
                 label_join are given before it evaluates their vector, and at the one of \
                 count_values only when it is its turn.",
        applies: |seen| match seen.errors() {
            (Some(peer), Some(ours)) => {
                let about_text = |error: &str| {
                    error.starts_with("invalid ") && error.contains(" in label_")
                        || error.starts_with("invalid label name ")
                };
                about_text(peer) || about_text(ours)
            }
            // In a window without any step its turn never comes.
            (None, Some(ours)) => {
                ours.starts_with("invalid label name ")
                    && (seen.aggregation() == Some(AggregateOp::CountValues)
                        || seen.part.is_some_and(contains_subquery))
            }
            _ => false,
        },
    },
    Explanation {
        reason: "quantile warns of the least and the greatest of its wrong parameters, whether there \
                 are series or not; 3.5 warns of every one it meets.",
        applies: |seen| {
            seen.aggregation() == Some(AggregateOp::Quantile)
                && notes::of_quantiles(seen.difference)
        },
    },
    Explanation {
        reason: "Prometheus forgets the offset of a subquery where a selector inside has an `@` and \
                 the window begins with the query.",
        applies: |seen| seen.part.is_some_and(is_moved_window_of_fixed) && seen.values().is_some(),
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
                && (seen.about_series() && values::same_without_names(seen.peer, seen.ours)
                    || seen.errors() == (None, Some(SAME_LABELS)))
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
        applies: |seen| seen.part.is_some_and(has_ambiguous_absence),
    },
    Explanation {
        reason: "Of equal values ours keep the first in the order of labels; in Prometheus topk and \
                 bottomk keep what a heap happens to keep, and limitk what comes first, which after \
                 an operator, an aggregation or a histogram function is up to chance.",
        applies: |seen| match seen.aggregation().filter(|_| seen.about_series()) {
            Some(AggregateOp::Topk | AggregateOp::Bottomk) => {
                values::same_apart_from_labels(seen.peer, seen.ours)
            }
            Some(AggregateOp::Limitk) => values::same_count(seen.peer, seen.ours),
            _ => false,
        },
    },
    Explanation {
        reason: "A variance that no float can hold is infinite here; in Prometheus it is infinite or \
                 NaN, depending on the order of the values.",
        applies: |seen| {
            let beyond = |(peer, ours): (f64, f64)| !peer.is_finite() && ours.is_infinite();
            seen.deviates() && seen.values().is_some_and(beyond)
        },
    },
    Explanation {
        reason: "A sum that leaves the range of floats on its way stays infinite or NaN in \
                 Prometheus; ours is exact to the end.",
        applies: |seen| {
            let sums = match (seen.aggregation(), seen.call()) {
                (Some(op), _) => matches!(op, AggregateOp::Sum | AggregateOp::Avg),
                (_, Some(call)) => matches!(call.function.name, "sum_over_time" | "avg_over_time"),
                _ => false,
            };
            sums && seen.values().is_some_and(|(peer, _)| !peer.is_finite())
        },
    },
    Explanation {
        reason: "Go's hyperbolic functions are infinite a little before their values are.",
        applies: |seen| {
            let edge = |(peer, ours): (f64, f64)| peer.is_infinite() && ours.abs() > f64::MAX / 2.5;
            (seen.calls("sinh") || seen.calls("cosh")) && seen.values().is_some_and(edge)
        },
    },
    Explanation {
        reason: "The natural order of labels has two answers in Prometheus for an empty value and \
                 for numbers like 5 and 05, so that sort_by_label leaves them in any order.",
        applies: |seen| match seen.call() {
            Some(call) if call.function.name.starts_with("sort_by_label") => {
                let names = call.args[1..].iter().filter_map(|arg| match arg {
                    Expr::String(string) => string.text(),
                    _ => None,
                });
                matches!(seen.difference, Difference::Order)
                    && names.into_iter().any(|name| values::ambiguous(seen.ours, name))
            }
            _ => false,
        },
    },
    Explanation {
        reason: "Go's logarithm is wrong below the smallest normal number on the machines of today's \
                 servers.",
        applies: |seen| {
            let Some((_, ours)) = seen.values() else { return false };
            match seen.part {
                Some(Expr::Binary(power)) if power.op == BinaryOp::Pow => {
                    let bound = |exponent: f64| f64::MIN_POSITIVE.powf(exponent);
                    literal(&power.rhs).is_some_and(|y| y > 0.0 && ours < bound(y))
                }
                _ => {
                    (seen.calls("ln") && ours < f64::MIN_POSITIVE.ln())
                        || (seen.calls("log2") && ours < f64::MIN_POSITIVE.log2())
                        || (seen.calls("log10") && ours < f64::MIN_POSITIVE.log10())
                }
            }
        },
    },
    Explanation {
        reason: "Go's acos loses digits where it is small: it is what asin leaves of a right angle.",
        applies: |seen| {
            let close = |(peer, ours): (f64, f64)| (peer - ours).abs() < 1e-15;
            seen.calls("acos") && seen.values().is_some_and(close)
        },
    },
    Explanation {
        reason: "count_values makes labels of all digits of its values, the last bits included.",
        applies: |seen| match seen.part {
            Some(Expr::Aggregate(aggregate)) if aggregate.op == AggregateOp::CountValues => {
                let label = aggregate.param.as_deref().and_then(|param| match param {
                    Expr::String(string) => string.text(),
                    _ => None,
                });
                let close = |label| values::close_labels(seen.peer, seen.ours, label);
                seen.about_series() && label.is_some_and(close)
            }
            _ => false,
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
                 tells the beginning of the query, 3.5 counts parentheses to what they enclose, and of \
                 several places one is told.",
        applies: |seen| {
            let moves =
                |part: &Expr| contains_subquery(part) || contains_paren(part) || repeats(part);
            seen.part.is_some_and(moves) && notes::same_but_for_places(seen.difference)
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

    /// Only one side has some series.
    fn about_series(self) -> bool {
        matches!(self.difference, Difference::Series { .. })
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

/// Two errors about a text that is no expression: of other words at the same place, or of the same
/// words at another.
fn refusals(one: &str, other: &str) -> bool {
    let parse = |text: &str| -> Option<(usize, usize, String)> {
        let (place, words) = text.split_once(": parse error: ")?;
        let (line, column) =
            place.rsplit_once(char::is_whitespace).map_or(place, |at| at.1).split_once(':')?;
        Some((line.parse().ok()?, column.parse().ok()?, words.to_owned()))
    };
    match (parse(one), parse(other)) {
        (Some(one), Some(other)) => {
            let near = one.0 == other.0 && one.1.abs_diff(other.1) <= 1;
            one.2 == other.2 || near
        }
        _ => false,
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
        let seen = Seen {
            part: part.as_ref(),
            instant: true,
            peer: &peer,
            ours: &ours,
            difference: &difference,
        };
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
    fn a_text_is_refused_at_the_same_place_or_in_the_same_words() {
        let peer = Some("1:3: parse error: unexpected identifier in offset");
        assert!(explained(None, peer, Some("1:3: parse error: unexpected <op:@>")));
        assert!(!explained(None, peer, Some("1:9: parse error: unexpected <op:@>")));
        assert!(explained(None, peer, Some("1:9: parse error: unexpected identifier in offset")));
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
        assert!(!explained(Some("topk(NaN, a)"), peer, Some("other")));
        assert!(explained(Some("rate(a[5m:1m])"), Some(SAME_LABELS), None));
        assert!(!explained(Some("rate(a[5m])"), Some(SAME_LABELS), None));
        let peer = Some("invalid destination label name in label_join(): ");
        assert!(explained(Some("label_join(a, \"\", \"\")"), peer, Some("other")));
        assert!(!explained(Some("label_join(a, \"\", \"\")"), peer, None));
        assert!(!explained(Some("a + b"), Some("some"), Some("other")));
    }
}
