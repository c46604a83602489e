//! Keeps the demo's segments few. Every scrape becomes a small one; eight of a size become one of the
//! next, and a block that is over becomes one. What was replaced stays for a while, for queries that
//! still read it, and then goes. Which are due is decided by a pure function.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tributary_catalog::gc::{GcPlan, run_gc};
use tributary_catalog::{ObjectError, Segment, SegmentId, Store};
use tributary_segment::{
    CellBuffers, CellSelection, ImportedSegment, LocalWriter, SegmentPaths, TimeRange, WriteOptions,
};

use super::data::DemoData;
use super::scrape::block_of;
use super::target::INTERVAL_MS;
use crate::cli::Problem;
use crate::clock;

/// So many segments of a size become one of the next.
const FAN_IN: usize = 8;

/// A block counts as over this long after its end, in milliseconds.
const SETTLED_MS: i64 = 30_000;

/// Files of segments that were replaced stay this long: longer than any query here.
const GRACE: Duration = Duration::from_secs(5 * 60);

/// Samples older than this go, so that a demo may run for weeks.
pub(super) const KEEP_MS: i64 = 48 * 60 * 60 * 1_000;

/// One round: merges what is due, drops what is too old, removes what nobody reads any more.
pub(super) async fn tidy(data: &DemoData) -> Result<(), Problem> {
    while let Some(inputs) = due(&data.live().await?, clock::now_ms()) {
        merge(data, inputs).await?;
    }
    let old: Vec<SegmentId> = data
        .live()
        .await?
        .into_iter()
        .filter(|segment| segment.max_ts < clock::now_ms() - KEEP_MS)
        .map(|segment| segment.id)
        .collect();
    if !old.is_empty() {
        let removed = data.catalog.remove(&data.tenant, &old, clock::now_ms()).await;
        removed.map_err(Problem::failed)?;
    }
    sweep(data).await
}

/// Segments that should become one. They are given by time and do not overlap.
fn due(segments: &[Segment], now_ms: i64) -> Option<Vec<Segment>> {
    for block in segments.chunk_by(|one, other| one.block == other.block) {
        if block[0].block.end_ms + SETTLED_MS <= now_ms {
            if block.len() > 1 {
                return Some(block.to_vec());
            }
            continue;
        }
        for size in 0..4 {
            let small = block.iter().rev().take_while(|segment| size_of(segment) <= size).count();
            if small >= FAN_IN {
                return Some(block[block.len() - small..].to_vec());
            }
        }
    }
    None
}

/// Its size: 0 for one scrape and up, 1 for eight, 2 for 64.
fn size_of(segment: &Segment) -> u32 {
    let span_ms = segment.max_ts.abs_diff(segment.min_ts);
    let scrapes = span_ms.div_ceil(INTERVAL_MS.unsigned_abs()).max(1);
    scrapes.ilog(FAN_IN as u64)
}

/// Puts one segment in the place of several of a block.
async fn merge(data: &DemoData, inputs: Vec<Segment>) -> Result<(), Problem> {
    let upload = data.begin()?;
    let ids: Vec<SegmentId> = inputs.iter().map(|segment| segment.id.clone()).collect();
    let store = data.data_dir.store().map_err(Problem::failed)?;
    let folder = upload.folder().to_owned();
    // Reading and writing take their time, and a processor.
    let writing = tokio::task::spawn_blocking(move || rewrite(&inputs, &store, &folder));
    let written = writing.await.map_err(Problem::failed)??;
    let placed = upload.place(&[written]).await?;
    upload.replace(&data.catalog, &placed, &ids).await
}

fn rewrite(inputs: &[Segment], store: &Store, folder: &Path) -> Result<ImportedSegment, Problem> {
    let mut opened = Vec::with_capacity(inputs.len());
    // From the oldest to the newest.
    let mut inputs: Vec<&Segment> = inputs.iter().collect();
    inputs.sort_by(|one, other| one.age_key().cmp(&other.age_key()));
    for input in &inputs {
        let [series, samples] = [&input.series_file, &input.samples_file].map(|file| {
            let missing = || ObjectError::NotFound { path: file.path.to_string() };
            store.local_path(&file.path).ok_or_else(missing).map_err(Problem::failed)
        });
        let paths = SegmentPaths { series: series?, samples: samples? };
        opened.push(paths.open().map_err(Problem::failed)?);
    }
    let segments: Vec<_> = opened.iter().collect();
    let selection = CellSelection::new(&segments, &[], TimeRange::ALL);
    let mut buffers = CellBuffers::default();
    let mut scan = selection.scan(&mut buffers);
    let id = "merged";
    let mut writer =
        LocalWriter::new(folder, id, &WriteOptions::default()).map_err(Problem::failed)?;
    while let Some(found) = scan.next().map_err(Problem::failed)? {
        let index = segments[found.segment].index();
        let (labels, family) =
            (index.labels(found.samples.series), index.family(found.samples.series));
        let written = writer.series(&labels, family, found.samples.ts, found.samples.values);
        written.map_err(Problem::failed)?;
    }
    let (paths, stats) = writer.finish().map_err(Problem::failed)?;
    Ok(ImportedSegment { key: block_of(stats.min_ts), id: id.to_owned(), paths, stats })
}

