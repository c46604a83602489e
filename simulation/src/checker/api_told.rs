//! What an API node is told, and what follows from it for the books: attempts move, sessions come
//! and go, workers speak of themselves.

use core_workcoord::coordinator::{FetchResult, Input};
use core_workcoord::id::SessionId;
use core_workcoord::message::{WorkRef, WorkerMessage, WorkerStatus};
use core_workcoord::moment::Moment;

use super::books::{ApiBook, ApiStep, ItemBook, QueryPhase, Try, TryAt, TryPhase};
use super::{Checker, HEDGE_COST, Promise};
use crate::violation::About;

/// The most that can be saved up for second attempts.
const HEDGES_SAVED_AT_MOST: u64 = 10 * HEDGE_COST;

impl Checker {
    /// A new life of an API node.
    pub(crate) fn api_begins(&mut self, api: u32) {
        let book = &mut self.apis[api as usize];
        *book = ApiBook::new(book.listed.len());
        // The first second attempt is free, where there are any.
        let hedges = self.shape.coordinator.hedge_budget_per_mille > 0;
        book.hedge_budget = if hedges { HEDGE_COST } else { 0 };
    }

    /// An API node dies, and its queries with it.
    pub(crate) fn api_dies(&mut self, api: u32) {
        for query in std::mem::take(&mut self.apis[api as usize].live) {
            self.queries[query as usize].phase = QueryPhase::Lost;
            self.tally.queries_lost += 1;
        }
        self.api_begins(api);
    }

    /// A client asks an API node that is there.
    pub(crate) fn submitted(&mut self, api: u32, query: u32, deadline: Moment) {
        let book = &mut self.queries[query as usize];
        (book.phase, book.deadline) = (QueryPhase::Live, deadline);
        let api = &mut self.apis[api as usize];
        api.live.push(query);
        api.first_deadline = api.first_deadline.min(deadline);
    }

    /// An API node is about to handle an input.
    pub(crate) fn api_told(&mut self, api: u32, clock: Moment, input: &Input) {
        let book = &mut self.apis[api as usize];
        book.clock = book.clock.max(clock);
        let ended = std::mem::take(&mut book.step.ended);
        let lost_fetches = std::mem::take(&mut book.step.lost_fetches);
        let poisoned = std::mem::take(&mut book.step.poisoned);
        book.step = ApiStep { matters: true, ended, lost_fetches, poisoned, ..ApiStep::default() };
        book.step.ended.clear();
        book.step.poisoned.clear();
        book.step.lost_fetches.clear();
        match input {
            Input::Message { session, message } => self.api_hears(api, *session, message),
            Input::Tick => book.step.is_tick = true,
            Input::StreamOpened { session } => {
                if let Some(session) = book.sessions.get_mut(*session) {
                    session.open = true;
                }
            }
            Input::StreamClosed { session } => {
                if self.shape.quiet && book.sessions.contains(*session) {
                    self.hold(
                        Promise::QuietCompletes,
                        false,
                        About::api(api).session(*session),
                        || format!("api-{api} lost session {session} although nothing went wrong"),
                    );
                }
                self.api_session_over(api, *session);
            }
            Input::WorkerDiscovered { endpoint: _ } | Input::WorkerGone { endpoint: _ } => {}
            Input::CancelQuery { query } => {
                let place = self.place_of(*query).and_then(|place| u32::try_from(place).ok());
                self.apis[api as usize].step.left = place;
            }
            Input::Consumed { query, through } => {
                if let Some(place) = self.place_of(*query) {
                    let book = &mut self.queries[place];
                    book.consumed = book.consumed.max((*through).min(book.delivered));
                }
            }
            Input::FetchEnded { work, session, result } => {
                self.api_fetch_ended(api, *work, *session, *result);
            }
            Input::Submit(submission) => {
                let place = self.place_of(submission.query);
                self.apis[api as usize].step.asked = place.and_then(|it| u32::try_from(it).ok());
            }
            Input::Malformed { .. } => {}
        }
    }

    /// Discovery is about to name an address to an API node, or to name it no more.
    pub(crate) fn api_hears_of_address(&mut self, api: u32, endpoint: u32, listed: bool) {
        let book = &mut self.apis[api as usize];
        let was_listed = std::mem::replace(&mut book.listed[endpoint as usize], listed);
        let has_stream = book.sessions.iter().any(|(_, it)| it.endpoint == endpoint);
        let away = &mut book.away[endpoint as usize];
        match (was_listed, listed) {
            (false, true) if !has_stream => *away = Some((book.clock, false)),
            (_, false) => *away = None,
            (true, true) | (false, true) => {}
        }
    }

