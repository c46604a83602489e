//! Writes a segment: series come in order, each with its samples, and leave as two Parquet files.
//! Samples stream out a row group at a time; the rows of the series stay in memory to the end.
//! Where the bytes go is the caller's choice; `local` has the way to files.

mod output;
pub(crate) mod series;
mod values;

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::BoundaryOrder;
use parquet::file::statistics::{Statistics, ValueStatistics};
use tributary_promql::Labels;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::error::WriteError;
use crate::page::Layout;
use crate::page::chunk::{Chunk, Packer};
use crate::page::split::{put_plain, put_split};
use crate::schema::{
    Family, FileKind, GROUP_ROWS, MAX_SAMPLES, MAX_SERIES, TIME_PAGE_ROWS, VALUE_PAGE_ROWS, key,
};
use crate::write::output::Output;
use crate::write::series::{SeriesRow, write_series};
use crate::write::values::ValueChunk;

/// Knobs of the writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Level of zstd for the values (3). Higher: smaller files and slower writing; from 13 on
    /// reading is slower too.
    pub value_level: i32,
    /// Level of zstd for the timestamps (6).
    pub time_level: i32,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { value_level: 3, time_level: 6 }
    }
}

/// What a finished segment holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentStats {
    /// Number of series.
    pub series: u32,
    /// Number of samples.
    pub samples: u64,
    /// Earliest timestamp, in milliseconds of the Unix epoch.
    pub min_ts: i64,
    /// Latest timestamp.
    pub max_ts: i64,
    /// Names of the metrics, sorted.
    pub metrics: Vec<String>,
    /// Length of the file of series.
    pub series_bytes: u64,
    /// Length of the file of samples.
    pub samples_bytes: u64,
}

/// Writes one segment.
///
/// Call [`series`](Self::series) for each series in the order of [`Labels::series_cmp`], then
/// [`finish`](Self::finish). A writer that is dropped before that leaves an unreadable file.
pub struct SegmentWriter<W: Write + Send> {
    samples: Output<W>,
    rows: Vec<SeriesRow>,
    group: RowGroup,
    flushed_rows: u64,
    content: Xxh3,
    /// The first series with each column of times, by its checksum.
    times: HashMap<u128, u32>,
    scratch: Vec<u8>,
    time_packer: Packer,
    value_packer: Packer,
}

/// Rows that wait for their row group to be full.
#[derive(Default)]
struct RowGroup {
    /// Series and how many rows of it.
    runs: Vec<(u32, usize)>,
    ts: Vec<i64>,
    values: Vec<f64>,
}

impl<W: Write + Send> SegmentWriter<W> {
    /// Starts a segment whose samples go to `samples`.
    pub fn new(samples: W, options: &WriteOptions) -> Result<Self, WriteError> {
        Ok(Self {
            samples: Output::new(samples, FileKind::Samples)?,
            rows: Vec::new(),
            group: RowGroup::default(),
            flushed_rows: 0,
            content: Xxh3::new(),
            times: HashMap::new(),
            scratch: Vec::new(),
            time_packer: Packer::new(options.time_level, TIME_PAGE_ROWS * 8)?,
            value_packer: Packer::new(options.value_level, VALUE_PAGE_ROWS * 8)?,
        })
    }

