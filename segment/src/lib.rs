//! Segments: the immutable data of one tenant for one block of time and one shard of series.
//!
//! The contract:
//! - A segment is two plain Parquet files. [`SegmentWriter`] writes them, [`LocalWriter`] onto the
//!   local disk so that a file with its final name is complete.
//! - [`SeriesIndex`] holds the series and selects them by [`Matcher`]s as Prometheus would.
//!   [`Segment`] reads the samples of selected series and nothing else: only the pages that hold
//!   them, one column of times for all series that share it.
//! - Values keep their bits, staleness marks and all other NaNs included.
//! - [`CellSelection`] reads several segments of one cell as one; the newest wins.
//! - [`Importer`] makes segments of OpenMetrics text in bounded memory; [`TextParser`] is its ear.
//! - Files from outside are never trusted: what is damaged, cut off, foreign, newer or
//!   inconsistent gives a [`SegmentError`] that names the file and the reason. It never panics, and
//!   takes no more memory than fixed limits allow.
//!
//! [`Labels`] and the syntax of regular expressions are those of `tributary_promql`.
//!
//! Everything here is synchronous. Bytes come in through [`ByteSource`]; network, queries and the
//! knowledge of which segments exist are elsewhere.

mod error;
mod footer;
#[cfg(test)]
mod hostile;
mod import;
mod layout;
mod local;
mod matcher;
mod merge;
mod openmetrics;
mod page;
mod read;
mod schema;
mod seal;
mod series_index;
mod source;
mod write;

pub use error::{SegmentError, WriteError};
pub use import::{
    ImportError, ImportOptions, ImportProgress, ImportedSegment, Importer, SegmentKey,
};
pub use layout::ColumnLayout;
pub use local::{LocalWriter, SegmentPaths, write_atomically};
pub use matcher::{BadPattern, MatchOp, Matcher, Pattern, PatternCache};
pub use merge::{CellBuffers, CellScan, CellSelection, CellSeries};
pub use openmetrics::{Format, MAX_LINE_BYTES, ReadError, TextError, TextParser, TextSample};
pub use read::{Batch, SamplePages, Scan, ScanBuffers, Segment, SeriesSamples};
pub use schema::{
    BadKind, FORMAT_VERSION, Family, Kind, MAX_SAMPLES, MAX_SERIES, SAMPLES_SUFFIX, SERIES_SUFFIX,
};
pub use series_index::{SeriesIndex, TimeRange};
pub use source::{ByteSource, FileSource, MemorySource};
pub use tributary_promql::matcher::METRIC_NAME;
pub use tributary_promql::{DuplicateLabel, Labels};
pub use write::{SegmentStats, SegmentWriter, WriteOptions};
