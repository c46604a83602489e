//! From text to segments: any order, any memory, the same files.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]
#![allow(clippy::cast_possible_truncation, reason = "small figures, on machines of 64 bits")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Chance, Model, read_all};
use tributary_segment::{
    Format, ImportError, ImportOptions, ImportProgress, ImportedSegment, Importer, Kind, SegmentKey,
};

/// A directory of its own for each test, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tributary-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("out")).unwrap();
        fs::create_dir_all(path.join("tmp")).unwrap();
        Self(path)
    }

    fn out(&self) -> PathBuf {
        self.0.join("out")
    }

    fn tmp(&self) -> PathBuf {
        self.0.join("tmp")
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let names = Self::names(&self.out());
        names
            .into_iter()
            .map(|name| (name.clone(), fs::read(self.out().join(name)).unwrap()))
            .collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn name(key: &SegmentKey) -> String {
    format!("{}-{}of{}", key.block_start, key.shard, key.shards)
}

fn import(
    directory: &Directory,
    options: ImportOptions,
    text: &str,
) -> Result<Vec<ImportedSegment>, ImportError> {
    let options = ImportOptions { temporary_directory: directory.tmp(), ..options };
    let mut importer = Importer::new(options);
    importer.read_text(text.as_bytes(), Format::OpenMetrics, |_| {})?;
    importer.finish(&directory.out(), name)
}

fn small(shards: u32, memory_bytes: usize) -> ImportOptions {
    ImportOptions { shards, memory_bytes, threads: 2, ..ImportOptions::default() }
}

/// Lines of some hosts over five hours, without the end.
fn lines() -> Vec<String> {
    let mut chance = Chance(11);
    let mut lines = Vec::new();
    for host in 0..12 {
        for metric in ["cpu", "disk", "net_total"] {
            for i in 0..400 {
                let ts = 1_767_225_000 + i * 45;
                let value = chance.below(1_000);
                lines.push(format!("{metric}{{host=\"h{host}\"}} {value} {ts}.{:03}", host * 7));
            }
        }
    }
    lines
}

fn text(lines: &[String]) -> String {
    format!("# TYPE net counter\n{}\n# EOF\n", lines.join("\n"))
}

fn model(text: &str) -> Model {
    let mut model = Model::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [key, value, ts] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let (metric, labels) = key.split_once('{').unwrap();
        let host = labels.split('"').nth(1).unwrap();
        let pairs =
            vec![("__name__".to_owned(), metric.to_owned()), ("host".to_owned(), host.to_owned())];
        let seconds: f64 = ts.parse().unwrap();
        let value: f64 = value.parse().unwrap();
        model.entry(pairs).or_default().insert((seconds * 1_000.0) as i64, value.to_bits());
    }
    model
}

fn read_back(segments: &[ImportedSegment]) -> Model {
    let mut model = Model::new();
    for segment in segments {
        let opened = segment.paths.open().unwrap();
        for (pairs, samples) in read_all(&opened).unwrap() {
            let labels = common::labels(&pairs);
            assert_eq!(labels.shard(segment.key.shards), segment.key.shard);
            let block = segment.key.block_start..segment.key.block_end;
            assert!(samples.keys().all(|ts| block.contains(ts)));
            let all = model.entry(pairs).or_default();
            for (ts, bits) in samples {
                assert_eq!(all.insert(ts, bits), None);
            }
        }
    }
    model
}

#[test]
fn every_sample_lands_in_its_block_and_shard() {
    let directory = Directory::new("blocks");
    let text = text(&lines());
    let segments = import(&directory, small(3, 1 << 20), &text).unwrap();
    assert_eq!(read_back(&segments), model(&text));
    let blocks: std::collections::BTreeSet<i64> =
        segments.iter().map(|s| s.key.block_start).collect();
    assert_eq!(blocks.len(), 4);
    assert!(blocks.iter().all(|block| block % 7_200_000 == 0));
    for segment in &segments {
        let opened = segment.paths.open().unwrap();
        let index = opened.index();
        assert_eq!(segment.stats.series, index.len());
        assert_eq!(segment.stats.samples, index.samples());
        assert_eq!(Some((segment.stats.min_ts, segment.stats.max_ts)), index.time_bounds());
        assert!(segment.stats.metrics.iter().map(String::as_str).eq(index.metrics()));
        assert_eq!(segment.stats.series_bytes, fs::metadata(&segment.paths.series).unwrap().len());
        assert_eq!(
            segment.stats.samples_bytes,
            fs::metadata(&segment.paths.samples).unwrap().len()
        );
        for series in 0..index.len() {
            let counter = index.metric(series) == "net_total";
            let kind = if counter { Kind::Counter } else { Kind::Unknown };
            assert_eq!(index.family(series).kind, kind);
        }
    }
    assert!(Directory::names(&directory.tmp()).is_empty());
}

#[test]
fn shuffled_text_and_little_memory_give_the_same_files() {
    let mut lines = lines();
    let sorted = Directory::new("sorted");
    import(&sorted, small(2, 256 << 20), &text(&lines)).unwrap();
    let expected = sorted.contents();
    let mut chance = Chance(3);
    for memory_bytes in [256 << 20, 100_000, 5_000] {
        for i in (1..lines.len()).rev() {
            lines.swap(i, chance.below(i + 1));
        }
        let shuffled = Directory::new("shuffled");
        import(&shuffled, small(2, memory_bytes), &text(&lines)).unwrap();
        assert!(shuffled.contents() == expected, "with {memory_bytes} bytes");
        assert!(Directory::names(&shuffled.tmp()).is_empty());
    }
}

