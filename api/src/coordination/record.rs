//! What became of the work of the latest queries: when each item was assigned, started, ready and
//! fetched, by whom, and how often it was tried. For people who look at a query; no decision rests on
//! it, and it never grows beyond its bounds.

mod sheet;

use std::collections::{BTreeMap, VecDeque};

use core_workcoord::coordinator::{Action, FetchResult, Input};
use core_workcoord::id::{QueryId, SessionId, WorkerId};
use core_workcoord::message::{ApiMessage, CancelReason, WorkRef, WorkerMessage};
use core_workcoord::moment::Moment;

use super::Order;
use crate::error::QueryError;
pub use sheet::{AttemptEnd, AttemptRecord, Brief, ItemRecord, QueryRecord, RecordOutcome};

/// Queries that are remembered. Those that have ended go first, the oldest of them before others.
pub const QUERIES: usize = 64;

/// The latest queries.
#[derive(Debug, Default)]
pub struct Records {
    queries: BTreeMap<QueryId, QueryRecord>,
    /// In the order they came.
    order: VecDeque<QueryId>,
    /// Who is at the other end of a session.
    workers: BTreeMap<SessionId, WorkerId>,
}

impl Records {
    /// A query's work is ordered.
    pub fn begin(&mut self, now: Moment, order: &Order) {
        if self.queries.contains_key(&order.query) {
            return;
        }
        if self.order.len() >= QUERIES {
            self.forget_one();
        }
        self.order.push_back(order.query);
        self.queries.insert(order.query, QueryRecord::of(now, order));
    }

    /// Something is told to the coordinator.
    pub fn told(&mut self, now: Moment, input: &Input) {
        match input {
            Input::Message { session, message } => self.heard(now, *session, message),
            Input::StreamClosed { session } => self.lost(now, *session),
            Input::FetchEnded { work, session, result } => {
                let end = match result {
                    FetchResult::Verified => AttemptEnd::Fetched,
                    FetchResult::Failed => AttemptEnd::FetchFailed,
                    FetchResult::Mismatch => AttemptEnd::Mismatch,
                    FetchResult::Gone => AttemptEnd::ArtifactLost,
                };
                self.end(now, *work, *session, end);
            }
            Input::WorkerDiscovered { .. }
            | Input::WorkerGone { .. }
            | Input::StreamOpened { .. }
            | Input::Malformed { .. }
            | Input::Submit(_)
            | Input::Consumed { .. }
            | Input::CancelQuery { .. }
            | Input::Tick => {}
        }
    }

    /// The coordinator wants something done.
    pub fn wanted(&mut self, now: Moment, action: &Action) {
        match action {
            Action::Send { session, message: ApiMessage::AssignWork(assigned) } => {
                let work = WorkRef { work_id: assigned.work_id, attempt: assigned.attempt };
                self.assigned(now, work, *session);
            }
            Action::Send { session, message: ApiMessage::CancelWork(cancel) } => {
                let end = match cancel.reason {
                    CancelReason::Superseded => AttemptEnd::Superseded,
                    CancelReason::Draining => AttemptEnd::Drained,
                    CancelReason::ArtifactUnusable => AttemptEnd::FetchFailed,
                    CancelReason::ClientGone
                    | CancelReason::QueryFailed
                    | CancelReason::Deadline => AttemptEnd::Cancelled,
                };
                let work = WorkRef { work_id: cancel.work_id, attempt: cancel.attempt };
                self.end(now, work, *session, end);
            }
            Action::Close { session, .. } => self.lost(now, *session),
            Action::Fetch { work, session, .. } => {
                self.note(now, *work, *session, |attempt, at| attempt.fetching_ms = Some(at));
            }
            Action::Deliver { work, .. } => {
                let Some(record) = self.queries.get_mut(&work.query) else { return };
                let at = record.ms(now);
                record.brief.done += 1;
                if let Some(item) = record.items.get_mut(work.item as usize) {
                    item.delivered_ms = Some(at);
                }
            }
            Action::AwaitScaleUp { query } => {
                if let Some(record) = self.queries.get_mut(query) {
                    record.brief.waited_for_workers = true;
                }
            }
            Action::Send { .. }
            | Action::Dial { .. }
            | Action::AbandonFetch { .. }
            | Action::End { .. } => {}
        }
    }

