//! `tributary segments show`: what one segment holds, read from its own files, and how it is laid
//! out in them.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use tributary_catalog::SegmentDetails;
use tributary_segment::{ColumnLayout, FileSource, Segment, SegmentError, SeriesIndex};

use super::list::Line;
use super::{Desk, json};
use crate::cli::{Problem, Verdict};
use crate::figures::{Side, grouped, moment, ratio, write_table};
use crate::output;

/// What `show` is asked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The segment: its name, or how it begins
    id: String,
}

/// Everything there is to say of a segment.
#[derive(Debug, Serialize)]
struct Answer {
    #[serde(flatten)]
    line: Line,
    written_ms: i64,
    sequence: u64,
    /// Series whose timestamps are those of an earlier series.
    series_with_shared_times: u64,
    files: Vec<FileLine>,
    columns: Vec<ColumnLine>,
    by_metric: Vec<MetricLine>,
}

#[derive(Debug, Serialize)]
struct FileLine {
    path: PathBuf,
    bytes: u64,
    sha256: String,
}

#[derive(Debug, Serialize)]
struct ColumnLine {
    name: String,
    pages: usize,
    bytes: u64,
    encodings: Vec<String>,
}

#[derive(Debug, Default, Serialize)]
struct MetricLine {
    metric: String,
    kind: String,
    unit: String,
    help: String,
    series: u64,
    samples: u64,
    min_ts: i64,
    max_ts: i64,
}

pub(super) async fn run(desk: &Desk, args: &Args) -> Result<Verdict, Problem> {
    let live = desk.catalog.live(desk.tenant.as_ref()).await.map_err(Problem::failed)?;
    let answer = look(desk, choose(&live, &args.id)?)?;
    let mut out = output::standard();
    if desk.json {
        writeln!(out, "{}", json(&answer))?;
    } else {
        write(&mut out, &answer)?;
    }
    out.flush()?;
    Ok(Verdict::Good)
}

/// The segment of that name, or the only one that begins so.
fn choose<'a>(live: &'a [SegmentDetails], id: &str) -> Result<&'a SegmentDetails, Problem> {
    let names = || live.iter().map(|details| (details.segment.id.as_str(), details));
    if let Some((_, exact)) = names().find(|(name, _)| *name == id) {
        return Ok(exact);
    }
    let mut begin = names().filter(|(name, _)| !id.is_empty() && name.starts_with(id));
    match (begin.next(), begin.count()) {
        (Some((_, only)), 0) => Ok(only),
        (Some(_), others) => Err(Problem::ManySegments { id: id.to_owned(), count: others + 1 }),
        (None, _) => Err(Problem::NoSuchSegment { id: id.to_owned() }),
    }
}

fn look(desk: &Desk, details: &SegmentDetails) -> Result<Answer, Problem> {
    let stored = [&details.segment.series_file, &details.segment.samples_file];
    let [series, samples] = stored.map(|file| desk.data_dir.path().join(file.path.as_str()));
    let open = |path: &PathBuf| {
        FileSource::open(path).map_err(|error| Problem::File { path: path.clone(), error })
    };
    let damaged = |error: SegmentError| Problem::failed(error);
    let index = Arc::new(SeriesIndex::open(&open(&series)?).map_err(damaged)?);
    let columns = ColumnLayout::of_samples(&open(&samples)?).map_err(damaged)?;
    // Opened for the checks that come with it: both files belong together.
    Segment::open(Arc::clone(&index), open(&samples)?).map_err(damaged)?;
    let file = |path: PathBuf, at: usize| FileLine {
        path,
        bytes: stored[at].size_bytes,
        sha256: stored[at].checksum.to_string(),
    };
    let shared = (0..index.len()).filter(|series| index.times_of(*series) != *series).count();
    Ok(Answer {
        line: Line::of(details),
        written_ms: details.segment.written_ms,
        sequence: details.segment.sequence,
        series_with_shared_times: shared as u64,
        files: vec![file(series, 0), file(samples, 1)],
        columns: columns.into_iter().map(ColumnLine::from).collect(),
        by_metric: by_metric(&index),
    })
}

