//! Sessions: dialling, introductions, heartbeats, status, loss and redial, and which message is
//! about what. What a message does to a work item is in `work`.

use super::work::GiveBack;
use super::{Action, CloseReason, Coordinator, Timer, Violation};
use crate::heartbeat::{Pulse, Verdict};
use crate::id::{Endpoint, SessionId};
use crate::message::{
    ApiMessage, Heartbeat, Hello, PROTOCOL_VERSION, Welcome, WorkRef, WorkerMessage, WorkerStatus,
};
use crate::reconnect;
use crate::roster::{Live, Phase, Session};
use crate::sabotage::Bug;
use crate::work_state::{From, WorkEvent, WorkState};

impl Coordinator {
    pub(super) fn discovered(&mut self, endpoint: &Endpoint) {
        let post = self.roster.post_mut(endpoint);
        if post.listed {
            return;
        }
        post.listed = true;
        match post.session {
            Some(session) => self.set_listed(session, true),
            None => self.dial(endpoint),
        }
    }

    pub(super) fn gone(&mut self, endpoint: &Endpoint) {
        let Some(post) = self.roster.post(endpoint) else { return };
        if !post.listed {
            return;
        }
        let (session, redial_at) = (post.session, post.redial_at);
        self.roster.post_mut(endpoint).listed = false;
        if let Some(at) = redial_at {
            self.timers.disarm(at, Timer::Redial(endpoint.clone()));
        }
        let Some(session) = session else { return self.roster.forget_post(endpoint) };
        self.set_listed(session, false);
        if self.roster.live(session).is_some() {
            // Its stream stays until its work is fetched.
            self.maybe_retired.push(session);
        } else {
            self.lose(session, Some(CloseReason::Retired));
        }
    }

    fn set_listed(&mut self, session: SessionId, listed: bool) {
        if let Some(record) = self.roster.session_mut(session) {
            record.listed = listed;
        }
        self.refresh(session);
    }

    /// Brings the rotation up to date, and notes when the last worker leaves it or the first comes.
    pub(super) fn refresh(&mut self, session: SessionId) {
        self.roster.refresh(session);
        self.note_rotation();
    }

    fn note_rotation(&mut self) {
        let nobody = self.roster.rotation().is_empty();
        // Odd episodes are those in which nobody is in rotation.
        if nobody != (self.scale_up_episode % 2 == 1) {
            self.scale_up_episode += 1;
            self.scale_up_check |= nobody;
        }
    }

    /// Closes the streams of workers that discovery names no more, once nothing of ours is there.
    pub(super) fn retire_idle(&mut self) {
        while let Some(id) = self.maybe_retired.pop() {
            let idle = self.roster.session(id).is_some_and(|session| {
                !session.listed && session.live().is_some_and(Live::is_idle)
            });
            if idle {
                self.lose(id, Some(CloseReason::Retired));
            }
        }
    }

    fn dial(&mut self, endpoint: &Endpoint) {
        let id = SessionId(self.next_session);
        self.next_session += 1;
        let post = self.roster.post_mut(endpoint);
        post.session = Some(id);
        post.redial_at = None;
        let wake_at = self.now + self.config.dial_timeout;
        let phase = Phase::Dialing;
        self.roster.add(id, Session { endpoint: endpoint.clone(), wake_at, listed: true, phase });
        self.timers.arm(wake_at, Timer::Session(id));
        self.counts.dials += 1;
        self.act(Action::Dial { session: id, endpoint: endpoint.clone() });
    }

    pub(super) fn redial(&mut self, endpoint: &Endpoint) {
        let due = self
            .roster
            .post(endpoint)
            .is_some_and(|post| post.listed && post.session.is_none() && post.redial_at.is_some());
        if due {
            self.dial(endpoint);
        }
    }

    pub(super) fn opened(&mut self, id: SessionId) {
        let wake_at = self.now + self.config.welcome_timeout;
        match self.roster.session_mut(id) {
            Some(session) if matches!(session.phase, Phase::Dialing) => {
                session.phase = Phase::Opened;
                self.wake_session_at(id, wake_at);
                let hello = Hello {
                    api_id: self.api_id.clone(),
                    session_id: id,
                    protocol_version: PROTOCOL_VERSION,
                };
                self.send(id, ApiMessage::Hello(hello));
            }
            Some(_) | None => self.counts.late += 1,
        }
    }

    fn wake_session_at(&mut self, id: SessionId, at: crate::moment::Moment) {
        if let Some(session) = self.roster.session_mut(id) {
            let before = std::mem::replace(&mut session.wake_at, at);
            self.timers.disarm(before, Timer::Session(id));
            self.timers.arm(at, Timer::Session(id));
        }
    }

