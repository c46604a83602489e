//! Parts of leaves into Parquet. Equal parts of equal work give equal bytes.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use tributary_promql::leaf::PartTable;

use super::{SCHEMA, SCHEMA_VERSION, key, work_text};

/// Rows of one row group.
const GROUP_ROWS: usize = 1 << 20;

/// Writes a part of the work that this spec asks for.
pub fn write(table: &PartTable, spec: &[u8], out: impl Write + Send) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties(table, spec)))?;
    let mut labelled = vec![false; table.series.len()];
    let mut from = 0;
    while from < table.len() {
        let to = (from + GROUP_ROWS).min(table.len());
        let mut group = writer.next_row_group()?;
        write_group(&mut group, table, from..to, &mut labelled)?;
        group.close()?;
        from = to;
    }
    writer.close()?;
    Ok(())
}

fn properties(table: &PartTable, spec: &[u8]) -> WriterProperties {
    let pair = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let packed =
        |builder: parquet::file::properties::WriterPropertiesBuilder, name: &str, encoding| {
            let column = ColumnPath::from(name);
            builder
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, encoding)
        };
    let builder = WriterProperties::builder()
        .set_created_by("tributary".to_owned())
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(vec![
            pair(key::VERSION, SCHEMA_VERSION.to_string()),
            pair(key::METRICS, metrics_text(&table.metrics)),
            pair(key::WORK, work_text(spec)),
        ]));
    // Times repeat and series count up: both pack to next to nothing. Values are taken as they are.
    let builder = packed(builder, "series", Encoding::DELTA_BINARY_PACKED);
    let builder = packed(builder, "value", Encoding::PLAIN);
    let builder = packed(builder, "low", Encoding::PLAIN);
    let builder = packed(builder, "state", Encoding::PLAIN);
    packed(builder, "labels", Encoding::PLAIN).build()
}

/// Metrics and their types, each with its length before it.
fn metrics_text(metrics: &BTreeSet<(String, String)>) -> String {
    let texts = metrics.iter().flat_map(|(metric, kind)| [metric, kind]);
    texts.map(|text| format!("{}:{text}", text.len())).collect()
}

fn write_group(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    table: &PartTable,
    rows: std::ops::Range<usize>,
    labelled: &mut [bool],
) -> Result<(), ParquetError> {
    let len = rows.len();
    let mut levels = vec![0_i16; len];
    let mut number = 0;
    while let Some(mut column) = group.next_column()? {
        levels.fill(0);
        match number {
            super::column::TS => {
                column.typed::<Int64Type>().write_batch(&table.ts[rows.clone()], None, None)?;
            }
            super::column::SERIES => {
                #[expect(clippy::cast_possible_wrap, reason = "the bits of an unsigned number")]
                let numbers: Vec<i32> =
                    table.series_of[rows.clone()].iter().map(|series| *series as i32).collect();
                column.typed::<Int32Type>().write_batch(&numbers, None, None)?;
            }
            super::column::KIND => {
                let kinds: Vec<i32> =
                    table.kind[rows.clone()].iter().map(|kind| i32::from(*kind as u8)).collect();
                column.typed::<Int32Type>().write_batch(&kinds, None, None)?;
            }
            super::column::DROP_NAME => {
                let drops = &table.drop_name[rows.clone()];
                column.typed::<BoolType>().write_batch(drops, None, None)?;
            }
            super::column::VALUE => {
                let values = &table.value[rows.clone()];
                column.typed::<DoubleType>().write_batch(values, None, None)?;
            }
            super::column::LOW | super::column::COUNT => {
                let counted = within(&table.counted, &rows, |counted| counted.0);
                counted.iter().for_each(|counted| levels[counted.0 - rows.start] = 1);
                if number == super::column::LOW {
                    let lows: Vec<f64> = counted.iter().map(|counted| counted.1).collect();
                    column.typed::<DoubleType>().write_batch(&lows, Some(&levels), None)?;
                } else {
                    #[expect(clippy::cast_possible_wrap, reason = "counts stay far below 2^63")]
                    let counts: Vec<i64> = counted.iter().map(|counted| counted.2 as i64).collect();
                    column.typed::<Int64Type>().write_batch(&counts, Some(&levels), None)?;
                }
            }
            super::column::STATE => {
                let states = within(&table.bytes, &rows, |state| state.0);
                states.iter().for_each(|state| levels[state.0 - rows.start] = 1);
                let states: Vec<ByteArray> =
                    states.iter().map(|state| ByteArray::from(state.1.clone())).collect();
                column.typed::<ByteArrayType>().write_batch(&states, Some(&levels), None)?;
            }
            _ => {
                let mut labels = Vec::new();
                for (level, series) in levels.iter_mut().zip(&table.series_of[rows.clone()]) {
                    let series = *series as usize;
                    if !labelled[series] {
                        labelled[series] = true;
                        *level = 1;
                        labels.push(ByteArray::from(table.series[series].as_bytes().to_vec()));
                    }
                }
                column.typed::<ByteArrayType>().write_batch(&labels, Some(&levels), None)?;
            }
        }
        column.close()?;
        number += 1;
    }
    Ok(())
}

/// Those of some rows, whose numbers rise.
fn within<'t, T>(
    all: &'t [T],
    rows: &std::ops::Range<usize>,
    row: impl Fn(&T) -> usize,
) -> &'t [T] {
    let from = all.partition_point(|one| row(one) < rows.start);
    let to = all.partition_point(|one| row(one) < rows.end);
    &all[from..to]
}
