//! A query's beginning, the delivery of its results in order, and its end, which comes once.

use super::{Action, Coordinator, Outcome, QueryFailure, Refusal, Submission, Timer};
use crate::id::{Attempt, QueryId, WorkId};
use crate::message::{CancelReason, WorkRef};
use crate::sabotage::Bug;
use crate::work_state::WorkState;

impl Coordinator {
    pub(super) fn submit(&mut self, submission: Submission) {
        self.counts.queries += 1;
        let (id, deadline) = (submission.query, submission.deadline);
        if let Err(refusal) = self.admit(&submission) {
            self.counts.queries_refused += 1;
            return self.act(Action::End { query: id, outcome: Outcome::Refused(refusal) });
        }
        let window = submission.window.clamp(1, self.config.query_window);
        let tenant = submission.tenant.clone();
        self.ledger.enter(submission, window, self.now);
        self.queue.join(&tenant, id);
        self.timers.arm(deadline, Timer::Deadline(id));
        let query = self.ledger.get(id).expect("it has just been entered");
        if query.is_empty() {
            return self.end_query(id, Outcome::Complete, CancelReason::QueryFailed);
        }
        if deadline <= self.now {
            return self.deadline_passed(id);
        }
        self.queue.set_ready(&tenant, id, true);
        self.scale_up_check = true;
    }

    /// Whether there is room for a query. Limits that are reached refuse it at once, with the limit.
    fn admit(&self, submission: &Submission) -> Result<(), Refusal> {
        let config = &self.config;
        let needed = u32::try_from(submission.items.len()).unwrap_or(u32::MAX);
        let reached = |count: usize, limit: u32| count >= limit as usize;
        if self.ledger.get(submission.query).is_some() || self.is_leaving(submission.query) {
            Err(Refusal::DuplicateQuery)
        } else if needed > config.max_query_items {
            Err(Refusal::TooManyItems { limit: config.max_query_items, needed })
        } else if reached(self.ledger.len(), config.max_queries) {
            Err(Refusal::TooManyQueries { limit: config.max_queries })
        } else if reached(self.queue.tenant_queries(&submission.tenant), config.max_tenant_queries)
        {
            Err(Refusal::TooManyTenantQueries { limit: config.max_tenant_queries })
        } else if self.ledger.queued.saturating_add(needed) > config.max_queued_items {
            let (limit, queued) = (config.max_queued_items, self.ledger.queued);
            Err(Refusal::QueueFull { limit, queued, needed })
        } else {
            Ok(())
        }
    }

    /// Whether a query that has ended still has cancellations on their way: its name can't be used
    /// again before they are confirmed.
    fn is_leaving(&self, query: QueryId) -> bool {
        let from = WorkRef { work_id: WorkId { query, item: 0 }, attempt: Attempt(0) };
        let live = self.roster.sessions().filter_map(|(_, session)| session.live());
        live.filter_map(|live| live.cancelling.range(from..).next())
            .any(|(work, _)| work.work_id.query == query)
    }

    pub(super) fn consumed(&mut self, id: QueryId, through: u32) {
        let Some(query) = self.ledger.get_mut(id) else {
            self.counts.late += 1;
            return;
        };
        query.consumed = query.consumed.max(through.min(query.delivered));
        if query.next_item().is_some() {
            let tenant = query.tenant.clone();
            self.queue.set_ready(&tenant, id, true);
        }
    }

