//! What follows from a step of a work item: back to the queue, on to its fetch, done, or the end of
//! its query. The step itself is decided by `work_state`.

use super::{Action, Coordinator, FetchResult, QueryFailure, Violation};
use crate::assign::Node;
use crate::id::{SessionId, WorkId};
use crate::message::{
    ApiMessage, ArtifactAck, CancelReason, CancelWork, Failure, WorkReady, WorkRef,
};
use crate::roster::Cancelling;
use crate::sabotage::Bug;
use crate::work_ledger::Line;
use crate::work_state::{From, Place, Step, WorkEvent, WorkState};

/// Why an attempt may come back to the queue.
#[derive(Clone, Debug)]
pub(super) enum GiveBack {
    /// The event never gives work back.
    Never,
    /// The worker did not take it; costs no attempt.
    Rejected,
    /// The worker failed at it.
    Failed(Failure),
    /// The artifact could not be fetched, or was wrong.
    Fetch(FetchResult),
    /// The artifact went before it was fetched.
    ArtifactLost,
    /// The session is over.
    SessionLost {
        /// The worker behind it.
        node: Node,
    },
    /// The worker drains and had not started it.
    Drained,
}

impl GiveBack {
    /// What to tell of the last attempt, should it have been the last one allowed.
    fn tell(&self) -> String {
        match self {
            Self::Never | Self::Rejected => "rejected".into(),
            Self::Failed(failure) => failure.message.clone(),
            Self::Fetch(FetchResult::Mismatch) => "its artifact had wrong bytes".into(),
            Self::Fetch(FetchResult::Gone) | Self::ArtifactLost => {
                "its artifact was gone before it was fetched".into()
            }
            Self::Fetch(FetchResult::Failed | FetchResult::Verified) => {
                "its artifact could not be fetched".into()
            }
            Self::SessionLost { .. } => "its worker was lost".into(),
            Self::Drained => "its worker was leaving".into(),
        }
    }
}

impl Coordinator {
    /// The state of the line that is on this session with this attempt.
    pub(super) fn line_state(&self, session: SessionId, work: WorkRef) -> Option<&WorkState> {
        let record = self.ledger.work(work.work_id)?;
        Some(record.line(record.line_at(session, work.attempt)?))
    }

    /// Moves the line an event is about, and does what follows. `why` tells the reason should the
    /// attempt come back.
    pub(super) fn step_line(
        &mut self,
        session: SessionId,
        work: WorkRef,
        event: WorkEvent,
        why: GiveBack,
    ) {
        let record = self
            .ledger
            .get_mut(work.work_id.query)
            .and_then(|query| query.items.get_mut(work.work_id.item as usize));
        let Some(record) = record else { return self.late(session, work, &event) };
        let Some(line) = record.line_at(session, work.attempt) else {
            if self.sabotage.has(Bug::ForgetFence) {
                return self.step_unfenced(work, event, why);
            }
            return self.late(session, work, &event);
        };
        let state = match line {
            Line::Lead => &mut record.lead,
            Line::Hedge => record.hedge.as_deref_mut().expect("line_at found it"),
        };
        let before = std::mem::replace(state, WorkState::Queued);
        let place = before.place().expect("a line has a place");
        let was = Was { occupied: before.occupies(), kind: kind(&before) };
        match before.step(event) {
            Step::Late(same) => {
                *state = same;
                self.counts.late += 1;
            }
            Step::Violation(same) => {
                *state = same;
                self.violation(session, Violation::OutOfOrder);
            }
            Step::To(next) => {
                *state = next;
                self.moved(work, line, place, was, why);
            }
        }
    }

    /// A deliberate bug: an answer of an old attempt moves the present one.
    fn step_unfenced(&mut self, work: WorkRef, event: WorkEvent, why: GiveBack) {
        let record = self.ledger.work(work.work_id);
        let Some(place) = record.and_then(|record| record.lead.place()) else { return };
        let from = From { session: place.on, attempt: place.attempt };
        let event = match event {
            WorkEvent::Ready(_, artifact) => WorkEvent::Ready(from, artifact),
            WorkEvent::Failed { retryable, .. } => WorkEvent::Failed { from, retryable },
            WorkEvent::Accepted(_) => WorkEvent::Accepted(from),
            WorkEvent::Started(_) => WorkEvent::Started(from),
            WorkEvent::Fetched(_) => WorkEvent::Fetched(from),
            other => other,
        };
        let present = WorkRef { attempt: place.attempt, ..work };
        self.step_line(place.on, present, event, why);
    }

