//! Parts of leaves out of Parquet. The bytes come from another process and are not trusted: they
//! are a table or an error.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::FileMetaData;
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::parser::parse_message_type;
use tributary_promql::Labels;
use tributary_promql::leaf::{PartTable, RowKind};

use super::{SCHEMA, SCHEMA_VERSION, column, key, work_text};

/// Why bytes are no artifact.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// They are no Parquet file, or a damaged one.
    #[error("malformed artifact: {0}")]
    Parquet(#[from] ParquetError),
    /// They are of another version.
    #[error("artifact of version {0:?}; this build knows version {SCHEMA_VERSION}")]
    Version(String),
    /// They are the result of other work.
    #[error("artifact of other work")]
    OtherWork,
    /// They have other columns.
    #[error("artifact with columns of another kind")]
    Schema,
    /// A column holds what it can't hold.
    #[error("artifact with a bad column {0}")]
    Column(&'static str),
    /// There are more rows than the query may take.
    #[error("artifact of {rows} rows; the limit is {limit}")]
    TooManyRows {
        /// How many there are.
        rows: u64,
        /// How many there may be.
        limit: u64,
    },
}

/// Reads the artifact of the work that this spec asks for, of no more than so many rows, from memory
/// or from a file; of a file, a row group at a time.
pub fn read(
    file: impl ChunkReader + 'static,
    spec: &[u8],
    row_limit: u64,
) -> Result<PartTable, ArtifactError> {
    // The Parquet library means to refuse what is malformed; where it panics instead, that is no
    // reason to end the process.
    let read = AssertUnwindSafe(|| read_trusting(file, spec, row_limit));
    catch_unwind(read).unwrap_or_else(|_| {
        let message = "the reader gave up".to_owned();
        Err(ArtifactError::Parquet(ParquetError::General(message)))
    })
}

fn read_trusting(
    file: impl ChunkReader + 'static,
    spec: &[u8],
    row_limit: u64,
) -> Result<PartTable, ArtifactError> {
    let reader = SerializedFileReader::new(file)?;
    let metadata = reader.metadata().file_metadata();
    check_version(metadata)?;
    if value_of(metadata, key::WORK) != Some(&*work_text(spec)) {
        return Err(ArtifactError::OtherWork);
    }
    let expected = parse_message_type(SCHEMA)?;
    if metadata.schema().get_fields() != expected.get_fields() {
        return Err(ArtifactError::Schema);
    }
    let rows = u64::try_from(metadata.num_rows()).map_err(|_| ArtifactError::Schema)?;
    if rows > row_limit {
        return Err(ArtifactError::TooManyRows { rows, limit: row_limit });
    }
    let metrics = metrics(value_of(metadata, key::METRICS).unwrap_or_default())?;
    let mut table = PartTable { metrics, ..PartTable::default() };
    // Every series has a row: no number is beyond the number of rows.
    let most_series = usize::try_from(rows).map_err(|_| ArtifactError::Schema)?;
    let mut left = rows;
    for number in 0..reader.num_row_groups() {
        let group = reader.get_row_group(number)?;
        let rows = u64::try_from(group.metadata().num_rows()).map_err(|_| ArtifactError::Schema)?;
        left = left.checked_sub(rows).ok_or(ArtifactError::Schema)?;
        let rows = usize::try_from(rows).map_err(|_| ArtifactError::Schema)?;
        read_group(&*group, rows, most_series, &mut table)?;
    }
    Ok(table)
}

fn check_version(metadata: &FileMetaData) -> Result<(), ArtifactError> {
    let version = value_of(metadata, key::VERSION).unwrap_or_default();
    if version != SCHEMA_VERSION.to_string() {
        return Err(ArtifactError::Version(version.chars().take(32).collect()));
    }
    Ok(())
}

fn value_of<'m>(metadata: &'m FileMetaData, key: &str) -> Option<&'m str> {
    let pairs = metadata.key_value_metadata()?;
    pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
}

/// Metrics and their types, each with its length before it.
fn metrics(mut text: &str) -> Result<BTreeSet<(String, String)>, ArtifactError> {
    const BAD: ArtifactError = ArtifactError::Column("metrics");
    let next = |text: &mut &str| -> Result<String, ArtifactError> {
        let (length, rest) = text.split_once(':').ok_or(BAD)?;
        let length: usize = length.parse().map_err(|_| BAD)?;
        let (name, rest) = rest.split_at_checked(length).ok_or(BAD)?;
        *text = rest;
        Ok(name.to_owned())
    };
    let mut metrics = BTreeSet::new();
    while !text.is_empty() {
        metrics.insert((next(&mut text)?, next(&mut text)?));
    }
    Ok(metrics)
}

