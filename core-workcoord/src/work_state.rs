//! One work item on one line of attempts: its states, its events, and the one step function that
//! decides every pair of them. What follows from a step (requeue, fetch, cancel) is the
//! coordinator's to do.

use crate::artifact::{Artifact, Checksum};
use crate::id::{Attempt, SessionId};
use crate::moment::Moment;

/// Where an attempt is: which session, which number, since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The session it was assigned to.
    pub on: SessionId,
    /// The number of the attempt.
    pub attempt: Attempt,
    /// When it was assigned.
    pub since: Moment,
}

/// Who answers, and for which attempt. Only an answer from the present place counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct From {
    /// The session the answer came on.
    pub session: SessionId,
    /// The attempt it speaks of.
    pub attempt: Attempt,
}

/// The states of a work item.
///
/// ```text
/// Queued → Assigned → Accepted → Running → Ready → Fetching → Done
/// ```
///
/// - `Assigned → Queued`: rejected; costs no attempt.
/// - `Assigned`, `Accepted → Queued`: the worker drains before the work ran.
/// - any of the middle five `→ Queued`: the session was lost.
/// - `Accepted → Ready`: answered from an artifact the worker still had.
/// - `Accepted`, `Running → Queued` or `Failed`: a failure, by whether a retry may help.
/// - `Ready`, `Fetching → Queued`: the artifact is gone, unreachable or wrong.
/// - any but a final one `→ Cancelled` or `Failed`: the query ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkState {
    /// Waits for a worker.
    Queued,
    /// Sent to a worker that has not answered.
    Assigned(Place),
    /// In a worker's hands.
    Accepted(Place),
    /// Running there.
    Running(Place),
    /// The artifact waits to be fetched.
    Ready(Place, Box<Artifact>),
    /// The artifact is being fetched.
    Fetching(Place, Box<Artifact>),
    /// Fetched and verified. Final.
    Done(Attempt, Checksum),
    /// Can't be done. Final.
    Failed,
    /// Not wanted any more. Final.
    Cancelled,
}

/// What can happen to a work item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkEvent {
    /// The coordinator chose a worker.
    Assign(Place),
    /// The worker took it.
    Accepted(From),
    /// The worker runs it.
    Started(From),
    /// The worker did not take it.
    Rejected(From),
    /// The worker made its artifact.
    Ready(From, Box<Artifact>),
    /// The worker failed at it.
    Failed {
        /// Who says so.
        from: From,
        /// Another attempt may succeed.
        retryable: bool,
    },
    /// The artifact went before it was acknowledged.
    ArtifactLost(From),
    /// The coordinator has room for its fetch.
    FetchStarted,
    /// The artifact was fetched and verified.
    Fetched(From),
    /// The artifact could not be had, or was wrong.
    FetchFailed(From),
    /// A session is over.
    SessionLost(SessionId),
    /// A session's worker is leaving.
    Draining(SessionId),
    /// The query does not want it any more, or another line was first.
    Cancel,
    /// The query can't be answered.
    GiveUp,
}

/// What an event comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The item moves.
    To(WorkState),
    /// The event is about something that is over: an ordinary thing, to be counted.
    Late(WorkState),
    /// The present session says what can't follow: it broke the protocol. The item stays.
    Violation(WorkState),
}

impl WorkState {
    /// Where the present attempt is, if there is one.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Assigned(place)
            | Self::Accepted(place)
            | Self::Running(place)
            | Self::Ready(place, _)
            | Self::Fetching(place, _) => Some(*place),
            Self::Queued | Self::Done(..) | Self::Failed | Self::Cancelled => None,
        }
    }

    /// Whether the item takes up room on its worker: slots and the local queue.
    pub fn occupies(&self) -> bool {
        matches!(self, Self::Assigned(_) | Self::Accepted(_) | Self::Running(_))
    }

    /// Whether the worker has it but has not started it.
    pub fn is_unstarted(&self) -> bool {
        matches!(self, Self::Assigned(_) | Self::Accepted(_))
    }

    /// Whether nothing can happen to it any more.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Done(..) | Self::Failed | Self::Cancelled)
    }

    /// Whether an answer comes from where the item is now.
    fn answers(&self, from: From) -> bool {
        self.place().is_some_and(|place| (place.on, place.attempt) == (from.session, from.attempt))
    }

    /// Decides every pair of state and event.
    pub fn step(self, event: WorkEvent) -> Step {
        use Step::{Late, To, Violation};
        use WorkEvent as E;
        use WorkState as S;
        match (self, event) {
            // Nothing moves what is final.
            (state @ (S::Done(..) | S::Failed | S::Cancelled), _) => Late(state),

            // The query's end reaches every state that is not final.
            (_, E::Cancel) => To(S::Cancelled),
            (_, E::GiveUp) => To(S::Failed),

            (S::Queued, E::Assign(place)) => To(S::Assigned(place)),
            (state, E::Assign(_)) => Late(state),

            // A lost session gives back everything not yet fetched and verified.
            (state, E::SessionLost(lost)) => match state.place() {
                Some(place) if place.on == lost => To(S::Queued),
                Some(_) | None => Late(state),
            },
            // A leaving worker gives back what it has not started, and finishes the rest.
            (S::Assigned(place) | S::Accepted(place), E::Draining(leaving))
                if place.on == leaving =>
            {
                To(S::Queued)
            }
            (state, E::Draining(_)) => Late(state),

            // The worker's answers count only from where the item is now.
            (
                state,
                E::Accepted(from)
                | E::Started(from)
                | E::Rejected(from)
                | E::Ready(from, _)
                | E::Failed { from, .. }
                | E::ArtifactLost(from)
                | E::Fetched(from)
                | E::FetchFailed(from),
            ) if !state.answers(from) => Late(state),

            (S::Assigned(place), E::Accepted(_)) => To(S::Accepted(place)),
            (S::Assigned(_), E::Rejected(_)) => To(S::Queued),

            (S::Accepted(place), E::Started(_)) => To(S::Running(place)),
            (S::Accepted(place) | S::Running(place), E::Ready(_, artifact)) => {
                To(S::Ready(place, artifact))
            }
            (S::Accepted(_) | S::Running(_), E::Failed { retryable: true, .. }) => To(S::Queued),
            (S::Accepted(_) | S::Running(_), E::Failed { retryable: false, .. }) => To(S::Failed),

            (S::Ready(place, artifact), E::FetchStarted) => To(S::Fetching(place, artifact)),
            (S::Ready(..) | S::Fetching(..), E::ArtifactLost(_)) => To(S::Queued),
            (S::Fetching(place, artifact), E::Fetched(_)) => {
                To(S::Done(place.attempt, artifact.checksum))
            }
            (S::Fetching(..), E::FetchFailed(_)) => To(S::Queued),

            // Our own fetcher can be late without anybody having done wrong.
            (state, E::FetchStarted | E::Fetched(_) | E::FetchFailed(_)) => Late(state),

            // The present session said what can't follow. A stream keeps order and repeats
            // nothing, so this is no accident of the network.
            (
                state,
                E::Accepted(_)
                | E::Started(_)
                | E::Rejected(_)
                | E::Ready(..)
                | E::Failed { .. }
                | E::ArtifactLost(_),
            ) => Violation(state),
        }
    }
}
