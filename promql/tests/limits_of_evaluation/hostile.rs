//! Queries whose text is short and whose cost is not, under the usual limits: they end at once, with
//! an error or an answer.

use tributary_promql::eval::EvalError;
use tributary_promql::{EvalOptions, Options, QuerySpec, parse};

use super::common::{Series, answer};

fn data() -> Vec<Series> {
    let samples = || (0..100).map(|minute: i32| (i64::from(minute) * 60_000, f64::from(minute)));
    vec![
        Series::new(&[("__name__", "foo"), ("a", "aaaaaaaa")], samples()),
        Series::new(&[("__name__", "foo"), ("a", "b")], samples()),
    ]
}

fn ask(text: &str) -> Result<String, EvalError> {
    let spec = QuerySpec::range(0, 6_000_000, 60_000);
    let answer = answer(text, spec, &EvalOptions::default(), &data())?;
    Ok(format!("{:?}", answer.data))
}

/// The limit that ends a query.
fn limit_met(text: &str) -> &'static str {
    match ask(text) {
        Err(EvalError::Limit { setting, .. }) => setting,
        other => panic!("{other:?}"),
    }
}

#[test]
fn endless_subqueries_are_refused_before_anything_is_read() {
    assert_eq!(limit_met("sum_over_time(foo[290y:1ms])"), "max_subquery_steps");
    assert_eq!(limit_met("foo + on() group_left sum_over_time(vector(1)[290y:1ms])"), {
        "max_subquery_steps"
    });
    let out_of_range = parse("sum_over_time(foo[1000y:1ms])", &Options::default()).unwrap_err();
    assert!(out_of_range.to_string().ends_with("duration out of range"), "{out_of_range}");
}

#[test]
fn subqueries_in_subqueries_add_up_and_do_not_multiply() {
    // Each asks for two hours of minutes more than the one inside of it.
    let mut text = "foo".to_owned();
    for _ in 0..100 {
        text = format!("max_over_time({text}[2h:1m])");
    }
    assert!(ask(&text).is_ok());
    let mut text = "foo".to_owned();
    for _ in 0..5 {
        text = format!("max_over_time({text}[30d:10s])");
    }
    assert_eq!(limit_met(&text), "max_subquery_steps");
}

#[test]
fn long_windows_at_many_steps_do_not_go_on_for_hours() {
    // A hundred and seventy thousand windows of as many samples.
    for function in ["mad_over_time", "deriv", "stddev_over_time"] {
        let text = format!("max_over_time({function}(vector(time())[2d:1s])[2d:1s])");
        assert_eq!(limit_met(&text), "max_window_samples");
    }
}

#[test]
fn a_range_of_a_millisecond_and_steps_of_years_cost_nothing() {
    let years = 365 * 86_400_000;
    let spec = QuerySpec::range(0, 10_000 * years, years);
    let options = EvalOptions::default();
    for text in ["rate(foo[1ms])", "sum_over_time(foo[292y])", "foo", "max_over_time(foo[1ms:1ms])"]
    {
        match answer(text, spec, &options, &data()) {
            Ok(_) | Err(EvalError::Limit { setting: "max_subquery_steps", .. }) => {}
            Err(error) => panic!("{text}: {error}"),
        }
    }
}

#[test]
fn labels_that_double_and_double_again_meet_a_limit() {
    let mut joined = "foo".to_owned();
    let mut replaced = "foo".to_owned();
    for _ in 0..100 {
        joined = format!(r#"label_join({joined}, "a", "", "a", "a")"#);
        replaced = format!(r#"label_replace({replaced}, "a", "$0$0", "a", ".*")"#);
    }
    assert_eq!(limit_met(&joined), "max_series_label_bytes");
    assert_eq!(limit_met(&replaced), "max_series_label_bytes");
    // A thousandfold in one go, and again.
    let thousand = r#","a""#.repeat(900);
    let joined = format!(r#"label_join(label_join(foo, "a", ""{thousand}), "a", ""{thousand})"#);
    assert_eq!(limit_met(&joined), "max_series_label_bytes");
    let thousand = "$0".repeat(10_000);
    let replaced = format!(
        r#"label_replace(label_replace(foo, "a", "{thousand}", "a", ".*"), "a", "{thousand}", "a", ".*")"#
    );
    assert_eq!(limit_met(&replaced), "max_series_label_bytes");
}

#[test]
fn patterns_that_explode_are_refused_and_those_that_backtrack_do_no_harm() {
    let replace = |pattern: &str| format!(r#"label_replace(foo, "x", "$1", "a", "{pattern}")"#);
    for pattern in ["((a{100}){100}){100}", "(a{1000}){1000}", "((((a{10}){10}){10}){10}){10}"] {
        let error = ask(&replace(pattern)).unwrap_err().to_string();
        assert!(error.starts_with("invalid regular expression in label_replace()"), "{error}");
        let selector = parse(&format!(r#"foo{{a=~"{pattern}"}}"#), &Options::default());
        assert!(selector.is_err(), "{pattern}");
    }
    for pattern in ["(a*)*b", "(a|aa)+$", "(.*)*(.*)*x", "(a?){100}a{100}"] {
        assert!(ask(&replace(pattern)).is_ok(), "{pattern}");
        assert!(ask(&format!(r#"foo{{a=~"{pattern}"}}"#)).is_ok(), "{pattern}");
    }
}

#[test]
fn the_highest_trees_allowed_are_evaluated_on_an_ordinary_stack() {
    let mut nested = "foo".to_owned();
    for _ in 0..62 {
        nested = format!("sum by (a) (abs({nested}))");
    }
    let mut subqueries = "foo".to_owned();
    for _ in 0..120 {
        subqueries = format!("max_over_time({subqueries}[1m:1m])");
    }
    let mut scalars = "foo".to_owned();
    for _ in 0..62 {
        scalars = format!("vector(scalar({scalars}))");
    }
    for text in [
        "foo + ".repeat(499) + "foo",
        "foo or ".repeat(499) + "foo",
        "1 + ".repeat(499) + "time()",
        format!("{}foo{}", "(".repeat(127), ")".repeat(127)),
        format!("{}foo", "-".repeat(120)),
        format!("time() + ({}time(){}", "time() + (".repeat(60), ")".repeat(61)),
        nested,
        subqueries,
        scalars,
    ] {
        if let Err(error) = ask(&text) {
            panic!("{}: {error}", &text[..40]);
        }
    }
}
