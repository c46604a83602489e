//! What the suites over the real binary share: a data directory of a test's own, commands on it,
//! and a reading of segments that owes nothing to our own reader.
#![allow(dead_code, reason = "every suite uses a part of it")]

pub mod server;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tempfile::TempDir;

/// Samples by series, written as `name{label="value",…}`, and time; values as bits.
pub type Model = BTreeMap<String, BTreeMap<i64, u64>>;

/// A folder for one test, with a data directory that is not there yet.
pub struct Place {
    top: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { top: tempfile::tempdir().expect("a folder can be made") }
    }

    pub fn data_dir(&self) -> PathBuf {
        self.top.path().join("data")
    }

    /// A file with these bytes.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.top.path().join(name);
        fs::write(&path, bytes).expect("the file can be written");
        path
    }

    /// A subcommand, with this data directory.
    pub fn command(&self, subcommand: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
        command.arg(subcommand).arg("--data-dir").arg(self.data_dir()).args(args);
        command.stdin(Stdio::null());
        command
    }

    /// What a command printed that exits with `code`.
    #[track_caller]
    pub fn said(&self, code: i32, subcommand: &str, args: &[&str]) -> String {
        finished(self.command(subcommand, args).output().expect("the binary starts"), code).0
    }

    /// What a command complained about that exits with `code`.
    #[track_caller]
    pub fn complaint(&self, code: i32, subcommand: &str, args: &[&str]) -> String {
        finished(self.command(subcommand, args).output().expect("the binary starts"), code).1
    }

    /// Names of the live segments, in the order of the list.
    #[track_caller]
    pub fn ids(&self) -> Vec<String> {
        let list = self.list();
        list.iter().map(|line| line["id"].as_str().expect("a name").to_owned()).collect()
    }

    /// The list, as a program sees it.
    #[track_caller]
    pub fn list(&self) -> Vec<serde_json::Value> {
        let text = self.said(0, "segments", &["list", "--json"]);
        serde_json::from_str(&text).expect("the list is JSON")
    }

    /// All files and folders under `segments/`, by their place in it.
    pub fn stored(&self) -> Vec<String> {
        let top = self.data_dir().join("segments");
        let mut found = Vec::new();
        let mut folders = vec![top.clone()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries {
                let path = entry.expect("the folder can be read").path();
                let relative = path.strip_prefix(&top).expect("it is below").to_owned();
                found.push(relative.to_str().expect("the path is UTF-8").to_owned());
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// All samples of all live segments, read with the parquet crate's own reader.
    pub fn read_back(&self) -> Model {
        let mut model = Model::new();
        let stored = self.stored();
        for id in self.ids() {
            let find = |suffix: &str| {
                let name = format!("{id}.{suffix}.parquet");
                let path = stored.iter().find(|path| path.ends_with(&name)).expect("it is there");
                self.data_dir().join("segments").join(path)
            };
            read_segment(&find("series"), &find("samples"), &mut model);
        }
        model
    }
}

/// What a command printed and complained about, and its exit code is this.
#[track_caller]
pub fn finished(output: Output, code: i32) -> (String, String) {
    let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    let complaint = String::from_utf8(output.stderr).expect("the complaint is UTF-8");
    assert!(!complaint.contains("panicked"), "{complaint}");
    assert_eq!(output.status.code(), Some(code), "{text}{complaint}");
    (text, complaint)
}

/// Kills a process as the system would: it gets no chance to clean up.
pub fn kill(mut child: Child) {
    child.kill().expect("it is ours");
    child.wait().expect("it was started here");
}

fn read_segment(series: &Path, samples: &Path, model: &mut Model) {
    let open = |path: &Path| {
        let file = File::open(path).expect("the file is there");
        ParquetRecordBatchReaderBuilder::try_new(file).and_then(|b| b.build()).expect("Parquet")
    };
    let mut names: Vec<String> = Vec::new();
    for batch in open(series) {
        let batch = batch.expect("the batch is whole");
        let column = |name: &str| batch.column_by_name(name).expect("the column is there");
        let numbers = column("series").as_primitive::<UInt32Type>();
        let metrics = column("metric").as_string::<i32>();
        let labels = column("labels").as_map();
        for row in 0..batch.num_rows() {
            assert_eq!(numbers.value(row) as usize, names.len());
            let pairs = labels.value(row);
            let (keys, values) =
                (pairs.column(0).as_string::<i32>(), pairs.column(1).as_string::<i32>());
            let pairs: Vec<String> = (0..pairs.len())
                .map(|at| format!("{}={:?}", keys.value(at), values.value(at)))
                .collect();
            names.push(format!("{}{{{}}}", metrics.value(row), pairs.join(",")));
        }
    }
    for batch in open(samples) {
        let batch = batch.expect("the batch is whole");
        let column = |name: &str| batch.column_by_name(name).expect("the column is there");
        let numbers = column("series").as_primitive::<UInt32Type>();
        let ts = column("ts").as_primitive::<Int64Type>();
        let values = column("value").as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            let all = model.entry(names[numbers.value(row) as usize].clone()).or_default();
            let before = all.insert(ts.value(row), values.value(row).to_bits());
            assert_eq!(before, None, "one sample has one place");
        }
    }
}