impl From<ColumnLayout> for ColumnLine {
    fn from(column: ColumnLayout) -> Self {
        let ColumnLayout { name, pages, stored_bytes, encodings } = column;
        Self { name, pages, bytes: stored_bytes, encodings }
    }
}

/// The metrics in their order; the series of one stand together.
fn by_metric(index: &SeriesIndex) -> Vec<MetricLine> {
    let mut lines: Vec<MetricLine> = Vec::new();
    for series in 0..index.len() {
        let metric = index.metric(series);
        let (min_ts, max_ts) = index.series_time_bounds(series);
        if lines.last().is_none_or(|line| line.metric != metric) {
            let family = index.family(series);
            lines.push(MetricLine {
                metric: metric.to_owned(),
                kind: family.kind.to_string(),
                unit: family.unit.clone(),
                help: family.help.clone(),
                min_ts,
                max_ts,
                ..MetricLine::default()
            });
        }
        let line = lines.last_mut().expect("one was pushed where there was none");
        let rows = index.rows(series);
        line.series += 1;
        line.samples += rows.end - rows.start;
        line.min_ts = line.min_ts.min(min_ts);
        line.max_ts = line.max_ts.max(max_ts);
    }
    lines
}

fn write(out: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let mut row = |name: &str, text: &str| writeln!(out, "{name:<13} {text}");
    let line = &answer.line;
    let shared = format!(
        "{}, {} with the times of another",
        grouped(line.series),
        grouped(answer.series_with_shared_times)
    );
    row("segment", &line.id)?;
    row("tenant", &line.tenant)?;
    row("block", &format!("{} to {}", moment(line.block_start_ms), moment(line.block_end_ms)))?;
    row("samples from", &format!("{} to {}", moment(line.min_ts), moment(line.max_ts)))?;
    row("shard", &format!("{} of {}", line.shard, line.shards))?;
    row("written", &format!("{}, as number {}", moment(answer.written_ms), answer.sequence))?;
    row("metrics", &grouped(line.metrics))?;
    row("series", &shared)?;
    row("samples", &grouped(line.samples))?;
    row("bytes", &format!("{}, {:.2} a sample", grouped(line.bytes), line.bytes_per_sample))?;
    for file in &answer.files {
        row("file", &format!("{} ({} bytes)", file.path.display(), grouped(file.bytes)))?;
        row("  sha256", &file.sha256)?;
    }
    writeln!(out)?;
    let rows: Vec<_> = answer.columns.iter().map(|column| column_row(line, column)).collect();
    let heads = ["column", "pages", "bytes", "bytes/sample", "encodings"];
    write_table(out, sides(heads, &[0, 4]), &rows)?;
    writeln!(out)?;
    let rows: Vec<_> = answer.by_metric.iter().map(metric_row).collect();
    let heads = ["metric", "kind", "series", "samples", "from", "to"];
    write_table(out, sides(heads, &[0, 1, 4, 5]), &rows)
}

fn sides<'a, const N: usize>(heads: [&'a str; N], left: &[usize]) -> [(&'a str, Side); N] {
    let mut at = 0;
    heads.map(|head| {
        let side = if left.contains(&at) { Side::Left } else { Side::Right };
        at += 1;
        (head, side)
    })
}

fn column_row(line: &Line, column: &ColumnLine) -> [String; 5] {
    [
        column.name.clone(),
        grouped(column.pages as u64),
        grouped(column.bytes),
        format!("{:.3}", ratio(column.bytes, line.samples as f64)),
        column.encodings.join(" "),
    ]
}

fn metric_row(line: &MetricLine) -> [String; 6] {
    [
        line.metric.clone(),
        line.kind.clone(),
        grouped(line.series),
        grouped(line.samples),
        moment(line.min_ts),
        moment(line.max_ts),
    ]
}
