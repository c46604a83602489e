//! Runs: accepted or rejected, started when a slot is free, stopped, and their artifacts kept until
//! acknowledged or expired.

use std::ops::Bound;

use super::{Action, Intake, Leaving, Timer, Violation};
use crate::artifact::{Artifact, Checksum};
use crate::id::{Attempt, RunId, SessionId, WorkId};
use crate::message::{
    ArtifactAck, AssignWork, CancelWork, Failure, FailureCode, RejectReason, WorkFailed, WorkReady,
    WorkRef, WorkRejected, WorkerMessage,
};
use crate::moment::Moment;
use crate::sabotage::Bug;

/// One attempt of one session.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) session: SessionId,
    pub(super) work: WorkRef,
    /// When it was accepted, then when it was started.
    pub(super) since: Moment,
    /// Its deadline, then its artifact's end.
    pub(super) wake_at: Moment,
    pub(super) state: RunState,
}

/// How far a run is.
///
/// - `Queued → Running`: a slot is free.
/// - `Running → Ready`: its artifact is committed.
/// - `Running → Stopping`: cancelled, out of time, or its session is gone; keeps its slot.
/// - `Ready → Acked`: the API node has the artifact.
/// - any `→` gone: cancelled, failed, stopped, expired, evicted, or its session ended.
#[derive(Clone, Debug)]
pub(super) enum RunState {
    /// Waits for a slot.
    Queued(Box<AssignWork>),
    /// Runs.
    Running,
    /// Was told to stop and has not yet.
    Stopping {
        /// When it was told.
        since: Moment,
        /// The API node waits for the word that it stopped.
        confirm: bool,
    },
    /// Its artifact waits to be fetched.
    Ready {
        /// What an acknowledgement must name.
        checksum: Checksum,
    },
    /// Its artifact was fetched and lingers a little.
    Acked,
}

impl RunState {
    pub(super) fn holds_slot(&self) -> bool {
        matches!(self, Self::Running | Self::Stopping { .. })
    }
}

impl Intake {
    pub(super) fn has_room(&self) -> bool {
        self.running + self.queued < self.config.slots.saturating_add(self.config.queue_limit)
    }

    pub(super) fn assigned(&mut self, session: SessionId, assign: AssignWork) {
        let work = WorkRef { work_id: assign.work_id, attempt: assign.attempt };
        if self.has_unfinished(session, work.work_id) || self.by_work.contains_key(&(session, work))
        {
            return self.violation(session, Violation::OutOfOrder);
        }
        if let Some(reason) = self.why_not() {
            self.counts.rejected += 1;
            self.sessions.get_mut(&session).expect("the caller found it").refused = true;
            if !(self.sabotage.has(Bug::DropWhenFull) && reason == RejectReason::Full) {
                self.send(session, WorkerMessage::Rejected(WorkRejected { work, reason }));
            }
            return;
        }
        let id = RunId(self.next_run);
        self.next_run += 1;
        let wake_at = self.now + assign.deadline;
        let state = RunState::Queued(Box::new(assign));
        self.runs.insert(id, Run { session, work, since: self.now, wake_at, state });
        self.by_work.insert((session, work), id);
        self.timers.arm(wake_at, Timer::Run(id));
        let owner = self.sessions.get_mut(&session).expect("the caller found it");
        owner.owned.insert(id);
        owner.queue.push_back(id);
        self.queued += 1;
        self.counts.accepted += 1;
        self.send(session, WorkerMessage::Accepted(work));
    }

    /// Whether another attempt at this work is queued, running or kept for the same session: the
    /// API node cancels one before it makes another.
    fn has_unfinished(&self, session: SessionId, work_id: WorkId) -> bool {
        let from = (session, WorkRef { work_id, attempt: Attempt(0) });
        let to = (session, WorkRef { work_id, attempt: Attempt(u32::MAX) });
        self.by_work
            .range(from..=to)
            .any(|(_, run)| !matches!(self.runs[run].state, RunState::Stopping { .. }))
    }

    fn why_not(&self) -> Option<RejectReason> {
        if self.leaving != Leaving::No && !self.sabotage.has(Bug::AcceptWhileDraining) {
            Some(RejectReason::Draining)
        } else if !self.disk.room {
            Some(RejectReason::NotAccepting)
        } else if !self.has_room() {
            Some(RejectReason::Full)
        } else {
            None
        }
    }

    /// Starts what waits while slots are free, session by session in turn.
    pub(super) fn fill_slots(&mut self) {
        while self.running < self.config.slots
            && self.queued > 0
            && (self.leaving == Leaving::No || self.sabotage.has(Bug::AcceptWhileDraining))
        {
            let has_work = |id: &SessionId| !self.sessions[id].queue.is_empty();
            let after = self.served.map_or(Bound::Unbounded, Bound::Excluded);
            let later = self.sessions.range((after, Bound::Unbounded));
            let turn = later.map(|(id, _)| *id).find(has_work);
            let turn = turn.or_else(|| self.sessions.keys().copied().find(has_work));
            let session = turn.expect("what is queued is in some session's queue");
            self.served = Some(session);
            let owner = self.sessions.get_mut(&session).expect("just found");
            let run = owner.queue.pop_front().expect("just found");
            self.queued -= 1;
            self.start(run, session);
        }
    }