    fn moved(&mut self, work: WorkRef, line: Line, place: Place, was: Was, why: GiveBack) {
        let record = self.ledger.work(work.work_id).expect("it has just moved");
        match record.line(line) {
            WorkState::Accepted(_) => self.counts.accepted += 1,
            WorkState::Running(_) => self.counts.started += 1,
            WorkState::Ready(_, artifact) => {
                let size_bytes = artifact.size_bytes;
                self.became_ready(work, line, place, size_bytes);
            }
            WorkState::Fetching(..) => {}
            WorkState::Queued => self.give_back(work, line, place, was, why),
            WorkState::Done(..) => self.item_done(work, line, place),
            WorkState::Failed => {
                self.counts.failed_final += 1;
                self.free_room(place.on, work.work_id, was.occupied);
                self.give_up(work, why);
            }
            WorkState::Assigned(_) | WorkState::Cancelled => {
                unreachable!("no answer assigns or cancels")
            }
        }
    }

    /// A worker says that no retry can help: its query ends.
    fn give_up(&mut self, work: WorkRef, why: GiveBack) {
        let work = work.work_id;
        if let GiveBack::Failed(Failure { code, message, .. }) = why {
            self.fail_query(work.query, QueryFailure::WorkFailed { work, code, message });
        }
    }

    fn free_room(&mut self, session: SessionId, work: WorkId, occupied: bool) {
        if let Some(live) = self.roster.live_mut(session) {
            live.lines.remove(&work);
            live.occupied -= u32::from(occupied);
            self.refresh(session);
            self.note_left(session);
        }
    }

    pub(super) fn announced(&mut self, session: SessionId, ready: WorkReady) {
        let own = self.roster.live(session).is_some_and(|live| {
            let rest = ready.artifact.url.strip_prefix(live.base_url.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.starts_with('/'))
        });
        if !own {
            return self.violation(session, Violation::ForeignUrl);
        }
        let WorkReady { work, artifact } = ready;
        let from = From { session, attempt: work.attempt };
        let event = WorkEvent::Ready(from, Box::new(artifact));
        self.step_line(session, work, event, GiveBack::Never);
    }

    fn became_ready(&mut self, work: WorkRef, line: Line, place: Place, size_bytes: u64) {
        self.counts.ready += 1;
        if let Some(live) = self.roster.live_mut(place.on) {
            live.occupied -= 1;
            self.refresh(place.on);
        }
        let limit_bytes = self.config.max_artifact_bytes;
        if size_bytes > limit_bytes {
            let work = work.work_id;
            let failure = QueryFailure::ArtifactTooLarge { work, size_bytes, limit_bytes };
            return self.fail_query(work.query, failure);
        }
        let record = self.ledger.work(work.work_id).expect("it has just moved");
        let other = record.line(if line == Line::Lead { Line::Hedge } else { Line::Lead });
        // Of two finished lines one is fetched; the other is kept in case that goes wrong.
        if !matches!(other, WorkState::Ready(..) | WorkState::Fetching(..)) {
            self.fetches.push(work, size_bytes, self.now);
        }
    }

    pub(super) fn start_fetches(&mut self) {
        while let Some((work, waited)) = self.fetches.start_next(self.now) {
            let query = self.ledger.get_mut(work.work_id.query).expect("its artifact waits");
            let record = query.item_mut(work.work_id.item);
            let hedged = record
                .hedge
                .as_deref_mut()
                .filter(|state| state.place().is_some_and(|place| place.attempt == work.attempt));
            let state = hedged.unwrap_or(&mut record.lead);
            let before = std::mem::replace(state, WorkState::Queued);
            let Step::To(next) = before.step(WorkEvent::FetchStarted) else {
                unreachable!("only what is ready waits for its fetch")
            };
            let WorkState::Fetching(place, artifact) = &next else {
                unreachable!("a started fetch is fetching")
            };
            let fetch = Action::Fetch { work, session: place.on, artifact: artifact.clone() };
            *state = next;
            self.times.ready_to_fetch.observe(waited);
            self.act(fetch);
        }
    }

