//! Streams from API nodes: introductions, heartbeats, status, and the end, which cancels exactly
//! what the session owned.

use std::collections::{BTreeSet, VecDeque};

use super::{Action, CloseReason, Intake, Leaving, RunState, Timer, Violation};
use crate::heartbeat::{Pulse, Verdict};
use crate::id::{ApiId, RunId, SessionId};
use crate::message::{ApiMessage, Hello, PROTOCOL_VERSION, Welcome, WorkerMessage, WorkerStatus};
use crate::moment::Moment;
use crate::sabotage::Bug;

/// One API node's stream.
#[derive(Clone, Debug)]
pub(super) struct ApiSession {
    /// Who it is and the number it gave this stream; `None` until it introduced itself.
    pub(super) peer: Option<(ApiId, SessionId)>,
    token: String,
    pub(super) pulse: Pulse,
    pub(super) wake_at: Moment,
    /// Runs that wait for a slot.
    pub(super) queue: VecDeque<RunId>,
    /// Everything it owns.
    pub(super) owned: BTreeSet<RunId>,
    pub(super) told: Option<WorkerStatus>,
    /// It was refused and not told since that there is room.
    pub(super) refused: bool,
}

impl Intake {
    pub(super) fn opened(&mut self, id: SessionId, token: String) {
        let full = self.sessions.len() >= self.config.max_sessions as usize;
        if full || self.leaving == Leaving::Gone || self.sessions.contains_key(&id) {
            self.counts.streams_refused += 1;
            let drained = self.leaving == Leaving::Gone;
            let reason = if drained { CloseReason::Drained } else { CloseReason::TooManySessions };
            return self.act(Action::Close { session: id, reason });
        }
        self.counts.streams += 1;
        let wake_at = self.now + self.config.hello_timeout;
        let (interval, timeout) = (self.config.heartbeat_interval, self.config.heartbeat_timeout);
        let session = ApiSession {
            peer: None,
            token,
            pulse: Pulse::new(self.now, interval, timeout),
            wake_at,
            queue: VecDeque::new(),
            owned: BTreeSet::new(),
            told: None,
            refused: false,
        };
        self.sessions.insert(id, session);
        self.timers.arm(wake_at, Timer::Session(id));
    }

    pub(super) fn message(&mut self, id: SessionId, message: ApiMessage) {
        let Some(session) = self.sessions.get_mut(&id) else {
            self.counts.late += 1;
            return;
        };
        session.pulse.heard(self.now);
        match (&session.peer, message) {
            (None, ApiMessage::Hello(hello)) => self.hello(id, hello),
            (None, _) => self.violation(id, Violation::NotIntroduced),
            (Some(_), ApiMessage::Hello(_)) => self.violation(id, Violation::IntroducedTwice),
            (Some(_), ApiMessage::AssignWork(work)) => self.assigned(id, work),
            (Some(_), ApiMessage::CancelWork(cancel)) => self.cancelled(id, &cancel),
            (Some(_), ApiMessage::ArtifactAck(ack)) => self.acknowledged(id, &ack),
            (Some(_), ApiMessage::Heartbeat(beat)) => {
                // Answered at once, so that the echo measures the way and not our interval.
                session.pulse.heard_beat(self.now, beat);
                let answer = session.pulse.beat(self.now);
                self.send(id, WorkerMessage::Heartbeat(answer));
                self.tell_if_changed(id);
            }
        }
    }

    fn hello(&mut self, id: SessionId, hello: Hello) {
        if hello.protocol_version != PROTOCOL_VERSION {
            return self.violation(id, Violation::Version);
        }
        if let Some(older) = self.apis.get(&hello.api_id).copied() {
            let older_number = self.sessions[&older].peer.as_ref().map(|(_, number)| *number);
            if older_number >= Some(hello.session_id) {
                return self.violation(id, Violation::OutOfOrder);
            }
            // The API node dials again only when the older stream is over for it.
            self.lose(older, Some(CloseReason::Superseded));
        }
        self.apis.insert(hello.api_id.clone(), id);
        let session = self.sessions.get_mut(&id).expect("the caller found it");
        session.peer = Some((hello.api_id, hello.session_id));
        let welcome = Welcome {
            worker_id: self.identity.worker_id.clone(),
            version: self.identity.version.clone(),
            slots: self.config.slots,
            artifact_base_url: self.identity.artifact_base_url.clone(),
            artifact_token: session.token.clone(),
        };
        let wake_at = session.pulse.wake_at();
        self.wake_session_at(id, wake_at);
        self.send(id, WorkerMessage::Welcome(welcome));
        self.tell(id);
    }

