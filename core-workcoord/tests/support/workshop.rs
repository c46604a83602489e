//! A worker's world: an intake, the API nodes that talk to it, the runs it started, and a clock
//! that moves only when the story says so. What the intake wants is told in short words, in order;
//! every promise is checked after every step, and at the end nothing may be left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use core_workcoord::artifact::Artifact;
use core_workcoord::config::IntakeConfig;
use core_workcoord::id::{AffinityKey, Attempt, LeafId, RunId, SessionId, WorkId};
use core_workcoord::intake::{Action, Identity, Input, Intake};
use core_workcoord::message::{
    ApiMessage, ArtifactAck, AssignWork, CancelReason, CancelWork, Failure, Heartbeat, Hello,
    PROTOCOL_VERSION, WorkRef, WorkerMessage,
};
use core_workcoord::moment::Moment;

use super::words::{W1, api, artifact_of, seconds, tenant};

pub const S1: SessionId = SessionId(1);
pub const S2: SessionId = SessionId(2);
pub const S3: SessionId = SessionId(3);

/// API nodes send a heartbeat this often.
const BEAT: Duration = seconds(1);

/// An intake and its world.
pub struct Workshop {
    pub core: Intake,
    pub now: Moment,
    next_beat: Moment,
    seq: u64,
    /// Sessions that were opened and are not over; true when introduced.
    sessions: BTreeMap<SessionId, bool>,
    mute: BTreeSet<SessionId>,
    /// Every run that was started.
    runs: BTreeMap<RunId, (SessionId, WorkRef)>,
    /// Runs that have not ended, and artifacts on disk.
    pub executing: BTreeSet<RunId>,
    pub disk: BTreeSet<RunId>,
    fresh: Vec<Action>,
}

impl Workshop {
    /// A worker with two slots and two places in its queue.
    pub fn open() -> Self {
        Self::with_config(|_| {})
    }

    /// The same, with knobs turned.
    pub fn with_config(turn: impl FnOnce(&mut IntakeConfig)) -> Self {
        let mut config = IntakeConfig { slots: 2, queue_limit: 2, ..IntakeConfig::default() };
        turn(&mut config);
        let identity =
            Identity { worker_id: W1.id(), version: "1".into(), artifact_base_url: W1.base_url() };
        let now = Moment::from_millis(1_000);
        Self {
            core: Intake::new(config, identity).expect("the knobs fit together"),
            now,
            next_beat: now + BEAT,
            seq: 0,
            sessions: BTreeMap::new(),
            mute: BTreeSet::new(),
            runs: BTreeMap::new(),
            executing: BTreeSet::new(),
            disk: BTreeSet::new(),
            fresh: Vec::new(),
        }
    }

    /// API nodes one to `n` open their streams and introduce themselves; the first heartbeats, due
    /// at once, are sent.
    pub fn apis(mut self, n: u64) -> Self {
        (1..=n).for_each(|number| self.greet(SessionId(number)));
        self.tell(Input::Tick);
        self.fresh.clear();
        self
    }

    /// Tells the intake something, checks every promise, and carries out what it wants.
    #[track_caller]
    pub fn tell(&mut self, input: Input) {
        self.core.handle(self.now, input.clone());
        self.core.audit_input(&input).expect("the promises hold for what was touched");
        self.core.audit().expect("every promise holds");
        while let Some(action) = self.core.poll_action() {
            self.note(&action);
            self.fresh.push(action);
        }
        let kept: BTreeSet<RunId> = self.core.artifacts().collect();
        assert!(kept.is_subset(&self.disk), "it believes to have {kept:?}, has {:?}", self.disk);
    }

    fn note(&mut self, action: &Action) {
        match action {
            Action::Send { session, message } => {
                let open = self.sessions.contains_key(session);
                assert!(open, "{message:?} is sent on a session that is over");
            }
            Action::Close { session, .. } => {
                self.sessions.remove(session);
            }
            Action::Start { run, session, work } => {
                let work = WorkRef { work_id: work.work_id, attempt: work.attempt };
                let before = self.runs.insert(*run, (*session, work));
                assert_eq!(before, None, "{run} is started twice");
                self.executing.insert(*run);
            }
            Action::Stop { run } => assert!(self.executing.contains(run), "{run} is not running"),
            Action::Delete { run } => {
                self.disk.remove(run);
            }
            Action::Exit { .. } => {}
        }
    }

    // Streams.

    pub fn open_stream(&mut self, session: SessionId) {
        self.sessions.insert(session, false);
        self.tell(Input::StreamOpened { session, token: format!("token of {session}") });
    }

