//! What the API's coordinator is told (`Input`) and what it wants done (`Action`).

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::id::{AffinityKey, Attempt, Endpoint, LeafId, QueryId, SessionId, TenantId, WorkId};
use crate::message::{ApiMessage, FailureCode, WorkRef, WorkerMessage};
use crate::moment::Moment;

/// Something that happened. Every input comes with the moment it is handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// Discovery names a worker.
    WorkerDiscovered {
        /// Where it listens.
        endpoint: Endpoint,
    },
    /// Discovery names a worker no more.
    WorkerGone {
        /// Where it listened.
        endpoint: Endpoint,
    },
    /// A dialled stream is open; nothing was said on it yet.
    StreamOpened {
        /// The session of the `Dial`.
        session: SessionId,
    },
    /// A message arrived, in the order the worker sent it.
    Message {
        /// The session it arrived on.
        session: SessionId,
        /// What it says.
        message: WorkerMessage,
    },
    /// Bytes arrived that are no message.
    Malformed {
        /// The session they arrived on.
        session: SessionId,
    },
    /// The stream broke, or could not be opened.
    StreamClosed {
        /// The session that is over.
        session: SessionId,
    },
    /// A query to run.
    Submit(Submission),
    /// The merge is done with every item before `through`; later ones may come closer.
    Consumed {
        /// Whose items.
        query: QueryId,
        /// The first item still needed.
        through: u32,
    },
    /// The client went away, or asked for it.
    CancelQuery {
        /// The query to end.
        query: QueryId,
    },
    /// A `Fetch` came to its end.
    FetchEnded {
        /// Which attempt's artifact.
        work: WorkRef,
        /// The session it was fetched from.
        session: SessionId,
        /// How it ended.
        result: FetchResult,
    },
    /// Time passes. To be given when `poll_timeout` is due.
    Tick,
}

/// A query with the work its plan came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// Its name. Names are drawn at random and never used twice.
    pub query: QueryId,
    /// Whose it is.
    pub tenant: TenantId,
    /// When it must have ended.
    pub deadline: Moment,
    /// How many items may be on their way at once, counted from the first one still needed;
    /// clipped to the configured limit.
    pub window: u32,
    /// W3C trace context handed to the workers, or empty.
    pub traceparent: String,
    /// The work in time order. Results are delivered in this order.
    pub items: Vec<WorkItem>,
}

/// One piece of a query's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkItem {
    /// The leaf it is part of.
    pub leaf: LeafId,
    /// What it would like to stay close to.
    pub affinity_key: AffinityKey,
    /// What the worker is told; opaque here.
    pub spec: Bytes,
}

/// How a fetch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FetchResult {
    /// Size and checksum are as announced; the bytes are in the driver's hands.
    Verified,
    /// The worker could not be reached, after the fetcher's own retries.
    Failed,
    /// Size or checksum differ from what was announced.
    Mismatch,
    /// The worker no longer has it.
    Gone,
}

/// Something to do. Actions are to be carried out in the order they are polled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Open a stream. Answered by `StreamOpened` or `StreamClosed`.
    Dial {
        /// The new session.
        session: SessionId,
        /// Where to.
        endpoint: Endpoint,
    },
    /// Send a message. A full queue waits or closes the stream; nothing is ever dropped.
    Send {
        /// On this session.
        session: SessionId,
        /// What to say.
        message: ApiMessage,
    },
    /// End a stream, or give up opening it. The session is over for the coordinator already.
    Close {
        /// The session to end.
        session: SessionId,
        /// Why.
        reason: CloseReason,
    },
    /// Fetch an artifact from the worker behind this session, and from nowhere else.
    Fetch {
        /// Which attempt's artifact.
        work: WorkRef,
        /// The session that announced it.
        session: SessionId,
        /// What was announced.
        artifact: Box<Artifact>,
    },
    /// A fetch is no longer wanted; its end need not be told.
    AbandonFetch {
        /// Which attempt's artifact.
        work: WorkRef,
        /// The session it is fetched from.
        session: SessionId,
    },
    /// Hand a verified artifact to the merge. Comes in item order, each item once.
    Deliver {
        /// The item.
        work: WorkId,
        /// Its leaf.
        leaf: LeafId,
        /// The attempt whose verified bytes count.
        attempt: Attempt,
    },
    /// The query is over. The last thing ever said of it.
    End {
        /// Which query.
        query: QueryId,
        /// How it ended.
        outcome: Outcome,
    },
    /// The query waits because no worker is there; the client may be told.
    AwaitScaleUp {
        /// Which query.
        query: QueryId,
    },
}