    fn api_hears(&mut self, api: u32, session: SessionId, message: &WorkerMessage) {
        let book = &mut self.apis[api as usize];
        let clock = book.clock;
        let Some(record) = book.sessions.get_mut(session) else { return };
        record.last_heard = clock;
        match message {
            WorkerMessage::Heartbeat(beat) => {
                record.beats.hear(*beat);
                book.step.matters = false;
            }
            WorkerMessage::Welcome(welcome) => {
                record.live = record.open;
                record.last_beat = clock;
                record.slots = welcome.slots;
                record.base_url.clone_from(&welcome.artifact_base_url);
            }
            WorkerMessage::Status(status) => self.api_hears_status(api, session, *status),
            WorkerMessage::Accepted(work) => self.api_try(api, session, *work, |one| {
                if one.phase == TryPhase::Assigned {
                    one.phase = TryPhase::Accepted;
                }
            }),
            WorkerMessage::Started(work) => self.api_try(api, session, *work, |one| {
                if one.phase == TryPhase::Accepted {
                    one.phase = TryPhase::Started;
                }
            }),
            WorkerMessage::Rejected(rejected) => self.api_hears_no(api, session, rejected.work),
            WorkerMessage::Ready(ready) => {
                let artifact = &ready.artifact;
                if !artifact.url.starts_with(&record.base_url) {
                    return;
                }
                let too_large = artifact.size_bytes > self.shape.coordinator.max_artifact_bytes;
                let Some(at) = self.find_try(session, ready.work) else { return };
                let running =
                    matches!(self.try_at(at).phase, TryPhase::Accepted | TryPhase::Started);
                if running && too_large && self.try_at(at).is_line() {
                    self.item_mut(at).too_large = true;
                    self.apis[api as usize].step.must_fail = Some((at.query, session));
                }
                self.change(api, at, |one| {
                    if running {
                        one.phase = TryPhase::Ready;
                        one.checksum = Some(artifact.checksum);
                        one.size_bytes = artifact.size_bytes;
                        one.occupies &= one.cancelled;
                    }
                });
            }
            WorkerMessage::Failed(failed) => {
                let Some(at) = self.find_try(session, failed.work) else { return };
                self.api_hears_failure(api, at, failed.failure.retryable);
            }
            WorkerMessage::Cancelled(work) => self.api_try(api, session, *work, |one| {
                if one.cancelled {
                    one.phase = TryPhase::Over;
                    one.occupies = false;
                }
            }),
            WorkerMessage::ArtifactLost(work) => {
                let Some(at) = self.find_try(session, *work) else { return };
                let one = *self.try_at(at);
                if one.phase == TryPhase::Ready && one.is_line() {
                    self.item_mut(at).failed_on |= 1 << one.worker;
                }
                self.change(api, at, |one| {
                    if one.phase == TryPhase::Ready && !one.cancelled {
                        one.phase = TryPhase::Over;
                    }
                });
            }
        }
    }

    fn api_hears_status(&mut self, api: u32, session: SessionId, status: WorkerStatus) {
        let book = &mut self.apis[api as usize];
        let Some(record) = book.sessions.get_mut(session).filter(|record| record.live) else {
            return;
        };
        record.accepts = status.alive && status.accepting_work && !status.draining;
        record.drains = status.draining;
        record.slots = status.slots;
        record.held = false;
        if status.draining {
            book.step.drains = Some(session);
        }
    }

    fn api_hears_no(&mut self, api: u32, session: SessionId, work: WorkRef) {
        if let Some(record) = self.apis[api as usize].sessions.get_mut(session) {
            record.held = record.live;
        }
        let Some(at) = self.find_try(session, work) else { return };
        let one = self.try_at(at);
        if one.phase != TryPhase::Assigned || one.cancelled {
            return;
        }
        self.tally.rejected += 1;
        self.change(api, at, |one| {
            one.phase = TryPhase::Over;
            one.occupies = false;
            one.rejected = true;
        });
        let item = self.item_mut(at);
        // The number is free again, unless a later one was given out.
        if item.highest == work.attempt.0 {
            item.highest -= 1;
        }
    }

    fn api_hears_failure(&mut self, api: u32, at: TryAt, retryable: bool) {
        let one = *self.try_at(at);
        let counts = matches!(one.phase, TryPhase::Accepted | TryPhase::Started);
        if !counts || one.cancelled {
            return;
        }
        if retryable {
            self.item_mut(at).failed_on |= 1 << one.worker;
        } else {
            self.item_mut(at).hopeless = true;
            self.apis[api as usize].step.must_fail = Some((at.query, one.session));
        }
        self.change(api, at, |one| {
            one.phase = TryPhase::Over;
            one.occupies = false;
        });
    }

