//! Leaves over segments: decoding included, beside the decoding of the same pages by the Parquet
//! library in the same run; and what merging and evaluating costs per step.
//!
//! `cargo bench -p tributary-bench --bench leaves` prints a table over made-up data in the shape of a
//! real scrape: 200 targets of 30 series each, scraped every 15 s for two hours. With
//! `-- --segments DIR` the leaves run over all segments below a directory instead. Each figure is
//! the best of several runs, by the clock of the processor.
#![expect(clippy::unwrap_used, reason = "a benchmark that can't go on has failed")]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};
use tributary_promql::leaf::{LeafPart, LeafRun, TimeSpan};
use tributary_promql::window::Samples;
use tributary_promql::{EvalFlow, EvalOptions, Options, Plan, QuerySpec, parse, plan};
use tributary_segment::{
    Family, Labels, Matcher, MemorySource, ScanBuffers, Segment, SegmentError, SegmentWriter,
    SeriesIndex, TimeRange, WriteOptions,
};

const START: i64 = 1_767_225_600_000;
const SCRAPES: usize = 480;
const HOUR: i64 = 3_600_000;

struct Stored {
    segment: Segment<MemorySource>,
    samples: Bytes,
}

fn store(series: Vec<u8>, samples: Vec<u8>) -> Stored {
    let index = Arc::new(SeriesIndex::open(&MemorySource::new("series", series)).unwrap());
    let samples = Bytes::from(samples);
    let segment = Segment::open(index, MemorySource::new("samples", samples.clone())).unwrap();
    Stored { segment, samples }
}

/// Counters and gauges of some targets, whose series share their times.
fn made_up() -> Vec<Stored> {
    let mut state = 1_u64;
    let mut chance = |limit: u64| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (x ^ (x >> 31)) % limit
    };
    let mut series = Vec::new();
    for target in 0..200 {
        let mut at = START + i64::try_from(chance(15_000)).unwrap();
        let times: Vec<i64> = (0..SCRAPES)
            .map(|_| {
                at += 14_990 + i64::try_from(chance(20)).unwrap();
                at
            })
            .collect();
        let times = Arc::new(times);
        let (host, region) = (format!("host_{target:04}"), format!("region_{}", target % 4));
        for n in 0..54_u64 {
            let number = n.to_string();
            let counter = n < 30;
            let metric = if counter { "http_requests_total" } else { "cpu_usage" };
            let label = if counter { "code" } else { "mode" };
            let labels =
                [("__name__", metric), ("host", &host), ("region", &region), (label, &number)];
            let mut total = chance(1_000_000);
            let values = (0..SCRAPES).map(|_| {
                if !counter {
                    return chance(10_001) as f64 / 100.0;
                }
                total += chance(n + 2);
                total as f64
            });
            let values: Vec<f64> = values.collect();
            series.push((Labels::new(labels).unwrap(), Arc::clone(&times), values));
        }
    }
    series.sort_by(|a, b| a.0.series_cmp(&b.0));
    let (mut index, mut samples) = (Vec::new(), Vec::new());
    let mut writer = SegmentWriter::new(&mut samples, &WriteOptions::default()).unwrap();
    let family = Arc::new(Family::default());
    for (labels, ts, values) in &series {
        writer.series(labels, &family, ts, values).unwrap();
    }
    writer.finish(&mut index).unwrap();
    vec![store(index, samples)]
}

/// All segments below a directory.
fn found(dir: &Path) -> Vec<Stored> {
    let mut stored = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { dirs.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    for path in &files {
        let name = path.to_str().unwrap();
        if let Some(id) = name.strip_suffix(".series.parquet") {
            let samples = std::fs::read(format!("{id}.samples.parquet")).unwrap();
            stored.push(store(std::fs::read(path).unwrap(), samples));
        }
    }
    stored
}

fn best(mut run: impl FnMut()) -> f64 {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..9).map(|_| time(&mut run)).fold(f64::INFINITY, f64::min)
}

fn report(what: &str, count: usize, seconds: f64) {
    println!("{what:66} {:8.1} M/s {:9.2} ms", count as f64 / seconds / 1e6, seconds * 1e3);
}

/// Decodes times and values of a whole file as the Parquet library does.
fn decode_with_library(file: &Bytes, ts: &mut Vec<i64>, values: &mut Vec<f64>) -> usize {
    let reader = SerializedFileReader::new(file.clone()).unwrap();
    let mut all = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).unwrap();
        let rows = usize::try_from(group.metadata().num_rows()).unwrap();
        all += rows;
        ts.clear();
        values.clear();
        for column in [1, 2] {
            let mut column = group.get_column_reader(column).unwrap();
            let mut read = 0;
            while read < rows {
                let (records, _, _) = match &mut column {
                    ColumnReader::Int64ColumnReader(c) => {
                        c.read_records(rows - read, None, None, ts).unwrap()
                    }
                    ColumnReader::DoubleColumnReader(c) => {
                        c.read_records(rows - read, None, None, values).unwrap()
                    }
                    _ => panic!("samples have no other columns"),
                };
                read += records;
            }
        }
        black_box((&ts, &values));
    }
    all
}

