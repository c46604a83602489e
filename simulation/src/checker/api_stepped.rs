//! What must hold for an API node between any two steps.

use super::books::{ItemBook, QueryPhase, TryPhase};
use super::{Checker, Promise};
use crate::story::MS;
use crate::violation::About;

/// Items set aside for want of the right worker that an API node looks at again in one step.
const LOOKED_AT_IN_A_STEP: usize = 32;

impl Checker {
    /// An API node has handled an input and everything it decided was carried out. `disturbed`: it
    /// stood still, or its clock jumped, just before.
    pub(crate) fn api_stepped(&mut self, api: u32, disturbed: bool) {
        let book = &self.apis[api as usize];
        let overdue = book.clock.0 > book.first_deadline.0.saturating_add(10 * MS);
        if overdue && !disturbed {
            self.judge_deadlines(api);
        }
        if self.apis[api as usize].step.is_tick {
            self.judge_patience(api);
        }
        if !self.apis[api as usize].step.matters {
            return;
        }
        self.judge_drain(api);
        self.judge_ended(api);
        self.judge_verified(api);
        self.judge_lost_fetches(api);
        self.judge_limits(api);
        self.judge_conservation(api);
    }

    fn judge_deadlines(&mut self, api: u32) {
        let book = &self.apis[api as usize];
        let late = book
            .live
            .iter()
            .copied()
            .find(|query| self.queries[*query as usize].deadline.0 + 10 * MS < book.clock.0);
        if let Some(query) = late {
            let since = book.clock.since(self.queries[query as usize].deadline);
            self.hold(Promise::Deadline, false, About::api(api), || {
                format!("the query at place {query} is {since:?} past its deadline")
            });
        }
    }

    fn judge_drain(&mut self, api: u32) {
        let book = &self.apis[api as usize];
        let Some(session) = book.step.drains else { return };
        let Some(record) = book.sessions.get(session) else { return };
        let left = record.tries.iter().find(|at| {
            let one = self.try_at(**at);
            one.is_line() && matches!(one.phase, TryPhase::Assigned | TryPhase::Accepted)
        });
        if let Some(at) = left.copied() {
            let about = About::api(api).session(session).with_worker(record.worker);
            self.hold(Promise::TakesBackFromDraining, false, about, || {
                format!("item {} of the query at place {} stays on {session}", at.item, at.query)
            });
        }
    }

    fn judge_ended(&mut self, api: u32) {
        let step = &self.apis[api as usize].step;
        if let Some((query, session)) = step.must_fail
            && self.apis[api as usize].sessions.contains(session)
            && self.queries[query as usize].phase == QueryPhase::Live
        {
            self.hold(Promise::ReasonForEveryEnd, false, About::api(api).session(session), || {
                format!("the query at place {query} goes on although an item can't be done")
            });
        }
        let poisoned = self.apis[api as usize].step.poisoned.iter().copied();
        let spared = poisoned
            .into_iter()
            .find(|query| self.queries[*query as usize].phase == QueryPhase::Live);
        self.hold(Promise::ReasonForEveryEnd, spared.is_none(), About::api(api), || {
            format!("the query at place {spared:?} goes on although it kills workers")
        });
        for at in 0..self.apis[api as usize].step.ended.len() {
            let query = self.apis[api as usize].step.ended[at];
            let items = &self.queries[query as usize].items;
            let left = items.iter().flat_map(|item| &item.tries).find(|one| {
                let there = self.apis[api as usize].sessions.contains(one.session);
                there && one.phase != TryPhase::Over && !one.cancelled
            });
            if let Some(one) = left.copied() {
                let about = About::api(api).session(one.session).with_worker(one.worker);
                self.hold(Promise::EndCancels, false, about, || {
                    format!("the query at place {query} ended and left {one:?}")
                });
            }
        }
    }

    fn judge_verified(&mut self, api: u32) {
        let Some(at) = self.apis[api as usize].step.verified else { return };
        let one = *self.try_at(at);
        let there = self.apis[api as usize].sessions.contains(one.session);
        let about = About::api(api).session(one.session).with_worker(one.worker);
        self.hold(Promise::Acknowledges, one.acked || !there, about, || {
            format!(
                "item {} of the query at place {} is fetched and not acknowledged",
                at.item, at.query
            )
        });
    }

    fn judge_lost_fetches(&mut self, api: u32) {
        let lost = &self.apis[api as usize].step.lost_fetches;
        if let Some(at) = lost.iter().copied().find(|at| self.try_at(*at).fetching) {
            self.hold(Promise::FetchesAnnounced, false, About::api(api), || {
                format!("a fetch of item {} goes on although its session is over", at.item)
            });
        }
    }

    fn judge_limits(&mut self, api: u32) {
        let book = &self.apis[api as usize];
        let (fetches, ready) = (book.fetches, book.ready);
        if let Some(query) = book.step.asked
            && self.queries[query as usize].phase == QueryPhase::Live
        {
            let (limits, asked) = (&self.shape.coordinator, &self.queries[query as usize]);
            let live = book.live.len();
            let same =
                book.live.iter().filter(|it| self.queries[**it as usize].tenant == asked.tenant);
            let same = same.count();
            let kept = live <= limits.max_queries as usize
                && same <= limits.max_tenant_queries as usize
                && asked.len() <= limits.max_query_items;
            self.hold(Promise::AdmissionLimits, kept, About::api(api), || {
                format!("api-{api} takes a query in and has {live} of all, {same} of its tenant")
            });
        }
        self.hold(Promise::FetchesAtOnce, fetches > 0 || ready == 0, About::api(api), || {
            format!("api-{api} fetches nothing although {ready} artifacts are announced")
        });
    }

    /// With a worker that has room nothing waits, except work that has failed on just that worker
    /// while another one is in rotation.
    fn judge_conservation(&mut self, api: u32) {
        let ahead = self.shape.coordinator.worker_queue_ahead;
        let book = &self.apis[api as usize];
        if book.live.is_empty() {
            return;
        }
        let (mut rotation, mut roomy) = (0_u64, 0_u64);
        for (_, it) in book.sessions.iter() {
            if it.is_willing(&book.listed) {
                rotation |= 1 << it.worker;
                if !it.held && it.load < it.slots.saturating_add(ahead) {
                    roomy |= 1 << it.worker;
                }
            }
        }
        if roomy == 0 {
            return;
        }
        let is_idle = |item: &ItemBook| {
            let others = rotation & !item.failed_on != 0;
            item.waits() && roomy & !(if others { item.failed_on } else { 0 }) != 0
        };
        let items = || {
            book.live.iter().flat_map(|place| {
                let query = &self.queries[*place as usize];
                let items = (query.delivered..).zip(query.within_window());
                items.map(move |(number, item)| (*place, number, item))
            })
        };
        let Some((place, number, _)) = items().find(|(.., item)| is_idle(item)) else {
            self.apis[api as usize].aside = 0;
            return;
        };
        // Of work that failed somewhere only so much is looked at again in one step.
        let aside = items().filter(|(.., item)| item.waits() && item.failed_on != 0).count();
        let fresh = items().any(|(.., item)| is_idle(item) && item.failed_on == 0);
        let steps = book.aside + 1;
        self.apis[api as usize].aside = steps;
        let looks = if fresh { 0 } else { aside / LOOKED_AT_IN_A_STEP };
        self.hold(Promise::WorkConserving, steps <= looks, About::api(api), || {
            format!(
                "item {number} of the query at place {place} waits, workers {roomy:b} have room"
            )
        });
    }
}
