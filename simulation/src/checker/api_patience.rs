//! How long an API node may wait: for a sign of life, for an answer, for a straggler.

use std::time::Duration;

use core_workcoord::moment::Moment;

use super::books::{QueryBook, TryPhase};
use super::{Checker, HEDGE_COST, Promise};
use crate::story::SECOND;
use crate::violation::About;

/// How much later than it should an API node may act; it looks at some things once a second only.
const SLACK: u64 = SECOND;

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Checker {
    /// An API node has handled a tick: nothing that should have been given up by then is left.
    pub(super) fn judge_patience(&mut self, api: u32) {
        self.judge_silence(api);
        self.judge_heartbeats(api);
        self.judge_answers_demanded(api);
        self.judge_redials(api);
    }

    fn judge_silence(&mut self, api: u32) {
        let book = &self.apis[api as usize];
        let most = nanos(self.shape.coordinator.heartbeat_timeout) + SLACK;
        let silent = book
            .sessions
            .iter()
            .find(|(_, it)| it.live && it.last_heard.0.saturating_add(most) < book.clock.0);
        if let Some((session, record)) = silent {
            let about = About::api(api).session(session).with_worker(record.worker);
            let since = book.clock.since(record.last_heard);
            self.hold(Promise::SilenceIsLoss, false, about, || {
                format!("api-{api} keeps {session}, which has been silent for {since:?}")
            });
        }
    }

    fn judge_heartbeats(&mut self, api: u32) {
        let book = &self.apis[api as usize];
        let most = nanos(self.shape.coordinator.heartbeat_interval) + SLACK / 2;
        let late = book
            .sessions
            .iter()
            .find(|(_, it)| it.live && it.last_beat.0.saturating_add(most) < book.clock.0);
        if let Some((session, record)) = late {
            let about = About::api(api).session(session).with_worker(record.worker);
            let since = book.clock.since(record.last_beat);
            self.hold(Promise::HeartbeatsOnTime, false, about, || {
                format!("api-{api} has sent no heartbeat on {session} for {since:?}")
            });
        }
    }

    fn judge_answers_demanded(&mut self, api: u32) {
        let book = &self.apis[api as usize];
        let config = &self.shape.coordinator;
        let most = nanos(config.answer_timeout) + nanos(config.heartbeat_interval) + SLACK;
        let unanswered = book.sessions.iter().find_map(|(session, it)| {
            let at = it.tries.iter().copied().find(|at| {
                let one = self.try_at(*at);
                let since = if one.cancelled { one.cancelled_at } else { one.since };
                let waits = one.cancelled || one.phase == TryPhase::Assigned;
                waits && since.0.saturating_add(most) < book.clock.0
            })?;
            Some((session, at))
        });
        if let Some((session, at)) = unanswered {
            let one = *self.try_at(at);
            self.hold(Promise::DemandsAnswers, false, About::api(api).session(session), || {
                format!("api-{api} still waits on {session} for an answer to {one:?}")
            });
        }
    }

    fn judge_redials(&mut self, api: u32) {
        let book = &self.apis[api as usize];
        let most = nanos(self.shape.coordinator.backoff_max) + SLACK / 10;
        let late = book.away.iter().position(|away| {
            away.is_some_and(|(since, _)| since.0.saturating_add(most) < book.clock.0)
        });
        if let Some(endpoint) = late {
            self.hold(Promise::RedialsInTime, false, About::api(api), || {
                format!("api-{api} has not dialled address {endpoint} for too long")
            });
        }
    }

    /// A query that waits only for stragglers gets a second attempt before long. Looked at now and
    /// then; what counts is how long nothing has stood in the way.
    pub(crate) fn judge_stragglers(&mut self, api: u32) {
        let book = &self.apis[api as usize];
        let ahead = self.shape.coordinator.worker_queue_ahead;
        let mut roomy = 0_u64;
        if book.hedge_budget >= HEDGE_COST {
            for (_, it) in book.sessions.iter().filter(|(_, it)| it.is_willing(&book.listed)) {
                let room = !it.held && it.load < it.slots.saturating_add(ahead);
                roomy |= u64::from(room) << it.worker;
            }
        }
        let clock = book.clock;
        for at in 0..self.apis[api as usize].live.len() {
            let place = self.apis[api as usize].live[at] as usize;
            let patience = self.patience_with_stragglers(&self.queries[place], roomy, clock);
            let query = &mut self.queries[place];
            let Some(patience) = patience else {
                query.straggles_since = None;
                continue;
            };
            let since = *query.straggles_since.get_or_insert(clock);
            // An API node looks again after its patience, once nothing stood in the way.
            let most = patience * 2 + Duration::from_nanos(SLACK);
            self.hold(
                Promise::HedgesStragglers,
                clock.since(since) <= most,
                About::api(api),
                || format!("the query at place {place} waits for a straggler that is left alone"),
            );
        }
    }

    /// How long an attempt of a query may take, if one that could have a second has taken longer
    /// and the query waits for nothing else.
    fn patience_with_stragglers(
        &self,
        query: &QueryBook,
        roomy: u64,
        clock: Moment,
    ) -> Option<Duration> {
        let config = &self.shape.coordinator;
        let waits = query.within_window().iter().any(|item| item.waits());
        if roomy == 0 || waits || query.done == 0 || query.done < query.given_out / 2 {
            return None;
        }
        let average = query.time_taken / query.done;
        let patience = average.mul_f64(config.hedge_factor).max(config.hedge_floor);
        let straggles = query.within_window().iter().any(|item| {
            let Some(line) = item.tries.iter().rfind(|one| one.is_line()) else { return false };
            item.lines == 1
                && line.phase < TryPhase::Ready
                && item.highest < config.max_attempts
                && roomy & !(item.failed_on | 1 << line.worker) != 0
                && clock.since(line.since) > patience
        });
        straggles.then_some(patience)
    }
}