    pub(super) fn fetch_ended(&mut self, work: WorkRef, session: SessionId, result: FetchResult) {
        match result {
            FetchResult::Verified => {}
            FetchResult::Failed => self.counts.fetch_failed += 1,
            FetchResult::Mismatch => self.counts.mismatches += 1,
            FetchResult::Gone => self.counts.artifacts_lost += 1,
        }
        let from = From { session, attempt: work.attempt };
        let trusted = result == FetchResult::Verified
            || (result == FetchResult::Mismatch && self.sabotage.has(Bug::SkipChecksum));
        if trusted {
            self.step_line(session, work, WorkEvent::Fetched(from), GiveBack::Never);
        } else {
            let why = GiveBack::Fetch(result);
            self.step_line(session, work, WorkEvent::FetchFailed(from), why);
        }
    }

    /// An attempt came to nothing: the other line goes on, or the item waits again.
    fn give_back(&mut self, work: WorkRef, line: Line, place: Place, was: Was, why: GiveBack) {
        let id = work.work_id;
        let node = self.roster.live(place.on).map(|live| live.node);
        self.fetches.remove(work, self.now);
        if was.kind == Kind::Fetching && !matches!(why, GiveBack::Fetch(_)) {
            self.act(Action::AbandonFetch { work, session: place.on });
        }
        match &why {
            GiveBack::Drained => self.send_cancel(work, place.on, true, CancelReason::Draining),
            GiveBack::Fetch(_) => {
                self.send_cancel(work, place.on, false, CancelReason::ArtifactUnusable);
            }
            _ => self.free_room(place.on, id, was.occupied),
        }
        self.count_given_back(&why);

        let max_attempts = self.config.max_attempts;
        let poison_workers = self.config.poison_workers as usize;
        let query = self.ledger.get_mut(id.query).expect("it has just moved");
        let record = query.item_mut(id.item);
        let mut deaths = 0;
        match &why {
            GiveBack::Rejected => {
                // The number is free again, unless a later one was given out.
                let refund = work.attempt.0 == record.attempts;
                if refund && !self.sabotage.has(Bug::ChargeRejection) {
                    record.attempts -= 1;
                }
            }
            GiveBack::SessionLost { node } if was.kind == Kind::Running => {
                deaths = record.died_on(*node);
            }
            // A worker that loses artifacts will lose the next one too: affinity must not send the
            // work back there until its attempts are used up.
            GiveBack::Failed(_) | GiveBack::Fetch(_) | GiveBack::ArtifactLost => {
                if let Some(node) = node {
                    record.failed_on(node);
                }
            }
            _ => {}
        }
        // The line that came to nothing goes; one that remains takes the lead.
        match line {
            Line::Hedge => record.hedge = None,
            Line::Lead => record.lead = record.hedge.take().map_or(WorkState::Queued, |rest| *rest),
        }
        let attempts = record.attempts;
        let remaining = record.lead.place().map(|place| (place, record.lead.clone()));
        if deaths >= poison_workers && deaths > 0 {
            let workers = u32::try_from(deaths).unwrap_or(u32::MAX);
            let failure = QueryFailure::Poisonous { work: id, workers };
            return self.fail_query(id.query, failure);
        }
        if let Some((place, state)) = remaining {
            let rest = WorkRef { work_id: id, attempt: place.attempt };
            if let WorkState::Ready(_, artifact) = state
                && !self.fetches.is_waiting(rest)
            {
                self.fetches.push(rest, artifact.size_bytes, self.now);
            }
            return self.plan_hedge(id.query);
        }
        if attempts >= max_attempts && !self.sabotage.has(Bug::RetryForever) {
            let failure = QueryFailure::AttemptsExhausted { work: id, attempts, last: why.tell() };
            return self.fail_query(id.query, failure);
        }
        self.requeue(id);
    }

    fn count_given_back(&mut self, why: &GiveBack) {
        let counts = &mut self.counts;
        match why {
            GiveBack::Never => {}
            GiveBack::Rejected => counts.rejected += 1,
            GiveBack::Failed(_) => counts.failed_retryable += 1,
            GiveBack::Fetch(_) => counts.reassigned_artifact += 1,
            GiveBack::ArtifactLost => {
                counts.artifacts_lost += 1;
                counts.reassigned_artifact += 1;
            }
            GiveBack::SessionLost { .. } => counts.reassigned_lost += 1,
            GiveBack::Drained => counts.reassigned_drained += 1,
        }
        counts.reassigned += u64::from(!matches!(why, GiveBack::Rejected));
    }

    /// A worker that refused is not asked again until it has spoken of itself.
    pub(super) fn hold(&mut self, session: SessionId) {
        if self.sabotage.has(Bug::PingPong) {
            return;
        }
        if let Some(live) = self.roster.live_mut(session) {
            live.held = true;
            self.refresh(session);
        }
    }

