//! The knobs of a worker's disk: the budget that artifacts and cached segments share, and how
//! segments are downloaded. What they do is in `artifact-store`.

use std::path::PathBuf;

use tributary_artifact_store::{DiskConfig, DownloadConfig};
use tributary_process::knobs;

use super::{ArtifactConfig, Span};

knobs! {
    /// The disk.
    DiskKnobs {
        /// Bytes for artifacts and cached segments together (default: as many as the disk has). More:
        /// a fuller disk. What else lies on the disk makes the budget smaller by itself.
        capacity_bytes: Option<u64> = None,
        /// Beyond this share of the budget, in percent, something yields (default 90). More: less
        /// headroom for artifacts that are being written.
        high_percent: u8 = 90,
        /// What yields, yields down to this share (default 80). More: shorter sweeps, but more often;
        /// less: more segments are downloaded again.
        low_percent: u8 = 80,
        /// This share is kept for artifacts: cached segments never take it, and with less than this
        /// left the worker accepts no work (default 20). More: a smaller cache.
        artifact_floor_percent: u8 = 20,
        /// Bytes of the disk that are left to others (default 67108864, 64 MiB). More: a smaller
        /// budget.
        keep_free_bytes: u64 = 64 << 20,
        /// Whether an artifact is synced to the disk before it is announced (default false).
        /// Artifacts die with their worker, so true buys nothing but an earlier word of a failing
        /// disk, and costs milliseconds for each.
        sync_artifacts: bool = false,
        /// Whether segments in a folder of this machine are read where they are and not copied first
        /// (default true).
        read_in_place: bool = true,
        /// Memory for the indexes and page tables of segments, in bytes (default 268435456, 256 MiB).
        /// More: memory; less: they are read again for each work item.
        index_memory_bytes: u64 = 256 << 20,
    }
}

knobs! {
    /// Downloads of segments.
    DownloadKnobs {
        /// Bytes asked for at once (default 8388608, 8 MiB). More: fewer requests, and more to repeat
        /// after a failure.
        part_bytes: u64 = 8 << 20,
        /// Requests at once for one object (default 4). More: faster on links with delay, more
        /// memory.
        parts_at_once: usize = 4,
        /// Requests at once for all objects (default 16). More: memory, part_bytes for each.
        requests_at_once: usize = 16,
        /// A request must be answered this soon (default 30s). Longer: a hanging store is noticed
        /// later.
        request_timeout: Span = Span::seconds(30),
        /// Tries of each request (default 5). More: longer outages are ridden out, and told later.
        attempts: u32 = 5,
        /// The pause after the first failure, which doubles with each (default 100ms). Longer: a
        /// store that comes back is asked later.
        backoff: Span = Span::millis(100),
        /// The longest pause (default 5s). Longer: as above.
        backoff_max: Span = Span::seconds(5),
    }
}

/// All of it as the disk takes it.
pub(super) fn disk_config(
    folder: PathBuf,
    artifacts: &ArtifactConfig,
    disk: &DiskKnobs,
    download: &DownloadKnobs,
) -> DiskConfig {
    DiskConfig {
        folder,
        capacity_bytes: disk.capacity_bytes,
        high_percent: disk.high_percent,
        low_percent: disk.low_percent,
        artifact_floor_percent: disk.artifact_floor_percent,
        keep_free_bytes: disk.keep_free_bytes,
        artifact_ttl: artifacts.ttl.get(),
        artifact_ttl_after_ack: artifacts.ttl_after_ack.get(),
        sync_artifacts: disk.sync_artifacts,
        read_in_place: disk.read_in_place,
        index_memory_bytes: disk.index_memory_bytes,
        download: DownloadConfig {
            part_bytes: download.part_bytes,
            parts_at_once: download.parts_at_once,
            requests_at_once: download.requests_at_once,
            request_timeout: download.request_timeout.get(),
            attempts: download.attempts,
            backoff: download.backoff.get(),
            backoff_max: download.backoff_max.get(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_disk() {
        let expected = DiskConfig::default();
        let folder = expected.folder.clone();
        let (artifacts, disk) = (ArtifactConfig::default(), DiskKnobs::default());
        let download = DownloadKnobs::default();
        assert_eq!(disk_config(folder, &artifacts, &disk, &download), expected);
    }
}
