//! What an API node and a worker say to each other on the control stream. Domain types only:
//! `proto` turns bytes into these and refuses what can't be one.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::artifact::{Artifact, Checksum};
use crate::id::{
    AffinityKey, ApiId, Attempt, LeafId, QueryId, SessionId, TenantId, WorkId, WorkerId,
};

/// The version of the control protocol this crate speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// From an API node to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApiMessage {
    /// First on every stream.
    Hello(Hello),
    /// Please do this.
    AssignWork(AssignWork),
    /// Stop this, wherever it is, and drop its artifact. Always answered by `WorkCancelled`.
    CancelWork(CancelWork),
    /// The artifact was fetched and verified, or is not wanted: it may go.
    ArtifactAck(ArtifactAck),
    /// I am here.
    Heartbeat(Heartbeat),
}

/// From a worker to an API node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerMessage {
    /// First on every stream, in answer to `Hello`.
    Welcome(Welcome),
    /// I am here.
    Heartbeat(Heartbeat),
    /// How the worker is; sent when it changed.
    Status(WorkerStatus),
    /// The work is in the worker's hands.
    Accepted(WorkRef),
    /// The work is running.
    Started(WorkRef),
    /// The work is not taken; costs no attempt.
    Rejected(WorkRejected),
    /// The artifact can be fetched.
    Ready(WorkReady),
    /// The work ended without an artifact.
    Failed(WorkFailed),
    /// A `CancelWork` took effect: nothing of that attempt runs or is kept.
    Cancelled(WorkRef),
    /// The artifact is gone before it was acknowledged.
    ArtifactLost(WorkRef),
}

/// The API node introduces itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// One life of the API node.
    pub api_id: ApiId,
    /// Its number for this stream; grows with every dial.
    pub session_id: SessionId,
    /// Must be [`PROTOCOL_VERSION`].
    pub protocol_version: u32,
}

/// One attempt at a work item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignWork {
    /// The query, for logs and traces.
    pub query_id: QueryId,
    /// The leaf the item is part of.
    pub leaf_id: LeafId,
    /// The item.
    pub work_id: WorkId,
    /// Tells the answers of this assignment from those of others.
    pub attempt: Attempt,
    /// What the placement was by.
    pub affinity_key: AffinityKey,
    /// Whose data it reads.
    pub tenant: TenantId,
    /// Time left from the moment of receipt; no two clocks need to agree.
    pub deadline: Duration,
    /// W3C trace context, or empty.
    pub traceparent: String,
    /// What to do; opaque here.
    pub spec: Bytes,
}

/// Stop an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelWork {
    /// The item.
    pub work_id: WorkId,
    /// The attempt to stop.
    pub attempt: Attempt,
    /// Why, for the worker's log.
    pub reason: CancelReason,
}

/// Why an attempt is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CancelReason {
    /// The client went away or asked for it.
    ClientGone,
    /// The query failed for another reason.
    QueryFailed,
    /// The query's time was up.
    Deadline,
    /// The worker is draining and had not started it.
    Draining,
    /// Another attempt was faster.
    Superseded,
    /// The artifact could not be fetched or was wrong.
    ArtifactUnusable,
}

/// The artifact may go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactAck {
    /// The item.
    pub work_id: WorkId,
    /// The artifact's checksum.
    pub checksum: Checksum,
}

/// A sign of life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Counts the sender's heartbeats on this stream.
    pub seq: u64,
    /// The sender's wall clock, for people; filled in by the driver, no decision rests on it.
    pub sent_unix_nanos: u64,
    /// The last `seq` heard from the other side; zero if none.
    pub echo_seq: u64,
}

/// The worker introduces itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Its stable name.
    pub worker_id: WorkerId,
    /// Its build.
    pub version: String,
    /// How many items it runs at once.
    pub slots: u32,
    /// Where its artifacts are; announced URLs must begin with it.
    pub artifact_base_url: String,
    /// Opens this session's artifacts and no others.
    pub artifact_token: String,
}

impl std::fmt::Debug for Welcome {
    /// Leaves the token out: what is printed may be logged.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Welcome")
            .field("worker_id", &self.worker_id)
            .field("version", &self.version)
            .field("slots", &self.slots)
            .field("artifact_base_url", &self.artifact_base_url)
            .finish_non_exhaustive()
    }
}

/// How a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// False when the worker knows it can't go on.
    pub alive: bool,
    /// New work is welcome.
    pub accepting_work: bool,
    /// The worker is leaving.
    pub draining: bool,
    /// Items accepted and waiting, of all sessions.
    pub queued: u32,
    /// Items running, of all sessions.
    pub running: u32,
    /// Items it can run at once.
    pub slots: u32,
    /// Disk used by artifacts.
    pub spool_bytes: u64,
    /// Disk used by cached segments.
    pub cache_bytes: u64,
    /// Disk free.
    pub free_bytes: u64,
}

/// Which attempt a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WorkRef {
    /// The item.
    pub work_id: WorkId,
    /// The attempt.
    pub attempt: Attempt,
}

/// The work is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkRejected {
    /// Which attempt.
    pub work: WorkRef,
    /// Why.
    pub reason: RejectReason,
}

/// Why a worker does not take work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RejectReason {
    /// Slots and local queue are full.
    Full,
    /// The worker is leaving.
    Draining,
    /// The worker takes no work, for want of disk or otherwise.
    NotAccepting,
}

/// The artifact can be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkReady {
    /// Which attempt.
    pub work: WorkRef,
    /// What to fetch.
    pub artifact: Artifact,
}

/// The work ended without an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkFailed {
    /// Which attempt.
    pub work: WorkRef,
    /// What went wrong.
    pub failure: Failure,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure.
    pub code: FailureCode,
    /// Another worker, or another time, may succeed.
    pub retryable: bool,
    /// A sentence for the user.
    pub message: String,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FailureCode {
    /// The spec can't be read.
    BadSpec,
    /// A segment is not where the catalog says.
    SegmentMissing,
    /// A segment's bytes are wrong.
    SegmentCorrupt,
    /// The object store did not answer.
    StoreUnavailable,
    /// A limit on series, samples, bytes or memory was reached.
    LimitExceeded,
    /// The disk is full.
    DiskFull,
    /// The time given with the work was up.
    Deadline,
    /// Anything else that went wrong inside the worker.
    Internal,
}
