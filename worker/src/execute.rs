//! What running a leaf means to the worker: a call that takes as long as it takes, looks at its
//! `Cancel` often, and ends with a committed artifact or a failure. How a leaf is read and
//! computed is left to whoever implements `Execute`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use core_workcoord::artifact::Checksum;
use core_workcoord::id::{RunId, SessionId};
use core_workcoord::message::{AssignWork, Failure};
use tokio::sync::Notify;
use tributary_process::metrics::Text;

use crate::artifacts::ArtifactId;

/// Runs leaves.
pub trait Execute: Send + Sync + 'static {
    /// Runs one to its end, on a thread of its own; it may block. When `cancel` says so, it ends
    /// within milliseconds with any failure and leaves nothing behind. A panic is a failure of this
    /// run alone.
    fn run(&self, work: &Assignment, cancel: &Cancel) -> Result<Finished, Failure>;

    /// What there is to see of its runs beside what the worker sees itself, for `/metrics`.
    fn measure(&self, _metrics: &mut Text) {}
}

/// One attempt at a work item.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The worker's own number for it.
    pub run: RunId,
    /// Whose it is.
    pub session: SessionId,
    /// What to do.
    pub work: AssignWork,
    /// When the time given with it is up. The worker cancels it then; a run may end before.
    pub deadline: Option<Instant>,
}

/// A run that made its artifact: the file is committed and can be fetched at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The store's name for it, and the end of its URL.
    pub artifact: ArtifactId,
    /// Its length.
    pub size_bytes: u64,
    /// SHA-256 of its bytes.
    pub checksum: Checksum,
    /// Number of rows.
    pub row_count: u64,
    /// Smallest timestamp, in milliseconds of the Unix epoch.
    pub min_ts: i64,
    /// Largest timestamp, in milliseconds of the Unix epoch.
    pub max_ts: i64,
    /// Version of its Parquet schema.
    pub parquet_schema_version: u32,
    /// It was here already: nothing was computed.
    pub reused: bool,
}

/// Whether a run is still wanted. Cheap to clone, and cheap enough to look at in an inner loop.
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    set: AtomicBool,
    told: Notify,
}

impl Cancel {
    /// Nobody has cancelled yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to stop.
    pub fn is_set(&self) -> bool {
        self.shared.set.load(Ordering::Relaxed)
    }

    /// Tells the run to stop.
    pub fn set(&self) {
        self.shared.set.store(true, Ordering::Release);
        self.shared.told.notify_waiters();
    }

    /// Waits until the run is to stop, for runs that wait for something else meanwhile.
    pub async fn told(&self) {
        let told = self.shared.told.notified();
        tokio::pin!(told);
        // Enlisted before the look at the flag, or a word between the two would be missed.
        told.as_mut().enable();
        if !self.is_set() {
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_word_is_heard_before_while_and_after_waiting_for_it() {
        let cancel = Cancel::new();
        assert!(!cancel.is_set());
        let waiting = tokio::spawn({
            let cancel = cancel.clone();
            async move { cancel.told().await }
        });
        tokio::task::yield_now().await;
        cancel.set();
        waiting.await.unwrap();
        cancel.told().await;
        assert!(cancel.is_set());
    }
}
