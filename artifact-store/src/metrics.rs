//! What the disk counts. Plain numbers: the worker gives them their names and its form.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What happened since the start. Counters never fall.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct DiskCounts {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The counters themselves.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        impl Counters {
            pub(crate) fn read(&self) -> DiskCounts {
                DiskCounts { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Artifacts committed.
    artifacts_committed,
    /// Bytes of those.
    artifact_bytes_committed,
    /// Artifacts begun and given up.
    artifacts_abandoned,
    /// Work answered from an artifact that was here already.
    artifacts_reused,
    /// Artifacts acknowledged.
    artifacts_acknowledged,
    /// Artifacts whose time was up, acknowledged or not.
    artifacts_expired,
    /// Artifacts that had to yield after they were acknowledged.
    artifacts_evicted,
    /// Artifacts that had to yield before: their work is done again.
    artifacts_lost,
    /// Requests for artifacts that were answered with bytes.
    artifacts_served,
    /// Bytes read for them.
    artifact_bytes_served,
    /// Requests for artifacts with a wrong name or token.
    artifacts_refused,
    /// Segment files found on disk or read in place.
    segment_hits,
    /// Segment files that had to be downloaded.
    segment_misses,
    /// Bytes downloaded.
    segment_bytes_downloaded,
    /// Requests to the object store that were repeated.
    segment_retries,
    /// Downloads that went on where an earlier one had stopped.
    segment_resumes,
    /// Segment files that had to yield.
    segments_evicted,
    /// Segment files on disk that were found damaged and thrown away.
    segments_distrusted,
    /// Milliseconds spent downloading, summed over files.
    segment_download_ms,
    /// Indexes and page tables found in memory.
    index_hits,
    /// Indexes and page tables that had to be read.
    index_misses,
    /// Times the disk itself had no room.
    disk_full,
    /// Times the budget had no room.
    budget_full,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }
}

/// How the disk is, and what happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskFigures {
    /// Bytes of artifacts on disk, those being written and removed included.
    pub spool_bytes: u64,
    /// Bytes of segments on disk, those being downloaded included.
    pub cache_bytes: u64,
    /// The budget as it is now.
    pub capacity_bytes: u64,
    /// What new artifacts can take before one that nobody acknowledged must yield.
    pub room_bytes: u64,
    /// What the disk had free when it was last asked.
    pub free_bytes: u64,
    /// There is room for the artifacts of new work.
    pub accepting: bool,
    /// Artifacts that can be fetched.
    pub artifacts: u64,
    /// Segment files on disk.
    pub segments: u64,
    /// Bytes of indexes and page tables in memory.
    pub index_bytes: u64,
    /// What happened so far.
    pub counts: DiskCounts,
}
