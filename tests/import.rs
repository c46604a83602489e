//! `tributary import` as a process: what it takes, what it leaves, and that it is all or nothing.

mod support;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use support::{Model, Place, finished, kill};

/// Some hosts over `seconds`, scraped every five; without the last line. Half of the series come
/// in the order of time, half series by series.
fn lines(seconds: u64) -> String {
    let mut text = String::from("# HELP net Bytes.\n# TYPE net counter\n# TYPE cpu gauge\n");
    let mut seed = 7_u64;
    let mut value = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 40
    };
    let scrapes = || (0..seconds / 5).map(|scrape| 1_767_225_600 + scrape * 5);
    for ts in scrapes() {
        for host in 0..6 {
            let (whole, part) = (value() % 100, value() % 100);
            writeln!(text, "cpu{{host=\"h{host}\"}} {whole}.{part:02} {ts}.{host}5")
                .expect("a string takes everything");
        }
    }
    for host in 0..6 {
        for ts in scrapes() {
            writeln!(text, "net_total{{dir=\"in\",host=\"h{host}\"}} {} {ts}.125", value())
                .expect("a string takes everything");
        }
    }
    text
}

fn open_metrics(seconds: u64) -> String {
    format!("{}# EOF\n", lines(seconds))
}

/// What the text says, read in the simplest way.
fn model(text: &str) -> Model {
    let mut model = Model::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let [series, value, ts] =
            line.split(' ').collect::<Vec<_>>().try_into().expect("three words");
        let value: f64 = value.parse().expect("a number");
        let seconds: f64 = ts.parse().expect("a number");
        #[expect(clippy::cast_possible_truncation, reason = "times of this century")]
        let ts = (seconds * 1_000.0).round() as i64;
        model.entry(series.to_owned()).or_default().insert(ts, value.to_bits());
    }
    model
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory takes everything")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

