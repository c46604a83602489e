//! How long a query takes from text to tree and back. A typical dashboard query should take less
//! than ten microseconds.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tributary_promql::{Options, parse};

/// Queries by name.
const QUERIES: [(&str, &str); 4] = [
    ("selector of 20 bytes", r#"up{job="node-export"}"#),
    (
        "dashboard query of 200 bytes",
        r#"histogram_quantile(0.99, sum by (le, route) (rate(http_request_duration_seconds_bucket{namespace="shop",pod=~"checkout-.+"}[5m]))) / on (route) group_left sum by (route) (rate(http_requests_total[5m])) > 0.5"#,
    ),
    (
        "regular expressions",
        r#"sum(rate(a{b=~"foo|bar|baz",c!~"(x|y)[0-9]{2,3}.*",d=~"\\w+-\\d+"}[5m])) by (b)"#,
    ),
    (
        "error at the end",
        r#"sum by (job) (rate(http_requests_total{job="api",code=~"5.."}[5m])) +"#,
    ),
];

fn text_to_tree(criterion: &mut Criterion) {
    let options = Options::default();
    let mut group = criterion.benchmark_group("text to tree");
    for (name, query) in QUERIES {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(parse(black_box(query), &options)).is_ok());
        });
    }
    group.finish();
}

fn tree_to_text(criterion: &mut Criterion) {
    let expr = parse(QUERIES[1].1, &Options::default()).expect("it is a query");
    let mut group = criterion.benchmark_group("tree to text");
    group.bench_function("canonical", |bencher| bencher.iter(|| black_box(&expr).to_string()));
    group.bench_function("pretty", |bencher| bencher.iter(|| black_box(&expr).pretty()));
    group.finish();
}

criterion_group!(benches, text_to_tree, tree_to_text);
criterion_main!(benches);
