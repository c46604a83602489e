//! What can go wrong with a segment, told by file and reason. Text import has errors of its own,
//! with line numbers.

use std::io;

/// A segment file that can't be read, or not as what it claims to be.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The storage did not give the bytes. Trying again may help.
    #[error("{file}: {source}")]
    Io {
        /// Which file.
        file: String,
        /// What the storage said.
        source: io::Error,
    },
    /// The bytes are not what was written: damaged, cut off, or inconsistent.
    #[error("{file}: corrupt: {reason}")]
    Corrupt {
        /// Which file.
        file: String,
        /// What does not fit.
        reason: String,
    },
    /// A file, perhaps a good one, that is no part of a segment.
    #[error("{file}: not a segment file: {reason}")]
    Foreign {
        /// Which file.
        file: String,
        /// Why it can't be one.
        reason: String,
    },
    /// Written by a later release.
    #[error("{file}: format version {found} is newer than {known}, the latest this release reads")]
    Newer {
        /// Which file.
        file: String,
        /// Its version.
        found: u32,
        /// The latest version this release reads.
        known: u32,
    },
    /// Two good files that do not belong together.
    #[error("{samples} is not the samples file of {series}")]
    Mismatched {
        /// The file with the series.
        series: String,
        /// The file that should hold their samples.
        samples: String,
    },
    /// Larger than this release is willing to hold in memory.
    #[error("{file}: {what} is {found}, the limit is {limit}")]
    TooLarge {
        /// Which file.
        file: String,
        /// What is too large.
        what: &'static str,
        /// Its size.
        found: u64,
        /// The most that is taken.
        limit: u64,
    },
}

impl SegmentError {
    /// A corrupt file.
    pub(crate) fn corrupt(file: &str, reason: impl Into<String>) -> Self {
        Self::Corrupt { file: file.to_owned(), reason: reason.into() }
    }

    /// A file that is no part of a segment.
    pub(crate) fn foreign(file: &str, reason: impl Into<String>) -> Self {
        Self::Foreign { file: file.to_owned(), reason: reason.into() }
    }

    /// What the storage said about a file.
    pub(crate) fn io(file: &str, source: io::Error) -> Self {
        Self::Io { file: file.to_owned(), source }
    }
}

/// Series or samples that can't become a segment, or an output that took no more bytes.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The output failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Series must come in the order of the segment, each once.
    #[error("series {next} must not come after {last}")]
    SeriesOrder {
        /// The series before it.
        last: String,
        /// The series that came too late.
        next: String,
    },
    /// The samples of a series must have strictly rising timestamps.
    #[error("samples of {series} are not in time order at {ts}")]
    SampleOrder {
        /// Which series.
        series: String,
        /// The first timestamp that is not later than the one before it.
        ts: i64,
    },
    /// A series must have samples, and as many values as timestamps.
    #[error("{series} has {times} timestamps and {values} values")]
    SampleCount {
        /// Which series.
        series: String,
        /// Timestamps given.
        times: usize,
        /// Values given.
        values: usize,
    },
    /// More than one segment holds.
    #[error("a segment holds at most {limit} {what}")]
    Full {
        /// Series or samples.
        what: &'static str,
        /// How many of them.
        limit: u64,
    },
    /// The Parquet library refused the file's description.
    #[error("parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
}