/// Forgets segments that were replaced long ago, with their files and their folders.
async fn sweep(data: &DemoData) -> Result<(), Problem> {
    let grace_ms = i64::try_from(GRACE.as_millis()).unwrap_or(i64::MAX);
    let removed_until_ms = clock::now_ms() - grace_ms;
    let entries = data.catalog.entries().await.map_err(Problem::failed)?;
    let expired: Vec<Segment> = entries
        .into_iter()
        .filter(|entry| entry.removed_ms.is_some_and(|removed| removed <= removed_until_ms))
        .map(|entry| entry.segment)
        .collect();
    if expired.is_empty() {
        return Ok(());
    }
    let store = data.data_dir.store().map_err(Problem::failed)?;
    // Nothing else is looked at: what an import has under way here is none of our business.
    let ids = expired.iter().map(|segment| segment.id.clone()).collect();
    let plan = GcPlan { expired: ids, removed_until_ms, ..GcPlan::default() };
    run_gc(&data.catalog, &store, &plan).await.map_err(Problem::failed)?;
    for segment in &expired {
        let folder = store.local_path(&segment.series_file.path);
        if let Some(folder) = folder.as_deref().and_then(Path::parent) {
            // Removed where it is empty; where others lie beside it, it stays for them.
            let _ = fs::remove_dir(folder);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use core_workcoord::artifact::Checksum;
    use core_workcoord::id::TenantId;
    use tributary_catalog::{Block, ObjectPath, Shard, StoredFile};

    use super::super::scrape::BLOCK_MS;
    use super::*;

    fn segment(from: i64, to: i64) -> Segment {
        let tenant = TenantId::new("t").unwrap();
        let id = SegmentId::new(&format!("s{from}")).unwrap();
        let (series, samples) = ObjectPath::of_segment(&tenant, "u", &id).unwrap();
        let file = |path| StoredFile { path, size_bytes: 1, checksum: Checksum([0; 32]) };
        let key = block_of(from);
        Segment {
            id,
            tenant,
            block: Block { start_ms: key.block_start, end_ms: key.block_end },
            min_ts: from,
            max_ts: to,
            shard: Shard::WHOLE,
            series_file: file(series),
            samples_file: file(samples),
            series_count: 1,
            sample_count: 1,
            written_ms: 0,
            sequence: 1,
        }
    }

    /// A demo that runs for `scrapes` scrapes: how many segments there are at most, and at the end.
    fn live(scrapes: i64) -> (usize, Vec<Segment>) {
        let mut segments = Vec::new();
        let mut most = 0;
        for scrape in 0..scrapes {
            let from = scrape * INTERVAL_MS;
            let now = from + INTERVAL_MS;
            segments.push(segment(from, now - 1));
            while let Some(inputs) = due(&segments, now) {
                assert!(inputs.len() > 1);
                let merged = segment(inputs[0].min_ts, inputs[inputs.len() - 1].max_ts);
                let at = segments.iter().position(|one| one.id == inputs[0].id).unwrap();
                segments.splice(at..at + inputs.len(), [merged]);
            }
            most = most.max(segments.len());
        }
        (most, segments)
    }

    #[test]
    fn a_day_of_scrapes_never_has_more_than_some_dozen_segments() {
        let (most, segments) = live(24 * 240);
        assert!(most <= 12 + 3 * FAN_IN, "{most}");
        let joined = segments.windows(2).all(|two| two[0].max_ts + 1 == two[1].min_ts);
        assert!(joined && segments[0].min_ts == 0);
        let whole = segments.iter().filter(|s| s.max_ts - s.min_ts + 1 == BLOCK_MS).count();
        assert!(whole >= 11, "{whole} blocks are one segment each");
    }

    #[test]
    fn nothing_is_due_where_there_is_little() {
        let few: Vec<Segment> =
            (0..7).map(|at| segment(at * INTERVAL_MS, (at + 1) * INTERVAL_MS - 1)).collect();
        assert!(due(&few, 7 * INTERVAL_MS).is_none());
        assert!(due(&few, BLOCK_MS + SETTLED_MS).is_some_and(|inputs| inputs.len() == 7));
        assert!(due(&[], 0).is_none());
    }
}
