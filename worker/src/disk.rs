//! The worker's artifacts on its disk: `artifact-store` behind the words that sessions use.

use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use core_workcoord::id::SessionId;
use core_workcoord::intake::DiskReport;
use core_workcoord::moment::Moment;
use tokio::sync::mpsc;
use tributary_artifact_store::{ArtifactId as SpoolId, LostArtifacts, WorkerDisk};
use tributary_process::metrics::Text;

use crate::artifacts::{ArtifactId, Artifacts, Holder};

/// Expired artifacts are looked for this often.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Losses on their way to the desk. A full queue makes them wait.
const LOSSES: usize = 1_024;

/// A disk that knows what time it is.
#[derive(Clone, Debug)]
pub struct DiskArtifacts {
    disk: WorkerDisk,
    begun: Instant,
}

impl DiskArtifacts {
    /// Takes a disk. Expired artifacts are swept away by a thread for as long as this lives; those
    /// that were lost come out of the channel. To be called in a tokio runtime.
    pub fn start(
        disk: WorkerDisk,
        mut lost: LostArtifacts,
    ) -> io::Result<(Arc<Self>, mpsc::Receiver<ArtifactId>)> {
        let this = Arc::new(Self { disk, begun: Instant::now() });
        let swept = Arc::downgrade(&this);
        thread::Builder::new().name("sweeper".into()).spawn(move || {
            while let Some(disk) = swept.upgrade() {
                disk.disk.sweep(disk.now());
                drop(disk);
                thread::sleep(SWEEP_INTERVAL);
            }
        })?;
        let (tell, losses) = mpsc::channel(LOSSES);
        tokio::spawn(async move {
            while let Some(artifact) = lost.next().await {
                if tell.send(ArtifactId::new(artifact.id.to_string())).await.is_err() {
                    return;
                }
            }
        });
        Ok((this, losses))
    }

    /// The disk itself.
    pub fn disk(&self) -> &WorkerDisk {
        &self.disk
    }

    /// The time by which artifacts are kept.
    pub fn now(&self) -> Moment {
        Moment::ZERO + self.begun.elapsed()
    }
}

/// The store's name behind the one that sessions know. Both are the store's own.
fn spooled(artifact: &ArtifactId) -> SpoolId {
    SpoolId::from_str(artifact.as_str()).expect("sessions hold names that the store made")
}

impl Artifacts for DiskArtifacts {
    fn admit(&self, session: SessionId) -> String {
        self.disk.spool().open_session(session).reveal()
    }

    fn dismiss(&self, session: SessionId) {
        self.disk.spool().close_session(session);
    }

    fn hold(&self, artifact: &ArtifactId, _: Holder) -> bool {
        self.disk.spool().holds(spooled(artifact))
    }

    fn acknowledge(&self, artifact: &ArtifactId, _: Holder) {
        self.disk.spool().acknowledge(spooled(artifact), self.now());
    }

    fn release(&self, artifact: &ArtifactId, _: Holder) {
        self.disk.spool().release(spooled(artifact));
    }

    fn disk(&self) -> DiskReport {
        self.disk.report()
    }

    /// What the desk does not know: it tells of bytes, acknowledgements and losses itself.
    fn measure(&self, text: &mut Text) {
        let figures = self.disk.figures();
        for (name, help, value) in [
            (
                "budget_bytes",
                "The budget of artifacts and cached segments.",
                figures.capacity_bytes,
            ),
            ("artifacts", "Artifacts that can be fetched.", figures.artifacts),
            ("cached_segment_files", "Segment files on disk.", figures.segments),
            ("index_memory_bytes", "Indexes of segments in memory.", figures.index_bytes),
        ] {
            text.gauge(name, help, value);
        }
        let counts = figures.counts;
        for (name, help, value) in [
            ("artifacts_committed_total", "Artifacts made.", counts.artifacts_committed),
            (
                "artifacts_abandoned_total",
                "Artifacts begun and given up.",
                counts.artifacts_abandoned,
            ),
            ("artifacts_served_total", "Requests answered with bytes.", counts.artifacts_served),
            ("artifact_bytes_served_total", "Bytes of those.", counts.artifact_bytes_served),
            (
                "artifacts_refused_total",
                "Requests with a wrong name or token.",
                counts.artifacts_refused,
            ),
            ("segment_hits_total", "Segment files found on disk.", counts.segment_hits),
            ("segment_misses_total", "Segment files downloaded.", counts.segment_misses),
            ("segments_evicted_total", "Segment files that had to yield.", counts.segments_evicted),
            (
                "segments_distrusted_total",
                "Damaged segment files thrown away.",
                counts.segments_distrusted,
            ),
            ("download_bytes_total", "Bytes downloaded.", counts.segment_bytes_downloaded),
            ("download_retries_total", "Requests repeated.", counts.segment_retries),
            (
                "download_resumes_total",
                "Downloads that went on where one had stopped.",
                counts.segment_resumes,
            ),
            (
                "download_milliseconds_total",
                "Time spent downloading, summed over files.",
                counts.segment_download_ms,
            ),
            ("index_hits_total", "Indexes found in memory.", counts.index_hits),
            ("index_misses_total", "Indexes that had to be read.", counts.index_misses),
            ("disk_full_total", "Times the disk itself had no room.", counts.disk_full),
            ("budget_full_total", "Times the budget had no room.", counts.budget_full),
        ] {
            text.counter(name, help, value);
        }
    }
}