/// How a query ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Every item was delivered.
    Complete,
    /// The client wanted it no more.
    Cancelled,
    /// It was not taken in.
    Refused(Refusal),
    /// It can't be answered.
    Failed(QueryFailure),
}

/// Why a query was not taken in.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, thiserror::Error,
)]
pub enum Refusal {
    /// There are too many queries.
    #[error("{limit} queries are running already")]
    TooManyQueries {
        /// The limit that was reached.
        limit: u32,
    },
    /// The tenant has too many queries.
    #[error("{limit} queries of this tenant are running already")]
    TooManyTenantQueries {
        /// The limit that was reached.
        limit: u32,
    },
    /// The queue has no room for its items.
    #[error("the queue holds {queued} of {limit} work items; {needed} more do not fit")]
    QueueFull {
        /// The limit that would be passed.
        limit: u32,
        /// Items in the queue.
        queued: u32,
        /// Items the query has.
        needed: u32,
    },
    /// The query alone has more items than any query may have.
    #[error("the query needs {needed} work items; {limit} are allowed")]
    TooManyItems {
        /// The limit.
        limit: u32,
        /// Items the query has.
        needed: u32,
    },
    /// A query of this name is running, or not quite gone.
    #[error("a query of this name is running already")]
    DuplicateQuery,
}

/// Why a query can't be answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum QueryFailure {
    /// Its time was up.
    #[error("deadline exceeded with {done} of {total} work items done")]
    Deadline {
        /// Items done.
        done: u32,
        /// Items in all.
        total: u32,
        /// No worker was there when the time was up.
        no_workers: bool,
    },
    /// A worker says that no retry can help.
    #[error("work {work} failed: {message}")]
    WorkFailed {
        /// The item.
        work: WorkId,
        /// What kind of failure.
        code: FailureCode,
        /// The worker's sentence.
        message: String,
    },
    /// An item was tried as often as is allowed.
    #[error("work {work} failed {attempts} times; last: {last}")]
    AttemptsExhausted {
        /// The item.
        work: WorkId,
        /// How often it was tried.
        attempts: u32,
        /// What ended the last attempt.
        last: String,
    },
    /// An item was running on several workers when they died.
    #[error("work {work} was running on {workers} workers when they died")]
    Poisonous {
        /// The item.
        work: WorkId,
        /// How many different workers.
        workers: u32,
    },
    /// An artifact is larger than is allowed.
    #[error("the artifact of work {work} has {size_bytes} bytes; {limit_bytes} are allowed")]
    ArtifactTooLarge {
        /// The item.
        work: WorkId,
        /// Announced size.
        size_bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
}

/// Why the coordinator ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CloseReason {
    /// The stream did not open in time.
    DialTimeout,
    /// No `Welcome` came in time.
    WelcomeTimeout,
    /// Nothing was heard for too long.
    Silent,
    /// An assignment or a cancellation was not answered in time.
    Unanswered,
    /// The worker broke the protocol.
    Violation(Violation),
    /// A worker of that name has a stream already.
    DuplicateWorker,
    /// The worker says it can't go on.
    NotAlive,
    /// Discovery names the worker no more and nothing of ours is left on it.
    Retired,
}

/// How a peer broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Violation {
    /// Bytes that are no message.
    Malformed,
    /// A message before the introduction.
    NotIntroduced,
    /// A second introduction.
    IntroducedTwice,
    /// A protocol version we do not speak.
    Version,
    /// A message that can't follow what was said about the work before.
    OutOfOrder,
    /// An artifact announced at a URL that is not the worker's own.
    ForeignUrl,
}
