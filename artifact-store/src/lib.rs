//! The worker's disk, and both ends of the artifact contract.
//!
//! - [`WorkerDisk`] is a folder that one worker has to itself: what an earlier life left of
//!   artifacts is removed, cached segments are kept, and everything in it is counted against one
//!   budget of bytes. [`WorkerDisk::sweep`] is to be called every second or so.
//! - [`Spool`] takes artifacts: written under a temporary name, hashed on their way, visible once
//!   they are complete. Equal work is made once ([`Spool::turn`]) and served to all who asked for
//!   it. An artifact that is gone before its owner acknowledged it is told by [`LostArtifacts`].
//! - [`SegmentCache`] brings segments here and keeps them while there is room.
//! - [`serve`] puts artifacts on the network; [`Fetcher`] gets them from there, and only what was
//!   checked becomes a [`VerifiedArtifact`].
//!
//! Names of files are made here, never of what a peer says. What a function does on the disk it
//! does on the caller's thread, and says so ("Blocks"); `async` functions never block. Decisions
//! (`disk_budget`, `retention`) are pure: time comes in as a [`Moment`].
//!
//! PromQL, the control stream and the planning of work are elsewhere.

mod artifact_table;
pub mod config;
mod disk;
pub mod disk_budget;
pub mod error;
pub mod fetch;
mod index_memory;
pub mod metrics;
pub mod retention;
mod secret;
mod segment_cache;
mod segment_table;
pub mod serve;
mod spool;
mod turns;
pub mod verify;

use std::sync::Arc;

pub use artifact_table::{Facts, LostArtifact, ReuseKey, SpooledArtifact};
pub use config::{DiskConfig, DownloadConfig};
use core_workcoord::intake::DiskReport;
use core_workcoord::moment::Moment;
use disk::Disk;
pub use error::{DiskError, SegmentFetchError};
pub use fetch::{FetchConfig, FetchError, Fetcher};
pub use metrics::{DiskCounts, DiskFigures};
pub use secret::{ArtifactId, BadArtifactId, Token};
pub use segment_cache::{PinnedFile, SegmentCache, SegmentFile};
pub use serve::ServeConfig;
pub use spool::{ArtifactWriter, OpenArtifact, Spool, WorkTurn};
use tokio::sync::mpsc;
use tributary_catalog::Store;
pub use verify::{Mismatch, VerifiedArtifact, VerifiedFile};

/// A worker's disk. Cheap to clone.
#[derive(Clone, Debug)]
pub struct WorkerDisk {
    disk: Arc<Disk>,
    spool: Spool,
    segments: SegmentCache,
}

/// Tells of artifacts that were removed before their owners acknowledged them.
#[derive(Debug)]
pub struct LostArtifacts {
    // There are never more in it than there were artifacts, so that it needs no other limit.
    told: mpsc::UnboundedReceiver<LostArtifact>,
}

impl WorkerDisk {
    /// Takes the folder for this process and cleans it. Segments come from this store and no
    /// other. Blocks.
    pub fn open(config: &DiskConfig, store: Store) -> Result<(Self, LostArtifacts), DiskError> {
        let (lost, told) = mpsc::unbounded_channel();
        let disk = Disk::open(config, lost)?;
        let spool = Spool::new(Arc::clone(&disk), config.sync_artifacts);
        let segments = SegmentCache::new(Arc::clone(&disk), store, config);
        Ok((Self { disk, spool, segments }, LostArtifacts { told }))
    }

    /// The artifacts.
    pub fn spool(&self) -> &Spool {
        &self.spool
    }

    /// The segments.
    pub fn segments(&self) -> &SegmentCache {
        &self.segments
    }

    /// Removes what expired and looks at what the disk has free. Blocks.
    pub fn sweep(&self, now: Moment) {
        self.disk.sweep(now);
    }

    /// How the disk is, in the words of the control protocol.
    pub fn report(&self) -> DiskReport {
        let usage = self.disk.books().budget.usage();
        DiskReport {
            room: usage.accepting,
            spool_bytes: usage.spool_bytes,
            cache_bytes: usage.cache_bytes,
            free_bytes: self.disk.free_bytes(),
        }
    }

    /// How the disk is, and what happened so far.
    pub fn figures(&self) -> DiskFigures {
        let books = self.disk.books();
        let usage = books.budget.usage();
        DiskFigures {
            spool_bytes: usage.spool_bytes,
            cache_bytes: usage.cache_bytes,
            capacity_bytes: usage.capacity_bytes,
            room_bytes: usage.room_bytes,
            free_bytes: self.disk.free_bytes(),
            accepting: usage.accepting,
            artifacts: books.artifacts.len() as u64,
            segments: books.segments.len() as u64,
            index_bytes: self.segments.memory_bytes(),
            counts: self.disk.counters.read(),
        }
    }

    /// Compares what is believed with what is on disk, file by file, and says what differs. Only
    /// while nothing is being written or removed. Blocks.
    pub fn audit(&self) -> Result<(), String> {
        self.disk.audit()
    }
}

impl LostArtifacts {
    /// The next one; nothing once the disk is closed.
    pub async fn next(&mut self) -> Option<LostArtifact> {
        self.told.recv().await
    }

    /// The next one, if there is one now.
    pub fn try_next(&mut self) -> Option<LostArtifact> {
        self.told.try_recv().ok()
    }
}
