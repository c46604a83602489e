//! What can be seen of the queue, the workers and the queries, as JSON: for scalers that ask over
//! HTTP, for the web page and for people; and the probes. [`QueueWatch`] keeps the figures that KEDA
//! is pushed.

mod queries;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use core_workcoord::coordinator::{Snapshot, WorkerView};
use core_workcoord::id::QueryId;
use core_workcoord::message::WorkerStatus;
use core_workcoord::roster::Standing;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::coordination::{Brief, Coordination, QueryRecord, View};

/// How often a queue that has something in it is looked at.
const BUSY: Duration = Duration::from_millis(250);

/// How often an empty one is, beside whenever work is ordered.
const IDLE: Duration = Duration::from_secs(5);

/// What a scaler looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Queue {
    /// Everything that waits or is on its way.
    pub depth: u32,
    /// Items that wait.
    pub queued: u32,
    /// Items on their way.
    pub running: u32,
    /// How many seconds the item that waits longest has waited.
    pub oldest_age_s: f64,
    /// Workers with a live stream.
    pub workers: u32,
}

impl From<&Snapshot> for Queue {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            depth: snapshot.depth(),
            queued: snapshot.queued,
            running: snapshot.running,
            oldest_age_s: snapshot.oldest_age.as_secs_f64(),
            workers: snapshot.active_streams,
        }
    }
}

/// Something the coordinator is asked; nothing where it is gone.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = Option<T>> + Send + 'a>>;

/// Whatever knows the coordinator's figures.
pub trait Monitor: Send + Sync + 'static {
    /// The figures of the queue, as of a moment ago, and whenever they change.
    fn queue(&self) -> watch::Receiver<Queue>;

    /// Everything, as of now; nothing where the coordinator is gone.
    fn look(&self) -> Answering<'_, View>;

    /// The latest queries, those that have ended too.
    fn recent(&self) -> Answering<'_, Vec<Brief>>;

    /// What became of a query's work, if it is remembered.
    fn recall(&self, query: QueryId) -> Answering<'_, Option<Box<QueryRecord>>>;
}

/// Keeps an eye on the coordinator's queue. An order that comes to an empty queue is seen at once.
/// Dropped, it ends, and its receivers with it.
#[derive(Debug)]
pub struct QueueWatch {
    coordination: Coordination,
    figures: watch::Receiver<Queue>,
    _task: JoinSet<()>,
}

impl QueueWatch {
    /// Watches from now on. There is one for a coordination.
    pub fn start(coordination: Coordination) -> Self {
        let (tell, figures) = watch::channel(Queue::default());
        let mut task = JoinSet::new();
        task.spawn(keep_watch(coordination.clone(), tell));
        Self { coordination, figures, _task: task }
    }
}

impl Monitor for QueueWatch {
    fn queue(&self) -> watch::Receiver<Queue> {
        self.figures.clone()
    }

    fn look(&self) -> Answering<'_, View> {
        Box::pin(async { self.coordination.look().await.ok() })
    }

    fn recent(&self) -> Answering<'_, Vec<Brief>> {
        Box::pin(async { self.coordination.recent().await.ok() })
    }

    fn recall(&self, query: QueryId) -> Answering<'_, Option<Box<QueryRecord>>> {
        Box::pin(async move { self.coordination.recall(query).await.ok() })
    }
}

async fn keep_watch(coordination: Coordination, figures: watch::Sender<Queue>) {
    while let Ok(view) = coordination.look().await {
        let now = Queue::from(&view.snapshot);
        figures.send_if_modified(|before| {
            let changed = *before != now;
            *before = now;
            changed
        });
        if now.depth > 0 {
            tokio::time::sleep(BUSY).await;
        } else {
            // Whichever is first; that time was up is no news.
            drop(tokio::time::timeout(IDLE, coordination.next_order()).await);
        }
    }
}

/// The paths of [`routes`], and whether anybody may ask without a key.
#[cfg(test)]
pub(crate) const PATHS: [(&str, bool); 4] = [
    ("/monitor/queue", true),
    ("/monitor/workers", false),
    ("/monitor/queries", false),
    ("/monitor/queries/{query_id}", false),
];

/// `/monitor/queue`, which is open, for scalers; and, for whoever has a key where there are keys,
/// `/monitor/workers`, `/monitor/queries` and `/monitor/queries/{query_id}`.
pub fn routes(monitor: Arc<dyn Monitor>, access: Access) -> Router {
    Router::new()
        .route("/monitor/workers", get(workers))
        .route("/monitor/queries", get(queries::all))
        .route("/monitor/queries/{query_id}", get(queries::one))
        .route_layer(from_fn_with_state(access, queries::admit))
        .route("/monitor/queue", get(queue))
        .with_state(monitor)
}

