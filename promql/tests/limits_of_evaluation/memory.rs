//! What hostile queries take of memory, measured. One test, because what is measured is what the
//! whole process takes.

use peak_alloc::PeakAlloc;
use tributary_promql::eval::EvalError;
use tributary_promql::{EvalLimits, EvalOptions, QuerySpec};

use super::common::{Series, answer};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Room for a million values and 16 MiB of labels, and what other tests take at the same time.
const MOST_MIB: f32 = 150.0;

fn limits() -> EvalLimits {
    EvalLimits {
        max_series: 10_000,
        max_values: 1_000_000,
        max_label_bytes: 16 << 20,
        ..EvalLimits::default()
    }
}

/// A thousand series `foo`, each with its own values at 11,000 seconds; a thousand buckets, and a
/// thousand series that take turns.
fn data() -> Vec<Series> {
    let mut data = Vec::new();
    for number in 0..1_000_i32 {
        let name = number.to_string();
        let samples = (0..20).map(|index| (i64::from(index) * 550_000, f64::from(number)));
        data.push(Series::new(&[("__name__", "foo"), ("a", &name)], samples));
        let bound = [("__name__", "h_bucket"), ("le", "+Inf"), ("h", name.as_str())];
        data.push(Series::new(&bound, [(0, 1.0)]));
        let turn = [("__name__", "turn"), ("n", name.as_str())];
        let at = i64::from(number) * 11_000;
        let mark = f64::from_bits(tributary_promql::STALE_BITS);
        data.push(Series::new(&turn, [(at, 1.0), (at + 11_000, mark)]));
    }
    let restless = (0..11_000).map(|second: i32| (i64::from(second) * 1_000, f64::from(second)));
    data.push(Series::new(&[("__name__", "restless")], restless));
    data
}

#[test]
fn hostile_queries_end_before_they_take_much_memory() {
    let data = data();
    let steps = QuerySpec::range(0, 10_999_000, 1_000);
    let quantiles = (0..10).map(|q| format!(", time() * {q}")).collect::<String>();
    let growing =
        r#"label_replace(foo{a="1"}, "b", "$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0", "a", ".*")"#;
    let growing = (0..4).fold(growing.to_owned(), |inner, _| {
        format!(r#"label_join({inner}, "b", "", "b", "b", "b", "b", "b", "b", "b", "b")"#)
    });
    let waiting = format!("{}foo{a}{}", "foo{a=~\"..\"} + (".repeat(60), ")".repeat(60), a = "");
    for text in [
        // A row of 11,000 steps for each of a thousand series.
        "foo",
        "foo @ 0",
        "foo smoothed",
        "abs(foo @ 0)",
        "quantile_over_time(scalar(restless), foo[5m])",
        "rate(foo[5m] smoothed)",
        "max_over_time(foo[1h:1s])",
        "sum_over_time((foo @ 0)[1h:1s])",
        // A group for each of 11,000 values, with a state for each of 11,000 steps.
        "count_values('v', restless)",
        "count_values('v', restless + 0)",
        "max_over_time(count_values('v', restless)[1h:1s])",
        // A series for each quantile of each step.
        &format!("histogram_quantiles(h_bucket, 'q'{quantiles})"),
        // Every series of the many side meets a thousand partners, one after the other.
        "foo{a=~'..'} * on() group_left(n) turn",
        &format!("count_values without () ('v', {growing} + on() restless)"),
        // Each operand waits for the other.
        &waiting,
        &format!("{}vector(1)", "foo{a=~'..'} or ".repeat(300)),
    ] {
        take_little(text, steps, &data);
    }
    // One long label is copied to many series.
    let once = QuerySpec::instant(0);
    take_little(&format!("foo * on() group_left(b) {growing}"), once, &data);
    take_little(&format!("label_join(foo, 'b', '{}', 'a', 'a')", "x".repeat(30_000)), once, &data);
}

/// A query that is ended by a limit before it takes much.
fn take_little(text: &str, spec: QuerySpec, data: &[Series]) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage_as_mb();
    let options = EvalOptions { limits: limits(), ..EvalOptions::default() };
    let outcome = answer(text, spec, &options, data);
    let took = MEMORY.peak_usage_as_mb() - before;
    let short = &text[..text.len().min(80)];
    assert!(matches!(outcome, Err(EvalError::Limit { .. })), "{short}: {outcome:?}");
    assert!(took < MOST_MIB, "{short}: {took} MiB");
}
