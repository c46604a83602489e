//! What the two files of a segment look like: columns, names in the metadata, versions, limits.
//! How they are written and read is said in `write`, `series_index` and `read`.
//!
//! `<id>.series.parquet` has one row per series, in the order of metric and labels;
//! `<id>.samples.parquet` has one row per sample, in the order of series and time. A series'
//! samples are the rows `first_row .. first_row + row_count`.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, TypePtr};

/// Version of the format that this release writes, and the latest it reads.
pub const FORMAT_VERSION: u32 = 1;

/// How the name of a file with series ends.
pub const SERIES_SUFFIX: &str = ".series.parquet";

/// How the name of a file with samples ends.
pub const SAMPLES_SUFFIX: &str = ".samples.parquet";

/// Most series in one segment.
pub const MAX_SERIES: u32 = 1 << 26;

/// Most samples in one segment.
pub const MAX_SAMPLES: u64 = 1 << 40;

/// Rows of a row group: what a writer holds in memory, some 40 MB with everything around it.
pub(crate) const GROUP_ROWS: usize = 1 << 20;

/// Rows of a page of timestamps or series numbers. Large, because series of one scrape target
/// share their times and compression finds that only within a page.
pub(crate) const TIME_PAGE_ROWS: usize = 1 << 19;

/// Rows of a page of values. Small, because reading one series costs a page.
pub(crate) const VALUE_PAGE_ROWS: usize = 1 << 15;

/// Rows of a page in the file of series.
pub(crate) const SERIES_PAGE_ROWS: usize = 1 << 17;

/// Most rows a page of samples may have when it is read.
pub(crate) const MAX_PAGE_ROWS: u64 = 1 << 20;

/// Most distinct values in a dictionary of sample values: their numbers fit into 16 bits.
pub(crate) const MAX_DICTIONARY: usize = 1 << 16;

/// Longest footer that is read. Ours have some hundred bytes per million samples.
pub(crate) const MAX_FOOTER_BYTES: u64 = 16 << 20;

/// Largest part of a file that is read as a whole: all of the file of series, and the indexes of
/// the file of samples.
pub(crate) const MAX_WHOLE_BYTES: u64 = 1 << 30;

/// Names in the key-value metadata of both files.
pub(crate) mod key {
    /// Which of the two files it is: `series` or `samples`.
    pub(crate) const FILE: &str = "tributary.file";
    /// Version of the format.
    pub(crate) const VERSION: &str = "tributary.version";
    /// Checksum of all series numbers, timestamps and values; in the file of samples.
    pub(crate) const CONTENT: &str = "tributary.content";
    /// Length and seal of the file of samples; in the file of series.
    pub(crate) const SAMPLES: &str = "tributary.samples";
    /// From where on the file is sealed, and the checksum of what follows.
    pub(crate) const SEAL: &str = "tributary.seal";
}

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Series,
    Samples,
}

impl FileKind {
    /// Its name in the metadata.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Series => "series",
            Self::Samples => "samples",
        }
    }

    /// Its columns.
    pub(crate) fn schema(self) -> &'static SchemaDescPtr {
        match self {
            Self::Series => &SERIES_SCHEMA,
            Self::Samples => &SAMPLES_SCHEMA,
        }
    }
}

static SERIES_SCHEMA: LazyLock<SchemaDescPtr> = LazyLock::new(|| {
    schema(
        "message series {
            required int32 series (integer(32, false));
            required binary metric (string);
            required group labels (map) {
                repeated group key_value {
                    required binary key (string);
                    required binary value (string);
                }
            }
            required int64 first_row;
            required int64 row_count;
            required int64 min_ts;
            required int64 max_ts;
            required binary kind (string);
            required int32 times (integer(32, false));
            required binary family (string);
            required binary unit (string);
            required binary help (string);
        }",
    )
});

static SAMPLES_SCHEMA: LazyLock<SchemaDescPtr> = LazyLock::new(|| {
    schema(
        "message samples {
            required int32 series (integer(32, false));
            required int64 ts;
            required double value;
        }",
    )
});

fn schema(message: &str) -> SchemaDescPtr {
    let message = parse_message_type(message).expect("the schema is a valid message");
    Arc::new(SchemaDescriptor::new(Arc::new(message)))
}

/// The columns of the file of series, by their place among the leaves of the schema.
pub(crate) mod series_column {
    pub(crate) const SERIES: usize = 0;
    pub(crate) const METRIC: usize = 1;
    pub(crate) const LABEL_NAME: usize = 2;
    pub(crate) const LABEL_VALUE: usize = 3;
    pub(crate) const FIRST_ROW: usize = 4;
    pub(crate) const ROW_COUNT: usize = 5;
    pub(crate) const MIN_TS: usize = 6;
    pub(crate) const MAX_TS: usize = 7;
    pub(crate) const KIND: usize = 8;
    pub(crate) const TIMES: usize = 9;
    pub(crate) const FAMILY: usize = 10;
    pub(crate) const UNIT: usize = 11;
    pub(crate) const HELP: usize = 12;
}

/// The columns of the file of samples.
pub(crate) mod samples_column {
    pub(crate) const TS: usize = 1;
    pub(crate) const VALUE: usize = 2;
}

/// The schema as the writer wants it.
pub(crate) fn root(schema: &SchemaDescriptor) -> TypePtr {
    schema.root_schema_ptr()
}

/// What kind of metric a series belongs to, as the exposition said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Nothing was said, or that it is unknown.
    #[default]
    Unknown,
    /// Only rises, but for resets.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by bucket, their sum and their number.
    Histogram,
    /// As a histogram, but of gauges.
    GaugeHistogram,
    /// Quantiles, their sum and their number.
    Summary,
    /// Facts in labels; the value is 1.
    Info,
    /// One series for each state; the value says whether it holds.
    StateSet,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Unknown,
        Self::Counter,
        Self::Gauge,
        Self::Histogram,
        Self::GaugeHistogram,
        Self::Summary,
        Self::Info,
        Self::StateSet,
    ];

    /// Its name, as OpenMetrics and the metadata API of Prometheus have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::GaugeHistogram => "gaugehistogram",
            Self::Summary => "summary",
            Self::Info => "info",
            Self::StateSet => "stateset",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no kind of metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid metric type {0:?}")]
pub struct BadKind(pub String);

impl FromStr for Kind {
    type Err = BadKind;

    fn from_str(text: &str) -> Result<Self, BadKind> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        known.ok_or_else(|| BadKind(text.to_owned()))
    }
}

/// What was said of a metric family: kind, unit, help. Many series share one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Family {
    /// Name of the family: `http_requests` for the counter `http_requests_total`. Empty where
    /// nothing was said.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Its unit, or nothing.
    pub unit: String,
    /// Its help text, or nothing.
    pub help: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_where_their_names_say() {
        let series = FileKind::Series.schema();
        let path = |column: usize| series.column(column).path().string();
        assert_eq!(path(series_column::LABEL_NAME), "labels.key_value.key");
        assert_eq!(path(series_column::LABEL_VALUE), "labels.key_value.value");
        assert_eq!(path(series_column::HELP), "help");
        assert_eq!(series.num_columns(), series_column::HELP + 1);
        let samples = FileKind::Samples.schema();
        assert_eq!(samples.column(samples_column::TS).path().string(), "ts");
        assert_eq!(samples.column(samples_column::VALUE).path().string(), "value");
    }

    #[test]
    fn kinds_read_back_what_they_print() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!("thermometer".parse::<Kind>().is_err());
    }
}
