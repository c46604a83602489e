//! How large the pool of workers should be, for KEDA: it is active while there is work, and wants so
//! many workers that each has no more than its share. Told over the external-push protocol, so that a
//! pool leaves zero as soon as work is ordered.
//!
//! A node speaks for its own queue alone. With several API nodes a `ScaledObject` has one trigger for
//! each of them; KEDA takes the largest.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tracing::warn;
use tributary_proto::scaler::{self, MetricTarget, ScaledObject, Scaler, ScalerError};

use crate::monitor::Queue;

/// The metric of everything that waits or is on its way.
pub const DEPTH: &str = "queue_depth";

/// The metric of how long the item that waits longest has waited, in seconds.
pub const OLDEST_AGE: &str = "oldest_age_s";

/// A trigger's key: how many items one worker should have (default 4). Fewer: more workers.
pub const DEPTH_KEY: &str = "targetDepthPerWorker";

/// A trigger's key: one worker is wanted for every so many seconds that the oldest item has waited
/// (default: waiting does not count).
pub const AGE_KEY: &str = "targetOldestAgeSeconds";

/// What our keys begin with. KEDA sends keys of its own along, which are not ours to judge.
const OUR_KEYS: &str = "target";

const DEPTH_PER_WORKER: f64 = 4.0;

/// How long KEDA has to hang up when the node leaves.
const GOODBYE: Duration = Duration::from_secs(2);

/// Serves the scaler until it is told to stop; streams that are open end then.
pub async fn serve(
    listener: TcpListener,
    mut figures: watch::Receiver<Queue>,
    told: CancellationToken,
) -> io::Result<()> {
    let (tell, active) = watch::channel(is_active(&figures.borrow_and_update()));
    let routes = scaler::routes(QueueScaler { figures: figures.clone(), active });
    let passing_on = async {
        // Dropping the sender is what ends KEDA's streams.
        let tell = tell;
        loop {
            tokio::select! {
                () = told.cancelled() => return,
                changed = figures.changed() => if changed.is_err() { return },
            }
            let now = is_active(&figures.borrow_and_update());
            tell.send_if_modified(|before| std::mem::replace(before, now) != now);
        }
    };
    let serving = Server::builder()
        .add_routes(routes)
        .serve_with_incoming_shutdown(TcpIncoming::from(listener), told.cancelled());
    let ((), served) = tokio::join!(passing_on, bounded(serving, &told));
    match served {
        Some(served) => served.map_err(io::Error::other),
        None => {
            warn!("a scaler did not hang up in time");
            Ok(())
        }
    }
}

/// Waits, but not for long once it is time to go.
async fn bounded<T>(work: impl Future<Output = T>, told: &CancellationToken) -> Option<T> {
    let late = async {
        told.cancelled().await;
        tokio::time::sleep(GOODBYE).await;
    };
    tokio::select! {
        outcome = work => Some(outcome),
        () = late => None,
    }
}

fn is_active(queue: &Queue) -> bool {
    queue.depth > 0
}

/// Answers from figures that are kept up to date.
struct QueueScaler {
    figures: watch::Receiver<Queue>,
    active: watch::Receiver<bool>,
}

impl Scaler for QueueScaler {
    fn active(&self, object: &ScaledObject) -> Result<watch::Receiver<bool>, ScalerError> {
        Targets::of(object)?;
        Ok(self.active.clone())
    }

    fn targets(&self, object: &ScaledObject) -> Result<Vec<MetricTarget>, ScalerError> {
        let Targets { depth, age } = Targets::of(object)?;
        let target = |metric: &str, per_worker| MetricTarget { metric: metric.into(), per_worker };
        let depth = target(DEPTH, depth);
        Ok(std::iter::once(depth).chain(age.map(|age| target(OLDEST_AGE, age))).collect())
    }

    fn metric(&self, _: &ScaledObject, metric: &str) -> Result<f64, ScalerError> {
        let queue = *self.figures.borrow();
        match metric {
            DEPTH => Ok(f64::from(queue.depth)),
            OLDEST_AGE => Ok(queue.oldest_age_s),
            _ => Err(ScalerError::UnknownMetric { metric: metric.to_owned() }),
        }
    }
}

/// What one worker should carry, as the trigger says.
struct Targets {
    depth: f64,
    age: Option<f64>,
}

impl Targets {
    fn of(object: &ScaledObject) -> Result<Self, ScalerError> {
        let mut targets = Self { depth: DEPTH_PER_WORKER, age: None };
        for (key, text) in &object.metadata {
            let bad = || ScalerError::BadMetadata { key: key.clone() };
            let number = || match text.trim().parse::<f64>() {
                Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
                _ => Err(bad()),
            };
            match key.as_str() {
                DEPTH_KEY => targets.depth = number()?,
                AGE_KEY => targets.age = Some(number()?),
                key if key.starts_with(OUR_KEYS) => return Err(bad()),
                _ => {}
            }
        }
        Ok(targets)
    }
}

#[cfg(test)]
mod tests;
