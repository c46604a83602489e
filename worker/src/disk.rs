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

use crate::artifacts::{ArtifactId, Artifacts, Holder};
use crate::metrics::Text;

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

    fn measure(&self, text: &mut Text) {
        let figures = self.disk.figures();
        let gauges = [
            ("spool_bytes", "Bytes of artifacts on disk.", figures.spool_bytes),
            ("cache_bytes", "Bytes of cached segments on disk.", figures.cache_bytes),
            ("free_bytes", "Bytes the disk has free.", figures.free_bytes),
            ("budget_bytes", "The budget of spool and cache together.", figures.capacity_bytes),
            ("artifacts", "Artifacts that can be fetched.", figures.artifacts),
            ("cached_segment_files", "Segment files on disk.", figures.segments),
            ("index_memory_bytes", "Indexes of segments in memory.", figures.index_bytes),
        ];
        for (name, help, value) in gauges {
            text.gauge(&format!("tributary_worker_{name}"), help, value);
        }
        let counts = figures.counts;
        let counters = [
            ("artifacts_committed", "Artifacts made.", counts.artifacts_committed),
            ("artifacts_reused", "Work answered from an artifact.", counts.artifacts_reused),
            ("artifacts_acknowledged", "Artifacts fetched.", counts.artifacts_acknowledged),
            ("artifacts_expired", "Artifacts whose time was up.", counts.artifacts_expired),
            ("artifacts_lost", "Artifacts evicted before the fetch.", counts.artifacts_lost),
            ("artifacts_served", "Requests answered with bytes.", counts.artifacts_served),
            ("artifacts_refused", "Requests with a wrong name or token.", counts.artifacts_refused),
        ];
        for (name, help, value) in counters {
            text.counter(&format!("tributary_worker_{name}_total"), help, value);
        }
    }
}