    fn start(&mut self, id: RunId, session: SessionId) {
        let run = self.runs.get_mut(&id).expect("what is queued is known");
        let RunState::Queued(work) = std::mem::replace(&mut run.state, RunState::Running) else {
            unreachable!("only queued runs are in the queue")
        };
        self.times.queue_wait.observe(self.now.since(run.since));
        run.since = self.now;
        let started = run.work;
        self.running += 1;
        self.counts.started += 1;
        self.act(Action::Start { run: id, session, work });
        self.send(session, WorkerMessage::Started(started));
    }

    pub(super) fn cancelled(&mut self, session: SessionId, cancel: &CancelWork) {
        let work = WorkRef { work_id: cancel.work_id, attempt: cancel.attempt };
        self.counts.cancels += 1;
        let Some(id) = self.by_work.get(&(session, work)).copied() else {
            // It ended while the cancellation was on its way. The API node waits all the same.
            return self.confirm_cancel(session, work);
        };
        let now = self.now;
        let run = self.runs.get_mut(&id).expect("both tables know it");
        match &mut run.state {
            RunState::Queued(_) => {
                let owner = self.sessions.get_mut(&session).expect("the caller found it");
                owner.queue.retain(|queued| *queued != id);
                self.queued -= 1;
                self.forget(id);
                self.confirm_cancel(session, work);
            }
            RunState::Running => {
                run.state = RunState::Stopping { since: now, confirm: true };
                if self.sabotage.has(Bug::FreeSlotEarly) {
                    self.running -= 1;
                }
                self.act(Action::Stop { run: id });
            }
            RunState::Stopping { confirm, .. } if !*confirm => *confirm = true,
            RunState::Stopping { .. } => self.violation(session, Violation::OutOfOrder),
            RunState::Ready { .. } | RunState::Acked => {
                self.delete(id);
                self.confirm_cancel(session, work);
            }
        }
    }

    fn confirm_cancel(&mut self, session: SessionId, work: WorkRef) {
        if self.sabotage.has(Bug::UnconfirmedCancel) {
            return;
        }
        if self.sessions.contains_key(&session) {
            self.send(session, WorkerMessage::Cancelled(work));
        }
    }

    pub(super) fn acknowledged(&mut self, session: SessionId, ack: &ArtifactAck) {
        let from = (session, WorkRef { work_id: ack.work_id, attempt: Attempt(0) });
        let to = (session, WorkRef { work_id: ack.work_id, attempt: Attempt(u32::MAX) });
        let named = |run: &RunId| matches!(self.runs[run].state, RunState::Ready { checksum } if checksum == ack.checksum);
        let found = self.by_work.range(from..=to).map(|(_, run)| *run).find(named);
        let Some(id) = found else {
            self.counts.late += 1;
            return;
        };
        self.counts.acknowledged += 1;
        let run = self.runs.get_mut(&id).expect("just found");
        run.state = RunState::Acked;
        let at = self.now + self.config.artifact_ttl_after_ack;
        self.wake_run_at(id, at);
    }

    fn wake_run_at(&mut self, id: RunId, at: Moment) {
        let run = self.runs.get_mut(&id).expect("the caller found it");
        let before = std::mem::replace(&mut run.wake_at, at);
        self.timers.disarm(before, Timer::Run(id));
        self.timers.arm(at, Timer::Run(id));
    }

    /// Takes a run out of every table.
    fn forget(&mut self, id: RunId) {
        let Some(run) = self.runs.remove(&id) else { return };
        self.timers.disarm(run.wake_at, Timer::Run(id));
        self.by_work.remove(&(run.session, run.work));
        if let Some(owner) = self.sessions.get_mut(&run.session) {
            owner.owned.remove(&id);
        }
    }

    /// Forgets a run and removes its artifact.
    fn delete(&mut self, id: RunId) {
        self.forget(id);
        self.counts.deleted += 1;
        self.act(Action::Delete { run: id });
    }

    /// A run's session is gone.
    pub(super) fn disown(&mut self, id: RunId) {
        let now = self.now;
        let Some(run) = self.runs.get_mut(&id) else { return };
        match &mut run.state {
            RunState::Queued(_) => self.forget(id),
            RunState::Running if self.sabotage.has(Bug::OrphanRun) => {}
            RunState::Running => {
                run.state = RunState::Stopping { since: now, confirm: false };
                self.counts.orphans_stopped += 1;
                self.act(Action::Stop { run: id });
            }
            RunState::Stopping { confirm, .. } => *confirm = false,
            RunState::Ready { .. } | RunState::Acked => self.delete(id),
        }
    }

