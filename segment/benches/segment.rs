//! Speeds of the segment: writing, opening, selecting, reading, and parsing text, on made-up data
//! in the shape of a real scrape. Reading stands beside the Parquet library's own reading of the
//! same columns, in the same run.
//!
//! `cargo bench -p tributary-segment` prints a table; `-- --targets 200` makes more data. Each
//! figure is the best of several runs, so that other work on the machine disturbs it less.
#![expect(clippy::unwrap_used, reason = "a benchmark that can't go on has failed")]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};
use tributary_segment::{
    Family, Format, ImportOptions, Importer, Labels, MatchOp, Matcher, MemorySource, ScanBuffers,
    Segment, SegmentError, SegmentWriter, SeriesIndex, TextParser, TimeRange, WriteOptions,
};

/// Scrapes in a block of two hours.
const SCRAPES: usize = 480;

struct Data {
    series: Vec<(Labels, Arc<Vec<i64>>, Vec<f64>)>,
    samples: usize,
}

/// Numbers that look like chance but are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (x ^ (x >> 31)) % limit
    }
}

/// Counters, percentages and buckets of some targets, whose series share their times.
fn data(targets: u64) -> Data {
    let mut chance = Chance(1);
    let mut series = Vec::new();
    for target in 0..targets {
        let mut at = 1_767_225_600_000 + i64::try_from(chance.below(15_000)).unwrap();
        let times = (0..SCRAPES).map(|_| {
            at += 14_990 + i64::try_from(chance.below(20)).unwrap();
            at
        });
        let times = Arc::new(times.collect::<Vec<i64>>());
        let host = format!("host_{target:04}");
        for n in 0..100 {
            let number = n.to_string();
            let (metric, label) = match n {
                0..30 => ("http_requests_total", "code"),
                30..55 => ("cpu_usage", "mode"),
                _ => ("latency_seconds_bucket", "le"),
            };
            let labels = [("__name__", metric), ("host", &host), (label, &number)];
            let mut total = chance.below(1_000_000);
            let values = (0..SCRAPES).map(|_| {
                if metric == "cpu_usage" {
                    return chance.below(10_001) as f64 / 100.0;
                }
                total += chance.below(n + 2);
                total as f64
            });
            let values = values.collect();
            series.push((Labels::new(labels).unwrap(), Arc::clone(&times), values));
        }
    }
    series.sort_by(|a, b| a.0.series_cmp(&b.0));
    let samples = series.len() * SCRAPES;
    Data { series, samples }
}

fn best(mut run: impl FnMut()) -> f64 {
    let time = |run: &mut dyn FnMut()| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..7).map(|_| time(&mut run)).fold(f64::INFINITY, f64::min)
}

fn report(what: &str, count: usize, seconds: f64) {
    let rate = count as f64 / seconds / 1e6;
    println!("{what:58} {rate:9.1} M/s {:10.3} ms", seconds * 1e3);
}

fn write(data: &Data) -> (Vec<u8>, Vec<u8>) {
    let (mut series, mut samples) = (Vec::new(), Vec::new());
    let mut writer = SegmentWriter::new(&mut samples, &WriteOptions::default()).unwrap();
    let family = Arc::new(Family::default());
    for (labels, ts, values) in &data.series {
        writer.series(labels, &family, ts, values).unwrap();
    }
    writer.finish(&mut series).unwrap();
    (series, samples)
}

