//! What an API node decides, judged action by action.

use core_workcoord::coordinator::CloseReason;
use core_workcoord::id::SessionId;
use core_workcoord::message::{
    ApiMessage, ArtifactAck, AssignWork, CancelReason, CancelWork, WorkRef,
};

use super::books::{Beats, QueryPhase, SessionBook, Try, TryAt, TryPhase};
use super::{Checker, CloseFacts, Promise};
use crate::content;
use crate::endpoints::Endpoints;
use crate::violation::About;

impl Checker {
    /// An API node dials an address.
    pub(crate) fn api_dials(
        &mut self,
        api: u32,
        session: SessionId,
        endpoint: Option<u32>,
        known: bool,
    ) {
        let about = About::api(api).session(session);
        self.hold(Promise::DialsNamed, known, about, || {
            format!("api-{api} dials an address that discovery does not name")
        });
        let Some(endpoint) = endpoint else { return };
        let book = &mut self.apis[api as usize];
        let busy = book.sessions.iter().any(|(_, other)| other.endpoint == endpoint);
        let record = SessionBook {
            endpoint,
            worker: Endpoints::worker_of(endpoint),
            open: false,
            live: false,
            slots: 0,
            base_url: String::new(),
            accepts: false,
            drains: false,
            held: false,
            load: 0,
            last_heard: book.clock,
            last_beat: book.clock,
            beats: Beats::default(),
            tries: Vec::new(),
        };
        let reused = book.sessions.insert(session, record).is_some();
        let away = book.away[endpoint as usize].take();
        let pause = away.filter(|(_, again)| *again).map(|(since, _)| book.clock.since(since));
        let least = self.shape.coordinator.backoff_base / 2;
        self.hold(Promise::RedialsInTime, pause.is_none_or(|pause| pause >= least), about, || {
            format!("api-{api} dials address {endpoint} again after {pause:?}")
        });
        self.tally.dials += 1;
        self.hold(Promise::DialsNamed, !busy && !reused, about, || {
            format!(
                "api-{api} dials address {endpoint} as {session} although it has a stream there"
            )
        });
    }

    /// An API node sends a message.
    pub(crate) fn api_says(&mut self, api: u32, session: SessionId, message: &ApiMessage) {
        let book = &self.apis[api as usize];
        let record = book.sessions.get(session);
        let may = record
            .is_some_and(|it| it.open && (it.live || matches!(message, ApiMessage::Hello(_))));
        let about = About::api(api).session(session);
        self.hold(Promise::SpeaksOnOpenSessions, may, about, || {
            format!("api-{api} says {message:?} on {session}, which is over or not open")
        });
        match message {
            ApiMessage::Heartbeat(beat) => {
                let book = &mut self.apis[api as usize];
                let clock = book.clock;
                let Some(record) = book.sessions.get_mut(session) else { return };
                record.last_beat = clock;
                let counted = record.beats.say(*beat);
                return self.hold(Promise::HeartbeatsOnTime, counted, about, || {
                    format!("api-{api} sends {beat:?} on {session}, which does not follow")
                });
            }
            ApiMessage::Hello(_) => {}
            ApiMessage::AssignWork(work) => self.api_assigns(api, session, work),
            ApiMessage::CancelWork(cancel) => self.api_cancels(api, session, cancel),
            ApiMessage::ArtifactAck(ack) => self.api_acks(api, session, ack),
        }
        self.apis[api as usize].step.matters = true;
    }

    fn api_assigns(&mut self, api: u32, session: SessionId, assign: &AssignWork) {
        let about = About::api(api).session(session).work(assign.work_id);
        let work = WorkRef { work_id: assign.work_id, attempt: assign.attempt };
        let Some(query) = self.place_of(assign.work_id.query) else {
            return self.hold(Promise::EndsOnce, false, about, || {
                format!("api-{api} assigns {work:?}, which nobody asked for")
            });
        };
        let alive = self.queries[query].phase == QueryPhase::Live;
        self.hold(Promise::EndsOnce, alive, about, || {
            format!("api-{api} assigns {work:?}, whose query is over")
        });
        let named = content::read_spec(&assign.spec)
            .map(|(number, item)| (content::query_id(self.seed, number), item));
        let right = named == Some((assign.work_id.query, assign.work_id.item));
        self.hold(Promise::DeliversRight, right, about, || {
            format!("api-{api} sends another spec with {work:?} than was submitted")
        });
        self.judge_placement(api, session, about);
        self.judge_attempt(api, session, query, work, about);
        let item = &self.queries[query].items[work.work_id.item as usize];
        let (hedges, failed_on) = (item.lines > 0, item.failed_on);
        if hedges {
            let since = item.tries.iter().filter(|one| one.is_line()).map(|one| one.since).min();
            self.judge_hedge(api, since.unwrap_or_default(), about);
        } else {
            self.judge_fairness(api, self.queries[query].tenant, about);
            self.judge_fairness_within_tenant(api, query, about);
        }
        if failed_on != 0 {
            self.judge_avoidance(api, session, failed_on, hedges, about);
        }
        self.keep_try(api, session, query, work);
    }

