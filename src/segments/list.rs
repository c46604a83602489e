//! `tributary segments list`: one line for each live segment, and the sum of all.

use std::io::{self, Write};

use serde::Serialize;
use tributary_catalog::SegmentDetails;

use super::{Desk, json};
use crate::cli::{Problem, Verdict};
use crate::figures::{Side, grouped, moment, ratio, write_table};
use crate::output;

/// A segment, for programs. Times are milliseconds of the Unix epoch.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) id: String,
    pub(super) tenant: String,
    pub(super) metrics: u64,
    pub(super) block_start_ms: i64,
    pub(super) block_end_ms: i64,
    pub(super) min_ts: i64,
    pub(super) max_ts: i64,
    pub(super) shard: u32,
    pub(super) shards: u32,
    pub(super) series: u64,
    pub(super) samples: u64,
    pub(super) bytes: u64,
    pub(super) bytes_per_sample: f64,
}

impl Line {
    pub(super) fn of(details: &SegmentDetails) -> Self {
        let segment = &details.segment;
        let bytes = segment.series_file.size_bytes + segment.samples_file.size_bytes;
        Self {
            id: segment.id.to_string(),
            tenant: segment.tenant.to_string(),
            metrics: details.metrics.count() as u64,
            block_start_ms: segment.block.start_ms,
            block_end_ms: segment.block.end_ms,
            min_ts: segment.min_ts,
            max_ts: segment.max_ts,
            shard: segment.shard.index,
            shards: segment.shard.count,
            series: segment.series_count,
            samples: segment.sample_count,
            bytes,
            bytes_per_sample: ratio(bytes, segment.sample_count as f64),
        }
    }
}

pub(super) async fn run(desk: &Desk) -> Result<Verdict, Problem> {
    let live = desk.catalog.live(desk.tenant.as_ref()).await.map_err(Problem::failed)?;
    let lines: Vec<Line> = live.iter().map(Line::of).collect();
    let mut out = output::standard();
    if desk.json {
        writeln!(out, "{}", json(&lines))?;
    } else {
        write(&mut out, &lines)?;
    }
    out.flush()?;
    Ok(Verdict::Good)
}

fn write(out: &mut impl Write, lines: &[Line]) -> io::Result<()> {
    if lines.is_empty() {
        return writeln!(out, "no segments");
    }
    let columns = [
        ("id", Side::Left),
        ("tenant", Side::Left),
        ("metrics", Side::Right),
        ("from", Side::Left),
        ("to", Side::Left),
        ("shard", Side::Left),
        ("series", Side::Right),
        ("samples", Side::Right),
        ("bytes", Side::Right),
        ("bytes/sample", Side::Right),
    ];
    let row = |line: &Line| {
        [
            line.id.clone(),
            line.tenant.clone(),
            grouped(line.metrics),
            moment(line.min_ts),
            moment(line.max_ts),
            format!("{} of {}", line.shard, line.shards),
            grouped(line.series),
            grouped(line.samples),
            grouped(line.bytes),
            format!("{:.2}", line.bytes_per_sample),
        ]
    };
    let rows: Vec<_> = lines.iter().map(row).collect();
    write_table(out, columns, &rows)?;
    let samples: u64 = lines.iter().map(|line| line.samples).sum();
    let bytes: u64 = lines.iter().map(|line| line.bytes).sum();
    writeln!(
        out,
        "\n{} segments, {} samples, {} bytes, {:.2} bytes/sample",
        grouped(lines.len() as u64),
        grouped(samples),
        grouped(bytes),
        ratio(bytes, samples as f64)
    )
}