/// Decodes the times and the values of the whole file as the Parquet library does.
fn decode_with_library(
    reader: &SerializedFileReader<Bytes>,
    ts: &mut Vec<i64>,
    values: &mut Vec<f64>,
) {
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).unwrap();
        let rows = usize::try_from(group.metadata().num_rows()).unwrap();
        ts.clear();
        values.clear();
        for column in [1, 2] {
            let mut read = 0;
            let mut column = group.get_column_reader(column).unwrap();
            while read < rows {
                read += match &mut column {
                    ColumnReader::Int64ColumnReader(c) => {
                        c.read_records(rows - read, None, None, ts)
                    }
                    ColumnReader::DoubleColumnReader(c) => {
                        c.read_records(rows - read, None, None, values)
                    }
                    _ => panic!("samples have no other columns"),
                }
                .unwrap()
                .0;
            }
        }
        black_box((&ts, &values));
    }
}

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--targets");
    let targets = arguments.nth(1).map_or(100, |targets| targets.parse().unwrap());
    let data = data(targets);
    println!("{} series, {} samples", data.series.len(), data.samples);

    report("write", data.samples, best(|| drop(black_box(write(&data)))));
    let (series, samples) = write(&data);
    let size = (series.len() + samples.len()) as f64 / data.samples as f64;
    println!("{:58} {size:9.3} bytes a sample", "size of both files");

    let series = MemorySource::new("series", series);
    let file = Bytes::from(samples);
    let index = Arc::new(SeriesIndex::open(&series).unwrap());
    let open = best(|| drop(black_box(SeriesIndex::open(&series).unwrap())));
    report("open the index, series", data.series.len(), open);
    let segment =
        Segment::open(Arc::clone(&index), MemorySource::new("samples", file.clone())).unwrap();

    let matcher = |name, op, value| Matcher::new(name, op, value).unwrap();
    let http = [matcher("__name__", MatchOp::Equal, "http_requests_total")];
    let hosts = [
        matcher("__name__", MatchOp::Equal, "http_requests_total"),
        matcher("host", MatchOp::Regex, "host_00.[0-5]"),
        matcher("code", MatchOp::NotEqual, "7"),
    ];
    for (what, matchers) in
        [("select a metric", &http[..]), ("select by three matchers", &hosts[..])]
    {
        let chosen = index.select(matchers, TimeRange::ALL).len();
        let time = best(|| drop(black_box(index.select(matchers, TimeRange::ALL))));
        report(&format!("{what}, series chosen"), chosen, time);
    }

    let (mut ts, mut values) = (Vec::new(), Vec::new());
    let library = SerializedFileReader::new(file).unwrap();
    let time = best(|| decode_with_library(&library, &mut ts, &mut values));
    report("the parquet crate: decode ts and value", data.samples, time);

    let mut buffers = ScanBuffers::default();
    let mut scan = |chosen: &[u32], range: TimeRange| {
        let mut rows = 0;
        let time = best(|| {
            rows = 0;
            let each = |samples: tributary_segment::SeriesSamples<'_>| {
                rows += samples.ts.len();
                black_box((samples.ts, samples.values));
                Ok::<(), SegmentError>(())
            };
            segment.for_each(chosen, range, &mut buffers, each).unwrap();
        });
        (rows, time)
    };
    let all: Vec<u32> = (0..index.len()).collect();
    let (rows, time) = scan(&all, TimeRange::ALL);
    report("scan: all series", rows, time);
    let (rows, time) = scan(&index.select(&http, TimeRange::ALL), TimeRange::ALL);
    report("scan: one metric", rows, time);
    let (rows, time) = scan(&index.select(&hosts, TimeRange::ALL), TimeRange::ALL);
    report("scan: some series of one metric", rows, time);
    let (rows, time) = scan(&[index.len() / 2], TimeRange::ALL);
    report("scan: one series", rows, time);

    let by_series = text(&data);
    report("parse OpenMetrics, lines by series", data.samples, best(|| parse(&by_series)));
    let by_scrape = by_scrape(&by_series);
    report("parse OpenMetrics, lines by scrape", data.samples, best(|| parse(&by_scrape)));

    let directory = std::env::temp_dir().join(format!("tributary-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for (what, text) in
        [("import, lines by series", &by_series), ("import, lines by scrape", &by_scrape)]
    {
        let time = best(|| {
            let mut importer = Importer::new(ImportOptions::default());
            importer.read_text(text.as_bytes(), Format::OpenMetrics, |_| {}).unwrap();
            importer.finish(&directory, |key| format!("{}", key.block_start)).unwrap();
        });
        report(what, data.samples, time);
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

fn text(data: &Data) -> String {
    let mut text = String::new();
    for (labels, ts, values) in &data.series {
        let pairs: Vec<String> =
            labels.without_metric().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let key = format!("{}{{{}}}", labels.metric(), pairs.join(","));
        for (ts, value) in ts.iter().zip(values) {
            writeln!(text, "{key} {value} {}.{:03}", ts / 1_000, ts % 1_000).unwrap();
        }
    }
    text.push_str("# EOF\n");
    text
}

/// The same lines by scrape, as an exporter gives them: no line has the series of the one before.
fn by_scrape(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut sorted = String::with_capacity(text.len());
    for scrape in 0..SCRAPES {
        for line in lines.iter().skip(scrape).step_by(SCRAPES) {
            writeln!(sorted, "{line}").unwrap();
        }
    }
    sorted.push_str("# EOF\n");
    sorted
}

fn parse(text: &str) {
    let mut parser = TextParser::new(Format::OpenMetrics);
    let each = |_: &TextParser, sample, _| {
        black_box(sample);
        Ok::<(), ()>(())
    };
    parser.read(text.as_bytes(), each).unwrap();
}
