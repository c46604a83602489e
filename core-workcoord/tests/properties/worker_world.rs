//! A worker's intake in a world that chance moves: makes inputs of `worker_moves`, records them in
//! a journal, and keeps its own account of sessions, slots and artifacts to compare.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use core_workcoord::artifact::Checksum;
use core_workcoord::config::IntakeConfig;
use core_workcoord::id::{AffinityKey, Attempt, LeafId, QueryId, RunId, SessionId, WorkId};
use core_workcoord::intake::{Action, DiskReport, Identity, Input, Intake};
use core_workcoord::journal::{Header, Recorder};
use core_workcoord::message::{
    ApiMessage, ArtifactAck, AssignWork, CancelReason, CancelWork, Heartbeat, Hello, WorkRef,
    WorkerMessage,
};
use core_workcoord::moment::Moment;

use super::worker_moves::Move;
use crate::support::words::{W1, api, artifact_of, lasting_failure, passing_failure, tenant};

/// An intake, what it wanted so far, and a clock.
pub struct World {
    pub core: Intake,
    pub recorder: Recorder,
    slots: usize,
    now: Moment,
    next_session: u64,
    next_number: u64,
    /// Streams that are open; true when the API node was welcomed.
    open: BTreeMap<SessionId, bool>,
    accepted: Vec<(SessionId, WorkRef)>,
    announced: Vec<(SessionId, WorkId, Checksum)>,
    runs: BTreeMap<RunId, (SessionId, WorkRef)>,
    /// Runs that have not ended; true when told to stop.
    executing: BTreeMap<RunId, bool>,
    disk: BTreeSet<RunId>,
    exits: u32,
}

impl World {
    pub fn new(config: IntakeConfig) -> Self {
        let identity =
            Identity { worker_id: W1.id(), version: "1".into(), artifact_base_url: W1.base_url() };
        let header = Header::Intake { config: config.clone(), identity: identity.clone() };
        Self {
            slots: config.slots as usize,
            core: Intake::new(config, identity).expect("the knobs fit together"),
            recorder: Recorder::new(&header),
            now: Moment::from_millis(10_000),
            next_session: 10,
            next_number: 10,
            open: BTreeMap::new(),
            accepted: Vec::new(),
            announced: Vec::new(),
            runs: BTreeMap::new(),
            executing: BTreeMap::new(),
            disk: BTreeSet::new(),
            exits: 0,
        }
    }

    /// Everything happens.
    pub fn play(&mut self, moves: &[Move]) {
        moves.iter().for_each(|one| self.make(one));
    }

    /// All sessions are lost and every run ends: nothing is left.
    pub fn wind_down(&mut self) {
        while let Some((session, _)) = self.open.pop_first() {
            self.tell(Input::StreamClosed { session });
        }
        let stopped = self.executing.values().all(|told| *told);
        assert!(stopped, "a run goes on although its session is gone: {:?}", self.executing);
        for run in self.executing.clone().into_keys() {
            self.end_run(run, 5);
        }
        assert!(self.core.is_idle(), "something is left behind: {:?}", self.core);
        assert_eq!(self.disk, BTreeSet::new(), "artifacts are left on disk");
        self.now = self.now + Duration::from_secs(3_600);
        self.tell(Input::Tick);
        assert_eq!(self.core.poll_timeout(), None, "a timer is left behind");
    }

    fn tell(&mut self, input: Input) {
        self.core.handle(self.now, input.clone());
        self.core.audit_input(&input).expect("the promises hold for what was touched");
        self.core.audit().expect("every promise holds");
        let actions: Vec<Action> = std::iter::from_fn(|| self.core.poll_action()).collect();
        actions.iter().for_each(|action| self.watch(action));
        self.recorder.record::<Intake>(self.now, &input, &actions);
        let kept: BTreeSet<RunId> = self.core.artifacts().collect();
        assert_eq!(kept, self.disk, "what it believes to have on disk, and what it has");
    }

