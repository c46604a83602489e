//! A cheap way to ask the desk something from anywhere: how things are, or to drain.

use std::sync::Arc;
use std::time::Duration;

use core_workcoord::intake::Snapshot;
use tokio::sync::{mpsc, oneshot};

use crate::connection::Connections;
use crate::desk::{Event, View};
use crate::metrics::ConnectionCounts;

/// A desk that does not answer for this long is in trouble.
const PATIENCE: Duration = Duration::from_secs(1);

/// A way to ask a running worker to leave.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) connections: Arc<Connections>,
}

impl Handle {
    /// Begins the drain: no new work, what runs is finished, artifacts are served until they are
    /// acknowledged or the time for it is up. Asking again changes nothing.
    pub async fn drain(&self) {
        // Where the desk is gone, the worker has drained.
        drop(self.events.send(Event::Drain).await);
    }

    /// What it does and holds; `None` where the desk does not say.
    pub async fn snapshot(&self) -> Option<Snapshot> {
        self.look().await.map(|view| view.snapshot)
    }

    /// How things are; `None` where the desk does not say.
    pub(crate) async fn look(&self) -> Option<Box<View>> {
        let (answer, view) = oneshot::channel();
        let ask = async {
            self.events.send(Event::Look(answer)).await.ok()?;
            view.await.ok()
        };
        tokio::time::timeout(PATIENCE, ask).await.ok().flatten()
    }

    pub(crate) fn connections(&self) -> ConnectionCounts {
        let connections = &self.connections;
        ConnectionCounts { open: connections.count(), refused: connections.refused() }
    }
}
