//! Times at the ends of time, and lengths of time that make no sense: an answer or an error.

use tributary_promql::eval::EvalError;
use tributary_promql::{Answer, EvalOptions, QuerySpec};

use super::common::{Series, answer};

fn data() -> Vec<Series> {
    let ends = [i64::MIN, i64::MIN / 16, -1, 0, 1, 60_000, i64::MAX / 16, i64::MAX];
    let samples = (0..).zip(ends).map(|(value, t)| (t, f64::from(value)));
    vec![Series::new(&[("__name__", "foo"), ("a", "x")], samples)]
}

fn ask(text: &str, spec: QuerySpec) -> Result<Answer, EvalError> {
    answer(text, spec, &EvalOptions::default(), &data())
}

#[test]
fn a_duration_that_comes_to_less_than_a_millisecond_is_refused() {
    let spec = QuerySpec::range(0, 60_000, 60_000);
    for text in [
        "sum_over_time(foo[5m:step() / 1e6])",
        "sum_over_time(foo[step() / 1e6])",
        "sum_over_time(foo[range() / 1e6:1m])",
    ] {
        let error = ask(text, spec).unwrap_err().to_string();
        assert!(error.ends_with("duration must be greater than 0"), "{text}: {error}");
    }
    assert!(ask("sum_over_time(foo[5m:step() / 6e4])", QuerySpec::instant(0)).is_err());
    assert!(ask("sum_over_time(foo[1s:step() / 6e4])", spec).is_ok());
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for (lookback, subquery_step) in
        [(-1, 1), (i64::MAX, 1), (i64::MIN, 1), (1, 0), (1, -1), (1, i64::MAX)]
    {
        let options = EvalOptions { lookback, subquery_step, ..EvalOptions::default() };
        let refused = answer("max_over_time(foo[1m:])", QuerySpec::instant(0), &options, &data());
        assert!(matches!(refused, Err(EvalError::Invalid(_))), "{lookback} {subquery_step}");
    }
}

#[test]
fn offsets_and_instants_at_the_ends_of_time_do_not_overflow() {
    let far = i64::MAX / 16;
    let specs = [
        QuerySpec::instant(far),
        QuerySpec::instant(-far),
        QuerySpec::range(-far, far, far),
        QuerySpec::range(far - 10, far, 1),
        QuerySpec::instant(0),
    ];
    let mut nested = "foo offset 292y".to_owned();
    for _ in 0..100 {
        nested = format!("last_over_time({nested}[292y:292y] offset 292y)");
    }
    for text in [
        "foo @ 9223372036854775.807",
        "foo @ -9223372036854775.808",
        "foo @ 9e15 offset -292y",
        "rate(foo[292y] @ -9e15 offset 292y)",
        "rate(foo[292y] smoothed @ 9e15 offset -292y)",
        "foo smoothed offset -292y",
        "increase(foo[292y] anchored offset 292y)",
        "sum_over_time(foo[292y:292y] offset -292y)",
        "timestamp(foo @ 9e15)",
        "predict_linear(foo[292y], 1e300)",
        "deriv(foo[292y] offset -292y)",
        "irate(foo[292y])",
        "year(vector(1e300)) + day_of_year(vector(-1e300))",
        "info(foo @ 9e15 offset -292y)",
        "absent_over_time(foo[1ms] @ -9e15)",
        &nested,
    ] {
        for spec in specs {
            // Whatever it is worth: nothing overflows, which would end a test with a panic.
            let _ = ask(text, spec);
        }
    }
}

#[test]
fn queries_beyond_the_ends_of_time_are_refused() {
    for spec in [
        QuerySpec::instant(i64::MAX),
        QuerySpec::instant(i64::MIN),
        QuerySpec::range(i64::MIN, i64::MAX, 1),
        QuerySpec::range(0, 1, i64::MAX),
        QuerySpec::range(0, 1, 0),
        QuerySpec::range(0, 1, i64::MIN),
        QuerySpec::range(1, 0, 1),
    ] {
        assert!(matches!(ask("foo", spec), Err(EvalError::Invalid(_))), "{spec:?}");
    }
}