    fn api_fetch_ended(
        &mut self,
        api: u32,
        work: WorkRef,
        session: SessionId,
        result: FetchResult,
    ) {
        let Some(at) = self.find_try(session, work) else { return };
        let one = *self.try_at(at);
        if !one.fetching {
            return;
        }
        let book = &mut self.apis[api as usize];
        book.fetches -= 1;
        book.fetch_bytes -= one.size_bytes;
        if result == FetchResult::Verified && one.is_line() {
            book.step.verified = Some(at);
            let right = self.fetched_right;
            self.hold(Promise::DeliversRight, right, About::api(api).work(work.work_id), || {
                format!("the verified bytes of {work:?} are not what its spec asks for")
            });
            self.item_mut(at).done = Some(one.attempt);
            let share = u64::from(self.shape.coordinator.hedge_budget_per_mille);
            let book = &mut self.apis[api as usize];
            book.hedge_budget = (book.hedge_budget + share).min(HEDGES_SAVED_AT_MOST);
            let took = book.clock.since(one.since);
            let query = &mut self.queries[at.query as usize];
            query.done += 1;
            query.time_taken += took;
        } else if one.is_line() {
            self.item_mut(at).failed_on |= 1 << one.worker;
        }
        self.change(api, at, |one| {
            one.fetching = false;
            one.verified = result == FetchResult::Verified && one.is_line();
        });
    }

    /// A session is over for an API node: nothing on it counts any more.
    pub(super) fn api_session_over(&mut self, api: u32, session: SessionId) {
        let book = &mut self.apis[api as usize];
        let Some(record) = book.sessions.remove(session) else { return };
        if book.listed[record.endpoint as usize] {
            book.away[record.endpoint as usize] = Some((book.clock, true));
        }
        for at in record.tries {
            let one = *self.try_at(at);
            if one.phase == TryPhase::Started && one.is_line() {
                let item = self.item_mut(at);
                item.died_on |= 1 << one.worker;
                let deaths = item.died_on.count_ones();
                if deaths >= self.shape.coordinator.poison_workers {
                    self.apis[api as usize].step.poisoned.push(at.query);
                }
            }
            if one.fetching {
                self.apis[api as usize].step.lost_fetches.push(at);
            }
            self.change(api, at, |one| {
                one.phase = TryPhase::Over;
                one.occupies = false;
            });
        }
    }

    /// The attempt that a session has of some work: the latest, because the number of a rejected
    /// one is given out again.
    pub(super) fn find_try(&self, session: SessionId, work: WorkRef) -> Option<TryAt> {
        let query = self.place_of(work.work_id.query)?;
        let item = self.queries[query].items.get(work.work_id.item as usize)?;
        let is_it = |one: &Try| one.session == session && one.attempt == work.attempt.0;
        let number = item.tries.iter().rposition(is_it)?;
        Some(TryAt {
            query: u32::try_from(query).ok()?,
            item: work.work_id.item,
            number: u32::try_from(number).ok()?,
        })
    }

    pub(super) fn try_at(&self, at: TryAt) -> &Try {
        &self.queries[at.query as usize].items[at.item as usize].tries[at.number as usize]
    }

    pub(super) fn item_mut(&mut self, at: TryAt) -> &mut ItemBook {
        &mut self.queries[at.query as usize].items[at.item as usize]
    }

    fn api_try(
        &mut self,
        api: u32,
        session: SessionId,
        work: WorkRef,
        change: impl FnOnce(&mut Try),
    ) {
        if let Some(at) = self.find_try(session, work) {
            self.change(api, at, change);
        }
    }

    /// Changes an attempt and keeps the counts of its item and its session in step.
    pub(super) fn change(&mut self, api: u32, at: TryAt, change: impl FnOnce(&mut Try)) {
        let item = self.item_mut(at);
        let one = &mut item.tries[at.number as usize];
        let (was_line, was_ready, occupied) = (one.is_line(), one.is_ready(), one.occupies);
        change(one);
        let now = *one;
        item.lines = item.lines + u32::from(now.is_line()) - u32::from(was_line);
        let book = &mut self.apis[api as usize];
        book.ready = book.ready + u32::from(now.is_ready()) - u32::from(was_ready);
        if let Some(session) = book.sessions.get_mut(now.session) {
            session.load = session.load + u32::from(now.occupies) - u32::from(occupied);
            if now.phase == TryPhase::Over {
                session.tries.retain(|other| *other != at);
            }
        }
    }
}
