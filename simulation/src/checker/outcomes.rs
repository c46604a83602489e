//! Why a query may end as it did.

use core_workcoord::coordinator::{Outcome, QueryFailure, Refusal};
use core_workcoord::id::{QueryId, WorkId};
use core_workcoord::moment::Moment;

use super::books::{ItemBook, QueryPhase};
use super::{Checker, Promise};
use crate::violation::About;

impl Checker {
    /// An API node says that a query is over.
    pub(crate) fn api_ends(&mut self, api: u32, query: QueryId, outcome: &Outcome) {
        let about = About::api(api).query(query);
        self.apis[api as usize].step.matters = true;
        let place = self.place_of(query);
        let alive = place.is_some_and(|place| self.queries[place].phase == QueryPhase::Live);
        self.hold(Promise::EndsOnce, alive, about, || {
            format!("api-{api} ends {query}, which is over or was never asked: {outcome:?}")
        });
        let Some(place) = place.filter(|_| alive) else { return };
        match outcome {
            Outcome::Complete => {
                let (delivered, all) = (self.queries[place].delivered, self.queries[place].len());
                self.hold(Promise::CompleteWhenAll, delivered == all, about, || {
                    format!("{query} is complete with {delivered} of {all} items delivered")
                });
                self.tally.complete += 1;
            }
            Outcome::Cancelled => {
                let left = self.apis[api as usize].step.left;
                let asked = left.is_some_and(|left| left as usize == place);
                self.judge_end(asked, about, outcome);
                self.tally.cancelled += 1;
            }
            Outcome::Refused(refusal) => {
                let reached = self.limit_is_reached(api, place, *refusal);
                self.judge_end(reached, about, outcome);
                self.tally.refused += 1;
            }
            Outcome::Failed(failure) => {
                let true_reason = self.failure_is_true(api, place, failure);
                self.judge_end(true_reason, about, outcome);
                self.tally.count_failure(failure);
            }
        }
        self.judge_quiet(place, outcome, about);
        self.queries[place].phase = QueryPhase::Ended;
        let place = u32::try_from(place).expect("stories are short");
        let book = &mut self.apis[api as usize];
        book.live.retain(|live| *live != place);
        book.step.ended.push(place);
        book.first_deadline = book
            .live
            .iter()
            .map(|live| self.queries[*live as usize].deadline)
            .min()
            .unwrap_or(Moment(u64::MAX));
    }

    fn judge_end(&mut self, justified: bool, about: About, outcome: &Outcome) {
        self.hold(Promise::ReasonForEveryEnd, justified, about, || {
            format!("a query ended without reason as {outcome:?}")
        });
    }

    /// When nothing goes wrong, a query ends badly only if its own story says so.
    fn judge_quiet(&mut self, place: usize, outcome: &Outcome, about: About) {
        let query = &self.queries[place];
        let fine = match outcome {
            Outcome::Complete | Outcome::Refused(_) => true,
            Outcome::Cancelled => query.leaves,
            Outcome::Failed(
                QueryFailure::WorkFailed { .. } | QueryFailure::ArtifactTooLarge { .. },
            ) => query.doomed,
            Outcome::Failed(_) => false,
        };
        let quiet = self.shape.quiet;
        self.hold(Promise::QuietCompletes, fine || !quiet, about, || {
            format!("nothing went wrong, and a query ended as {outcome:?}")
        });
    }

    fn limit_is_reached(&self, api: u32, place: usize, refusal: Refusal) -> bool {
        let limits = &self.shape.coordinator;
        let mine = u32::try_from(place).expect("stories are short");
        let query = &self.queries[place];
        let others = self.apis[api as usize].live.iter().filter(|live| **live != mine);
        let others = others.map(|live| &self.queries[*live as usize]);
        let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        match refusal {
            Refusal::TooManyQueries { limit } => {
                limit == limits.max_queries && small(others.count()) >= limit
            }
            Refusal::TooManyTenantQueries { limit } => {
                let same = others.filter(|other| other.tenant == query.tenant);
                limit == limits.max_tenant_queries && small(same.count()) >= limit
            }
            Refusal::QueueFull { limit, queued, needed } => {
                let waits = others.flat_map(|other| &other.items).filter(|item| item.waits());
                limit == limits.max_queued_items
                    && queued == small(waits.count())
                    && needed == query.len()
                    && queued.saturating_add(needed) > limit
            }
            Refusal::TooManyItems { limit, needed } => {
                limit == limits.max_query_items && needed == query.len() && needed > limit
            }
            Refusal::DuplicateQuery => false,
        }
    }

    fn item_of(&self, place: usize, work: WorkId) -> Option<&ItemBook> {
        let same = self.place_of(work.query) == Some(place);
        self.queries[place].items.get(work.item as usize).filter(|_| same)
    }

    fn failure_is_true(&self, api: u32, place: usize, failure: &QueryFailure) -> bool {
        let query = &self.queries[place];
        let limits = &self.shape.coordinator;
        match failure {
            QueryFailure::Deadline { done, total, .. } => {
                let finished = query.items.iter().filter(|item| item.done.is_some()).count();
                self.apis[api as usize].clock >= query.deadline
                    && *total == query.len()
                    && *done as usize == finished
            }
            QueryFailure::WorkFailed { work, .. } => {
                self.item_of(place, *work).is_some_and(|item| item.hopeless)
            }
            QueryFailure::AttemptsExhausted { work, attempts, .. } => {
                *attempts == limits.max_attempts
                    && self.item_of(place, *work).is_some_and(|item| {
                        item.highest == *attempts && item.lines == 0 && item.done.is_none()
                    })
            }
            QueryFailure::Poisonous { work, workers } => {
                *workers >= limits.poison_workers
                    && self
                        .item_of(place, *work)
                        .is_some_and(|item| item.died_on.count_ones() >= *workers)
            }
            QueryFailure::ArtifactTooLarge { work, size_bytes, limit_bytes } => {
                *limit_bytes == limits.max_artifact_bytes
                    && size_bytes > limit_bytes
                    && self.item_of(place, *work).is_some_and(|item| item.too_large)
            }
        }
    }
}
