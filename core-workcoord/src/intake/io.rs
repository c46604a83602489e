//! What the worker's intake is told (`Input`) and what it wants done (`Action`).

use serde::{Deserialize, Serialize};

use crate::artifact::Artifact;
use crate::coordinator::Violation;
use crate::id::{RunId, SessionId};
use crate::message::{ApiMessage, AssignWork, Failure, WorkerMessage};

/// Something that happened. Every input comes with the moment it is handled.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// An API node opened a stream; nothing was said on it yet.
    StreamOpened {
        /// The worker's own number for it, new with every stream.
        session: SessionId,
        /// Opens this session's artifacts; drawn by the driver.
        token: String,
    },
    /// A message arrived, in the order the API node sent it.
    Message {
        /// The session it arrived on.
        session: SessionId,
        /// What it says.
        message: ApiMessage,
    },
    /// Bytes arrived that are no message.
    Malformed {
        /// The session they arrived on.
        session: SessionId,
    },
    /// The stream broke.
    StreamClosed {
        /// The session that is over.
        session: SessionId,
    },
    /// A run committed its artifact to disk.
    RunFinished {
        /// Which run.
        run: RunId,
        /// The committed artifact.
        artifact: Box<Artifact>,
    },
    /// A run ended without an artifact.
    RunFailed {
        /// Which run.
        run: RunId,
        /// What went wrong.
        failure: Failure,
    },
    /// A run that was told to stop did, and left nothing on disk.
    RunStopped {
        /// Which run.
        run: RunId,
    },
    /// The disk manager removed an artifact to make room.
    ArtifactEvicted {
        /// The run that made it.
        run: RunId,
    },
    /// How the disk is.
    Disk(DiskReport),
    /// Leave: no new work, finish what runs, go.
    Drain,
    /// Time passes. To be given when `poll_timeout` is due.
    Tick,
}

impl std::fmt::Debug for Input {
    /// Leaves the token out: what is printed may be logged.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::StreamOpened { session, .. } => write!(f, "StreamOpened {{ {session} }}"),
            Self::Message { session, message } => write!(f, "Message {{ {session}, {message:?} }}"),
            Self::Malformed { session } => write!(f, "Malformed {{ {session} }}"),
            Self::StreamClosed { session } => write!(f, "StreamClosed {{ {session} }}"),
            Self::RunFinished { run, artifact } => {
                write!(f, "RunFinished {{ {run}, {:?} }}", artifact.checksum)
            }
            Self::RunFailed { run, failure } => write!(f, "RunFailed {{ {run}, {failure:?} }}"),
            Self::RunStopped { run } => write!(f, "RunStopped {{ {run} }}"),
            Self::ArtifactEvicted { run } => write!(f, "ArtifactEvicted {{ {run} }}"),
            Self::Disk(report) => write!(f, "{report:?}"),
            Self::Drain => f.write_str("Drain"),
            Self::Tick => f.write_str("Tick"),
        }
    }
}

/// How the worker's disk is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskReport {
    /// There is room for the artifacts of new work.
    pub room: bool,
    /// Disk used by artifacts.
    pub spool_bytes: u64,
    /// Disk used by cached segments.
    pub cache_bytes: u64,
    /// Disk free.
    pub free_bytes: u64,
}

/// Something to do. Actions are to be carried out in the order they are polled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Send a message. A full queue waits or closes the stream; nothing is ever dropped.
    Send {
        /// On this session.
        session: SessionId,
        /// What to say.
        message: WorkerMessage,
    },
    /// End a stream. The session is over for the intake already.
    Close {
        /// The session to end.
        session: SessionId,
        /// Why.
        reason: CloseReason,
    },
    /// Run this work. Answered by `RunFinished`, `RunFailed` or, after a `Stop`, `RunStopped`.
    Start {
        /// The new run.
        run: RunId,
        /// Whose it is.
        session: SessionId,
        /// What to do.
        work: Box<AssignWork>,
    },
    /// Stop a run. It holds its slot until it says that it ended.
    Stop {
        /// Which run.
        run: RunId,
    },
    /// Remove a run's artifact from disk.
    Delete {
        /// The run that made it.
        run: RunId,
    },
    /// Drained, or the time for it is up: the process may end.
    Exit {
        /// Nothing was cut short.
        clean: bool,
    },
}

/// Why the intake ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CloseReason {
    /// There are too many streams.
    TooManySessions,
    /// No `Hello` came in time.
    HelloTimeout,
    /// Nothing was heard for too long.
    Silent,
    /// The API node broke the protocol.
    Violation(Violation),
    /// The same API node opened a newer stream.
    Superseded,
    /// The worker has drained.
    Drained,
}
