//! Every limit, reached: the query just below it has an answer, the one above an error that names
//! it.

use tributary_promql::{EvalLimits, EvalOptions, QuerySpec};

use super::common::{Series, answer};

/// Ten series `foo{a="0"}` and so on, with a sample every ten seconds for two minutes.
fn data() -> Vec<Series> {
    let series = |name: usize| {
        let samples = (0..12).map(|index: i32| (i64::from(index) * 10_000, f64::from(index)));
        Series::new(&[("__name__", "foo"), ("a", &name.to_string())], samples)
    };
    (0..10).map(series).collect()
}

/// What is said of a query under these limits; nothing where it has an answer.
fn said(text: &str, limits: EvalLimits) -> String {
    let spec = QuerySpec::range(0, 110_000, 10_000);
    for pushdown in [true, false] {
        let options = EvalOptions { limits, pushdown, ..EvalOptions::default() };
        if let Err(error) = answer(text, spec, &options, &data()) {
            return error.to_string();
        }
    }
    String::new()
}

fn usual() -> EvalLimits {
    EvalLimits::default()
}

#[test]
fn a_selector_reads_only_so_many_series() {
    assert_eq!(said("sum(foo)", EvalLimits { max_series: 10, ..usual() }), "");
    assert_eq!(
        said("sum(foo)", EvalLimits { max_series: 9, ..usual() }),
        "query needs more than 9 series in one selector; the limit is max_series"
    );
}

#[test]
fn a_selector_reads_only_so_many_samples() {
    assert_eq!(said("sum(foo)", EvalLimits { max_samples: 120, ..usual() }), "");
    assert_eq!(
        said("sum(foo)", EvalLimits { max_samples: 119, ..usual() }),
        "query needs more than 119 samples in one selector; the limit is max_samples"
    );
}

#[test]
fn a_query_has_only_so_many_steps() {
    assert_eq!(said("1", EvalLimits { max_steps: 12, ..usual() }), "");
    assert_eq!(
        said("1", EvalLimits { max_steps: 11, ..usual() }),
        "query needs more than 11 steps; the limit is max_steps"
    );
}

#[test]
fn a_subquery_has_only_so_many_steps() {
    let text = "sum_over_time(foo[50s:10s])";
    // Twelve steps of the query, and four before the first of them.
    assert_eq!(said(text, EvalLimits { max_subquery_steps: 16, ..usual() }), "");
    assert_eq!(
        said(text, EvalLimits { max_subquery_steps: 15, ..usual() }),
        "query needs more than 15 steps in a subquery; the limit is max_subquery_steps"
    );
}

#[test]
fn only_so_many_values_are_held_at_once() {
    let message = |limit| {
        format!("query needs more than {limit} values in memory at once; the limit is max_values")
    };
    for (text, needed) in [
        // Ten rows of twelve steps.
        ("foo", 120),
        ("abs(foo)", 120),
        // Ten more are kept for the steps to come.
        ("foo @ 0", 130),
        ("foo smoothed", 120),
        ("quantile_over_time(time() / 1000, foo[1m])", 120),
        // Each of the two leaves has as many, and one waits for the other.
        ("foo + foo", 240),
        ("foo + (foo + (foo + foo))", 480),
        ("topk(3, foo) or foo", 240),
        // One group for each of twelve values, each with a place for every step.
        ("count_values('v', foo)", 144),
        ("count_values('v', abs(foo))", 144),
    ] {
        assert_eq!(said(text, EvalLimits { max_values: needed, ..usual() }), "", "{text}");
        let limit = needed - 1;
        assert_eq!(
            said(text, EvalLimits { max_values: limit, ..usual() }),
            message(limit),
            "{text}"
        );
    }
}

#[test]
fn windows_look_at_only_so_many_samples() {
    // Ten series whose windows have up to six samples at twelve steps.
    let needed = 10 * (1 + 2 + 3 + 4 + 5 + 6 * 7);
    for text in [
        "mad_over_time(foo[1m])",
        "quantile_over_time(time() / 1000, foo[1m])",
        "deriv(foo[1m:10s])",
        "increase(foo[1m] anchored)",
    ] {
        let limits = EvalLimits { max_window_samples: needed, ..usual() };
        assert_eq!(said(text, limits), "", "{text}");
        let limits = EvalLimits { max_window_samples: needed - 1, ..usual() };
        let message = "query needs more than 569 samples in the windows of one function; the limit \
                       is max_window_samples";
        assert_eq!(said(text, limits), message, "{text}");
    }
    // Others slide along, however long their windows are.
    let limits = EvalLimits { max_window_samples: 0, ..usual() };
    assert_eq!(said("sum_over_time(foo[1m]) + rate(foo[1m]) + max_over_time(foo[1m])", limits), "");
}

#[test]
fn the_labels_of_a_series_grow_only_so_large() {
    let limits = EvalLimits { max_series_label_bytes: 100, ..usual() };
    let message = "query needs more than 100 bytes of labels in one series; the limit is \
                   max_series_label_bytes";
    let eighty = "x".repeat(80);
    assert_eq!(said(&format!(r#"label_replace(foo, "b", "{eighty}", "a", ".*")"#), limits), "");
    for text in [
        format!(r#"label_replace(foo, "b", "{eighty}${{0}}{eighty}", "a", ".*")"#),
        format!(r#"label_join(foo, "b", "{eighty}", "a", "a", "a")"#),
    ] {
        assert_eq!(said(&text, limits), message, "{text}");
    }
}

#[test]
fn the_labels_of_all_series_grow_only_so_large() {
    let limits = EvalLimits { max_label_bytes: 500, ..usual() };
    let message = "query needs more than 500 bytes of labels; the limit is max_label_bytes";
    assert_eq!(said(r#"label_replace(foo, "b", "$0", "a", ".*")"#, limits), "");
    let eighty = "x".repeat(80);
    for text in [
        format!(r#"label_replace(foo, "b", "{eighty}", "a", ".*")"#),
        format!(r#"foo * on() group_left(b) label_replace(foo{{a="1"}}, "b", "{eighty}", "", "")"#),
        format!(
            r#"count_values without () ("v", label_replace(foo{{a="1"}}, "b", "{eighty}", "", ""))"#
        ),
    ] {
        assert_eq!(said(&text, limits), message, "{text}");
    }
}
