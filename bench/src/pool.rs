//! A coordinator and a pool of imaginary workers that accept, start and finish at once, so that
//! everything that is measured is the coordinator.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use core_workcoord::artifact::{Artifact, Checksum};
use core_workcoord::config::CoordinatorConfig;
use core_workcoord::coordinator::{
    Action, Coordinator, FetchResult, Input, Outcome, Submission, WorkItem,
};
use core_workcoord::id::{
    AffinityKey, ApiId, Endpoint, LeafId, QueryId, SessionId, TenantId, WorkerId,
};
use core_workcoord::message::{
    ApiMessage, Heartbeat, Welcome, WorkReady, WorkRef, WorkerMessage, WorkerStatus,
};
use core_workcoord::moment::Moment;
use xxhash_rust::xxh3::xxh3_64;

/// A coordinator with workers that answer at once, and the answers it has yet to be told.
#[derive(Debug)]
pub struct Pool {
    /// What is measured.
    pub coordinator: Coordinator,
    now: Moment,
    answers: VecDeque<Input>,
    next_query: u128,
    /// Queries that were answered.
    pub complete: u64,
}

const SLOTS: u32 = 4;

impl Pool {
    /// Connects `workers` workers.
    pub fn new(workers: u32) -> Self {
        let config = CoordinatorConfig {
            max_queued_items: 10_000_000,
            max_query_items: 1_000_000,
            max_queries: 1_000_000,
            max_tenant_queries: 1_000_000,
            max_fetches: 100_000,
            ..CoordinatorConfig::default()
        };
        let api = ApiId::new("bench").expect("a plain name");
        let coordinator = Coordinator::new(config, api, 1).expect("the limits fit together");
        let (now, answers) = (Moment::from_millis(1), VecDeque::new());
        let mut pool = Self { coordinator, now, answers, next_query: 1, complete: 0 };
        for worker in 0..workers {
            let endpoint = Endpoint::new(&format!("worker-{worker}:9001")).expect("a plain name");
            pool.tell(Input::WorkerDiscovered { endpoint });
        }
        pool.run(usize::MAX);
        pool
    }

    /// Submits a query of so many items, for one of eight tenants.
    pub fn submit(&mut self, items: u32) {
        let query = QueryId(self.next_query);
        self.next_query += 1;
        let tenant = TenantId::new(&format!("tenant-{}", query.0 % 8)).expect("a plain name");
        let item = |item: u32| WorkItem {
            leaf: LeafId(item % 4),
            affinity_key: AffinityKey(xxh3_64(&(query.0 ^ u128::from(item)).to_le_bytes())),
            spec: Bytes::new(),
        };
        let items = (0..items).map(item).collect();
        let deadline = self.now + Duration::from_secs(86_400);
        let traceparent = String::new();
        self.tell(Input::Submit(Submission {
            query,
            tenant,
            deadline,
            window: u32::MAX,
            traceparent,
            items,
        }));
    }

    /// Tells the coordinator up to `limit` of the answers that wait; gives how many there were.
    pub fn run(&mut self, limit: usize) -> usize {
        for told in 0..limit {
            let Some(answer) = self.answers.pop_front() else { return told };
            self.tell(answer);
        }
        limit
    }

    /// Lets time pass: heartbeats fall due and are echoed.
    pub fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        self.tell(Input::Tick);
    }

    /// Tells the coordinator one thing and answers its actions.
    pub fn tell(&mut self, input: Input) {
        self.now = self.now + Duration::from_nanos(200);
        self.coordinator.handle(self.now, input);
        while let Some(action) = self.coordinator.poll_action() {
            self.answer(action);
        }
    }

    fn answer(&mut self, action: Action) {
        match action {
            Action::Dial { session, .. } => {
                self.answers.push_back(Input::StreamOpened { session });
            }
            Action::Send { session, message } => self.answer_message(session, message),
            Action::Fetch { work, session, .. } => {
                let result = FetchResult::Verified;
                self.answers.push_back(Input::FetchEnded { work, session, result });
            }
            Action::Deliver { work, .. } => {
                let through = work.item + 1;
                self.answers.push_back(Input::Consumed { query: work.query, through });
            }
            Action::End { outcome, .. } => {
                assert_eq!(outcome, Outcome::Complete, "nothing goes wrong here");
                self.complete += 1;
            }
            Action::AwaitScaleUp { .. } | Action::AbandonFetch { .. } => {}
            Action::Close { reason, .. } => panic!("a stream was closed: {reason:?}"),
        }
    }

    fn answer_message(&mut self, session: SessionId, message: ApiMessage) {
        let mut say = |message| self.answers.push_back(Input::Message { session, message });
        match message {
            ApiMessage::Hello(_) => {
                say(WorkerMessage::Welcome(Welcome {
                    worker_id: WorkerId::new(&format!("worker-{}", session.0))
                        .expect("a plain name"),
                    version: String::new(),
                    slots: SLOTS,
                    artifact_base_url: "http://worker".into(),
                    artifact_token: String::new(),
                }));
                say(WorkerMessage::Status(WorkerStatus {
                    alive: true,
                    accepting_work: true,
                    draining: false,
                    queued: 0,
                    running: 0,
                    slots: SLOTS,
                    spool_bytes: 0,
                    cache_bytes: 0,
                    free_bytes: 0,
                }));
            }
            ApiMessage::AssignWork(assign) => {
                let work = WorkRef { work_id: assign.work_id, attempt: assign.attempt };
                say(WorkerMessage::Accepted(work));
                say(WorkerMessage::Started(work));
                let artifact = Artifact {
                    url: "http://worker/artifact".into(),
                    size_bytes: 1_000,
                    checksum: Checksum([0; 32]),
                    row_count: 1,
                    min_ts: 0,
                    max_ts: 0,
                    parquet_schema_version: 1,
                };
                say(WorkerMessage::Ready(WorkReady { work, artifact }));
            }
            ApiMessage::Heartbeat(beat) => {
                let echo_seq = beat.seq;
                say(WorkerMessage::Heartbeat(Heartbeat {
                    seq: echo_seq,
                    sent_unix_nanos: 0,
                    echo_seq,
                }));
            }
            ApiMessage::ArtifactAck(_) => {}
            ApiMessage::CancelWork(cancel) => panic!("{} is cancelled", cancel.work_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_is_answered() {
        let mut pool = Pool::new(10);
        for _ in 0..20 {
            pool.submit(100);
        }
        pool.run(usize::MAX);
        assert_eq!(pool.complete, 20);
        assert!(pool.coordinator.is_idle());
        pool.pass(Duration::from_secs(1));
        assert_eq!(pool.run(usize::MAX), 10, "ten heartbeats are echoed");
        pool.coordinator.audit().unwrap();
    }
}
