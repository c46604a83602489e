//! The knobs of a worker's disk: meaning, default, what raising each costs, and the relations
//! between them.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::DiskError;

/// How a worker uses its disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskConfig {
    /// The folder for artifacts and cached segments (`tributary-worker`). One worker at a time:
    /// a second one is refused.
    pub folder: PathBuf,
    /// Bytes for artifacts and cached segments together (as many as the disk has). More: a fuller
    /// disk. What else lies on the disk makes the budget smaller by itself.
    pub capacity_bytes: Option<u64>,
    /// Beyond this share of the budget something yields (90). More: less headroom for artifacts
    /// that are being written.
    pub high_percent: u8,
    /// What yields, yields down to this share (80). Less: more segments are downloaded again, but
    /// in fewer and longer sweeps.
    pub low_percent: u8,
    /// This share is kept for artifacts: cached segments never take it, and with less than this
    /// left the worker accepts no work (20). More: a smaller cache.
    pub artifact_floor_percent: u8,
    /// Bytes of the disk that are left to others (64 MiB). More: a smaller budget.
    pub keep_free_bytes: u64,
    /// An artifact nobody acknowledged goes after this long (10 min). Longer: disk.
    pub artifact_ttl: Duration,
    /// An acknowledged artifact goes after this long (30 s). Longer: disk, and more repeated work
    /// answered from it.
    pub artifact_ttl_after_ack: Duration,
    /// Wait until an artifact is on the disk itself before it is announced (no). Artifacts die
    /// with their worker, so it buys nothing but an earlier word of a failing disk, and costs
    /// milliseconds for each.
    pub sync_artifacts: bool,
    /// Segments in a folder of this machine are read where they are (yes), not copied first.
    pub read_in_place: bool,
    /// Memory for the indexes and page tables of segments (256 MiB).
    pub index_memory_bytes: u64,
    /// How segments are downloaded.
    pub download: DownloadConfig,
}

/// How segments are downloaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DownloadConfig {
    /// Bytes asked for at once (8 MiB). More: fewer requests, and more to repeat after a failure.
    pub part_bytes: u64,
    /// Requests at once for one object (4). More: faster on links with delay, more memory.
    pub parts_at_once: usize,
    /// Requests at once for all objects (16). Memory is this times `part_bytes`.
    pub requests_at_once: usize,
    /// A request must be answered this soon (30 s). Longer: a hanging store is noticed later.
    pub request_timeout: Duration,
    /// Tries of each request (5). More: longer outages are ridden out, and told later.
    pub attempts: u32,
    /// The pause after the first failure (100 ms); it doubles.
    pub backoff: Duration,
    /// The longest pause (5 s).
    pub backoff_max: Duration,
}

impl Default for DiskConfig {
    fn default() -> Self {
        Self {
            folder: PathBuf::from("tributary-worker"),
            capacity_bytes: None,
            high_percent: 90,
            low_percent: 80,
            artifact_floor_percent: 20,
            keep_free_bytes: 64 << 20,
            artifact_ttl: Duration::from_secs(600),
            artifact_ttl_after_ack: Duration::from_secs(30),
            sync_artifacts: false,
            read_in_place: true,
            index_memory_bytes: 256 << 20,
            download: DownloadConfig::default(),
        }
    }
}

impl Default for DownloadConfig {
    fn default() -> Self {
        Self {
            part_bytes: 8 << 20,
            parts_at_once: 4,
            requests_at_once: 16,
            request_timeout: Duration::from_secs(30),
            attempts: 5,
            backoff: Duration::from_millis(100),
            backoff_max: Duration::from_secs(5),
        }
    }
}

impl DiskConfig {
    /// The knobs fit together.
    pub fn check(&self) -> Result<(), DiskError> {
        let bad = |reason| Err(DiskError::BadConfig { reason });
        if self.capacity_bytes == Some(0) {
            return bad("capacity_bytes is zero");
        }
        if self.high_percent > 100 || self.low_percent >= self.high_percent {
            return bad("low_percent must be less than high_percent, and that 100 or less");
        }
        // The worker must be able to accept again once its disk is empty.
        if self.artifact_floor_percent >= self.low_percent {
            return bad("artifact_floor_percent must be less than low_percent");
        }
        if self.artifact_ttl.is_zero() {
            return bad("artifact_ttl is zero: nothing could be fetched");
        }
        self.download.check()
    }
}

impl DownloadConfig {
    fn check(&self) -> Result<(), DiskError> {
        let bad = |reason| Err(DiskError::BadConfig { reason });
        if !(4096..=1 << 30).contains(&self.part_bytes) {
            return bad("part_bytes must be from 4 KiB to 1 GiB");
        }
        if self.parts_at_once == 0 || self.requests_at_once == 0 || self.attempts == 0 {
            return bad("parts_at_once, requests_at_once and attempts must not be zero");
        }
        if self.requests_at_once > 4096 {
            return bad("requests_at_once must be 4096 or less");
        }
        if self.request_timeout.is_zero() {
            return bad("request_timeout is zero");
        }
        if self.backoff_max < self.backoff {
            return bad("backoff_max is shorter than backoff");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_that_can_not_work_together_are_refused() {
        assert!(DiskConfig::default().check().is_ok());
        let wrongs: [fn(&mut DiskConfig); 11] = [
            |c| c.capacity_bytes = Some(0),
            |c| c.high_percent = 101,
            |c| c.low_percent = c.high_percent,
            |c| c.artifact_floor_percent = c.low_percent,
            |c| c.artifact_ttl = Duration::ZERO,
            |c| c.download.part_bytes = 1,
            |c| c.download.parts_at_once = 0,
            |c| c.download.requests_at_once = 5000,
            |c| c.download.attempts = 0,
            |c| c.download.request_timeout = Duration::ZERO,
            |c| c.download.backoff_max = Duration::ZERO,
        ];
        for wrong in wrongs {
            let mut config = DiskConfig::default();
            wrong(&mut config);
            assert!(matches!(config.check(), Err(DiskError::BadConfig { .. })), "{config:?}");
        }
    }
}