    fn watch(&mut self, action: &Action) {
        match action {
            Action::Send { session, message } => {
                assert!(self.open.contains_key(session), "{message:?} after the end of {session}");
                self.watch_message(*session, message);
            }
            Action::Close { session, .. } => {
                self.open.remove(session);
            }
            Action::Start { run, session, work } => {
                let work = WorkRef { work_id: work.work_id, attempt: work.attempt };
                self.runs.insert(*run, (*session, work));
                let before = self.executing.insert(*run, false);
                assert_eq!(before, None, "{run} is started twice");
                assert!(self.executing.len() <= self.slots, "more runs than slots");
            }
            Action::Stop { run } => {
                let before = self.executing.insert(*run, true);
                assert_eq!(before, Some(false), "{run} is stopped for no reason");
            }
            Action::Delete { run } => {
                self.disk.remove(run);
            }
            Action::Exit { .. } => {
                self.exits += 1;
                assert_eq!((self.exits, self.open.len()), (1, 0), "it leaves once, and last");
            }
        }
    }

    fn watch_message(&mut self, session: SessionId, message: &WorkerMessage) {
        match message {
            WorkerMessage::Welcome(_) => {
                self.open.insert(session, true);
            }
            WorkerMessage::Accepted(work) => self.accepted.push((session, *work)),
            WorkerMessage::Ready(ready) => {
                let artifact = &ready.artifact;
                self.announced.push((session, ready.work.work_id, artifact.checksum));
            }
            WorkerMessage::Heartbeat(_)
            | WorkerMessage::Status(_)
            | WorkerMessage::Started(_)
            | WorkerMessage::Rejected(_)
            | WorkerMessage::Failed(_)
            | WorkerMessage::Cancelled(_)
            | WorkerMessage::ArtifactLost(_) => {}
        }
    }

    fn make(&mut self, one: &Move) {
        match *one {
            Move::Greet(name) => self.greet(name),
            Move::Open(number) => self.open_stream(SessionId(number)),
            Move::Hello { session, api: name, number, version } => {
                self.hello(SessionId(session), name, number, version);
            }
            Move::Close(at) => {
                if let Some(session) = self.welcomed(at) {
                    self.open.remove(&session);
                    self.tell(Input::StreamClosed { session });
                }
            }
            Move::Malformed(at) => {
                let session = self.welcomed(at).unwrap_or(SessionId(1));
                self.tell(Input::Malformed { session });
            }
            Move::Heartbeat(at) => {
                if let Some(session) = self.welcomed(at) {
                    self.say(session, ApiMessage::Heartbeat(Heartbeat::default()));
                }
            }
            Move::Assign { session, query, item, attempt, millis } => {
                let work_id = WorkId { query: QueryId(query), item };
                let work = WorkRef { work_id, attempt: Attempt(attempt) };
                self.assign(session, work, millis);
            }
            Move::Cancel(at) => {
                if let Some((session, work)) = newest(&self.accepted, at).copied() {
                    self.accepted.retain(|accepted| *accepted != (session, work));
                    self.cancel(session, work);
                }
            }
            Move::CancelAny { session, query, item, attempt } => {
                let work_id = WorkId { query: QueryId(query), item };
                let work = WorkRef { work_id, attempt: Attempt(attempt) };
                self.cancel(SessionId(session), work);
            }
            Move::Acknowledge(at) => {
                if let Some((session, work_id, checksum)) = newest(&self.announced, at).copied() {
                    self.say(session, ApiMessage::ArtifactAck(ArtifactAck { work_id, checksum }));
                }
            }
            Move::AcknowledgeAny { session, query, item, right } => {
                let work_id = WorkId { query: QueryId(query), item };
                let right = right.then(|| artifact_of(W1, work_id).checksum);
                let checksum = right.unwrap_or(Checksum([7; 32]));
                let ack = ArtifactAck { work_id, checksum };
                self.say(SessionId(session), ApiMessage::ArtifactAck(ack));
            }
            Move::EndRun(at, kind) => {
                let all: Vec<RunId> = self.executing.keys().copied().collect();
                newest(&all, at).into_iter().for_each(|run| self.end_run(*run, kind));
            }
            Move::ObeyStop(at) => {
                let told = self.executing.iter().filter(|(_, told)| **told);
                let all: Vec<RunId> = told.map(|(run, _)| *run).collect();
                newest(&all, at).into_iter().for_each(|run| self.end_run(*run, 5));
            }
            Move::StrangeRun(run, kind) => self.strange_run(RunId(run), kind),
            Move::Evict(at) => {
                let all: Vec<RunId> = self.disk.iter().copied().collect();
                if let Some(run) = newest(&all, at).copied() {
                    self.disk.remove(&run);
                    self.tell(Input::ArtifactEvicted { run });
                }
            }
            Move::Disk(room) => {
                self.tell(Input::Disk(DiskReport { room, ..DiskReport::default() }));
            }
            Move::Drain => self.tell(Input::Drain),
            Move::Pass(millis) => {
                self.now = self.now + Duration::from_millis(millis.into());
                self.tell(Input::Tick);
            }
            Move::Back(millis) => self.now = self.now - Duration::from_millis(millis.into()),
            Move::Due => {
                self.now = self.now.max(self.core.poll_timeout().unwrap_or(self.now));
                self.tell(Input::Tick);
            }
        }
    }