    /// A session's timer is due.
    pub(super) fn wake(&mut self, id: SessionId) {
        let now = self.now;
        let Some(session) = self.roster.session_mut(id) else { return };
        let verdict = match &mut session.phase {
            Phase::Dialing => return self.lose(id, Some(CloseReason::DialTimeout)),
            Phase::Opened => return self.lose(id, Some(CloseReason::WelcomeTimeout)),
            Phase::Live(live) => match live.pulse.tick(now) {
                Verdict::Lost if self.sabotage.has(Bug::TrustSilence) => {
                    Verdict::Beat(live.pulse.beat(now))
                }
                verdict => verdict,
            },
        };
        match verdict {
            Verdict::Lost => {
                self.counts.lost_silent += 1;
                return self.lose(id, Some(CloseReason::Silent));
            }
            Verdict::Beat(beat) => {
                if self.owes_an_answer(id) {
                    self.counts.unanswered += 1;
                    return self.lose(id, Some(CloseReason::Unanswered));
                }
                self.send(id, ApiMessage::Heartbeat(beat));
            }
            Verdict::Quiet => {}
        }
        let mut wake_at = self.roster.live(id).expect("it is live").pulse.wake_at();
        if self.sabotage.has(Bug::TrustSilence) {
            wake_at = wake_at.max(now + self.config.heartbeat_interval);
        }
        self.wake_session_at(id, wake_at);
    }

    /// Whether an assignment or a cancellation has waited too long for its answer.
    fn owes_an_answer(&self, id: SessionId) -> bool {
        let Some(live) = self.roster.live(id) else { return false };
        let overdue = |since| self.now.since(since) >= self.config.answer_timeout;
        live.cancelling.values().any(|cancelling| overdue(cancelling.since))
            || live.lines.iter().any(|(work, attempt)| {
                self.ledger.work(*work).is_some_and(|record| {
                    record.lines().any(|state| {
                        matches!(state, WorkState::Assigned(place)
                            if place.on == id && place.attempt == *attempt && overdue(place.since))
                    })
                })
            })
    }

    pub(super) fn violation(&mut self, id: SessionId, violation: Violation) {
        if self.roster.session(id).is_some() {
            self.counts.violations += 1;
            self.lose(id, Some(CloseReason::Violation(violation)));
        } else {
            self.counts.late += 1;
        }
    }

    /// A session is over, by our decision or not. Everything not yet fetched goes elsewhere.
    pub(super) fn lose(&mut self, id: SessionId, close: Option<CloseReason>) {
        let Some(session) = self.roster.remove(id) else {
            self.counts.late += 1;
            return;
        };
        self.note_rotation();
        self.timers.disarm(session.wake_at, Timer::Session(id));
        if let Some(reason) = close {
            self.act(Action::Close { session: id, reason });
        }
        let listed = session.listed;
        let mut good = false;
        if let Phase::Live(live) = session.phase {
            self.counts.disconnects += 1;
            good = self.now.since(live.since) >= self.config.backoff_reset_after;
            if listed {
                self.roster.post_mut(&session.endpoint).away_since = Some(self.now);
            }
            if !self.sabotage.has(Bug::LoseLostWork) {
                self.give_back_all(id, &live);
            }
        }
        if listed {
            self.schedule_redial(&session.endpoint, good);
        } else {
            self.roster.forget_post(&session.endpoint);
        }
    }

    fn give_back_all(&mut self, id: SessionId, live: &Live) {
        for (work_id, attempt) in &live.lines {
            let work = WorkRef { work_id: *work_id, attempt: *attempt };
            let lost = GiveBack::SessionLost { node: live.node };
            self.step_line(id, work, WorkEvent::SessionLost(id), lost);
        }
    }

    fn schedule_redial(&mut self, endpoint: &Endpoint, good: bool) {
        if self.sabotage.has(Bug::ForgetRedial) {
            return;
        }
        let post = self.roster.post_mut(endpoint);
        post.failures = if good { 1 } else { post.failures.saturating_add(1) };
        let (base, max) = (self.config.backoff_base, self.config.backoff_max);
        let pause = reconnect::pause(self.seed, endpoint.as_str(), post.failures, base, max);
        let at = self.now + pause;
        post.redial_at = Some(at);
        self.timers.arm(at, Timer::Redial(endpoint.clone()));
    }

    pub(super) fn message(&mut self, id: SessionId, message: WorkerMessage) {
        let Some(session) = self.roster.session_mut(id) else {
            // An older session's answer is simply late.
            self.counts.late += 1;
            return;
        };
        match (&mut session.phase, message) {
            (Phase::Opened, WorkerMessage::Welcome(welcome)) => self.welcome(id, welcome),
            (Phase::Dialing | Phase::Opened, _) => self.violation(id, Violation::NotIntroduced),
            (Phase::Live(_), WorkerMessage::Welcome(_)) => {
                self.violation(id, Violation::IntroducedTwice);
            }
            (Phase::Live(live), message) => {
                live.pulse.heard(self.now);
                self.live_message(id, message);
            }
        }
    }