    /// Whether a worker may be given work at all.
    fn judge_placement(&mut self, api: u32, session: SessionId, about: About) {
        let ahead = self.shape.coordinator.worker_queue_ahead;
        let book = &self.apis[api as usize];
        let Some(record) = book.sessions.get(session) else { return };
        let (held, load, slots) = (record.held, record.load, record.slots);
        let willing = record.is_willing(&book.listed);
        self.hold(Promise::AssignsToTheWilling, willing, about, || {
            format!("api-{api} assigns work to {session}, which is out of rotation")
        });
        self.hold(Promise::NoPingPong, !held, about, || {
            format!("api-{api} assigns work to {session}, which refused and has not spoken since")
        });
        self.hold(Promise::BoundedLoad, load < slots.saturating_add(ahead), about, || {
            format!("api-{api} has {load} on {session} already, with {slots} slots + {ahead}")
        });
    }

    /// Whether an item may have this attempt there.
    fn judge_attempt(
        &mut self,
        api: u32,
        session: SessionId,
        query: usize,
        work: WorkRef,
        about: About,
    ) {
        let max = self.shape.coordinator.max_attempts;
        let horizon = self.queries[query].horizon();
        let Some(worker) = self.apis[api as usize].sessions.get(session).map(|it| it.worker) else {
            return;
        };
        let item = &self.queries[query].items[work.work_id.item as usize];
        let (attempt, highest, done) = (work.attempt.0, item.highest, item.done.is_some());
        let twice = item.tries.iter().any(|one| one.is_line() && one.worker == worker);
        let lines = item.lines;
        self.hold(Promise::AttemptNumbers, attempt == highest + 1 && attempt <= max, about, || {
            format!("{work:?} follows attempt {highest}, {max} are allowed")
        });
        self.hold(Promise::OneAttemptPerWorker, !twice && lines < 2, about, || {
            format!("{work:?} goes to worker-{worker} beside {lines} that are on their way")
        });
        self.hold(Promise::DeliversInOrder, !done, about, || {
            format!("{work:?} is assigned although the item is done")
        });
        self.hold(Promise::Window, work.work_id.item < horizon, about, || {
            format!("{work:?} is beyond the window, which ends at {horizon}")
        });
    }

    fn keep_try(&mut self, api: u32, session: SessionId, query: usize, work: WorkRef) {
        let book = &mut self.apis[api as usize];
        let since = book.clock;
        let Some(record) = book.sessions.get_mut(session) else { return };
        let it = &mut self.queries[query];
        it.given_out = it.given_out.max(work.work_id.item + 1);
        let item = &mut it.items[work.work_id.item as usize];
        record.load += 1;
        let at = TryAt {
            query: u32::try_from(query).expect("stories are short"),
            item: work.work_id.item,
            number: u32::try_from(item.tries.len()).expect("attempts are few"),
        };
        record.tries.push(at);
        self.tally.assigned += 1;
        if item.lines > 0 {
            self.tally.hedged += 1;
        } else if item.tries.last().is_some_and(|last| !last.rejected) {
            self.tally.reassigned += 1;
        }
        item.lines += 1;
        item.highest = work.attempt.0;
        item.tries.push(Try {
            attempt: work.attempt.0,
            session,
            worker: record.worker,
            phase: TryPhase::Assigned,
            since,
            cancelled: false,
            cancelled_at: since,
            occupies: true,
            rejected: false,
            fetching: false,
            verified: false,
            acked: false,
            checksum: None,
            size_bytes: 0,
        });
    }

