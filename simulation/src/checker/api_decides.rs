//! What an API node decides, judged action by action.

use core_workcoord::coordinator::CloseReason;
use core_workcoord::id::SessionId;
use core_workcoord::message::{ApiMessage, ArtifactAck, AssignWork, CancelWork, WorkRef};
use core_workcoord::moment::Moment;

use super::books::{QueryPhase, SessionBook, Try, TryAt, TryPhase};
use super::{Checker, CloseFacts, HEDGE_COST, Promise};
use crate::content;
use crate::endpoints::Endpoints;
use crate::story::TENANTS;
use crate::violation::About;

/// How often a tenant with waiting work may be passed over. Tenants take turns, so each other one
/// may come twice before it, and once more for having come back from a pause in between.
const PASSED_OVER_AT_MOST: u32 = 3 * TENANTS;

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
            tries: Vec::new(),
        };
        let reused = book.sessions.insert(session, record).is_some();
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
            ApiMessage::Heartbeat(_) => {
                let book = &mut self.apis[api as usize];
                let clock = book.clock;
                if let Some(record) = book.sessions.get_mut(session) {
                    record.last_beat = clock;
                }
                return;
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

    /// Whether a second attempt can be paid for, and the first has had its time.
    fn judge_hedge(&mut self, api: u32, since: Moment, about: About) {
        let floor = self.shape.coordinator.hedge_floor;
        let book = &mut self.apis[api as usize];
        let (budget, took) = (book.hedge_budget, book.clock.since(since));
        book.hedge_budget = budget.saturating_sub(HEDGE_COST);
        let earned = budget >= HEDGE_COST && took >= floor;
        self.hold(Promise::HedgeBudget, earned, about, || {
            format!(
                "a second attempt after {took:?} of {floor:?} with {budget} ‰ of its cost saved"
            )
        });
    }

    /// Whether an item goes back to a worker it failed on although there are others.
    fn judge_avoidance(
        &mut self,
        api: u32,
        session: SessionId,
        failed_on: u64,
        hedges: bool,
        about: About,
    ) {
        let book = &self.apis[api as usize];
        let Some(worker) = book.sessions.get(session).map(|it| it.worker) else { return };
        let others = book
            .sessions
            .iter()
            .any(|(_, it)| it.is_willing(&book.listed) && failed_on & 1 << it.worker == 0);
        let returns = failed_on & 1 << worker != 0;
        self.hold(Promise::AvoidsFailure, !returns || !(others || hedges), about, || {
            format!("work returns to worker-{worker}, where it failed, although there are others")
        });
    }

    /// Whose turn it is, when several have waiting work.
    fn judge_fairness(&mut self, api: u32, tenant: u32, about: About) {
        for other in 0..TENANTS {
            let at = other as usize;
            if other == tenant || !self.has_waiting(api, other) {
                self.apis[api as usize].passed_over[at] = 0;
                continue;
            }
            self.apis[api as usize].passed_over[at] += 1;
            let times = self.apis[api as usize].passed_over[at];
            self.hold(Promise::Fair, times <= PASSED_OVER_AT_MOST, about, || {
                format!("tenant-{other} has waiting work and was passed over {times} times")
            });
        }
    }

    /// Which query's turn it is, when several of a tenant have waiting work. They take turns as
    /// tenants do.
    fn judge_fairness_within_tenant(&mut self, api: u32, query: usize, about: About) {
        let tenant = self.queries[query].tenant;
        let live = &self.apis[api as usize].live;
        let same = live.iter().filter(|it| self.queries[**it as usize].tenant == tenant).count();
        let most = 3 * u32::try_from(same).expect("stories are short") + 3;
        self.queries[query].passed_over = 0;
        for at in 0..self.apis[api as usize].live.len() {
            let other = self.apis[api as usize].live[at] as usize;
            let it = &mut self.queries[other];
            if it.tenant != tenant || other == query {
                continue;
            }
            let waits = it.within_window().iter().any(|item| item.waits() && item.failed_on == 0);
            it.passed_over = if waits { it.passed_over + 1 } else { 0 };
            let times = it.passed_over;
            self.hold(Promise::FairWithinTenant, times <= most, about, || {
                format!("the query at place {other} was passed over {times} times by {same}")
            });
        }
    }

    fn has_waiting(&self, api: u32, tenant: u32) -> bool {
        self.apis[api as usize].live.iter().any(|query| {
            let query = &self.queries[*query as usize];
            query.tenant == tenant
                && query.within_window().iter().any(|item| item.waits() && item.failed_on == 0)
        })
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
            self.change(api, at, |one| {
                one.cancelled = true;
                one.cancelled_at = clock;
            });
        }
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