    fn live_message(&mut self, id: SessionId, message: WorkerMessage) {
        let from = |work: WorkRef| From { session: id, attempt: work.attempt };
        match message {
            WorkerMessage::Heartbeat(beat) => self.heartbeat(id, beat),
            WorkerMessage::Status(status) => self.status(id, status),
            WorkerMessage::Accepted(work) => {
                self.step_line(id, work, WorkEvent::Accepted(from(work)), GiveBack::Never);
            }
            WorkerMessage::Started(work) => {
                self.step_line(id, work, WorkEvent::Started(from(work)), GiveBack::Never);
            }
            WorkerMessage::Rejected(rejected) => {
                let event = WorkEvent::Rejected(from(rejected.work));
                self.step_line(id, rejected.work, event, GiveBack::Rejected);
                self.hold(id);
            }
            WorkerMessage::Ready(ready) => self.announced(id, ready),
            WorkerMessage::Failed(failed) => {
                let (work, failure) = (failed.work, failed.failure);
                let event = WorkEvent::Failed { from: from(work), retryable: failure.retryable };
                self.step_line(id, work, event, GiveBack::Failed(failure));
            }
            WorkerMessage::Cancelled(work) => self.cancel_confirmed(id, work),
            WorkerMessage::ArtifactLost(work) => {
                let event = WorkEvent::ArtifactLost(from(work));
                self.step_line(id, work, event, GiveBack::ArtifactLost);
            }
            WorkerMessage::Welcome(_) => self.violation(id, Violation::IntroducedTwice),
        }
    }

    fn welcome(&mut self, id: SessionId, welcome: Welcome) {
        if self.roster.session_of(&welcome.worker_id).is_some() {
            self.counts.duplicate_workers += 1;
            return self.lose(id, Some(CloseReason::DuplicateWorker));
        }
        let (interval, timeout) = (self.config.heartbeat_interval, self.config.heartbeat_timeout);
        let pulse = Pulse::new(self.now, interval, timeout);
        let wake_at = pulse.wake_at();
        let Welcome { worker_id, slots, artifact_base_url, .. } = welcome;
        let slots = slots.min(self.config.max_worker_slots);
        let live = Live::new(worker_id, slots, artifact_base_url, pulse, self.now);
        self.roster.introduce(id, live);
        self.wake_session_at(id, wake_at);
        self.counts.sessions += 1;
        let endpoint = self.roster.session(id).expect("introduced").endpoint.clone();
        if let Some(away_since) = self.roster.post_mut(&endpoint).away_since.take() {
            self.times.reconnect.observe(self.now.since(away_since));
        }
    }

    fn heartbeat(&mut self, id: SessionId, beat: Heartbeat) {
        let now = self.now;
        let trip = self.roster.live_mut(id).and_then(|live| live.pulse.heard_beat(now, beat));
        if let Some(trip) = trip {
            self.times.heartbeat_rtt.observe(trip);
        }
    }

    fn status(&mut self, id: SessionId, mut status: WorkerStatus) {
        if !status.alive {
            return self.lose(id, Some(CloseReason::NotAlive));
        }
        let Some(live) = self.roster.live_mut(id) else { return };
        if self.sabotage.has(Bug::IgnoreAdmission) {
            status.accepting_work = true;
        }
        live.status = Some(status);
        live.slots = status.slots.min(self.config.max_worker_slots);
        // It spoke of itself: what it refused before may be welcome now.
        live.held = false;
        let draining = status.draining;
        self.refresh(id);
        if draining && !self.sabotage.has(Bug::LoseDrainReassignment) {
            self.take_back_unstarted(id);
        }
    }

    /// Unstarted work on a draining worker is cancelled there and goes elsewhere at once.
    fn take_back_unstarted(&mut self, id: SessionId) {
        let lines = self.roster.live(id).map(|live| live.lines.clone()).unwrap_or_default();
        for (work_id, attempt) in lines {
            let work = WorkRef { work_id, attempt };
            let unstarted = self.line_state(id, work).is_some_and(WorkState::is_unstarted);
            if unstarted {
                self.step_line(id, work, WorkEvent::Draining(id), GiveBack::Drained);
            }
        }
    }

    fn cancel_confirmed(&mut self, id: SessionId, work: WorkRef) {
        let Some(live) = self.roster.live_mut(id) else { return };
        let Some(cancelling) = live.cancelling.remove(&work) else {
            if live.lines.get(&work.work_id) == Some(&work.attempt) {
                // It confirms what nobody asked of it.
                return self.violation(id, Violation::OutOfOrder);
            }
            self.counts.late += 1;
            return;
        };
        live.occupied -= u32::from(cancelling.occupies);
        if self.sabotage.has(Bug::LeakCancellation) {
            live.cancelling.insert(work, cancelling);
        }
        self.counts.cancels_confirmed += 1;
        self.times.cancel.observe(self.now.since(cancelling.since));
        self.refresh(id);
        self.note_left(id);
    }

    /// Something of ours left a session: it may have been the last that kept it open.
    pub(super) fn note_left(&mut self, id: SessionId) {
        if self.roster.session(id).is_some_and(|session| !session.listed) {
            self.maybe_retired.push(id);
        }
    }
}
