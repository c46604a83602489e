//! Writes what the fleet's targets said in a span of time as one segment. Where it goes, and who may
//! see it, is the caller's.

use std::path::Path;

use tributary_promql::STALE_BITS;
use tributary_segment::{ImportedSegment, LocalWriter, SegmentKey, WriteError, WriteOptions};

use super::fleet::{Fleet, Series};
use super::target::{Outcome, Scrape};

/// Length of a block, in milliseconds: that of `import`.
pub(super) const BLOCK_MS: i64 = 2 * 60 * 60 * 1_000;

/// The block that a moment lies in.
pub(super) fn block_of(ts: i64) -> SegmentKey {
    let block_start = ts.div_euclid(BLOCK_MS) * BLOCK_MS;
    SegmentKey { block_start, block_end: block_start + BLOCK_MS, shard: 0, shards: 1 }
}

/// The spans that a time is cut into by the edges of blocks.
pub(super) fn spans(from_ms: i64, to_ms: i64) -> Vec<(i64, i64)> {
    let mut spans = Vec::new();
    let mut from = from_ms;
    while from < to_ms {
        let to = block_of(from).block_end.min(to_ms);
        spans.push((from, to));
        from = to;
    }
    spans
}

/// Writes all samples from `from_ms` until before `to_ms`, which lie in one block, into a folder.
/// None where there are no samples.
pub(super) fn write(
    fleet: &Fleet,
    folder: &Path,
    (from_ms, to_ms): (i64, i64),
) -> Result<Option<ImportedSegment>, WriteError> {
    let scrapes: Vec<Vec<Scrape>> =
        fleet.targets.iter().map(|target| target.scrapes(from_ms, to_ms)).collect();
    if scrapes.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let id = format!("{from_ms}-{to_ms}");
    let mut writer = LocalWriter::new(folder, &id, &WriteOptions::default())?;
    let (mut ts, mut values) = (Vec::new(), Vec::new());
    for series in &fleet.series {
        ts.clear();
        values.clear();
        for (at, value) in samples(series, &scrapes[series.target]) {
            ts.push(at);
            values.push(value);
        }
        if !ts.is_empty() {
            writer.series(&series.labels, &series.family, &ts, &values)?;
        }
    }
    let (paths, stats) = writer.finish()?;
    Ok(Some(ImportedSegment { key: block_of(from_ms), id, paths, stats }))
}

fn samples(series: &Series, scrapes: &[Scrape]) -> impl Iterator<Item = (i64, f64)> {
    scrapes.iter().filter_map(|Scrape { ts, outcome }| {
        let value = match outcome {
            Outcome::Answered { now, start } => Some(series.shape.value(now, start)),
            Outcome::Refused { is_first } => {
                let stale = is_first.then_some(f64::from_bits(STALE_BITS));
                series.shape.refused().or(stale)
            }
        };
        value.map(|value| (*ts, value))
    })
}

#[cfg(test)]
mod tests {
    use tributary_segment::{ScanBuffers, SegmentError, TimeRange};

    use super::*;

    #[test]
    fn spans_end_at_the_edges_of_blocks() {
        let hour = BLOCK_MS / 2;
        assert_eq!(spans(hour, 3 * hour), [(hour, 2 * hour), (2 * hour, 3 * hour)]);
        assert_eq!(spans(-hour, hour), [(-hour, 0), (0, hour)]);
        assert_eq!(spans(2 * hour, 4 * hour), [(2 * hour, 4 * hour)]);
        assert!(spans(5, 5).is_empty());
    }

    #[test]
    fn a_minute_written_in_two_parts_has_the_same_samples() {
        let (fleet, folder) = (Fleet::new(), tempfile::tempdir().unwrap());
        let from = 1_790_000_000_000;
        let read = |span| -> Vec<(String, i64, u64)> {
            let written = write(&fleet, folder.path(), span).unwrap().unwrap();
            let segment = written.paths.open().unwrap();
            let all: Vec<u32> = (0..segment.index().len()).collect();
            let mut samples = Vec::new();
            let read = segment.for_each(&all, TimeRange::ALL, &mut ScanBuffers::default(), |one| {
                let labels = segment.index().labels(one.series).to_string();
                let pairs = one.ts.iter().zip(one.values);
                samples.extend(pairs.map(|(t, v)| (labels.clone(), *t, v.to_bits())));
                Ok::<(), SegmentError>(())
            });
            read.unwrap();
            samples
        };
        let mut parts = read((from, from + 20_000));
        parts.extend(read((from + 20_000, from + 60_000)));
        parts.sort();
        let mut whole = read((from, from + 60_000));
        whole.sort();
        assert!(whole.len() > 4 * 2_000 * 9 / 10, "{}", whole.len());
        assert!(parts == whole);
        assert!(write(&fleet, folder.path(), (from, from)).unwrap().is_none());
    }
}
