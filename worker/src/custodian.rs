//! A thread that tells the artifact store what is not needed any more, so that a slow disk delays
//! nobody who has to answer. Order is kept.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use core_workcoord::id::SessionId;
use tokio::sync::oneshot;

use crate::artifacts::{ArtifactId, Artifacts, Holder};

/// Where the store is told things. Never waits.
pub(crate) struct Custodian {
    /// Without a limit of its own: each artifact is acknowledged and released at most once, and
    /// each session dismissed once, so there are never more orders than there were artifacts.
    orders: mpsc::Sender<Order>,
    done: oneshot::Receiver<()>,
}

enum Order {
    Acknowledge(ArtifactId, Holder),
    Release(ArtifactId, Holder),
    Dismiss(SessionId),
}

impl Custodian {
    pub(crate) fn start(artifacts: Arc<dyn Artifacts>) -> io::Result<Self> {
        let (orders, taken) = mpsc::channel();
        let (tell_done, done) = oneshot::channel::<()>();
        thread::Builder::new().name("custodian".into()).spawn(move || {
            for order in taken {
                match order {
                    Order::Acknowledge(artifact, holder) => {
                        artifacts.acknowledge(&artifact, holder);
                    }
                    Order::Release(artifact, holder) => artifacts.release(&artifact, holder),
                    Order::Dismiss(session) => artifacts.dismiss(session),
                }
            }
            drop(tell_done);
        })?;
        Ok(Self { orders, done })
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
