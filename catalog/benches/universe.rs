//! A catalog of 100,000 segments with 1,000 metrics each: how long registering, loading, following
//! a change and finding take, by how alike the segments' metric lists are. Prints a table:
//!
//!   cargo bench -p tributary-catalog
//!
//! `TRIBUTARY_BENCH_SEGMENTS` sets another number of segments. Without `--bench` it runs small, to
//! show that it works.
#![allow(clippy::unwrap_used, reason = "a measurement that can't go on has failed")]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use core_workcoord::artifact::Checksum;
use core_workcoord::id::TenantId;
use sha2::{Digest, Sha256};
use tributary_catalog::{
    Block, Catalog, CatalogConfig, CatalogUrl, MetricChoice, MetricNames, NewSegment, ObjectPath,
    Segment, SegmentId, Shard, StoredFile, Universe, UniverseFeed, Wanted,
};

const METRICS: usize = 1_000;
const SHARDS: u32 = 16;
const BLOCK_MS: i64 = 7_200_000;
const BATCH: usize = 1_000;

/// How a catalog is filled.
struct Shape {
    name: &'static str,
    tenants: usize,
    /// Different lists of metrics; each lacks one metric of its own.
    lists: usize,
}

#[tokio::main]
async fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let asked = std::env::var("TRIBUTARY_BENCH_SEGMENTS").ok().map(|n| n.parse().unwrap());
    let segments = asked.unwrap_or(if full { 100_000 } else { 2_000 });
    println!("{segments} segments, {METRICS} metrics each, {SHARDS} shards, SQLite");
    let shapes = [
        Shape { name: "1 tenant, 16 lists", tenants: 1, lists: 16 },
        Shape { name: "100 tenants, 16 lists each", tenants: 100, lists: 1_600 },
        Shape { name: "1 tenant, 10,000 lists", tenants: 1, lists: 10_000 },
    ];
    for shape in shapes {
        measure(&shape, segments).await;
    }
}

async fn measure(shape: &Shape, segments: usize) {
    println!("\n{}", shape.name);
    let folder = tempfile::tempdir().unwrap();
    let url = CatalogUrl::in_data_dir(folder.path());
    let config =
        CatalogConfig { poll_interval: Duration::from_millis(1), ..CatalogConfig::default() };
    let catalog = Catalog::open(url, config).await.unwrap();
    let lists: Vec<MetricNames> = (0..shape.lists.min(segments)).map(list).collect();

    let begun = Instant::now();
    for first in (0..segments).step_by(BATCH) {
        let last = segments.min(first + BATCH);
        let batch: Vec<NewSegment> = (first..last).map(|n| segment(shape, &lists, n)).collect();
        catalog.register(&batch, 0).await.unwrap();
    }
    let each = begun.elapsed() / u32::try_from(segments).unwrap();
    report("register, in batches of 1,000, a segment", each);
    println!(
        "  {:<48} {:>9.1} MiB",
        "size on disk",
        disk_bytes(folder.path()) / f64::from(1 << 20)
    );

    let before = resident_bytes();
    let begun = Instant::now();
    let universe = catalog.universe().await.unwrap();
    report("load and build the universe", begun.elapsed());
    let grown = resident_bytes() - before;
    println!("  {:<48} {:>9.1} MiB", "resident memory more after it", grown / f64::from(1 << 20));
    assert_eq!(universe.segment_count(), segments);

    let feed = UniverseFeed::start(&catalog).await.unwrap();
    let mut reader = feed.reader();
    let mut slowest = Duration::ZERO;
    for n in segments..segments + 10 {
        let changed = catalog.register(&[segment(shape, &lists, n)], 0).await.unwrap();
        let begun = Instant::now();
        reader.seen(changed).await.unwrap();
        slowest = slowest.max(begun.elapsed());
    }
    report("follow one new segment, slowest of 10", slowest);
    feed.stop().await;

    let blocks = i64::try_from(segments / shape.tenants).unwrap() / i64::from(SHARDS);
    let end = blocks * BLOCK_MS;
    for (name, length) in [("2 h", BLOCK_MS), ("24 h", 12 * BLOCK_MS), ("all", end)] {
        let time = (end - length).max(0)..=end;
        find(&universe, name, &time);
    }
}

fn find(universe: &Universe, name: &str, time: &std::ops::RangeInclusive<i64>) {
    let tenant = universe.tenant(universe.tenants().next().unwrap());
    let metric = metric(500);
    let wanted =
        Wanted { time: time.clone(), metrics: MetricChoice::Named(&metric), shard: Shard::WHOLE };
    let found = tenant.find(&wanted).len();
    let rounds = (2_000_000 / (found + 100)).clamp(3, 10_000);
    let begun = Instant::now();
    for _ in 0..rounds {
        black_box(tenant.find(black_box(&wanted)));
    }
    let each = begun.elapsed() / u32::try_from(rounds).unwrap();
    report(&format!("find one metric, {name}: {found} segments"), each);
}

fn report(what: &str, took: Duration) {
    println!("  {what:<48} {:>12.1} µs", took.as_secs_f64() * 1e6);
}

fn metric(number: usize) -> String {
    format!("subsystem_{}_component_{number}_requests_total", number % 37)
}

/// All metrics but one or two, so that every list is another.
fn list(number: usize) -> MetricNames {
    let (first, second) = (number % METRICS, number / METRICS);
    let kept = (0..METRICS).filter(|n| *n == 500 || (*n != first && *n != second * 7 + 1));
    MetricNames::new(kept.map(metric)).unwrap()
}

fn segment(shape: &Shape, lists: &[MetricNames], number: usize) -> NewSegment {
    let tenant = TenantId::new(&format!("tenant-{}", number % shape.tenants)).unwrap();
    let place = number / shape.tenants;
    let shard = u32::try_from(place).unwrap() % SHARDS;
    let start_ms = i64::try_from(place).unwrap() / i64::from(SHARDS) * BLOCK_MS;
    let sum = Checksum(Sha256::digest(number.to_le_bytes()).into());
    let id = SegmentId::of_content(&tenant, sum, sum);
    let (series, samples) = ObjectPath::of_segment(&tenant, "0192f0c1", &id).unwrap();
    let file = |path| StoredFile { path, size_bytes: 1_000_000, checksum: sum };
    let segment = Segment {
        id,
        tenant,
        block: Block { start_ms, end_ms: start_ms + BLOCK_MS },
        min_ts: start_ms,
        max_ts: start_ms + BLOCK_MS - 1,
        shard: Shard { index: shard, count: SHARDS },
        series_file: file(series),
        samples_file: file(samples),
        series_count: 5_000,
        sample_count: 2_400_000,
        written_ms: 0,
        sequence: 0,
    };
    NewSegment { segment, metrics: lists[number % lists.len()].clone() }
}

fn disk_bytes(folder: &Path) -> f64 {
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len() as f64).sum()
}

/// What the system says this process holds; nothing where it does not say.
fn resident_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    number.unwrap_or_default() * 1024.0
}