    fn wake_session_at(&mut self, id: SessionId, at: Moment) {
        let session = self.sessions.get_mut(&id).expect("the caller found it");
        let before = std::mem::replace(&mut session.wake_at, at);
        self.timers.disarm(before, Timer::Session(id));
        self.timers.arm(at, Timer::Session(id));
    }

    /// A session's timer is due.
    pub(super) fn wake(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.peer.is_none() {
            return self.lose(id, Some(CloseReason::HelloTimeout));
        }
        match session.pulse.tick(self.now) {
            Verdict::Lost => {
                self.counts.lost_silent += 1;
                return self.lose(id, Some(CloseReason::Silent));
            }
            Verdict::Beat(beat) => {
                self.send(id, WorkerMessage::Heartbeat(beat));
                self.tell_if_changed(id);
            }
            Verdict::Quiet => {}
        }
        let wake_at = self.sessions[&id].pulse.wake_at();
        self.wake_session_at(id, wake_at);
    }

    pub(super) fn violation(&mut self, id: SessionId, violation: Violation) {
        if self.sessions.contains_key(&id) {
            self.counts.violations += 1;
            self.lose(id, Some(CloseReason::Violation(violation)));
        } else {
            self.counts.late += 1;
        }
    }

    /// A session is over. Everything it owned is stopped or deleted, and nothing else is.
    pub(super) fn lose(&mut self, id: SessionId, close: Option<CloseReason>) {
        let Some(session) = self.sessions.remove(&id) else {
            self.counts.late += 1;
            return;
        };
        self.counts.streams_ended += 1;
        self.timers.disarm(session.wake_at, Timer::Session(id));
        if let Some((api, _)) = &session.peer {
            self.apis.remove(api);
        }
        if let Some(reason) = close {
            self.act(Action::Close { session: id, reason });
        }
        self.queued -= u32::try_from(session.queue.len()).expect("the queue is limited");
        for run in session.owned {
            self.disown(run);
        }
        if self.sabotage.has(Bug::CancelTooMuch) {
            let others: Vec<_> = self.runs.keys().copied().collect();
            others.into_iter().for_each(|run| self.stop_anything(run));
        }
    }

    /// A deliberate bug: a run of somebody else is stopped, too.
    fn stop_anything(&mut self, id: RunId) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        if matches!(run.state, RunState::Running) {
            run.state = RunState::Stopping { since: self.now, confirm: false };
            self.act(Action::Stop { run: id });
        }
    }

    /// How the worker is now.
    pub(super) fn status(&self) -> WorkerStatus {
        WorkerStatus {
            alive: self.leaving != Leaving::Gone,
            accepting_work: self.accepts(),
            draining: self.leaving != Leaving::No,
            queued: self.queued,
            running: self.running,
            slots: self.config.slots,
            spool_bytes: self.disk.spool_bytes,
            cache_bytes: self.disk.cache_bytes,
            free_bytes: self.disk.free_bytes,
        }
    }

    /// Tells one API node how the worker is.
    fn tell(&mut self, id: SessionId) {
        let status = self.status();
        if let Some(session) = self.sessions.get_mut(&id)
            && session.peer.is_some()
        {
            session.told = Some(status);
            session.refused = false;
            self.send(id, WorkerMessage::Status(status));
        }
    }

    fn tell_if_changed(&mut self, id: SessionId) {
        let status = self.status();
        // One that was refused hears when there is room, not before.
        let quiet = |session: &ApiSession| session.told == Some(status) || session.refused;
        if self.sessions.get(&id).is_some_and(|session| !quiet(session)) {
            self.tell(id);
        }
    }

    /// Tells every API node: whether work is welcome has changed.
    pub(super) fn tell_everybody(&mut self) {
        let sessions: Vec<_> = self.sessions.keys().copied().collect();
        for session in sessions {
            self.tell(session);
        }
    }

    /// Tells those that were refused as soon as there is room again.
    pub(super) fn tell_the_refused(&mut self) {
        if !self.has_room() || !self.accepts() {
            return;
        }
        let refused = self.sessions.iter().filter(|(_, session)| session.refused);
        let refused: Vec<_> = refused.map(|(id, _)| *id).collect();
        for session in refused {
            self.tell(session);
        }
    }
}
