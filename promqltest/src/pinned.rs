//! The same instant query, said in other words: with `@` on every selector it must give the same
//! answer whenever it is asked. Which expressions can be said so follows Prometheus' own runner.

use tributary_promql::Expr;
use tributary_promql::expr::At;

/// The results of these depend on the time of evaluation, `@` or not.
const DEPEND_ON_TIME: &[&str] = &[
    "day_of_month",
    "day_of_week",
    "day_of_year",
    "days_in_month",
    "end",
    "hour",
    "minute",
    "month",
    "predict_linear",
    "range",
    "start",
    "step",
    "time",
    "timestamp",
    "year",
];

/// An expression that means the same at any time as this one does at `t`, if it can be said.
pub(crate) fn pinned(expr: &Expr, t: i64) -> Option<String> {
    let mut expr = expr.clone();
    pin(&mut expr, t).then(|| expr.to_string())
}

/// Whether both expressions ask for the times of the query itself, which differ between an instant
/// query and a range query.
pub(crate) fn asks_for_query(text: &str) -> bool {
    ["start()", "end()", "range()", "step()"].iter().any(|call| text.contains(call))
}

/// The times at which a pinned expression is asked.
pub(crate) fn other_times(t: i64) -> Vec<i64> {
    match t {
        0 => vec![-1_000, 0, 1_000],
        _ => vec![-10 * t, 0, t / 5, t, 10 * t],
    }
}

/// Sets `@ t` wherever it is missing. False if the result would still depend on the time.
fn pin(expr: &mut Expr, t: i64) -> bool {
    // `@ start()` and `@ end()` of an instant query mean its time.
    let set = |at: &mut Option<At>| match at {
        Some(At::Timestamp(_)) => {}
        Some(At::Start | At::End) | None => *at = Some(At::Timestamp(t)),
    };
    match expr {
        Expr::Vector(selector) => set(&mut selector.at),
        Expr::Matrix(matrix) => set(&mut matrix.vector.at),
        // What is inside is evaluated at the steps of the window, and those are pinned now.
        Expr::Subquery(subquery) => {
            set(&mut subquery.at);
            return true;
        }
        Expr::Call(call) if DEPEND_ON_TIME.contains(&call.function.name) => return false,
        _ => {}
    }
    expr.children_mut().into_iter().all(|child| pin(child, t))
}

#[cfg(test)]
mod tests {
    use tributary_promql::{Options, parse};

    use super::*;

    fn pinned_at_a_minute(text: &str) -> Option<String> {
        pinned(&parse(text, &Options::with_all_features()).unwrap(), 60_000)
    }

    #[test]
    fn every_selector_gets_the_time_unless_it_has_one() {
        for (text, expected) in [
            ("a + rate(b[5m])", "a @ 60.000 + rate(b[5m] @ 60.000)"),
            ("a @ 10", "a @ 10.000"),
            ("a @ start()", "a @ 60.000"),
            ("topk(scalar(k), a offset 5m)", "topk(scalar(k @ 60.000), a @ 60.000 offset 5m)"),
            ("sum_over_time(a[5m:1m])", "sum_over_time(a[5m:1m] @ 60.000)"),
            (
                "sum_over_time(timestamp(a)[5m:1m] @ 5)",
                "sum_over_time(timestamp(a)[5m:1m] @ 5.000)",
            ),
            ("1", "1"),
        ] {
            assert_eq!(pinned_at_a_minute(text).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_depends_on_the_time_cannot_be_pinned() {
        for text in ["time()", "a + timestamp(a)", "sum(hour())", "predict_linear(a[5m], 60)"] {
            assert_eq!(pinned_at_a_minute(text), None, "{text}");
        }
    }

    #[test]
    fn the_times_of_a_query_are_found_in_its_text() {
        assert!(asks_for_query("a @ start()"));
        assert!(asks_for_query("a[step()]"));
        assert!(!asks_for_query("start_timestamp(a)"));
    }
}
