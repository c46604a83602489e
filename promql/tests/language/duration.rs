//! Durations that depend on the query: computed when its step and range are known.

use tributary_promql::Expr;
use tributary_promql::duration::PromDuration;
use tributary_promql::duration_expr::QueryTimes;

use super::support::all;

const TIMES: QueryTimes = QueryTimes {
    step: PromDuration::from_millis(15_000),
    range: PromDuration::from_millis(3_600_000),
};

/// The range of `foo[text]` in milliseconds.
fn range(text: &str) -> Result<i64, String> {
    let query = format!("foo[{text}]");
    let Ok(Expr::Matrix(matrix)) = tributary_promql::parse(&query, &all()) else {
        panic!("{query} is no range");
    };
    let range = matrix.range.positive(TIMES);
    range.map(PromDuration::as_millis).map_err(|error| error.to_string())
}

/// The offset of `foo offset text` in milliseconds.
fn offset(text: &str) -> Result<i64, String> {
    let query = format!("foo offset {text}");
    let Ok(Expr::Vector(vector)) = tributary_promql::parse(&query, &all()) else {
        panic!("{query} is no offset");
    };
    let offset = vector.offset.expect("it is not zero").signed(TIMES);
    offset.map(PromDuration::as_millis).map_err(|error| error.to_string())
}

#[test]
fn arithmetic_has_its_usual_meaning() {
    for (text, millis) in [
        ("5m", 300_000),
        ("5m + 1m", 360_000),
        ("5m - 1m * 2", 180_000),
        ("(5m - 1m) * 2", 480_000),
        ("2 ^ 3 ^ 2", 512_000),
        ("10 - 3 - 2", 5_000),
        ("1h / 7", 514_285),
        ("7 % 4", 3_000),
        ("-5 + 10", 5_000),
        ("- -5", 5_000),
        ("-(2) + 10", 8_000),
        ("-2 ^ 2 + 10", 6_000),
        ("step()", 15_000),
        ("step() * 4", 60_000),
        ("range() / 2", 1_800_000),
        ("max_of(step(), 1m)", 60_000),
        ("min_of(step(), 1m) + 0.0015", 15_001),
    ] {
        assert_eq!(range(text), Ok(millis), "{text}");
    }
    assert_eq!(offset("-step()"), Ok(-15_000));
    assert_eq!(offset("-(step() * 2)"), Ok(-30_000));
    assert_eq!(offset("(step()) - 1m"), Ok(-45_000));
    assert_eq!(offset("max_of(-1m, -2m)"), Ok(-60_000));
}

#[test]
fn a_value_of_no_use_is_an_error_with_its_bytes() {
    assert_eq!(range("step() - 15"), Err("4:15: duration must be greater than 0".to_owned()));
    assert_eq!(range("-step()"), Err("4:11: duration must be greater than 0".to_owned()));
    assert_eq!(range("1 / (1 - 1)"), Err("4:14: division by zero".to_owned()));
    assert_eq!(range("1 + 5 % (1 - 1)"), Err("8:18: modulo by zero".to_owned()));
    assert_eq!(range("10 ^ 400"), Err("4:12: duration is NaN or infinite".to_owned()));
    assert_eq!(range("10 ^ 12"), Err("4:11: duration is out of range".to_owned()));
    assert_eq!(range("-10 ^ 12"), Err("4:12: duration must be greater than 0".to_owned()));
    assert_eq!(offset("(10) ^ 12"), Err("11:20: duration is out of range".to_owned()));
}