/// Imports a text through a pipe.
#[track_caller]
fn import_piped(place: &Place, bytes: &[u8], args: &[&str], code: i32) -> (String, String) {
    let mut command = place.command("import", args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut pipe = child.stdin.take().expect("it is piped");
    let bytes = bytes.to_owned();
    // It may end before it has read everything, where a line is wrong.
    let writer = thread::spawn(move || drop(pipe.write_all(&bytes)));
    let output = child.wait_with_output().expect("it was started here");
    writer.join().expect("writing does not panic");
    finished(output, code)
}

#[test]
fn what_was_imported_reads_back_with_another_reader() {
    let place = Place::new();
    let written = open_metrics(3 * 3_600);
    let file = place.file("metrics.om", &written);
    let said = place.said(0, "import", &[text(&file)]);
    for part in ["series ", " 12\n", "samples ", "25,920\n", "segments ", " 2\n", "samples/s"] {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }
    assert_eq!(place.read_back(), model(&written));
}

#[test]
fn plain_compressed_and_piped_texts_give_the_same_segments() {
    // More than is looked at ahead, so that each kind is told by its own rule.
    let written = open_metrics(8 * 3_600);
    assert!(written.len() > 2 << 20);
    let bytes = written.as_bytes();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let two_members = [gzipped(first), gzipped(second)].concat();
    let two_frames = [zstandard(first), zstandard(second)].concat();
    let mut all = Vec::new();
    for (name, bytes) in [
        ("plain", bytes),
        ("misnamed.zip", &gzipped(bytes)),
        ("members.gz", &two_members),
        ("metrics.zst", &zstandard(bytes)),
        ("frames.zst", &two_frames),
    ] {
        let place = Place::new();
        let file = place.file(name, bytes);
        place.said(0, "import", &[text(&file)]);
        all.push((name.to_owned(), place.ids()));
    }
    for bytes in [bytes, &gzipped(bytes), &zstandard(bytes)] {
        let place = Place::new();
        import_piped(&place, bytes, &["-"], 0);
        all.push(("piped".to_owned(), place.ids()));
    }
    let (_, first) = &all[0];
    assert_eq!(first.len(), 4);
    assert!(all.iter().all(|(_, ids)| ids == first), "{all:?}");
}

#[test]
fn the_older_format_is_known_by_its_end() {
    let older = "# TYPE up untyped\n# just a comment\nup{a=\"1\"} 1 1767225600125\n\n";
    let newer = "# TYPE up unknown\nup{a=\"1\"} 1 1767225600.125\n# EOF\n";
    let mut all = Vec::new();
    for written in [older, newer] {
        for bytes in [written.as_bytes().to_vec(), gzipped(written.as_bytes())] {
            let place = Place::new();
            import_piped(&place, &bytes, &["-"], 0);
            all.push(place.ids());
            let place = Place::new();
            let file = place.file("metrics", &bytes);
            place.said(0, "import", &[text(&file)]);
            all.push(place.ids());
        }
    }
    assert!(all.iter().all(|ids| ids == &all[0] && ids.len() == 1), "{all:?}");
}

/// A long text in the older format.
fn older(seconds: u64) -> String {
    let lines = lines(seconds);
    let in_millis = |line: &str| match line.rsplit_once(' ') {
        Some((before, ts)) if !line.starts_with('#') => {
            let seconds: f64 = ts.parse().expect("a number");
            format!("{before} {:.0}\n", seconds * 1_000.0)
        }
        _ => format!("{line}\n"),
    };
    lines.lines().map(in_millis).collect()
}

#[test]
fn a_long_text_in_the_older_format_is_found_out_or_asked_for() {
    let written = older(8 * 3_600);
    let expected = model(&open_metrics(8 * 3_600));
    let place = Place::new();
    let file = place.file("metrics.gz", gzipped(written.as_bytes()));
    place.said(0, "import", &[text(&file)]);
    assert_eq!(place.read_back(), expected);

    // The end of a pipe can't be seen ahead: it is an error, and not a thousand times the time.
    let place = Place::new();
    let (_, complaint) = import_piped(&place, written.as_bytes(), &["-"], 1);
    assert!(complaint.contains("--format prometheus"), "{complaint}");
    assert_eq!(place.ids(), [""; 0]);
    import_piped(&place, written.as_bytes(), &["--format", "prometheus", "-"], 0);
    assert_eq!(place.read_back(), expected);
}

#[test]
fn a_bad_line_is_named_and_nothing_is_imported() {
    let place = Place::new();
    let good = place.file("good.om", open_metrics(600));
    let bad = place.file("bad.om", "# TYPE up gauge\nup 1 1\nup{a=\"1\" 2 2\n# EOF\n");
    let complaint = place.complaint(1, "import", &[text(&good), text(&bad)]);
    assert!(complaint.starts_with(&format!("{}:3: ", text(&bad))), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert_eq!((place.ids(), place.stored()), (vec![], vec![]));

    let unended = place.file("unended.om", lines(600));
    let complaint = place.complaint(1, "import", &["--format=openmetrics", text(&unended)]);
    assert!(complaint.contains("unended.om:1443: data does not end with # EOF"), "{complaint}");
    let complaint = import_piped(&place, b"up 1\n# EOF\n", &["-"], 1).1;
    let expected = "<stdin>:1: expected timestamp for series {__name__=\"up\"}, got none\n";
    assert_eq!(complaint, expected);
    assert_eq!((place.ids(), place.stored()), (vec![], vec![]));
}

#[test]
fn damaged_compression_is_complained_about_and_nothing_is_imported() {
    let place = Place::new();
    let written = open_metrics(3_600);
    for (name, bytes) in
        [("cut.gz", gzipped(written.as_bytes())), ("cut.zst", zstandard(written.as_bytes()))]
    {
        let file = place.file(name, &bytes[..bytes.len() - 9]);
        let complaint = place.complaint(2, "import", &[text(&file)]);
        assert!(complaint.contains(name), "{complaint}");
        assert_eq!((place.ids(), place.stored()), (vec![], vec![]));
    }
}

#[test]
fn what_can_not_work_is_refused_before_anything_is_made() {
    let place = Place::new();
    let good = place.file("good.om", open_metrics(60));
    let missing = place.data_dir().join("../missing.om");
    assert!(place.complaint(2, "import", &[text(&good), text(&missing)]).contains("missing.om"));
    assert!(place.complaint(2, "import", &["-", "-"]).contains("only once"));
    for (args, word) in [
        (&["--block", "1"][..], "--block"),
        (&["--shards", "0"], "--shards"),
        (&["--tenant", ""], "--tenant"),
        (&["--format", "csv"], "--format"),
        (&[], "FILE"),
    ] {
        let args: Vec<&str> =
            args.iter().copied().chain((word != "FILE").then(|| text(&good))).collect();
        assert!(place.complaint(2, "import", &args).contains(word), "{args:?}");
    }
    assert!(!place.data_dir().exists());
    fs::create_dir(place.data_dir()).expect("the folder can be made");
    fs::write(place.data_dir().join("letter.txt"), "").expect("the file can be written");
    let complaint = place.complaint(2, "import", &[text(&good)]);
    assert!(complaint.contains("is not a data directory"), "{complaint}");
}

#[test]
fn blocks_and_shards_are_as_asked_for_and_tenants_apart() {
    let place = Place::new();
    let written = open_metrics(1_800);
    let file = place.file("metrics.om", &written);
    place.said(0, "import", &["--block", "10m", "--shards", "2", "--tenant", "a:b", text(&file)]);
    let list = place.list();
    assert_eq!(list.len(), 6);
    for line in &list {
        assert_eq!((line["tenant"].as_str(), line["shards"].as_u64()), (Some("a:b"), Some(2)));
        let block = |end: &str| line[end].as_i64().expect("a time");
        assert_eq!(block("block_end_ms") - block("block_start_ms"), 600_000);
        assert!(block("min_ts") >= block("block_start_ms"));
        assert!(block("max_ts") < block("block_end_ms"));
    }
    assert_eq!(place.read_back(), model(&written));
    place.said(0, "import", &["--tenant", "other", text(&file)]);
    assert_eq!(place.ids().len(), 7);
}

#[test]
fn the_same_text_twice_is_there_once() {
    let place = Place::new();
    let file = place.file("metrics.om", open_metrics(3 * 3_600));
    place.said(0, "import", &[text(&file)]);
    let (ids, stored) = (place.ids(), place.stored());
    let said = place.said(0, "import", &[text(&file)]);
    assert!(said.contains("2 of them were there already"), "{said}");
    assert_eq!((place.ids(), place.stored()), (ids, stored));
}

#[test]
fn of_two_samples_at_one_time_the_later_stays() {
    let place = Place::new();
    let one = place.file("one.om", "up 1 100\nup 2 100\nup 5 101\n# EOF\n");
    let two = place.file("two.om", "up 3 100\n# EOF\n");
    let said = place.said(0, "import", &[text(&one), text(&two)]);
    assert!(said.contains("2 more were replaced by later ones"), "{said}");
    assert_eq!(place.read_back(), model("up{} 3 100\nup{} 5 101"));
}

#[test]
fn a_text_without_samples_is_no_error() {
    let place = Place::new();
    import_piped(&place, b"# EOF\n", &["-"], 0);
    assert_eq!((place.ids(), place.stored()), (vec![], vec![]));
}

/// Waits until the import has left something of this kind on disk.
fn wait_for(place: &Place, what: impl Fn(&[String]) -> bool) {
    let begun = Instant::now();
    while !what(&place.stored()) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the import never got that far");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_import_killed_while_it_reads_leaves_nothing_visible() {
    let place = Place::new();
    let mut command = place.command("import", &["-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary starts");
    let mut pipe = child.stdin.take().expect("it is piped");
    pipe.write_all(lines(3_600).as_bytes()).expect("it reads");
    wait_for(&place, |stored| !stored.is_empty());
    kill(child);
    drop(pipe);
    assert_eq!(place.ids(), [""; 0]);
    assert!(place.said(0, "segments", &["gc", "--dry-run"]).contains("0 unfinished"));
    place.said(0, "segments", &["gc", "--grace", "0s"]);
    // A folder that held nothing but an empty folder is seen to be empty the next time.
    place.said(0, "segments", &["gc", "--grace", "0s"]);
    assert_eq!(place.stored(), [""; 0]);
}

#[test]
fn cleaning_while_an_import_waits_for_its_text_does_not_hurt_it() {
    let place = Place::new();
    let mut command = place.command("import", &["-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
    let mut pipe = child.stdin.take().expect("it is piped");
    wait_for(&place, |stored| stored.len() == 2);
    for _ in 0..2 {
        place.said(0, "segments", &["gc", "--grace", "0s"]);
    }
    assert_eq!(place.stored(), [""; 0], "the import had only an empty folder so far");
    pipe.write_all(open_metrics(600).as_bytes()).expect("it reads");
    drop(pipe);
    assert!(child.wait().expect("it was started here").success());
    assert_eq!(place.read_back(), model(&open_metrics(600)));
}

#[test]
fn an_import_killed_while_it_writes_leaves_nothing_visible_and_gc_cleans() {
    let place = Place::new();
    let written = open_metrics(1_000);
    let file = place.file("metrics.om", &written);
    // Many small segments, so that there is time to kill it among them.
    let args = ["--block", "10s", "--shards", "2", text(&file)];
    for files in [1, 20, 150] {
        let child = place.command("import", &args).spawn().expect("the binary starts");
        wait_for(&place, |stored| {
            stored.iter().filter(|name| name.contains(".parquet")).count() >= files
        });
        kill(child);
        assert_eq!(place.ids(), [""; 0]);
        assert_ne!(place.stored(), [""; 0]);
        let said = place.said(0, "segments", &["gc", "--grace", "0s"]);
        assert!(said.starts_with("removed "), "{said}");
        place.said(0, "segments", &["gc", "--grace", "0s"]);
        assert_eq!(place.stored(), [""; 0], "after {files} files");
    }
    place.said(0, "import", &args);
    assert_eq!(place.ids().len(), 200);
    assert_eq!(place.read_back(), model(&written));
}

#[cfg(unix)]
#[test]
fn a_disk_that_takes_no_more_leaves_nothing() {
    let place = Place::new();
    let file = place.file("metrics.om", open_metrics(24 * 3_600));
    // No file may grow beyond some 500 KB, and writing more is an error and not a signal.
    let script = "trap '' XFSZ; ulimit -f 1000; exec \"$@\"";
    let inner = place.command("import", &[text(&file)]);
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(inner.get_program()).args(inner.get_args());
    let (_, complaint) = finished(command.output().expect("sh starts"), 2);
    assert!(complaint.contains("too large"), "{complaint}");
    assert_eq!((place.ids(), place.stored()), (vec![], vec![]));
}

/// Not run where there is no promtool; `TRIBUTARY_PROMTOOL` says where it is.
#[test]
fn promtool_reads_the_same_samples() {
    let promtool = std::env::var("TRIBUTARY_PROMTOOL").unwrap_or_else(|_| "promtool".to_owned());
    if !Command::new(&promtool).arg("--version").output().is_ok_and(|o| o.status.success()) {
        // Straight to the terminal: what a test prints is shown only where it fails.
        let _ = writeln!(std::io::stderr(), "skipped: there is no {promtool}");
        return;
    }
    let place = Place::new();
    let tricky = "# TYPE odd gauge\nodd{a=\"x y,}\\\"\\\\\\n\",b=\"é\"} 0.25 1767225700.999\n\
        odd NaN 1767225701\nodd +Inf 1767225702.0019\nodd -Inf 1767225703.5\nodd -0 1767225704\n\
        odd 1e-300 1767225705\nodd 123456789.123456789 1767225706.12\n# TYPE sum counter\n\
        sum_total 7 1767225700 # {trace=\"1\"} 5 1\n";
    let written = format!("{}{tricky}# EOF\n", lines(3 * 3_600));
    let file = place.file("metrics.om", &written);
    place.said(0, "import", &[text(&file)]);
    let blocks = place.data_dir().join("../blocks");
    let run = |args: &[&str]| {
        let output = Command::new(&promtool).args(args).output().expect("it starts");
        finished(output, 0).0
    };
    run(&["tsdb", "create-blocks-from", "openmetrics", text(&file), text(&blocks)]);
    // It looks for what a server would have there.
    fs::create_dir_all(blocks.join("wal")).expect("the folder can be made");
    let dump = run(&["tsdb", "dump", text(&blocks)]);
    let mut theirs = Model::new();
    for line in dump.lines() {
        let (rest, ts) = line.rsplit_once(' ').expect("a time");
        let (labels, value) = rest.rsplit_once(' ').expect("a value");
        let value = value.parse::<f64>().expect("a number");
        let ts = ts.parse().expect("a number");
        theirs.entry(labels.to_owned()).or_default().insert(ts, bits(value));
    }
    let ours: Model = place
        .read_back()
        .into_iter()
        .map(|(series, samples)| {
            let samples = samples.into_iter().map(|(ts, value)| (ts, bits(f64::from_bits(value))));
            (in_braces(&series), samples.collect())
        })
        .collect();
    assert_eq!(ours, theirs);
}

/// Text has no bits for the kinds of NaN.
fn bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

/// From `name{a="b",…}` to `{__name__="name", a="b", …}`.
fn in_braces(series: &str) -> String {
    let (name, labels) = series.split_once('{').expect("it has braces");
    let labels = labels.strip_suffix('}').expect("it ends with a brace");
    let comma = if labels.is_empty() { "" } else { ", " };
    format!("{{__name__=\"{name}\"{comma}{}}}", labels.replace("\",", "\", "))
}
