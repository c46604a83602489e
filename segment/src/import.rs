//! From text to segments: samples in any order, cut into blocks of time and shards of series, in
//! bounded memory. Registering the segments, and all or nothing for several files, is the caller's.
//!
//! Samples fill a buffer; a full one is sorted by another thread and put aside as a run in a
//! temporary file. At the end the runs are merged, one block and shard after the other, and written
//! as segments. Of samples with one series and one timestamp the last one read stays. What comes
//! out depends on the samples alone, not on their order, nor on where runs were cut.

mod assemble;
mod buffer;
mod run;
mod sorter;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::WriteError;
use crate::import::assemble::Assembly;
use crate::import::buffer::SampleBuffer;
use crate::import::sorter::Sorter;
use crate::local::SegmentPaths;
use crate::openmetrics::{Format, ReadError, TextError, TextParser, TextSample};
use crate::schema::Family;
use crate::write::{SegmentStats, WriteOptions};

/// Bytes of text between two reports of progress.
const PROGRESS_BYTES: u64 = 1 << 20;

/// Knobs of an import.
#[derive(Clone, Debug)]
pub struct ImportOptions {
    /// Length of a block (2 h), aligned to the Unix epoch. Longer: fewer, larger segments.
    pub block_ms: i64,
    /// Shards of series in each block (1). More: smaller segments, and more workers at once.
    pub shards: u32,
    /// Memory for samples on their way (256 MiB). Less: more and smaller runs on disk. The series
    /// themselves come on top, some 400 bytes each, and each thread that writes takes some 60 MB.
    pub memory_bytes: usize,
    /// Most series of one import (10 million): a bound for the memory they take.
    pub max_series: u32,
    /// Threads that write segments (one for each core).
    pub threads: usize,
    /// Where runs are put aside (the system's place for temporary files). Made where it is missing.
    pub temporary_directory: PathBuf,
    /// How segments are written.
    pub write: WriteOptions,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self {
            block_ms: 2 * 60 * 60 * 1_000,
            shards: 1,
            memory_bytes: 256 << 20,
            max_series: 10_000_000,
            threads: std::thread::available_parallelism().map_or(1, Into::into),
            temporary_directory: std::env::temp_dir(),
            write: WriteOptions::default(),
        }
    }
}