fn planned(text: &str, spec: QuerySpec) -> Plan {
    let options = EvalOptions::default();
    plan(&parse(text, &Options::default()).unwrap(), spec, &options).unwrap()
}

/// One leaf over all segments: its parts, and how many samples it read.
fn run_leaf(plan: &Plan, stored: &[Stored], buffers: &mut ScanBuffers) -> (Vec<LeafPart>, usize) {
    let leaf = &plan.leaves[0].leaf;
    let limits = EvalOptions::default().limits;
    let matchers: Vec<Matcher> =
        leaf.matchers.iter().map(|matcher| Matcher::try_from(matcher).unwrap()).collect();
    let (after, up_to) = leaf.needs();
    let range = TimeRange { start: after + 1, end: up_to };
    let mut rows = 0;
    let mut parts = Vec::new();
    for (place, stored) in (0..).zip(stored) {
        let index = stored.segment.index();
        let chosen = index.select(&matchers, range);
        // Segments of one metric's shard each: every one has all of time for its series.
        let mut run = LeafRun::new(leaf, TimeSpan::ALL, place, &limits);
        let each = |series: tributary_segment::SeriesSamples<'_>| {
            rows += series.ts.len();
            let samples = Samples { ts: series.ts, values: series.values };
            run.push(&index.labels(series.series), samples).unwrap();
            Ok::<(), SegmentError>(())
        };
        stored.segment.for_each(&chosen, range, buffers, each).unwrap();
        parts.push(run.finish());
    }
    (parts, rows)
}

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--segments");
    let stored = arguments.nth(1).map_or_else(made_up, |dir| found(Path::new(&dir)));

    let (mut ts, mut values) = (Vec::new(), Vec::new());
    let mut decode = |stored: &[Stored]| {
        stored.iter().map(|s| decode_with_library(&s.samples, &mut ts, &mut values)).sum::<usize>()
    };
    let rows = decode(&stored);
    let time = best(|| {
        black_box(decode(&stored));
    });
    report("the parquet crate: decode all times and values", rows, time);

    let mut buffers = ScanBuffers::default();
    let whole = QuerySpec::range(START, START + 2 * HOUR, 15_000);
    let hour = QuerySpec::range(START + HOUR / 2, START + 3 * HOUR / 2, 15_000);
    let coarse = QuerySpec::range(START, START + 2 * HOUR, 60_000);
    for (text, spec, steps) in [
        ("sum by (region) (rate(http_requests_total[5m]))", whole, "2 h by 15 s"),
        ("sum by (region) (rate(http_requests_total[5m]))", coarse, "2 h by 60 s"),
        ("sum by (region) (rate(http_requests_total[5m]))", hour, "1 h by 15 s"),
        ("rate(http_requests_total[5m])", whole, "2 h by 15 s"),
        ("avg_over_time(cpu_usage[5m])", whole, "2 h by 15 s"),
        ("max_over_time(cpu_usage[5m])", whole, "2 h by 15 s"),
        ("cpu_usage", whole, "2 h by 15 s"),
        ("sum by (region) (cpu_usage)", whole, "2 h by 15 s"),
        ("quantile_over_time(0.9, cpu_usage[5m])", whole, "2 h by 15 s"),
    ] {
        let plan = planned(text, spec);
        let (_, rows) = run_leaf(&plan, &stored, &mut buffers);
        let time = best(|| drop(black_box(run_leaf(&plan, &stored, &mut buffers))));
        report(&format!("{text}, {steps}"), rows, time);
    }

    for text in ["http_requests_total", "http_requests_total / http_requests_total"] {
        let plan = planned(text, QuerySpec::range(START + HOUR, START + HOUR + 900_000, 15_000));
        let (parts, _) = run_leaf(&plan, &stored, &mut buffers);
        let spans: Vec<_> = parts.iter().map(|part| (part.span, part.place)).collect();
        let evaluate = || {
            let mut flow = EvalFlow::new(&plan, vec![spans.clone(); plan.leaves.len()]);
            for leaf in 0..plan.leaves.len() {
                parts.iter().for_each(|part| flow.add(leaf, part.clone()));
            }
            flow.answer().unwrap()
        };
        let time = best(|| drop(black_box(evaluate())));
        let what = format!("merge and evaluate {text}, 61 steps");
        println!("{what:66} {:8.1} µs a step", time * 1e6 / 61.0);
    }
}