/// `/healthz` and `/readyz`.
pub fn probes(monitor: Arc<dyn Monitor>, leaving: CancellationToken) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(Probed { monitor, leaving })
}

/// What is probed.
#[derive(Clone)]
struct Probed {
    monitor: Arc<dyn Monitor>,
    leaving: CancellationToken,
}

/// Alive means that the coordinator answers.
async fn healthz(State(probed): State<Probed>) -> Response {
    match probed.monitor.look().await {
        Some(_) => "alive\n".into_response(),
        None => {
            (StatusCode::SERVICE_UNAVAILABLE, "the coordinator does not answer\n").into_response()
        }
    }
}

/// Ready means that clients may be sent here. Workers are not asked for: a pool that is scaled to
/// zero comes up because somebody asks.
async fn readyz(State(probed): State<Probed>) -> Response {
    if probed.leaving.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "leaving\n").into_response();
    }
    match probed.monitor.look().await.map(|view| view.snapshot.in_rotation) {
        Some(0) => "ready, and there are no workers\n".into_response(),
        Some(_) => "ready\n".into_response(),
        None => {
            (StatusCode::SERVICE_UNAVAILABLE, "the coordinator does not answer\n").into_response()
        }
    }
}

async fn queue(State(monitor): State<Arc<dyn Monitor>>) -> Response {
    told(&*monitor, |view| Queue::from(&view.snapshot)).await
}

async fn workers(State(monitor): State<Arc<dyn Monitor>>) -> Response {
    told(&*monitor, |view| Workers {
        workers: view.snapshot.workers.iter().map(Worker::from).collect(),
    })
    .await
}

/// Something of the coordinator.
async fn told<T: Serialize>(monitor: &dyn Monitor, of: impl FnOnce(&View) -> T) -> Response {
    match monitor.look().await {
        Some(view) => shown(&of(&view)),
        None => leaving(),
    }
}

/// Something to look at and not to keep.
fn shown(what: &impl Serialize) -> Response {
    let json = serde_json::to_string(what).expect("names and numbers can be written");
    let kind = (header::CONTENT_TYPE, "application/json");
    ([kind, (header::CACHE_CONTROL, "no-store")], json).into_response()
}

/// The coordinator is gone.
fn leaving() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "this node is shutting down\n").into_response()
}

#[derive(Serialize)]
struct Workers {
    workers: Vec<Worker>,
}

/// A worker as this node sees it.
#[derive(Serialize)]
struct Worker {
    endpoint: String,
    worker_id: Option<String>,
    session_id: Option<u64>,
    standing: &'static str,
    /// It refused work and has not spoken of itself since.
    held: bool,
    /// Our items on it.
    items: u32,
    silent_s: f64,
    status: Option<Status>,
}

/// What a worker last said of itself.
#[derive(Serialize)]
struct Status {
    accepting_work: bool,
    draining: bool,
    queued: u32,
    running: u32,
    slots: u32,
    spool_bytes: u64,
    cache_bytes: u64,
    free_bytes: u64,
}

impl From<&WorkerView> for Worker {
    fn from(view: &WorkerView) -> Self {
        Self {
            endpoint: view.endpoint.to_string(),
            worker_id: view.worker.as_ref().map(ToString::to_string),
            session_id: view.session.map(|session| session.0),
            standing: standing_name(view.standing),
            held: view.held,
            items: view.items,
            silent_s: view.silent_for.as_secs_f64(),
            status: view.status.map(Status::from),
        }
    }
}

impl From<WorkerStatus> for Status {
    fn from(status: WorkerStatus) -> Self {
        Self {
            accepting_work: status.accepting_work,
            draining: status.draining,
            queued: status.queued,
            running: status.running,
            slots: status.slots,
            spool_bytes: status.spool_bytes,
            cache_bytes: status.cache_bytes,
            free_bytes: status.free_bytes,
        }
    }
}

/// How a worker stands, in one word.
pub(crate) fn standing_name(standing: Standing) -> &'static str {
    match standing {
        Standing::Connecting => "connecting",
        Standing::Accepting => "accepting",
        Standing::NotAccepting => "not_accepting",
        Standing::Draining => "draining",
        Standing::Lost => "lost",
    }
}

#[cfg(test)]
pub(crate) mod tests;