    pub(super) fn run_finished(&mut self, id: RunId, artifact: Artifact) {
        let Some(run) = self.runs.get_mut(&id) else {
            // Whatever it is, nobody asked for it.
            self.counts.late += 1;
            return self.act(Action::Delete { run: id });
        };
        match run.state {
            RunState::Running => {
                run.state = RunState::Ready { checksum: artifact.checksum };
                let (session, work) = (run.session, run.work);
                self.times.run.observe(self.now.since(run.since));
                self.free_slot();
                self.counts.finished += 1;
                let at = self.now + self.config.artifact_ttl;
                self.wake_run_at(id, at);
                self.send(session, WorkerMessage::Ready(WorkReady { work, artifact }));
            }
            RunState::Stopping { .. } => {
                self.counts.deleted += 1;
                self.act(Action::Delete { run: id });
                self.stopped(id);
            }
            RunState::Queued(_) | RunState::Ready { .. } | RunState::Acked => {
                self.counts.late += 1;
            }
        }
    }

    pub(super) fn run_failed(&mut self, id: RunId, failure: Failure) {
        let Some(run) = self.runs.get(&id) else {
            self.counts.late += 1;
            return;
        };
        match run.state {
            RunState::Running => {
                let (session, work) = (run.session, run.work);
                self.free_slot();
                self.counts.failed += 1;
                self.forget(id);
                self.send(session, WorkerMessage::Failed(WorkFailed { work, failure }));
            }
            RunState::Stopping { .. } => self.stopped(id),
            RunState::Queued(_) | RunState::Ready { .. } | RunState::Acked => {
                self.counts.late += 1;
            }
        }
    }

    pub(super) fn run_stopped(&mut self, id: RunId) {
        match self.runs.get(&id).map(|run| &run.state) {
            Some(RunState::Stopping { .. }) => self.stopped(id),
            // Nobody told it to: whatever stopped it, another attempt may succeed.
            Some(RunState::Running) => {
                let message = "the run stopped without being told to".into();
                let code = FailureCode::Internal;
                self.run_failed(id, Failure { code, retryable: true, message });
            }
            Some(RunState::Queued(_) | RunState::Ready { .. } | RunState::Acked) | None => {
                self.counts.late += 1;
            }
        }
    }

    /// A run that was told to stop has ended, one way or another.
    fn stopped(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id) else { return };
        let RunState::Stopping { since, confirm } = run.state else { return };
        let (session, work) = (run.session, run.work);
        self.counts.stopped += 1;
        self.times.stop.observe(self.now.since(since));
        if !self.sabotage.has(Bug::LeakSlot) {
            self.free_slot();
        }
        self.forget(id);
        if confirm {
            self.confirm_cancel(session, work);
        }
    }

    fn free_slot(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    pub(super) fn evicted(&mut self, id: RunId) {
        let Some(run) = self.runs.get(&id) else {
            self.counts.late += 1;
            return;
        };
        let (session, work) = (run.session, run.work);
        match run.state {
            RunState::Ready { .. } => {
                self.forget(id);
                self.counts.evicted += 1;
                if !self.sabotage.has(Bug::SilentEviction) {
                    self.send(session, WorkerMessage::ArtifactLost(work));
                }
            }
            RunState::Acked => {
                self.forget(id);
                self.counts.evicted += 1;
            }
            RunState::Queued(_) | RunState::Running | RunState::Stopping { .. } => {
                self.counts.late += 1;
            }
        }
    }

    /// A run's time is up: its deadline, or its artifact's.
    pub(super) fn run_due(&mut self, id: RunId, at: Moment) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        if run.wake_at != at {
            return;
        }
        let (session, work) = (run.session, run.work);
        match run.state {
            RunState::Queued(_) => {
                if let Some(owner) = self.sessions.get_mut(&session) {
                    owner.queue.retain(|queued| *queued != id);
                }
                self.queued -= 1;
                self.forget(id);
                self.out_of_time(session, work);
            }
            RunState::Running => {
                run.state = RunState::Stopping { since: self.now, confirm: false };
                self.act(Action::Stop { run: id });
                self.out_of_time(session, work);
            }
            RunState::Stopping { .. } => {}
            RunState::Ready { .. } | RunState::Acked if self.sabotage.has(Bug::IgnoreTtl) => {}
            RunState::Ready { .. } => {
                self.counts.expired += 1;
                self.delete(id);
                self.send(session, WorkerMessage::ArtifactLost(work));
            }
            RunState::Acked => {
                self.counts.expired += 1;
                self.delete(id);
            }
        }
    }

    /// Tells the owner that the time given with the work is up. Whether that ends the query is for
    /// the API node's clock to say: this one may have jumped.
    fn out_of_time(&mut self, session: SessionId, work: WorkRef) {
        self.counts.out_of_time += 1;
        let failure = Failure {
            code: FailureCode::Deadline,
            retryable: true,
            message: "the time given with the work was up".into(),
        };
        self.send(session, WorkerMessage::Failed(WorkFailed { work, failure }));
    }
}
