//! What writing answers for clients costs: a million samples as Prometheus' JSON, counters and
//! floats apart.
//!
//! `cargo bench -p tributary-bench --bench json` prints a table. Each figure is the best of several
//! runs.
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::hint::black_box;
use std::time::Instant;

use tributary_api::http::{Notes, answer_json};
use tributary_promql::{Data, Labels, Points};

const SERIES: usize = 1_000;
const SAMPLES: usize = 1_000;
const RUNS: usize = 7;

fn matrix(value: impl Fn(usize, usize) -> f64) -> Data {
    let series = (0..SERIES).map(|series| {
        let number = series.to_string();
        let labels = [("__name__", "http_requests_total"), ("job", "api"), ("instance", &number)];
        let ts = (0..).take(SAMPLES).map(|step: i64| 1_767_225_600_000 + step * 15_000);
        Points {
            labels: Labels::new(labels).expect("the names differ"),
            ts: ts.collect(),
            values: (0..SAMPLES).map(|sample| value(series, sample)).collect(),
        }
    });
    Data::Matrix(series.collect())
}

fn measure(name: &str, data: &Data) {
    let notes = Notes::default();
    let (mut best, mut bytes) = (f64::INFINITY, 0);
    for _ in 0..RUNS {
        let data = data.clone();
        let begun = Instant::now();
        bytes = black_box(answer_json(data, &notes)).len();
        best = best.min(begun.elapsed().as_secs_f64());
    }
    let samples = (SERIES * SAMPLES) as f64;
    println!(
        "{name:<24} {:>8.1} ms {:>8.1} ns/sample {:>8.0} MB/s {:>8.1} MB",
        best * 1e3,
        best * 1e9 / samples,
        bytes as f64 / best / 1e6,
        bytes as f64 / 1e6,
    );
}

fn main() {
    measure("counters", &matrix(|series, sample| (series * 1_000_003 + sample * 17) as f64));
    measure("ratios", &matrix(|series, sample| (series + 1) as f64 / (sample + 3) as f64));
    measure(
        "gauges, two digits",
        &matrix(|series, sample| (series * sample % 9_973) as f64 / 100.0),
    );
}