#[test]
fn of_equal_timestamps_the_last_one_read_stays() {
    let mut lines = lines();
    let again: Vec<String> = lines
        .iter()
        .step_by(3)
        .map(|line| {
            let [key, _, ts] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
            format!("{key} 123456 {ts}")
        })
        .collect();
    lines.extend(again);
    let text = text(&lines);
    for memory_bytes in [1 << 20, 20_000] {
        let directory = Directory::new("twice");
        let segments = import(&directory, small(1, memory_bytes), &text).unwrap();
        assert_eq!(read_back(&segments), model(&text));
    }
}

#[test]
fn several_texts_make_one_import() {
    let directory = Directory::new("several");
    let options = ImportOptions { temporary_directory: directory.tmp(), ..small(1, 1 << 20) };
    let mut importer = Importer::new(options);
    let mut progress = ImportProgress::default();
    let first = "a{host=\"x\"} 1 1\na{host=\"x\"} 2 2\n# EOF\n";
    importer.read_text(first.as_bytes(), Format::OpenMetrics, |p| progress = p).unwrap();
    let second = "a{host=\"x\"} 7 2000\nb{host=\"y\"} 8 2000\n";
    importer.read_text(second.as_bytes(), Format::Prometheus, |p| progress = p).unwrap();
    let segments = importer.finish(&directory.out(), name).unwrap();
    let expected = "a{host=\"x\"} 1 1\na{host=\"x\"} 7 2\nb{host=\"y\"} 8 2\n";
    assert_eq!(read_back(&segments), model(expected));
}

#[test]
fn progress_is_told_on_the_way() {
    let directory = Directory::new("progress");
    let lines: Vec<String> =
        (0..60_000).map(|i| format!("a{{host=\"{i:040}\"}} {i} {i}")).collect();
    let text = text(&lines);
    let options = ImportOptions { temporary_directory: directory.tmp(), ..small(1, 1 << 20) };
    let mut importer = Importer::new(options);
    let mut told = Vec::new();
    importer.read_text(text.as_bytes(), Format::OpenMetrics, |p| told.push(p)).unwrap();
    assert!(told.len() >= 2, "{told:?}");
    assert!(told.is_sorted_by_key(|p| (p.bytes, p.samples, p.series)));
    assert!(told.iter().all(|p| p.bytes <= text.len() as u64 && p.samples <= 60_000));
}

#[test]
fn a_failed_import_leaves_nothing_behind() {
    let directory = Directory::new("failed");
    let mut lines = lines();
    lines.insert(9_000, "cpu{host=\"h1\" 1 1".to_owned());
    let error = import(&directory, small(2, 20_000), &text(&lines)).unwrap_err();
    // The TYPE line is the first one.
    assert!(error.to_string().starts_with("line 9002: "), "{error}");
    assert!(Directory::names(&directory.out()).is_empty());
    assert!(Directory::names(&directory.tmp()).is_empty());

    lines.remove(9_000);
    let limited = ImportOptions { max_series: 10, ..small(2, 20_000) };
    let error = import(&directory, limited, &text(&lines)).unwrap_err();
    assert!(matches!(error, ImportError::TooManySeries { limit: 10 }), "{error}");

    // A directory in the way of one of the files: the others are removed again.
    let good = Directory::new("in-the-way");
    let segments = import(&good, small(2, 20_000), &text(&lines)).unwrap();
    let last = segments.last().unwrap().paths.series.file_name().unwrap().to_owned();
    fs::create_dir(directory.out().join(&last)).unwrap();
    fs::write(directory.out().join(&last).join("x"), "x").unwrap();
    let error = import(&directory, small(2, 20_000), &text(&lines)).unwrap_err();
    assert!(matches!(error, ImportError::Write(_)), "{error}");
    let left = Directory::names(&directory.out());
    assert!(left.iter().all(|name| *last == **name), "{left:?}");
    assert!(Directory::names(&directory.tmp()).is_empty());

    // A file where there should be a directory: none can be made there.
    fs::write(directory.0.join("file"), "").unwrap();
    let nowhere =
        ImportOptions { temporary_directory: directory.0.join("file/in"), ..small(1, 20_000) };
    let mut importer = Importer::new(nowhere);
    let result = importer.read_text(text(&lines).as_bytes(), Format::OpenMetrics, |_| {});
    assert!(matches!(result, Err(ImportError::Temporary(_))));
}

#[test]
fn an_import_that_is_dropped_leaves_nothing_behind() {
    let directory = Directory::new("dropped");
    let options = ImportOptions { temporary_directory: directory.tmp(), ..small(1, 20_000) };
    let mut importer = Importer::new(options);
    importer.read_text(text(&lines()).as_bytes(), Format::OpenMetrics, |_| {}).unwrap();
    drop(importer);
    assert!(Directory::names(&directory.tmp()).is_empty());
}

#[test]
fn times_before_the_epoch_and_at_its_ends_have_blocks() {
    let directory = Directory::new("ends");
    let times = ["-1", "9000000000000000", "-9000000000000000"];
    let lines: Vec<String> = times.iter().map(|ts| format!("a{{host=\"x\"}} 1 {ts}")).collect();
    let text = &text(&lines);
    let segments = import(&directory, small(1, 1 << 20), text).unwrap();
    assert_eq!(segments.len(), 3);
    assert_eq!(read_back(&segments), model(text));
}

#[test]
fn nothing_to_import_is_no_segment() {
    let directory = Directory::new("nothing");
    assert!(import(&directory, small(1, 1 << 20), "# EOF\n").unwrap().is_empty());
}