    /// Adds the next series with its samples, which have strictly rising timestamps.
    pub fn series(
        &mut self,
        labels: &Labels,
        family: &Arc<Family>,
        ts: &[i64],
        values: &[f64],
    ) -> Result<(), WriteError> {
        self.check(labels, ts, values)?;
        let number = u32::try_from(self.rows.len()).expect("series are limited");
        let times = self.note_content(number, ts, values);
        self.rows.push(SeriesRow {
            labels: labels.clone(),
            family: Arc::clone(family),
            first_row: self.flushed_rows + self.group.ts.len() as u64,
            row_count: ts.len() as u64,
            min_ts: ts[0],
            max_ts: ts[ts.len() - 1],
            times,
        });
        let (mut ts, mut values) = (ts, values);
        while !ts.is_empty() {
            let take = ts.len().min(GROUP_ROWS - self.group.ts.len());
            self.group.runs.push((number, take));
            self.group.ts.extend_from_slice(&ts[..take]);
            self.group.values.extend_from_slice(&values[..take]);
            (ts, values) = (&ts[take..], &values[take..]);
            if self.group.ts.len() == GROUP_ROWS {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Completes both files; the rows of the series go to `series`. The caller makes them
    /// durable.
    pub fn finish(mut self, series: impl Write + Send) -> Result<SegmentStats, WriteError> {
        if !self.group.ts.is_empty() {
            self.flush()?;
        }
        let content = format!("{:032x}", self.content.digest128());
        self.samples.value(key::CONTENT, content);
        let (samples_bytes, seal) = self.samples.finish()?;
        let partner = format!("{samples_bytes}:{}", seal.sum);
        let series_bytes = write_series(series, &self.rows, partner)?;

        let mut metrics: Vec<String> =
            self.rows.iter().map(|row| row.labels.metric().to_owned()).collect();
        metrics.dedup();
        Ok(SegmentStats {
            series: u32::try_from(self.rows.len()).expect("series are limited"),
            samples: self.flushed_rows,
            min_ts: self.rows.iter().map(|row| row.min_ts).min().unwrap_or(i64::MAX),
            max_ts: self.rows.iter().map(|row| row.max_ts).max().unwrap_or(i64::MIN),
            metrics,
            series_bytes,
            samples_bytes,
        })
    }

    fn check(&self, labels: &Labels, ts: &[i64], values: &[f64]) -> Result<(), WriteError> {
        if ts.is_empty() || ts.len() != values.len() {
            let (times, values) = (ts.len(), values.len());
            return Err(WriteError::SampleCount { series: labels.to_string(), times, values });
        }
        if let Some(two) = ts.windows(2).find(|two| two[0] >= two[1]) {
            return Err(WriteError::SampleOrder { series: labels.to_string(), ts: two[1] });
        }
        if let Some(last) = self.rows.last().filter(|last| last.labels.series_cmp(labels).is_ge()) {
            let (last, next) = (last.labels.to_string(), labels.to_string());
            return Err(WriteError::SeriesOrder { last, next });
        }
        if self.rows.len() >= MAX_SERIES as usize {
            return Err(WriteError::Full { what: "series", limit: u64::from(MAX_SERIES) });
        }
        let samples = self.flushed_rows + (self.group.ts.len() + ts.len()) as u64;
        if samples > MAX_SAMPLES {
            return Err(WriteError::Full { what: "samples", limit: MAX_SAMPLES });
        }
        Ok(())
    }

    /// Adds a series to the content's checksum and finds the first series with the same times.
    fn note_content(&mut self, number: u32, ts: &[i64], values: &[f64]) -> u32 {
        self.scratch.clear();
        put_plain(&mut self.scratch, ts);
        let times = *self.times.entry(xxh3_128(&self.scratch)).or_insert(number);
        put_plain(&mut self.scratch, values);
        self.content.update(&number.to_le_bytes());
        self.content.update(&(ts.len() as u64).to_le_bytes());
        self.content.update(&self.scratch);
        times
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        let schema = FileKind::Samples.schema();
        let group = std::mem::take(&mut self.group);
        let series = series_chunk(&group.runs, &mut self.time_packer)?;
        let series = series.finish(
            &schema.column(0),
            series_bounds(&group.runs),
            BoundaryOrder::ASCENDING,
        )?;
        let times = time_chunk(&group.ts, &mut self.time_packer)?;
        let times =
            times.finish(&schema.column(1), time_bounds(&group.ts), BoundaryOrder::UNORDERED)?;
        let values = ValueChunk::new(&group.values, &mut self.value_packer).write()?;
        let values = values.finish(&schema.column(2), None, BoundaryOrder::UNORDERED)?;
        self.samples.row_group([series, times, values])?;
        self.flushed_rows += group.ts.len() as u64;
        // The memory of this group serves the next one.
        self.group = group;
        self.group.runs.clear();
        self.group.ts.clear();
        self.group.values.clear();
        Ok(())
    }
}

/// A file of series with rows as they are, however they fit together.
#[cfg(test)]
pub(crate) fn hostile_series(rows: &[SeriesRow]) -> Vec<u8> {
    let mut file = Vec::new();
    write_series(&mut file, rows, "0:0".to_owned()).unwrap();
    file
}

fn series_chunk(runs: &[(u32, usize)], packer: &mut Packer) -> Result<Chunk, WriteError> {
    let rows = runs.iter().map(|run| run.1).sum::<usize>();
    let mut numbers = Vec::with_capacity(rows * 4);
    for (series, rows) in runs {
        let number = series.to_le_bytes();
        (0..*rows).for_each(|_| numbers.extend_from_slice(&number));
    }
    let mut chunk = Chunk::new();
    for body in numbers.chunks(TIME_PAGE_ROWS * 4) {
        let rows = body.len() / 4;
        chunk.page(Layout::Plain, rows, rows, body.len(), &packer.pack(body)?)?;
        chunk.page_bounds(body[..4].to_vec(), body[body.len() - 4..].to_vec());
    }
    Ok(chunk)
}

fn time_chunk(ts: &[i64], packer: &mut Packer) -> Result<Chunk, WriteError> {
    let mut chunk = Chunk::new();
    let mut body = Vec::with_capacity(ts.len().min(TIME_PAGE_ROWS) * 8);
    for page in ts.chunks(TIME_PAGE_ROWS) {
        body.clear();
        put_split(&mut body, page);
        chunk.page(Layout::Split, page.len(), page.len(), body.len(), &packer.pack(&body)?)?;
        let (min, max) = min_max(page);
        chunk.page_bounds(min.to_le_bytes().to_vec(), max.to_le_bytes().to_vec());
    }
    Ok(chunk)
}

fn min_max(ts: &[i64]) -> (i64, i64) {
    ts.iter().fold((i64::MAX, i64::MIN), |(min, max), ts| (min.min(*ts), max.max(*ts)))
}

fn series_bounds(runs: &[(u32, usize)]) -> Option<Statistics> {
    let (first, last) = (runs.first()?.0.cast_signed(), runs.last()?.0.cast_signed());
    let stats = ValueStatistics::new(Some(first), Some(last), None, Some(0), false);
    Some(Statistics::Int32(stats))
}

fn time_bounds(ts: &[i64]) -> Option<Statistics> {
    let (min, max) = min_max(ts);
    Some(Statistics::Int64(ValueStatistics::new(Some(min), Some(max), None, Some(0), false)))
}
