//! Whose work an API node chooses and where it goes: turns between tenants and queries, second
//! attempts, and workers that work has failed on.

use core_workcoord::id::SessionId;
use core_workcoord::moment::Moment;

use super::books::ItemBook;
use super::{Checker, HEDGE_COST, Promise};
use crate::story::TENANTS;
use crate::violation::About;

/// How often a tenant with waiting work may be passed over. Tenants take turns, so each other one
/// may come twice before it, and once more for having come back from a pause in between.
const PASSED_OVER_AT_MOST: u32 = 3 * TENANTS;

impl Checker {
    /// Whether a second attempt can be paid for, and the first has had its time.
    pub(super) fn judge_hedge(&mut self, api: u32, since: Moment, about: About) {
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
    pub(super) fn judge_avoidance(
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
    pub(super) fn judge_fairness(&mut self, api: u32, tenant: u32, about: About) {
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
    pub(super) fn judge_fairness_within_tenant(&mut self, api: u32, query: usize, about: About) {
        let tenant = self.queries[query].tenant;
        let live = &self.apis[api as usize].live;
        let waiting = live.iter().filter(|it| {
            let it = &self.queries[**it as usize];
            it.tenant == tenant && it.within_window().iter().any(ItemBook::waits)
        });
        let waiting = u32::try_from(waiting.count()).expect("stories are short");
        self.queries[query].passed_over = 0;
        for at in 0..self.apis[api as usize].live.len() {
            let other = self.apis[api as usize].live[at] as usize;
            let it = &mut self.queries[other];
            if it.tenant != tenant || other == query {
                continue;
            }
            let waits = it.has_waiting();
            if it.passed_over == 0 || !waits {
                (it.passed_over, it.rivals) = (0, waiting);
            }
            it.passed_over += u32::from(waits);
            it.rivals = it.rivals.max(waiting);
            let (times, rivals) = (it.passed_over, it.rivals);
            self.hold(Promise::FairWithinTenant, times <= 3 * rivals + 3, about, || {
                format!("the query at place {other} was passed over {times} times by {rivals}")
            });
        }
    }

    fn has_waiting(&self, api: u32, tenant: u32) -> bool {
        self.apis[api as usize].live.iter().any(|query| {
            let query = &self.queries[*query as usize];
            query.tenant == tenant && query.has_waiting()
        })
    }
}
