//! Queries over several lines, as Prometheus formats them.

use super::support::tree;

#[test]
fn a_short_query_stays_on_its_line() {
    assert_eq!(tree("sum( foo )by(a)").pretty(), "sum by (a) (foo)");
    let line = format!("foo{{a=\"{}\"}}", "x".repeat(92));
    assert_eq!((line.len(), tree(&line).pretty()), (101, line));
}

#[test]
fn a_long_query_is_broken_up_from_the_outside() {
    let long = "sum by (job, mode) (rate(node_cpu_seconds_total{mode!=\"idle\"}[5m])) / on (job) \
                group_left () sum by (job) (rate(node_cpu_seconds_total[5m]))";
    let expected = r#"  sum by (job, mode) (rate(node_cpu_seconds_total{mode!="idle"}[5m]))
/ on (job) group_left ()
  sum by (job) (rate(node_cpu_seconds_total[5m]))"#;
    assert_eq!(tree(long).pretty(), expected);
}

#[test]
fn calls_parentheses_and_aggregations_indent_what_they_hold() {
    let long = "topk by (instance) (scalar(limit), label_replace((foo_total_with_a_longer_name_too + \
                bar_total_with_a_long_name > bool baz_total_with_a_long_name * 1000), \"dst\", \
                \"$1\", \"src\", \"(.*)\"))";
    let expected = r#"topk by (instance) (
  scalar(limit),
  label_replace(
    (
        foo_total_with_a_longer_name_too + bar_total_with_a_long_name
      > bool
        baz_total_with_a_long_name * 1000
    ),
    "dst",
    "$1",
    "src",
    "(.*)"
  )
)"#;
    assert_eq!(tree(long).pretty(), expected);
}

#[test]
fn signs_and_subqueries_keep_to_what_they_modify() {
    let long = "-max_over_time(rate(some_quite_long_metric_name_total{job=\"some-long-job\", \
                instance=~\"a|b\"}[5m])[1h:1m] @ start() offset 5m)";
    let expected = r#"-max_over_time(
  rate(some_quite_long_metric_name_total{instance=~"a|b",job="some-long-job"}[5m])[1h:1m] @ start() offset 5m
)"#;
    assert_eq!(tree(long).pretty(), expected);
}