    /// Hands over everything that is done and next in order.
    pub(super) fn deliver(&mut self, work: WorkId) {
        let id = work.query;
        let out_of_order = self.sabotage.has(Bug::DeliverOutOfOrder);
        let twice = self.sabotage.has(Bug::DoubleDeliver) && work.item == 1;
        let query = self.ledger.get_mut(id).expect("its item is done");
        let first = query.delivered == 0;
        let mut arrived = out_of_order.then_some(work.item);
        while query.delivered < query.len() {
            let item = arrived.take().unwrap_or(query.delivered);
            let WorkState::Done(attempt, _) = query.item(item).lead else { break };
            let leaf = query.item(item).leaf;
            query.delivered += 1;
            self.counts.delivered += 1;
            let deliver = Action::Deliver { work: WorkId { query: id, item }, leaf, attempt };
            if twice && item == 1 {
                self.actions.push_back(deliver.clone());
            }
            self.actions.push_back(deliver);
            if out_of_order {
                break;
            }
        }
        if first && query.delivered > 0 {
            self.times.first_delivery.observe(self.now.since(query.submitted_at));
        }
        if query.delivered == query.len() {
            self.times.query.observe(self.now.since(query.submitted_at));
            self.end_query(id, Outcome::Complete, CancelReason::QueryFailed);
        } else {
            self.plan_hedge(id);
        }
    }

    pub(super) fn cancel_query(&mut self, id: QueryId) {
        if self.ledger.get(id).is_some() {
            self.end_query(id, Outcome::Cancelled, CancelReason::ClientGone);
        } else {
            self.counts.late += 1;
        }
    }

    pub(super) fn deadline_passed(&mut self, id: QueryId) {
        if self.sabotage.has(Bug::IgnoreDeadline) {
            return;
        }
        let Some(query) = self.ledger.get(id) else { return };
        let no_workers = self.roster.rotation().is_empty();
        let failure = QueryFailure::Deadline { done: query.done, total: query.len(), no_workers };
        self.count_failure(&failure);
        self.end_query(id, Outcome::Failed(failure), CancelReason::Deadline);
    }

    pub(super) fn fail_query(&mut self, id: QueryId, failure: QueryFailure) {
        self.count_failure(&failure);
        self.end_query(id, Outcome::Failed(failure), CancelReason::QueryFailed);
    }

    fn count_failure(&mut self, failure: &QueryFailure) {
        let counts = &mut self.counts;
        *match failure {
            QueryFailure::Deadline { .. } => &mut counts.queries_deadline,
            QueryFailure::WorkFailed { .. } => &mut counts.queries_work_failed,
            QueryFailure::AttemptsExhausted { .. } => &mut counts.queries_exhausted,
            QueryFailure::Poisonous { .. } => &mut counts.queries_poisonous,
            QueryFailure::ArtifactTooLarge { .. } => &mut counts.queries_too_large,
        } += 1;
    }

    /// The one end of a query: out of every table, its work cancelled wherever it is.
    fn end_query(&mut self, id: QueryId, outcome: Outcome, reason: CancelReason) {
        let leaked = self.sabotage.has(Bug::LeakQuery) && outcome == Outcome::Complete;
        let query = if leaked { self.ledger.get(id).cloned() } else { self.ledger.remove(id) };
        let query = query.expect("the caller found it");
        self.queue.leave(&query.tenant, id);
        self.timers.disarm(query.deadline, Timer::Deadline(id));
        if let Some(at) = query.hedge_at {
            self.timers.disarm(at, Timer::Hedge(id));
        }
        if query.parked > 0 {
            let (first, last) =
                (WorkId { query: id, item: 0 }, WorkId { query: id, item: u32::MAX });
            let mine: Vec<_> = self.parked.range(first..=last).copied().collect();
            mine.iter().for_each(|work| {
                self.parked.remove(work);
            });
        }
        match &outcome {
            Outcome::Complete => self.counts.queries_complete += 1,
            Outcome::Cancelled => self.counts.queries_cancelled += 1,
            Outcome::Refused(_) | Outcome::Failed(_) => {}
        }
        let forgotten =
            self.sabotage.has(Bug::ForgetClientGone) && reason == CancelReason::ClientGone;
        for item in query.open.iter().filter(|_| !forgotten) {
            for state in query.item(*item).lines() {
                self.cancel_line(WorkId { query: id, item: *item }, state, reason);
            }
        }
        self.act(Action::End { query: id, outcome });
    }
}
