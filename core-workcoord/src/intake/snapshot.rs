//! The intake at one moment and what it has counted, in plain figures for metrics and pages.

use std::time::Duration;

use super::{Intake, RunState};
use crate::coordinator::counts;
use crate::id::{ApiId, SessionId};
use crate::measure::Histogram;
use crate::message::WorkerStatus;
use crate::moment::Moment;

counts! {
    /// What happened so far, in numbers.
    Counts {
        /// Streams opened.
        streams,
        /// Streams refused.
        streams_refused,
        /// Streams that ended, for any reason.
        streams_ended,
        /// Sessions lost for silence.
        lost_silent,
        /// Sessions closed because the API node broke the protocol.
        violations,
        /// Messages and answers about what is over.
        late,
        /// Work taken.
        accepted,
        /// Work not taken.
        rejected,
        /// Runs started.
        started,
        /// Runs that made an artifact.
        finished,
        /// Runs that failed.
        failed,
        /// Runs that were told to stop and did.
        stopped,
        /// Runs told to stop because their session was gone.
        orphans_stopped,
        /// Runs whose time was up.
        out_of_time,
        /// Cancellations received.
        cancels,
        /// Artifacts acknowledged.
        acknowledged,
        /// Artifacts that expired.
        expired,
        /// Artifacts evicted for want of disk.
        evicted,
        /// Artifacts told to be deleted.
        deleted,
    }
}

/// How long things took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From accepted to started.
    pub queue_wait: Histogram,
    /// From started to its artifact.
    pub run: Histogram,
    /// From told to stop to stopped.
    pub stop: Histogram,
}

/// Everything section 11 of the design asks to be seen of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// What it tells API nodes of itself.
    pub status: WorkerStatus,
    /// Runs told to stop that have not.
    pub stopping: u32,
    /// Artifacts not yet acknowledged.
    pub unacknowledged: u32,
    /// Artifacts acknowledged and still kept.
    pub acknowledged: u32,
    /// Streams, by session.
    pub sessions: Vec<SessionView>,
}

/// One API node's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// The worker's number for it.
    pub session: SessionId,
    /// Who it is, once introduced.
    pub api: Option<ApiId>,
    /// Runs that wait for a slot.
    pub queued: u32,
    /// Everything it owns: runs and artifacts.
    pub owned: u32,
    /// How long nothing was heard of it.
    pub silent_for: Duration,
}

impl Intake {
    /// Everything there is to see now.
    pub fn snapshot(&self, now: Moment) -> Snapshot {
        let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let count = |is: fn(&RunState) -> bool| {
            small(self.runs.values().filter(|run| is(&run.state)).count())
        };
        let sessions = self.sessions.iter().map(|(id, session)| SessionView {
            session: *id,
            api: session.peer.as_ref().map(|(api, _)| api.clone()),
            queued: small(session.queue.len()),
            owned: small(session.owned.len()),
            silent_for: now.since(session.pulse.last_heard()),
        });
        Snapshot {
            status: self.status(),
            stopping: count(|state| matches!(state, RunState::Stopping { .. })),
            unacknowledged: count(|state| matches!(state, RunState::Ready { .. })),
            acknowledged: count(|state| matches!(state, RunState::Acked)),
            sessions: sessions.collect(),
        }
    }
}