/// Why an import ended.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The text is wrong.
    #[error("{0}")]
    Text(#[from] TextError),
    /// The text could not be read.
    #[error("the input can't be read: {0}")]
    Input(#[source] io::Error),
    /// A temporary file could not be written or read.
    #[error("a temporary file failed: {0}")]
    Temporary(#[source] io::Error),
    /// A segment could not be written.
    #[error("a segment can't be written: {0}")]
    Write(#[from] WriteError),
    /// More series than the import was allowed.
    #[error("more than {limit} series")]
    TooManySeries {
        /// How many it was allowed.
        limit: u32,
    },
}

/// Which part of the data a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentKey {
    /// Start of the block, in milliseconds of the Unix epoch.
    pub block_start: i64,
    /// End of the block; the moment itself belongs to the next one.
    pub block_end: i64,
    /// Number of the shard, from zero.
    pub shard: u32,
    /// Number of shards.
    pub shards: u32,
}

/// A segment that an import has written.
#[derive(Clone, Debug)]
pub struct ImportedSegment {
    /// What it holds.
    pub key: SegmentKey,
    /// The name it was given.
    pub id: String,
    /// Where it is.
    pub paths: SegmentPaths,
    /// Its figures.
    pub stats: SegmentStats,
}

/// How far an import is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportProgress {
    /// Bytes of the text at hand that were read.
    pub bytes: u64,
    /// Samples of all texts so far.
    pub samples: u64,
    /// Series so far.
    pub series: u32,
}

/// An import on its way. Dropped before it is finished, it leaves nothing behind.
pub struct Importer {
    options: ImportOptions,
    parser: TextParser,
    buffer: SampleBuffer,
    sorter: Sorter,
    /// Series whose labels the sorter knows.
    sent_series: u32,
    samples: u64,
}

impl Importer {
    /// Starts an import.
    pub fn new(options: ImportOptions) -> Self {
        let options = ImportOptions {
            block_ms: options.block_ms.max(1),
            shards: options.shards.max(1),
            threads: options.threads.max(1),
            ..options
        };
        let capacity = buffer::capacity_for(options.memory_bytes);
        let sorter = Sorter::start(&options, capacity);
        let buffer = SampleBuffer::with_capacity(capacity);
        let parser = TextParser::default();
        Self { options, parser, buffer, sorter, sent_series: 0, samples: 0 }
    }

    /// Reads one text. Several may follow each other; where they have a sample for one series and
    /// one timestamp, the last one stays. After an error nothing more can come of the import.
    pub fn read_text(
        &mut self,
        input: impl Read,
        format: Format,
        mut progress: impl FnMut(ImportProgress),
    ) -> Result<(), ImportError> {
        let mut parser = std::mem::take(&mut self.parser);
        parser.restart(format);
        let mut reported = 0;
        let result = parser.read(input, |parser, sample, bytes| {
            self.push(parser, sample)?;
            if bytes >= reported + PROGRESS_BYTES {
                reported = bytes;
                let (samples, series) = (self.samples, parser.series_count());
                progress(ImportProgress { bytes, samples, series });
            }
            Ok(())
        });
        self.parser = parser;
        result.map_err(|error| match error {
            ReadError::Io(error) => ImportError::Input(error),
            ReadError::Text(error) => ImportError::Text(error),
            ReadError::Sink(error) => error,
        })
    }

    /// Samples read so far, those included that others with the same timestamp replace.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Series read so far.
    pub fn series(&self) -> u32 {
        self.parser.series_count()
    }

    /// Writes all segments into a directory, which is made where it is missing. `name` gives each
    /// its name; the names are distinct for distinct keys. On an error no segment stays.
    pub fn finish(
        mut self,
        directory: &Path,
        name: impl Fn(&SegmentKey) -> String + Sync,
    ) -> Result<Vec<ImportedSegment>, ImportError> {
        let parser = std::mem::take(&mut self.parser);
        self.send_buffer(&parser)?;
        let sorted = self.sorter.finish().map_err(ImportError::Temporary)?;
        let families = families(&parser, sorted.labels.iter().map(|labels| labels.metric()));
        fs::create_dir_all(directory).map_err(WriteError::from)?;
        let keys: BTreeSet<_> = sorted.runs.iter().flat_map(run::Run::sections).collect();
        Assembly {
            options: &self.options,
            sorted: &sorted,
            families: &families,
            directory,
            name: &name,
        }
        .write_all(keys)
    }

    fn push(&mut self, parser: &TextParser, sample: TextSample) -> Result<(), ImportError> {
        if sample.series >= self.options.max_series {
            return Err(ImportError::TooManySeries { limit: self.options.max_series });
        }
        self.buffer.push(sample);
        self.samples += 1;
        if self.buffer.is_full() { self.send_buffer(parser) } else { Ok(()) }
    }

    /// Hands the buffer and the labels of new series to the sorter and goes on with a fresh one.
    fn send_buffer(&mut self, parser: &TextParser) -> Result<(), ImportError> {
        let new = (self.sent_series..parser.series_count()).map(|series| parser.labels(series));
        let labels = new.cloned().collect();
        self.sent_series = parser.series_count();
        let full = std::mem::take(&mut self.buffer);
        self.buffer = self.sorter.exchange(full, labels).map_err(ImportError::Temporary)?;
        Ok(())
    }
}

fn families<'a>(
    parser: &TextParser,
    metrics: impl Iterator<Item = &'a str>,
) -> HashMap<String, Arc<Family>> {
    let mut families = HashMap::new();
    for metric in metrics {
        if !families.contains_key(metric) {
            families.insert(metric.to_owned(), Arc::new(parser.family(metric)));
        }
    }
    families
}
