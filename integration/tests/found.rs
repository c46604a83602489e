//! Bugs of ours that the differential test has found, each as a small case that needs no
//! Prometheus.

use tributary_integration::differential::arena::Subject;
use tributary_integration::differential::data::data_set;
use tributary_integration::differential::grammar::{LOOKBACK_MS, Question, When};
use tributary_integration::differential::ours::Ours;
use tributary_integration::differential::outcome::Outcome;
use tributary_promql::Labels;

const SAME_LABELS: &str = "vector cannot contain metrics with the same labelset";

/// The outcome at one minute, over two metrics with the same labels, a sample every ten seconds.
/// Names of metrics are dropped at once.
fn outcome(text: &str) -> Outcome {
    let series = |name: &str| {
        let labels = Labels::new([("__name__", name), ("job", "x")]).expect("no label twice");
        (labels, (0..=6).map(|n| (i64::from(n) * 10_000, f64::from(n))).collect())
    };
    let data = data_set([series("a_total"), series("b_total")]);
    let question = Question {
        text: text.to_owned(),
        when: When::Instant(60_000),
        lookback: LOOKBACK_MS,
        delayed_name_removal: false,
    };
    Ours.answer(&data, &question)
}

#[track_caller]
fn fails(text: &str, error: &str) {
    match outcome(text) {
        Outcome::Failed(found) => assert_eq!(found, error, "{text}"),
        Outcome::Answered(told) => panic!("{text}: {told:?}"),
    }
}

#[track_caller]
fn answers(text: &str, values: usize) {
    match outcome(text) {
        Outcome::Failed(error) => panic!("{text}: {error}"),
        answered @ Outcome::Answered(_) => assert_eq!(answered.values(), values, "{text}"),
    }
}

#[test]
fn an_aggregation_does_not_hide_that_two_metrics_have_become_one() {
    for aggregation in ["sum(", "avg by (job) (", "group(", "stdvar(", "count(", "topk(1, "] {
        fails(&format!("{aggregation}rate({{__name__=~\".*_total\"}}[1m]))"), SAME_LABELS);
    }
    answers("sum(rate(a_total[1m]))", 1);
    answers("sum({__name__=~\".*_total\"})", 1);
}

#[test]
fn absent_does_not_hide_it_either() {
    fails("absent(idelta({__name__=~\".*_total\"}[1m]))", SAME_LABELS);
    answers("absent(idelta(a_total[1m]))", 0);
}

#[test]
fn absent_over_time_takes_several_metrics() {
    answers("absent_over_time({__name__=~\".*_total\"}[1m])", 0);
    answers("absent_over_time({__name__=~\".*_total\"}[1m:10s])", 0);
    answers("absent_over_time({__name__=~\"nothing|nowhere\"}[1m:10s])", 1);
}
