//! The one task that owns the coordinator: takes what happened, in order, and carries out what the
//! coordinator decides. Everybody else has a cheap [`Coordination`] to talk to it. Nothing in the task
//! waits for a worker, a fetch or a client, so heartbeats go out on time however much there is to do.

mod desk;
mod journal;
mod record;

use std::sync::Arc;
use std::time::Duration;

use core_workcoord::config::BadConfig;
use core_workcoord::coordinator::{Counts, Snapshot, Times, WorkItem};
use core_workcoord::id::{Endpoint, LeafId, QueryId, SessionId, TenantId};
use core_workcoord::message::WorkRef;
use tokio::sync::{Notify, mpsc, oneshot};

pub use desk::{Desk, DeskTerms};
pub use journal::{Journal, JournalFailure};
pub use record::{
    AttemptEnd, AttemptRecord, Brief, ItemRecord, QueryRecord, RecordOutcome, Records,
};

use crate::error::QueryError;
use crate::fetch::{FetchEnd, Fetched};
use crate::plan::Item;
use crate::stream::Heard;

/// Events on their way to the task. A full queue makes their tellers wait.
const EVENTS: usize = 4_096;

/// Why there is no coordination.
#[derive(Debug, thiserror::Error)]
pub enum CoordinationError {
    /// Its knobs make no sense.
    #[error(transparent)]
    Config(#[from] BadConfig),
    /// The system gives no thread.
    #[error("the system gives no thread")]
    Thread(#[source] std::io::Error),
}

/// A query's work to be done.
#[derive(Debug)]
pub struct Order {
    /// The query's name, drawn at random.
    pub query: QueryId,
    /// Whose it is.
    pub tenant: TenantId,
    /// What was asked, for people.
    pub text: String,
    /// It must be done this soon.
    pub timeout: Duration,
    /// W3C trace context for the workers, or empty.
    pub traceparent: String,
    /// The work, in the order its results are wanted.
    pub items: Arc<Vec<Item>>,
    /// Where news of it go. Has room for [`news_room`] of them, and is never waited for.
    pub news: mpsc::Sender<News>,
}

/// Something that happened to an order.
#[derive(Debug)]
pub enum News {
    /// The next item's result, in the order of the items.
    Part {
        /// Which item.
        item: u32,
        /// Its leaf.
        leaf: LeafId,
        /// What came of it.
        fetched: Box<Fetched>,
    },
    /// No worker is there.
    WaitingScaleUp,
    /// Nothing more will come: all results did, or there is a reason why not.
    Ended(Result<(), QueryError>),
}

/// The coordinator as it is now.
#[derive(Clone, Debug)]
pub struct View {
    /// What is under way.
    pub snapshot: Snapshot,
    /// What happened so far.
    pub counts: Counts,
    /// How long it took.
    pub times: Times,
}

/// Something the task is told.
#[derive(Debug)]
pub(crate) enum Event {
    Discovered(Endpoint),
    Gone(Endpoint),
    Submit(Box<Order>),
    Consumed { query: QueryId, through: u32 },
    Cancel { query: QueryId },
    FetchEnded { work: WorkRef, session: SessionId, end: FetchEnd },
    Look(oneshot::Sender<Box<View>>),
    Recent(oneshot::Sender<Vec<Brief>>),
    Recall { query: QueryId, answer: oneshot::Sender<Option<Box<QueryRecord>>> },
    Stop,
}

/// The task is gone, and with it this node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the coordinator is gone")]
pub struct Gone;

/// A way to talk to the task. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Coordination {
    events: mpsc::Sender<Event>,
    /// Told of every order, for whoever watches the queue.
    ordered: Arc<Notify>,
}

/// The task's own end.
#[derive(Debug)]
pub struct Inbox {
    pub(crate) events: mpsc::Receiver<Event>,
    pub(crate) heard: mpsc::Receiver<(SessionId, Heard)>,
    pub(crate) tell: mpsc::Sender<Event>,
    pub(crate) hear: mpsc::Sender<(SessionId, Heard)>,
}

/// How many news an order may have waiting: no more results than its window, and a few words.
pub fn news_room(window: u32) -> usize {
    window as usize + 8
}

impl Coordination {
    /// Both ends.
    pub fn new() -> (Self, Inbox) {
        let (tell, events) = mpsc::channel(EVENTS);
        let (hear, heard) = mpsc::channel(EVENTS);
        (
            Self { events: tell.clone(), ordered: Arc::default() },
            Inbox { events, heard, tell, hear },
        )
    }

    /// Discovery names a worker.
    pub async fn discovered(&self, endpoint: Endpoint) -> Result<(), Gone> {
        self.tell(Event::Discovered(endpoint)).await
    }

    /// Discovery names a worker no more.
    pub async fn gone(&self, endpoint: Endpoint) -> Result<(), Gone> {
        self.tell(Event::Gone(endpoint)).await
    }

    /// Has work done. What comes of it goes to the order's news.
    pub async fn submit(&self, order: Order) -> Result<(), Gone> {
        self.tell(Event::Submit(Box::new(order))).await?;
        self.ordered.notify_one();
        Ok(())
    }

    /// Waits until work is ordered, or was since this was last waited for. For one who waits.
    pub async fn next_order(&self) {
        self.ordered.notified().await;
    }

    /// The merge is done with every item before `through`: later ones may come closer.
    pub async fn consumed(&self, query: QueryId, through: u32) -> Result<(), Gone> {
        self.tell(Event::Consumed { query, through }).await
    }

    /// Nobody wants the query any more.
    pub async fn cancel(&self, query: QueryId) -> Result<(), Gone> {
        self.tell(Event::Cancel { query }).await
    }

    /// How things are.
    pub async fn look(&self) -> Result<View, Gone> {
        let (answer, answered) = oneshot::channel();
        self.tell(Event::Look(answer)).await?;
        answered.await.map(|view| *view).map_err(|_| Gone)
    }

    /// The latest queries, those that have ended too, the latest first.
    pub async fn recent(&self) -> Result<Vec<Brief>, Gone> {
        let (answer, answered) = oneshot::channel();
        self.tell(Event::Recent(answer)).await?;
        answered.await.map_err(|_| Gone)
    }

    /// What became of a query's work, if it is remembered.
    pub async fn recall(&self, query: QueryId) -> Result<Option<Box<QueryRecord>>, Gone> {
        let (answer, answered) = oneshot::channel();
        self.tell(Event::Recall { query, answer }).await?;
        answered.await.map_err(|_| Gone)
    }

    /// Closes all streams and ends the task.
    pub async fn stop(&self) {
        // Where it has ended before, there is nothing to stop.
        drop(self.tell(Event::Stop).await);
    }

    async fn tell(&self, event: Event) -> Result<(), Gone> {
        self.events.send(event).await.map_err(|_| Gone)
    }
}

/// What the coordinator is told of the items.
fn work_items(items: &[Item]) -> Vec<WorkItem> {
    items.iter().map(Item::work_item).collect()
}