    fn api_cancels(&mut self, api: u32, session: SessionId, cancel: &CancelWork) {
        let work = WorkRef { work_id: cancel.work_id, attempt: cancel.attempt };
        let about = About::api(api).session(session).work(cancel.work_id);
        self.tally.cancelled_work += 1;
        let at = self.find_try(session, work);
        let fresh = at.is_some_and(|at| {
            let one = self.try_at(at);
            !one.cancelled && one.phase != TryPhase::Over
        });
        self.hold(Promise::CancelsOnce, fresh, about, || {
            format!("api-{api} cancels {work:?} on {session}, where it is not or no more")
        });
        let clock = self.apis[api as usize].clock;
        if let Some(at) = at {
            self.judge_cancel_reason(api, at, cancel.reason, about);
            self.change(api, at, |one| {
                one.cancelled = true;
                one.cancelled_at = clock;
            });
        }
    }

    fn judge_cancel_reason(&mut self, api: u32, at: TryAt, reason: CancelReason, about: About) {
        let book = &self.apis[api as usize];
        let one = *self.try_at(at);
        let query = &self.queries[at.query as usize];
        let drains = book.sessions.get(one.session).is_some_and(|it| it.drains);
        let holds = match reason {
            CancelReason::ClientGone => book.step.left == Some(at.query),
            CancelReason::QueryFailed => true,
            CancelReason::Deadline => book.clock >= query.deadline,
            CancelReason::Draining => drains && one.phase < TryPhase::Started,
            CancelReason::Superseded => query.items[at.item as usize].done.is_some(),
            CancelReason::ArtifactUnusable => one.phase == TryPhase::Ready,
        };
        self.hold(Promise::ReasonForEveryCancel, holds, about, || {
            format!("api-{api} cancels as {reason:?}, which is not so: {one:?}")
        });
    }

    fn api_acks(&mut self, api: u32, session: SessionId, ack: &ArtifactAck) {
        let Some(query) = self.place_of(ack.work_id.query) else { return };
        let Some(item) = self.queries[query].items.get(ack.work_id.item as usize) else { return };
        let is_it = |one: &Try| {
            one.session == session
                && one.phase == TryPhase::Ready
                && one.checksum == Some(ack.checksum)
        };
        // A late announcement of something that is over is let go of, too.
        let Some(number) = item.tries.iter().rposition(is_it) else { return };
        let earned = item.tries[number].verified || !item.tries[number].is_line();
        let about = About::api(api).session(session).work(ack.work_id);
        self.hold(Promise::Acknowledges, earned, about, || {
            format!("api-{api} acknowledges {} on {session} unverified", ack.work_id)
        });
        let at = TryAt {
            query: u32::try_from(query).expect("stories are short"),
            item: ack.work_id.item,
            number: u32::try_from(number).expect("attempts are few"),
        };
        self.change(api, at, |one| {
            one.acked = true;
            one.phase = TryPhase::Over;
        });
    }

    /// An API node closes a session, for a reason.
    pub(crate) fn api_closes(
        &mut self,
        api: u32,
        session: SessionId,
        reason: CloseReason,
        facts: CloseFacts,
    ) {
        let about = About::api(api).session(session);
        let book = &self.apis[api as usize];
        let Some(record) = book.sessions.get(session) else {
            return self.hold(Promise::SpeaksOnOpenSessions, false, about, || {
                format!("api-{api} closes {session}, which is over")
            });
        };
        let about = about.with_worker(record.worker);
        let twin = book
            .sessions
            .iter()
            .any(|(id, other)| id != session && other.worker == record.worker && other.live);
        let deserted = !book.listed[record.endpoint as usize] && record.tries.is_empty();
        let justified = match reason {
            CloseReason::DialTimeout | CloseReason::WelcomeTimeout => {
                facts.disturbed || facts.tainted
            }
            CloseReason::Silent | CloseReason::Unanswered => {
                facts.disturbed || facts.tainted || !facts.both_open
            }
            CloseReason::Violation(_) => facts.tainted,
            CloseReason::DuplicateWorker => twin,
            CloseReason::NotAlive => false,
            CloseReason::Retired => deserted,
        };
        self.hold(Promise::NoFalseLoss, justified, about, || {
            format!("api-{api} gives {session} up as {reason:?} without cause: {facts:?}")
        });
        let quiet = self.shape.quiet;
        self.hold(Promise::QuietCompletes, !quiet, about, || {
            format!("api-{api} closes {session} as {reason:?} although nothing went wrong")
        });
        self.tally.sessions_closed += 1;
        self.api_session_over(api, session);
    }
}