    fn open_stream(&mut self, session: SessionId) {
        // A number in use is refused, and the refusal names the number: the driver would close it.
        if self.open.contains_key(&session) {
            return;
        }
        self.open.insert(session, false);
        self.tell(Input::StreamOpened { session, token: "a secret token".into() });
    }

    fn greet(&mut self, name: u8) {
        let session = SessionId(self.next_session);
        self.next_session += 1;
        self.next_number += 1;
        self.open_stream(session);
        self.hello(session, name, self.next_number, 1);
    }

    fn hello(&mut self, session: SessionId, name: u8, number: u64, protocol_version: u32) {
        let api_id = api(&format!("api-{name}"));
        let hello = Hello { api_id, session_id: SessionId(number), protocol_version };
        self.say(session, ApiMessage::Hello(hello));
    }

    fn say(&mut self, session: SessionId, message: ApiMessage) {
        self.tell(Input::Message { session, message });
    }

    /// One of the sessions that were welcomed.
    fn welcomed(&self, at: u8) -> Option<SessionId> {
        let welcomed = self.open.iter().filter(|(_, welcomed)| **welcomed);
        let all: Vec<SessionId> = welcomed.map(|(session, _)| *session).collect();
        newest(&all, at).copied()
    }

    fn assign(&mut self, at: u8, work: WorkRef, millis: u64) {
        let Some(session) = self.welcomed(at) else { return };
        let assign = AssignWork {
            query_id: work.work_id.query,
            leaf_id: LeafId(0),
            work_id: work.work_id,
            attempt: work.attempt,
            affinity_key: AffinityKey(1),
            tenant: tenant("acme"),
            deadline: Duration::from_millis(millis),
            traceparent: String::new(),
            spec: Bytes::from_static(b"a leaf over some cells"),
        };
        self.say(session, ApiMessage::AssignWork(assign));
    }

    fn cancel(&mut self, session: SessionId, work: WorkRef) {
        let WorkRef { work_id, attempt } = work;
        let cancel = CancelWork { work_id, attempt, reason: CancelReason::ClientGone };
        self.say(session, ApiMessage::CancelWork(cancel));
    }

    /// A run that is under way ends.
    fn end_run(&mut self, run: RunId, kind: u8) {
        let (_, work) = self.runs[&run];
        self.executing.remove(&run);
        match kind {
            0..3 => {
                self.disk.insert(run);
                let artifact = Box::new(artifact_of(W1, work.work_id));
                self.tell(Input::RunFinished { run, artifact });
            }
            3 => self.tell(Input::RunFailed { run, failure: passing_failure() }),
            4 => self.tell(Input::RunFailed { run, failure: lasting_failure() }),
            _ => self.tell(Input::RunStopped { run }),
        }
    }

    /// Something is said of a run that is not under way, or was never heard of.
    fn strange_run(&mut self, run: RunId, kind: u8) {
        if self.executing.contains_key(&run) || self.disk.contains(&run) {
            return;
        }
        let work = WorkId { query: QueryId(1), item: 0 };
        self.tell(match kind {
            0..3 => Input::RunFinished { run, artifact: Box::new(artifact_of(W1, work)) },
            3 => Input::RunFailed { run, failure: passing_failure() },
            4 => Input::RunStopped { run },
            _ => Input::ArtifactEvicted { run },
        });
    }
}

/// Chooses from the newest, whatever the number.
fn newest<T>(all: &[T], at: u8) -> Option<&T> {
    all.iter().rev().nth(usize::from(at) % all.len().max(1))
}