    /// The API node of this name introduces itself, with its own number for the stream.
    pub fn hello(&mut self, session: SessionId, name: &str, number: u64) {
        if let Some(introduced) = self.sessions.get_mut(&session) {
            *introduced = true;
        }
        let hello = Hello {
            api_id: api(name),
            session_id: SessionId(number),
            protocol_version: PROTOCOL_VERSION,
        };
        self.say(session, ApiMessage::Hello(hello));
    }

    /// Opens a stream and introduces an API node that has no other.
    pub fn greet(&mut self, session: SessionId) {
        self.open_stream(session);
        self.hello(session, &format!("api-{}", session.0), 1);
    }

    #[track_caller]
    pub fn say(&mut self, session: SessionId, message: ApiMessage) {
        self.tell(Input::Message { session, message });
    }

    /// The stream breaks.
    pub fn lose(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        self.tell(Input::StreamClosed { session });
    }

    /// The API node sends no heartbeat from now on.
    pub fn mute(&mut self, session: SessionId) {
        self.mute.insert(session);
    }

    /// Time passes. What is due is done when it is due; API nodes that are not mute send their
    /// heartbeats.
    pub fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let due = self.core.poll_timeout().filter(|due| *due < self.next_beat);
            let at = due.unwrap_or(self.next_beat);
            if at > end {
                break;
            }
            self.now = self.now.max(at);
            match due {
                Some(_) => self.tell(Input::Tick),
                None => self.send_heartbeats(),
            }
        }
        self.now = end;
    }

    fn send_heartbeats(&mut self) {
        self.next_beat = self.now + BEAT;
        self.seq += 1;
        let introduced = self.sessions.iter().filter(|(_, introduced)| **introduced);
        let all: Vec<SessionId> = introduced.map(|(session, _)| *session).collect();
        for session in all {
            if !self.mute.contains(&session) {
                let beat = Heartbeat { seq: self.seq, ..Heartbeat::default() };
                self.say(session, ApiMessage::Heartbeat(beat));
            }
        }
    }

    // Work, as the API nodes see it.

    #[track_caller]
    pub fn assign(&mut self, session: SessionId, work: WorkId) {
        self.assign_attempt(session, work, 1, seconds(3_600));
    }

    #[track_caller]
    pub fn assign_attempt(
        &mut self,
        session: SessionId,
        work: WorkId,
        attempt: u32,
        deadline: Duration,
    ) {
        let assign = AssignWork {
            query_id: work.query,
            leaf_id: LeafId(0),
            work_id: work,
            attempt: Attempt(attempt),
            affinity_key: AffinityKey(1),
            tenant: tenant("acme"),
            deadline,
            traceparent: String::new(),
            spec: Bytes::from_static(b"a leaf over some cells"),
        };
        self.say(session, ApiMessage::AssignWork(assign));
    }

    #[track_caller]
    pub fn cancel(&mut self, session: SessionId, work: WorkId) {
        let reason = CancelReason::ClientGone;
        let cancel = CancelWork { work_id: work, attempt: Attempt::FIRST, reason };
        self.say(session, ApiMessage::CancelWork(cancel));
    }

    #[track_caller]
    pub fn acknowledge(&mut self, session: SessionId, work: WorkId) {
        let checksum = artifact_of(W1, work).checksum;
        self.say(session, ApiMessage::ArtifactAck(ArtifactAck { work_id: work, checksum }));
    }

    // Runs, as the executor sees them.

    /// The latest run of this work for this session.
    #[track_caller]
    pub fn run_of(&self, session: SessionId, work: WorkId) -> RunId {
        let mut newest_first = self.runs.iter().rev();
        let found = newest_first.find(|(_, (of, run))| *of == session && run.work_id == work);
        *found.unwrap_or_else(|| panic!("work {work} was never started for {session}")).0
    }

    /// The run committed its artifact.
    #[track_caller]
    pub fn finish(&mut self, session: SessionId, work: WorkId) {
        let run = self.run_of(session, work);
        self.finish_run(run, artifact_of(W1, work));
    }

    pub fn finish_run(&mut self, run: RunId, artifact: Artifact) {
        self.executing.remove(&run);
        self.disk.insert(run);
        self.tell(Input::RunFinished { run, artifact: Box::new(artifact) });
    }

    #[track_caller]
    pub fn fail(&mut self, session: SessionId, work: WorkId, failure: Failure) {
        let run = self.run_of(session, work);
        self.executing.remove(&run);
        self.tell(Input::RunFailed { run, failure });
    }

    #[track_caller]
    pub fn stopped(&mut self, session: SessionId, work: WorkId) {
        let run = self.run_of(session, work);
        self.executing.remove(&run);
        self.tell(Input::RunStopped { run });
    }

    #[track_caller]
    pub fn evict(&mut self, session: SessionId, work: WorkId) {
        let run = self.run_of(session, work);
        self.disk.remove(&run);
        self.tell(Input::ArtifactEvicted { run });
    }

    // What it came to.

    /// Everything since the story last looked, in short words and in order; no heartbeats.
    pub fn news(&mut self) -> Vec<String> {
        let fresh = std::mem::take(&mut self.fresh);
        fresh.iter().filter_map(|action| self.words(action)).collect()
    }

    #[track_caller]
    pub fn expect(&mut self, news: &[&str]) {
        assert_eq!(self.news(), news);
    }

    /// The heartbeats on a session since the story last looked.
    pub fn heartbeats(&mut self, session: SessionId) -> Vec<Heartbeat> {
        let beat = |action: &Action| match action {
            Action::Send { session: on, message: WorkerMessage::Heartbeat(beat) } => {
                (*on == session).then_some(*beat)
            }
            _ => None,
        };
        let all = self.fresh.iter().filter_map(beat).collect();
        self.fresh.clear();
        all
    }

    /// The raw actions since the story last looked.
    pub fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.fresh)
    }

    fn words(&self, action: &Action) -> Option<String> {
        Some(match action {
            Action::Send { message: WorkerMessage::Heartbeat(_), .. } => return None,
            Action::Send { session, message } => format!("{session} {}", message_words(message)),
            Action::Close { session, reason } => format!("close {session} {reason:?}"),
            Action::Start { session, work, .. } => {
                let work = WorkRef { work_id: work.work_id, attempt: work.attempt };
                format!("start {} of {session}", work_words(work))
            }
            Action::Stop { run } => format!("stop {}", self.run_words(*run)),
            Action::Delete { run } => format!("delete {}", self.run_words(*run)),
            Action::Exit { clean } => format!("exit {}", if *clean { "clean" } else { "late" }),
        })
    }

    fn run_words(&self, run: RunId) -> String {
        match self.runs.get(&run) {
            Some((session, work)) => format!("{} of {session}", work_words(*work)),
            None => format!("unknown {run}"),
        }
    }
}

