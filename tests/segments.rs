//! `tributary segments` as a process: what it lists, shows and cleans, and what it refuses.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::Place;

const TEXT: &str = "\
# TYPE http_requests counter
# HELP http_requests Requests.
http_requests_total{code=\"200\"} 5 1767225600
http_requests_total{code=\"200\"} 6 1767225615
http_requests_total{code=\"500\"} 1 1767225600
# TYPE temperature_celsius gauge
# UNIT temperature_celsius celsius
temperature_celsius 21.5 1767232800.25
# EOF
";

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

/// Two blocks of two tenants.
fn filled() -> Place {
    let place = Place::new();
    let file = place.file("metrics.om", TEXT);
    place.said(0, "import", &[text(&file)]);
    place.said(0, "import", &["--tenant", "second", text(&file)]);
    place
}

/// The file of samples of a segment.
fn samples_file(place: &Place, id: &str) -> PathBuf {
    let stored = place.stored();
    let name = stored.iter().find(|name| name.ends_with(&format!("{id}.samples.parquet")));
    place.data_dir().join("segments").join(name.expect("it is there"))
}

#[test]
fn the_list_is_a_table_with_a_sum() {
    let place = filled();
    let table = place.said(0, "segments", &[]);
    assert_eq!(table, place.said(0, "segments", &["list"]));
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 7, "{table}");
    for head in
        ["id", "tenant", "metrics", "from", "to", "shard", "series", "samples", "bytes/sample"]
    {
        assert!(lines[0].contains(head), "{table}");
    }
    let first: Vec<&str> = lines[1].split_whitespace().collect();
    let expected =
        ["default", "1", "2026-01-01T00:00:00Z", "2026-01-01T00:00:15Z", "0", "of", "1", "2", "3"];
    assert_eq!(first[1..10], expected, "{table}");
    assert!(lines[2].contains("2026-01-01T02:00:00.250Z"), "{table}");
    assert!(lines[6].starts_with("4 segments, 8 samples, "), "{table}");

    let one = place.said(0, "segments", &["--tenant", "second"]);
    assert_eq!(one.matches("second").count(), 2, "{one}");
    assert!(!one.contains("default"), "{one}");
    assert_eq!(place.said(0, "segments", &["list", "--tenant", "nobody"]), "no segments\n");
    assert_eq!(place.said(0, "segments", &["--json", "--tenant", "nobody"]), "[]\n");
}

#[test]
fn the_list_for_programs_has_the_same_figures() {
    let place = filled();
    let list = place.list();
    let first = &list[0];
    for (name, figure) in [
        ("metrics", 1_i64),
        ("series", 2),
        ("samples", 3),
        ("min_ts", 1_767_225_600_000),
        ("max_ts", 1_767_225_615_000),
        ("block_start_ms", 1_767_225_600_000),
        ("block_end_ms", 1_767_232_800_000),
        ("shard", 0),
        ("shards", 1),
    ] {
        assert_eq!(first[name].as_i64(), Some(figure), "{name} in {first}");
    }
    let bytes = first["bytes"].as_f64().expect("a size");
    assert_eq!(first["bytes_per_sample"].as_f64(), Some(bytes / 3.0));
    assert_eq!(list.len(), 4);
}

#[test]
fn a_segment_is_shown_by_its_name_or_how_it_begins() {
    let place = filled();
    let id = &place.ids()[0];
    let shown = place.said(0, "segments", &["show", id]);
    for part in [
        id.as_str(),
        "2026-01-01T00:00:00Z to 2026-01-01T02:00:00Z",
        "http_requests_total  counter       2        3",
        ".series.parquet (",
        "sha256",
        "BYTE_STREAM_SPLIT",
    ] {
        assert!(shown.contains(part), "{part} is missing in\n{shown}");
    }
    assert_eq!(place.said(0, "segments", &["show", &id[..12]]), shown);

    let json = place.said(0, "segments", &["show", "--json", &place.ids()[1]]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let metric = &json["by_metric"][0];
    assert_eq!(metric["metric"], "temperature_celsius");
    assert_eq!((&metric["kind"], &metric["unit"]), (&"gauge".into(), &"celsius".into()));
    assert_eq!(json["columns"][2]["name"], "value");
    let sizes: Vec<u64> =
        (0..2).map(|at| json["files"][at]["bytes"].as_u64().expect("a size")).collect();
    assert_eq!(json["bytes"].as_u64(), Some(sizes.iter().sum()));
}

#[test]
fn a_segment_that_is_not_there_is_refused() {
    let place = filled();
    let complaint = place.complaint(2, "segments", &["show", "ffffffff"]);
    assert_eq!(complaint, "tributary: there is no segment ffffffff\n");
    assert!(place.complaint(2, "segments", &["show", ""]).contains("no segment"));
    let other = place.complaint(2, "segments", &["show", "--tenant", "second", &place.ids()[0]]);
    assert!(other.contains("no segment"), "{other}");
    // Sixteen first letters and many segments: some two begin alike.
    let file = place.file("metrics.om", TEXT);
    for tenant in 0..10 {
        place.said(0, "import", &["--tenant", &format!("t{tenant}"), text(&file)]);
    }
    let ids = place.ids();
    let letter = ids
        .iter()
        .map(|id| &id[..1])
        .find(|letter| ids.iter().filter(|id| id.starts_with(letter)).count() > 1);
    let letter = letter.expect("there are more segments than letters");
    assert!(place.complaint(2, "segments", &["show", letter]).contains("more letters"));
}

#[test]
fn what_is_no_data_directory_is_refused() {
    let place = Place::new();
    assert!(place.complaint(2, "segments", &[]).contains("there is no data directory"));
    fs::create_dir(place.data_dir()).expect("the folder can be made");
    assert!(place.complaint(2, "segments", &[]).contains("is not a data directory"));
    let file = place.file("data/catalog.db", "this is no database, whatever it is called");
    assert!(place.complaint(2, "segments", &[]).contains("catalog.db"));
    fs::remove_file(file).expect("it is ours");
    let tributary = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tributary"));
        support::finished(command.args(args).output().expect("it starts"), 2).1
    };
    assert!(tributary(&["segments"]).contains("--data-dir"));
    assert!(tributary(&["segments", "gc", "--grace", "soon"]).contains("--grace"));
}

#[test]
fn gc_removes_orphans_after_their_grace_and_nothing_else() {
    let place = filled();
    let before = place.stored();
    let id = place.ids()[0].clone();
    let folder = samples_file(&place, &id).parent().expect("it has one").to_owned();
    let orphan = folder.join("0f.samples.parquet");
    fs::write(&orphan, "12345").expect("the file can be written");
    fs::write(folder.join("0f.series.parquet#17"), "1").expect("the file can be written");
    fs::write(folder.join("notes.txt"), "").expect("the file can be written");

    let said = place.said(0, "segments", &["gc"]);
    assert!(said.contains("removed 0 files") && said.contains("1 files too young"), "{said}");
    let said = place.said(0, "segments", &["gc", "--grace", "0s", "--dry-run"]);
    assert!(said.contains("would remove 1 files") && said.contains("(5 bytes)"), "{said}");
    assert!(said.contains("0f.samples.parquet\n") && said.contains("#17\n"), "{said}");
    assert!(said.contains("left alone: segments/") && said.contains("notes.txt"), "{said}");
    assert!(orphan.exists());

    let json = place.said(0, "segments", &["gc", "--grace", "0s", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let figures = ["files", "bytes", "unfinished"].map(|name| json[name].as_u64());
    assert_eq!(figures, [Some(1), Some(5), Some(1)]);
    fs::remove_file(folder.join("notes.txt")).expect("it was left alone");
    assert_eq!(place.stored(), before);
    assert!(place.complaint(2, "segments", &["gc", "--tenant", "second"]).contains("--tenant"));
}

#[test]
fn a_segment_without_its_file_is_told_of() {
    let place = filled();
    let ids = place.ids();
    fs::remove_file(samples_file(&place, &ids[0])).expect("it is there");
    fs::write(samples_file(&place, &ids[1]), "short").expect("it is there");
    for args in [&["gc"][..], &["gc", "--dry-run"]] {
        let said = place.said(1, "segments", args);
        assert!(said.contains(&format!("damaged: segment {}", ids[0])), "{said}");
        assert!(said.contains("is missing") && said.contains("has 5 bytes, not "), "{said}");
    }
    assert_eq!(place.ids(), ids);
    let complaint = place.complaint(2, "segments", &["show", &ids[0]]);
    assert!(complaint.contains(".samples.parquet"), "{complaint}");
    let complaint = place.complaint(2, "segments", &["show", &ids[1]]);
    assert!(complaint.contains("has only 5 bytes"), "{complaint}");
}