fn read_group(
    group: &dyn RowGroupReader,
    rows: usize,
    most_series: usize,
    table: &mut PartTable,
) -> Result<(), ArtifactError> {
    let before = table.ts.len();
    let mut levels = Vec::new();

    let ColumnReader::Int64ColumnReader(mut ts) = group.get_column_reader(column::TS)? else {
        return Err(ArtifactError::Schema);
    };
    all(&mut ts, rows, None, &mut table.ts)?;

    let ColumnReader::Int32ColumnReader(mut series) = group.get_column_reader(column::SERIES)?
    else {
        return Err(ArtifactError::Schema);
    };
    let mut numbers = Vec::with_capacity(rows);
    all(&mut series, rows, None, &mut numbers)?;
    #[expect(clippy::cast_sign_loss, reason = "the bits of an unsigned number")]
    table.series_of.extend(numbers.iter().map(|number| *number as u32));

    let ColumnReader::Int32ColumnReader(mut kind) = group.get_column_reader(column::KIND)? else {
        return Err(ArtifactError::Schema);
    };
    numbers.clear();
    all(&mut kind, rows, None, &mut numbers)?;
    for number in &numbers {
        let kind = u8::try_from(*number).ok().and_then(RowKind::of);
        table.kind.push(kind.ok_or(ArtifactError::Column("kind"))?);
    }

    let ColumnReader::BoolColumnReader(mut drops) = group.get_column_reader(column::DROP_NAME)?
    else {
        return Err(ArtifactError::Schema);
    };
    all::<BoolType>(&mut drops, rows, None, &mut table.drop_name)?;

    let ColumnReader::DoubleColumnReader(mut value) = group.get_column_reader(column::VALUE)?
    else {
        return Err(ArtifactError::Schema);
    };
    all(&mut value, rows, None, &mut table.value)?;

    let ColumnReader::DoubleColumnReader(mut low) = group.get_column_reader(column::LOW)? else {
        return Err(ArtifactError::Schema);
    };
    let mut lows = Vec::new();
    all::<DoubleType>(&mut low, rows, Some(&mut levels), &mut lows)?;
    let with_low = rows_with(&levels, before);

    let ColumnReader::Int64ColumnReader(mut count) = group.get_column_reader(column::COUNT)? else {
        return Err(ArtifactError::Schema);
    };
    let mut counts = Vec::new();
    all::<Int64Type>(&mut count, rows, Some(&mut levels), &mut counts)?;
    if rows_with(&levels, before) != with_low {
        return Err(ArtifactError::Column("count"));
    }
    for ((row, low), count) in with_low.into_iter().zip(lows).zip(counts) {
        let count = u64::try_from(count).map_err(|_| ArtifactError::Column("count"))?;
        table.counted.push((row, low, count));
    }

    let ColumnReader::ByteArrayColumnReader(mut state) = group.get_column_reader(column::STATE)?
    else {
        return Err(ArtifactError::Schema);
    };
    let mut states = Vec::new();
    all::<ByteArrayType>(&mut state, rows, Some(&mut levels), &mut states)?;
    let states = states.iter().map(|state| state.data().to_vec());
    table.bytes.extend(rows_with(&levels, before).into_iter().zip(states));

    let ColumnReader::ByteArrayColumnReader(mut label) = group.get_column_reader(column::LABELS)?
    else {
        return Err(ArtifactError::Schema);
    };
    let mut labels = Vec::new();
    all::<ByteArrayType>(&mut label, rows, Some(&mut levels), &mut labels)?;
    for (row, labels) in rows_with(&levels, before).into_iter().zip(labels) {
        let series = table.series_of[row] as usize;
        if series >= most_series {
            return Err(ArtifactError::Column("series"));
        }
        if table.series.len() <= series {
            table.series.resize(series + 1, Labels::default());
        }
        let labels = Labels::from_bytes(labels.data()).ok_or(ArtifactError::Column("labels"))?;
        table.series[series] = labels;
    }
    Ok(())
}

/// All values of a column, and where there are any.
fn all<T: DataType>(
    column: &mut ColumnReaderImpl<T>,
    rows: usize,
    mut levels: Option<&mut Vec<i16>>,
    values: &mut Vec<T::T>,
) -> Result<(), ArtifactError> {
    if let Some(levels) = &mut levels {
        levels.clear();
    }
    let mut read = 0;
    while read < rows {
        let (records, _, _) =
            column.read_records(rows - read, levels.as_deref_mut(), None, values)?;
        if records == 0 {
            return Err(ArtifactError::Column("length"));
        }
        read += records;
    }
    Ok(())
}

/// The numbers of the rows that have a value.
fn rows_with(levels: &[i16], before: usize) -> Vec<usize> {
    let rows = levels.iter().enumerate().filter(|(_, level)| **level == 1);
    rows.map(|(row, _)| before + row).collect()
}