    /// A query is over.
    pub fn ended(&mut self, now: Moment, query: QueryId, how: Result<(), &QueryError>) {
        if let Some(record) = self.queries.get_mut(&query) {
            record.ended(now, how);
        }
    }

    /// Every query that is remembered, the latest first.
    pub fn briefs(&self) -> Vec<Brief> {
        let latest_first = self.order.iter().rev();
        latest_first.filter_map(|query| Some(self.queries.get(query)?.brief.clone())).collect()
    }

    /// One query, if it is remembered.
    pub fn get(&self, query: QueryId) -> Option<&QueryRecord> {
        self.queries.get(&query)
    }

    fn forget_one(&mut self) {
        let has_ended = |query: &QueryId| {
            self.queries.get(query).is_none_or(|record| record.brief.ended_ms.is_some())
        };
        let oldest = self.order.iter().position(has_ended).unwrap_or(0);
        if let Some(query) = self.order.remove(oldest) {
            self.queries.remove(&query);
        }
    }

    fn heard(&mut self, now: Moment, session: SessionId, message: &WorkerMessage) {
        match message {
            WorkerMessage::Welcome(welcome) => {
                self.workers.insert(session, welcome.worker_id.clone());
            }
            WorkerMessage::Accepted(work) => {
                self.note(now, *work, session, |attempt, at| attempt.accepted_ms = Some(at));
            }
            WorkerMessage::Started(work) => {
                self.note(now, *work, session, |attempt, at| attempt.started_ms = Some(at));
            }
            WorkerMessage::Ready(ready) => self.note(now, ready.work, session, |attempt, at| {
                attempt.ready_ms = Some(at);
                attempt.size_bytes = Some(ready.artifact.size_bytes);
                attempt.rows = Some(ready.artifact.row_count);
            }),
            WorkerMessage::Rejected(rejected) => {
                self.end(now, rejected.work, session, AttemptEnd::Rejected);
            }
            WorkerMessage::Failed(failed) => {
                self.end(now, failed.work, session, AttemptEnd::Failed);
            }
            WorkerMessage::ArtifactLost(work) => {
                self.end(now, *work, session, AttemptEnd::ArtifactLost);
            }
            WorkerMessage::Heartbeat(_)
            | WorkerMessage::Status(_)
            | WorkerMessage::Cancelled(_) => {}
        }
    }

    fn assigned(&mut self, now: Moment, work: WorkRef, session: SessionId) {
        let worker = self.workers.get(&session).map(ToString::to_string).unwrap_or_default();
        let Some(record) = self.queries.get_mut(&work.work_id.query) else { return };
        let assigned_ms = record.ms(now);
        let Some(item) = record.items.get_mut(work.work_id.item as usize) else { return };
        item.begin(AttemptRecord::new(work.attempt, worker, session, assigned_ms));
    }

    /// Writes something down about an attempt that is under way on that session.
    fn note(
        &mut self,
        now: Moment,
        work: WorkRef,
        session: SessionId,
        write: impl FnOnce(&mut AttemptRecord, f64),
    ) {
        let Some(record) = self.queries.get_mut(&work.work_id.query) else { return };
        let at = record.ms(now);
        let Some(item) = record.items.get_mut(work.work_id.item as usize) else { return };
        let is_it = |attempt: &&mut AttemptRecord| {
            attempt.attempt == work.attempt.0 && attempt.is_on(session) && attempt.end.is_none()
        };
        if let Some(attempt) = item.attempts.iter_mut().rev().find(is_it) {
            write(attempt, at);
        }
    }

    fn end(&mut self, now: Moment, work: WorkRef, session: SessionId, how: AttemptEnd) {
        self.note(now, work, session, |attempt, at| attempt.end(at, how));
    }

    /// Whatever was on a session is not there any more.
    fn lost(&mut self, now: Moment, session: SessionId) {
        self.workers.remove(&session);
        let running = self.queries.values_mut().filter(|record| record.brief.ended_ms.is_none());
        for record in running {
            let at = record.ms(now);
            let attempts = record.items.iter_mut().flat_map(|item| &mut item.attempts);
            for attempt in attempts.filter(|attempt| attempt.is_on(session)) {
                attempt.end(at, AttemptEnd::WorkerLost);
            }
        }
    }
}

#[cfg(test)]
mod tests;
