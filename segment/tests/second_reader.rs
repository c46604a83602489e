//! Readers that are not ours open both files as plain columns: the Parquet library's own, and, where
//! Python has them, pyarrow, DuckDB and Polars.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]
#![allow(clippy::cast_possible_truncation, reason = "small figures, on machines of 64 bits")]

mod common;

use std::io::Write;
use std::process::Command;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type};
use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use common::{Chance, Files, Model, any_model, label_set, scraped};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
use proptest::prelude::*;

fn batches(file: &Bytes) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap();
    reader.with_batch_size(50_000).build().unwrap().map(Result::unwrap).collect()
}

/// Reads both files with the Parquet library alone.
fn read_with_arrow(files: &Files) -> Model {
    let mut rows = Vec::new();
    for batch in batches(&files.samples) {
        let series = batch["series"].as_primitive::<UInt32Type>();
        let ts = batch["ts"].as_primitive::<Int64Type>();
        let value = batch["value"].as_primitive::<Float64Type>();
        for i in 0..batch.num_rows() {
            rows.push((series.value(i), ts.value(i), value.value(i).to_bits()));
        }
    }
    assert!(rows.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
    let mut model = Model::new();
    for batch in batches(&files.series) {
        let series = batch["series"].as_primitive::<UInt32Type>();
        let metric = batch["metric"].as_string::<i32>();
        let labels = batch["labels"].as_map();
        let int = |name: &str| batch[name].as_primitive::<Int64Type>().clone();
        let (first_row, row_count) = (int("first_row"), int("row_count"));
        let (min_ts, max_ts) = (int("min_ts"), int("max_ts"));
        let times = batch["times"].as_primitive::<UInt32Type>();
        assert!(batch["kind"].as_string::<i32>().iter().all(|kind| kind == Some("unknown")));
        for i in 0..batch.num_rows() {
            let pairs = labels.value(i);
            let (names, values) =
                (pairs.column(0).as_string::<i32>(), pairs.column(1).as_string::<i32>());
            let mut pairs: Vec<(String, String)> = (0..names.len())
                .map(|at| (names.value(at).to_owned(), values.value(at).to_owned()))
                .collect();
            if !metric.value(i).is_empty() {
                pairs.push(("__name__".to_owned(), metric.value(i).to_owned()));
            }
            pairs.sort();
            let (from, count) = (first_row.value(i) as usize, row_count.value(i) as usize);
            let own = &rows[from..from + count];
            assert!(own.iter().all(|row| row.0 == series.value(i)));
            assert_eq!((own[0].1, own[count - 1].1), (min_ts.value(i), max_ts.value(i)));
            let first = times.value(i) as usize;
            let theirs = &rows[first_row.value(first) as usize..][..count];
            assert!(own.iter().map(|row| row.1).eq(theirs.iter().map(|row| row.1)));
            model.insert(pairs, own.iter().map(|row| (row.1, row.2)).collect());
        }
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_parquet_library_reads_what_we_wrote(model in any_model()) {
        prop_assert_eq!(read_with_arrow(&Files::of_model(&model)), model);
    }
}

/// More than a row group, with pages of every layout.
fn large() -> Files {
    let mut series = scraped("requests_total", 120, 20, 480);
    let mut chance = Chance(5);
    for target in 0..40 {
        let ts: Vec<i64> = (0..2_000).map(|i| i * 1_000 + target).collect();
        let percent: Vec<f64> = ts.iter().map(|_| chance.below(10_001) as f64 / 100.0).collect();
        let host = format!("{target:04}");
        series.push((label_set(&[("__name__", "cpu"), ("host", &host)]), ts, percent));
    }
    let ts: Vec<i64> = (0..70_000).collect();
    let decimals = ts.iter().map(|_| (chance.below(1 << 40) as f64) / 1e6).collect();
    series.push((label_set(&[("__name__", "noise")]), ts, decimals));
    Files::of_series(&series)
}

#[test]
fn pages_checksums_and_indexes_are_as_the_format_wants_them() {
    let files = large();
    let ours = common::read_all(&files.open().unwrap()).unwrap();
    // The library checks the CRC of every page here: its feature is on in tests.
    assert_eq!(read_with_arrow(&files), ours);
    for file in [&files.series, &files.samples] {
        let metadata = ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Required)
            .parse_and_finish(file)
            .unwrap();
        for group in metadata.row_groups() {
            assert!(group.sorting_columns().is_some());
            assert!(group.columns().iter().all(|column| column.offset_index_offset().is_some()));
        }
    }
    let samples = ParquetMetaDataReader::new().parse_and_finish(&files.samples).unwrap();
    assert_eq!(samples.num_row_groups(), 2);
    let statistics = samples.row_group(0).column(1).statistics().unwrap();
    assert!(statistics.min_bytes_opt().is_some() && statistics.max_bytes_opt().is_some());
    let encodings: Vec<String> = samples
        .row_groups()
        .iter()
        .flat_map(|group| group.column(2).encodings().map(|e| e.to_string()))
        .collect();
    for layout in ["BYTE_STREAM_SPLIT", "RLE_DICTIONARY"] {
        assert!(encodings.iter().any(|e| e == layout), "{encodings:?}");
    }
}

/// Runs a script with the Python that `TRIBUTARY_PYTHON` names, or `python3`.
fn python(module: &str, script: &str, files: &Files) {
    let python = std::env::var("TRIBUTARY_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let importable = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    if !importable.is_ok_and(|output| output.status.success()) {
        // Straight to the terminal: what a test prints is shown only where it fails.
        let _ = writeln!(std::io::stderr(), "skipped: {python} has no {module}");
        return;
    }
    let directory = std::env::temp_dir().join(format!("tributary-{module}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("a.series.parquet"), &files.series).unwrap();
    std::fs::write(directory.join("a.samples.parquet"), &files.samples).unwrap();
    let output =
        Command::new(&python).args(["-c", script]).current_dir(&directory).output().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let segment = files.open().unwrap();
    let all: Vec<u32> = (0..segment.index().len()).collect();
    let batch = segment.read(&all, tributary_segment::TimeRange::ALL).unwrap();
    let ts: i128 = batch.ts.iter().map(|ts| i128::from(*ts)).sum();
    let bits = batch.values.iter().fold(0_u64, |sum, value| sum.wrapping_add(value.to_bits()));
    let cpu = batch.series.iter().filter(|(series, _)| segment.index().metric(*series) == "cpu");
    let cpu: usize = cpu.map(|(_, rows)| rows.len()).sum();
    let expected = format!("{} {} {ts} {bits} {cpu}", all.len(), batch.ts.len());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), expected, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn pyarrow_reads_both_files() {
    let script = r#"
import struct, pyarrow.parquet as pq
s = pq.read_table("a.series.parquet", page_checksum_verification=True)
d = pq.read_table("a.samples.parquet", page_checksum_verification=True)
bits = sum(struct.unpack("<Q", struct.pack("<d", v))[0] for v in d["value"].to_pylist()) % 2**64
cpu = {r["series"] for r in s.to_pylist() if r["metric"] == "cpu" and dict(r["labels"])["host"]}
cpu = sum(1 for x in d["series"].to_pylist() if x in cpu)
print(s.num_rows, d.num_rows, sum(d["ts"].to_pylist()), bits, cpu)
"#;
    python("pyarrow", script, &large());
}

#[test]
fn duckdb_reads_both_files() {
    let script = r#"
import duckdb, struct
q = lambda sql: duckdb.sql(sql).fetchall()
values = q("select value from 'a.samples.parquet'")
bits = sum(struct.unpack("<Q", struct.pack("<d", v))[0] for v, in values) % 2**64
series = q("select count(*) from 'a.series.parquet'")[0][0]
rows, ts = q("select count(*), sum(ts)::hugeint from 'a.samples.parquet'")[0]
cpu = q("""
    select count(*) from 'a.samples.parquet' join 'a.series.parquet' s using (series)
    where s.metric = 'cpu' and s.labels['host'] >= '0000'
""")[0][0]
print(series, rows, ts, bits, cpu)
"#;
    python("duckdb", script, &large());
}

#[test]
fn polars_reads_both_files() {
    let script = r#"
import polars as pl, struct
s, d = pl.read_parquet("a.series.parquet"), pl.read_parquet("a.samples.parquet")
bits = sum(struct.unpack("<Q", struct.pack("<d", v))[0] for v in d["value"].to_list()) % 2**64
cpu = d.join(s.filter(pl.col("metric") == "cpu"), on="series").height
print(s.height, d.height, sum(d["ts"].to_list()), bits, cpu)
"#;
    python("polars", script, &large());
}

#[test]
fn an_empty_segment_opens_elsewhere_too() {
    let files = Files::of_series(&[]);
    assert!(read_with_arrow(&files).is_empty());
}
