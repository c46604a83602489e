//! Tells the artifact store what is not needed any more, on a thread of its own, so that a slow disk
//! delays nobody who has to answer. Order is kept.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use core_workcoord::id::SessionId;
use tokio::sync::{mpsc, oneshot};

use crate::artifacts::{ArtifactId, Artifacts, Holder};

/// Where the store is told things. Never waits.
pub(crate) struct Custodian {
    /// Without a limit of its own: each artifact is acknowledged and released at most once, and
    /// each session dismissed once, so there are never more orders than there were artifacts.
    orders: mpsc::UnboundedSender<Order>,
    done: oneshot::Receiver<()>,
}

enum Order {
    Acknowledge(ArtifactId, Holder),
    Release(ArtifactId, Holder),
    Dismiss(SessionId),
}

impl Order {
    fn carry_out(self, artifacts: &dyn Artifacts) {
        match self {
            Self::Acknowledge(artifact, holder) => artifacts.acknowledge(&artifact, holder),
            Self::Release(artifact, holder) => artifacts.release(&artifact, holder),
            Self::Dismiss(session) => artifacts.dismiss(session),
        }
    }
}

impl Custodian {
    pub(crate) fn start(artifacts: Arc<dyn Artifacts>) -> io::Result<Self> {
        let (orders, mut taken) = mpsc::unbounded_channel::<Order>();
        let (tell_done, done) = oneshot::channel::<()>();
        thread::Builder::new().name("custodian".into()).spawn(move || {
            while let Some(order) = taken.blocking_recv() {
                order.carry_out(&*artifacts);
            }
            drop(tell_done);
        })?;
        Ok(Self { orders, done })
    }

    /// One whose store never waits: orders are carried out on this runtime.
    pub(crate) fn on_this_runtime(artifacts: Arc<dyn Artifacts>) -> Self {
        let (orders, mut taken) = mpsc::unbounded_channel::<Order>();
        let (tell_done, done) = oneshot::channel::<()>();
        // Ends when the custodian is dropped, and with its runtime.
        tokio::spawn(async move {
            while let Some(order) = taken.recv().await {
                order.carry_out(&*artifacts);
            }
            drop(tell_done);
        });
        Self { orders, done }
    }

    pub(crate) fn acknowledge(&self, artifact: ArtifactId, holder: Holder) {
        self.order(Order::Acknowledge(artifact, holder));
    }

    pub(crate) fn release(&self, artifact: ArtifactId, holder: Holder) {
        self.order(Order::Release(artifact, holder));
    }

    pub(crate) fn dismiss(&self, session: SessionId) {
        self.order(Order::Dismiss(session));
    }

    /// Waits until every order is carried out, but not for longer than this.
    pub(crate) async fn finish(self, patience: Duration) {
        drop(self.orders);
        // Whether it was done or took too long, there is nothing more to wait for.
        drop(tokio::time::timeout(patience, self.done).await);
    }

    fn order(&self, order: Order) {
        // It takes orders for as long as the desk lives; a panic of the store ends it, and then the
        // store's own retention is all that is left.
        if self.orders.send(order).is_err() {
            tracing::error!("the artifact store does not take orders any more");
        }
    }
}