/// `0` is item 0 of any query, first attempt; `0#2` is the second.
fn work_words(work: WorkRef) -> String {
    match work.attempt {
        Attempt(1) => work.work_id.item.to_string(),
        Attempt(attempt) => format!("{}#{attempt}", work.work_id.item),
    }
}

fn message_words(message: &WorkerMessage) -> String {
    match message {
        WorkerMessage::Welcome(_) => "welcome".into(),
        WorkerMessage::Heartbeat(_) => "heartbeat".into(),
        WorkerMessage::Status(status) => {
            let word = match (status.draining, status.accepting_work) {
                (true, _) => "draining",
                (false, true) => "accepting",
                (false, false) => "not accepting",
            };
            format!("{word}, {} queued, {} running", status.queued, status.running)
        }
        WorkerMessage::Accepted(work) => format!("accepted {}", work_words(*work)),
        WorkerMessage::Started(work) => format!("started {}", work_words(*work)),
        WorkerMessage::Rejected(rejected) => {
            format!("rejected {} {:?}", work_words(rejected.work), rejected.reason)
        }
        WorkerMessage::Ready(ready) => format!("ready {}", work_words(ready.work)),
        WorkerMessage::Failed(failed) => {
            format!("failed {} {:?}", work_words(failed.work), failed.failure.code)
        }
        WorkerMessage::Cancelled(work) => format!("cancelled {}", work_words(*work)),
        WorkerMessage::ArtifactLost(work) => format!("lost {}", work_words(*work)),
    }
}

impl Drop for Workshop {
    /// However a story ends, nothing of it is left behind: no run, no slot, no artifact.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for session in std::mem::take(&mut self.sessions).into_keys() {
            self.tell(Input::StreamClosed { session });
        }
        for run in std::mem::take(&mut self.executing) {
            self.tell(Input::RunStopped { run });
        }
        assert!(self.core.is_idle(), "something is left behind: {:?}", self.core);
        assert_eq!(self.disk, BTreeSet::new(), "artifacts are left on disk");
    }
}