    fn requeue(&mut self, id: WorkId) {
        let query = self.ledger.get_mut(id.query).expect("its item is given back");
        query.item_mut(id.item).queued_at = self.now;
        query.open.remove(&id.item);
        query.retry.insert(id.item);
        let tenant = query.tenant.clone();
        self.ledger.queued += 1;
        self.queue.set_ready(&tenant, id.query, true);
        self.scale_up_check = true;
    }

    fn item_done(&mut self, work: WorkRef, line: Line, place: Place) {
        let id = work.work_id;
        if let Some(took) = self.fetches.remove(work, self.now) {
            self.times.fetch.observe(took);
        }
        self.counts.fetched += 1;
        self.counts.hedges_won += u64::from(line == Line::Hedge);
        self.hedges.earn();
        let query = self.ledger.get_mut(id.query).expect("it has just moved");
        let record = query.item_mut(id.item);
        let loser = match line {
            Line::Lead => record.hedge.take().map(|state| *state),
            Line::Hedge => {
                let done = record.hedge.take().expect("it is the line that is done");
                Some(std::mem::replace(&mut record.lead, *done))
            }
        };
        record.spec = bytes::Bytes::new();
        let WorkState::Done(_, checksum) = record.lead else { unreachable!("it is done") };
        query.open.remove(&id.item);
        query.done += 1;
        query.finished_time = query.finished_time.saturating_add(self.now.since(place.since));
        self.free_room(place.on, id, false);
        if !self.sabotage.has(Bug::ForgetAck) {
            let ack = ArtifactAck { work_id: id, checksum };
            self.send(place.on, ApiMessage::ArtifactAck(ack));
        }
        if let Some(loser) = loser {
            self.cancel_line(id, &loser, CancelReason::Superseded);
        }
        self.deliver(id);
    }

    /// Stops a line wherever it is.
    pub(super) fn cancel_line(&mut self, id: WorkId, state: &WorkState, reason: CancelReason) {
        let Some(place) = state.place() else { return };
        let work = WorkRef { work_id: id, attempt: place.attempt };
        self.fetches.remove(work, self.now);
        if matches!(state, WorkState::Fetching(..)) {
            self.act(Action::AbandonFetch { work, session: place.on });
        }
        self.send_cancel(work, place.on, state.occupies(), reason);
    }

    /// Sends a cancellation and notes that it must be confirmed.
    fn send_cancel(
        &mut self,
        work: WorkRef,
        session: SessionId,
        occupies: bool,
        reason: CancelReason,
    ) {
        let since = self.now;
        let Some(live) = self.roster.live_mut(session) else { return };
        live.lines.remove(&work.work_id);
        live.cancelling.insert(work, Cancelling { since, occupies });
        self.counts.cancels += 1;
        let WorkRef { work_id, attempt } = work;
        self.send(session, ApiMessage::CancelWork(CancelWork { work_id, attempt, reason }));
    }

    /// A message about something that is over. An artifact nobody wants is let go of.
    fn late(&mut self, session: SessionId, work: WorkRef, event: &WorkEvent) {
        self.counts.late += 1;
        let WorkEvent::Ready(_, artifact) = event else { return };
        self.counts.duplicates += 1;
        if let Some(WorkState::Done(_, first)) = self.ledger.work(work.work_id).map(|w| &w.lead) {
            self.counts.diverged += u64::from(*first != artifact.checksum);
        }
        let live = self.roster.live(session);
        if live.is_some_and(|live| !live.cancelling.contains_key(&work)) {
            let ack = ArtifactAck { work_id: work.work_id, checksum: artifact.checksum };
            self.send(session, ApiMessage::ArtifactAck(ack));
        }
    }
}

/// What is still needed of a state that was left.
#[derive(Clone, Copy, Debug)]
struct Was {
    occupied: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Running,
    Fetching,
    Other,
}

fn kind(state: &WorkState) -> Kind {
    match state {
        WorkState::Running(_) => Kind::Running,
        WorkState::Fetching(..) => Kind::Fetching,
        WorkState::Queued
        | WorkState::Assigned(_)
        | WorkState::Accepted(_)
        | WorkState::Ready(..)
        | WorkState::Done(..)
        | WorkState::Failed
        | WorkState::Cancelled => Kind::Other,
    }
}
