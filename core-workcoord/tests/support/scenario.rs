//! An API node's world: a coordinator, the workers it talks to, and a clock that moves only when
//! the story says so. Every promise is checked after every step, and at the end of every story all
//! queries and sessions are ended to see that nothing is left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use core_workcoord::artifact::Artifact;
use core_workcoord::config::CoordinatorConfig;
use core_workcoord::coordinator::{Action, CloseReason, Coordinator, Input, Outcome};
use core_workcoord::id::{QueryId, SessionId, WorkId};
use core_workcoord::message::{
    ApiMessage, CancelReason, Heartbeat, Welcome, WorkRef, WorkerMessage, WorkerStatus,
};
use core_workcoord::moment::Moment;

use super::verbs::At;
use super::words::{W, accepting, api, draining, plan};

/// A coordinator and its world.
pub struct Scenario {
    pub core: Coordinator,
    pub now: Moment,
    /// How many slots workers have that join from now on.
    pub slots: u32,
    /// The worker behind each session that was ever dialled.
    pub(super) workers: BTreeMap<SessionId, W>,
    /// The sessions that are not over.
    pub(super) present: BTreeMap<W, SessionId>,
    /// Workers that answer no heartbeat.
    mute: BTreeSet<W>,
    /// Every attempt, in the order they were assigned.
    pub(super) assigned: Vec<At>,
    /// Cancellations sent, not confirmed, in order.
    pub(super) cancels: Vec<(At, CancelReason)>,
    /// Fetches under way.
    pub(super) fetching: BTreeMap<WorkRef, (SessionId, Artifact)>,
    /// Everything the coordinator wanted, since the story last looked.
    pub(super) fresh: Vec<Action>,
    pub(super) delivered: Vec<WorkId>,
    pub(super) ended: Vec<(QueryId, Outcome)>,
    pub(super) closed: Vec<(W, CloseReason)>,
    pub(super) submitted: BTreeSet<QueryId>,
}

impl Scenario {
    /// A coordinator that knows nobody, with this seed for its jitter.
    pub fn seeded(seed: u64) -> Self {
        Self::with_config(seed, |_| {})
    }

    /// The same, with knobs turned.
    pub fn with_config(seed: u64, turn: impl FnOnce(&mut CoordinatorConfig)) -> Self {
        let mut config = CoordinatorConfig::default();
        turn(&mut config);
        let core = Coordinator::new(config, api("api-1"), seed).expect("the knobs fit together");
        Self {
            core,
            now: Moment::from_millis(1_000),
            slots: 2,
            workers: BTreeMap::new(),
            present: BTreeMap::new(),
            mute: BTreeSet::new(),
            assigned: Vec::new(),
            cancels: Vec::new(),
            fetching: BTreeMap::new(),
            fresh: Vec::new(),
            delivered: Vec::new(),
            ended: Vec::new(),
            closed: Vec::new(),
            submitted: BTreeSet::new(),
        }
    }

    /// How many slots workers have that join from now on (2).
    pub fn slots(mut self, slots: u32) -> Self {
        self.slots = slots;
        self
    }

    /// Lets workers one to `n` join.
    pub fn workers(mut self, n: u32) -> Self {
        (1..=n).for_each(|number| self.join(W(number)));
        self
    }

    /// Submits a query of `items` items.
    pub fn query(mut self, query: QueryId, items: u32) -> Self {
        self.submit(plan(query, items));
        self
    }

    // The one door.

    /// Tells the coordinator something, checks every promise, and carries out what it wants.
    #[track_caller]
    pub fn tell(&mut self, input: Input) {
        self.core.handle(self.now, input.clone());
        self.core.audit_input(&input).expect("the promises hold for what was touched");
        self.core.audit().expect("every promise holds");
        while let Some(action) = self.core.poll_action() {
            self.note(&action);
            self.fresh.push(action);
        }
    }

    fn note(&mut self, action: &Action) {
        match action {
            Action::Dial { session, endpoint } => {
                let number = endpoint.as_str().trim_start_matches('w');
                let number = number.split(':').next().and_then(|number| number.parse().ok());
                let worker = W(number.expect("a worker of this story"));
                self.workers.insert(*session, worker);
                let before = self.present.insert(worker, *session);
                assert_eq!(before, None, "{worker:?} is dialled while it has a session");
            }
            Action::Send { session, message } => {
                let worker = self.workers[session];
                let present = self.present.get(&worker);
                assert_eq!(present, Some(session), "{message:?} is sent on a session that is over");
                self.note_message(worker, *session, message);
            }
            Action::Close { session, reason } => {
                let worker = self.workers[session];
                self.forget_session(*session);
                self.closed.push((worker, *reason));
            }
            Action::Fetch { work, session, artifact } => {
                let before = self.fetching.insert(*work, (*session, *artifact.clone()));
                assert_eq!(before, None, "{work:?} is fetched twice");
            }
            Action::AbandonFetch { work, session } => {
                let before = self.fetching.remove(work);
                assert_eq!(before.map(|(on, _)| on), Some(*session), "no such fetch: {work:?}");
            }
            Action::Deliver { work, .. } => self.delivered.push(*work),
            Action::End { query, outcome } => self.ended.push((*query, outcome.clone())),
            Action::AwaitScaleUp { .. } => {}
        }
    }

    fn note_message(&mut self, worker: W, session: SessionId, message: &ApiMessage) {
        match message {
            ApiMessage::AssignWork(assign) => {
                let work = WorkRef { work_id: assign.work_id, attempt: assign.attempt };
                self.assigned.push(At { worker, session, work });
            }
            ApiMessage::CancelWork(cancel) => {
                let work = WorkRef { work_id: cancel.work_id, attempt: cancel.attempt };
                self.cancels.push((At { worker, session, work }, cancel.reason));
            }
            ApiMessage::Hello(_) | ApiMessage::ArtifactAck(_) | ApiMessage::Heartbeat(_) => {}
        }
    }

    fn forget_session(&mut self, session: SessionId) {
        self.present.retain(|_, present| *present != session);
        self.cancels.retain(|(at, _)| at.session != session);
    }

    // Workers come and go.

    /// The session with a worker.
    #[track_caller]
    pub fn session(&self, worker: W) -> SessionId {
        *self.present.get(&worker).unwrap_or_else(|| panic!("{worker:?} has no session"))
    }

    /// Discovery names the worker, the stream opens, it introduces itself and takes work.
    #[track_caller]
    pub fn join(&mut self, worker: W) {
        self.discover(worker);
        self.connect(worker);
    }

    pub fn discover(&mut self, worker: W) {
        self.tell(Input::WorkerDiscovered { endpoint: worker.endpoint() });
    }

    pub fn undiscover(&mut self, worker: W) {
        self.tell(Input::WorkerGone { endpoint: worker.endpoint() });
    }

    /// A dialled worker opens its stream, introduces itself and takes work.
    #[track_caller]
    pub fn connect(&mut self, worker: W) {
        self.open(worker);
        self.welcome(worker);
        self.report(worker, accepting(self.slots));
    }

    #[track_caller]
    pub fn open(&mut self, worker: W) {
        self.tell(Input::StreamOpened { session: self.session(worker) });
    }

    #[track_caller]
    pub fn welcome(&mut self, worker: W) {
        self.welcome_as(worker, worker);
    }

    /// The worker introduces itself by another's name.
    #[track_caller]
    pub fn welcome_as(&mut self, worker: W, name: W) {
        let welcome = Welcome {
            worker_id: name.id(),
            version: "1".into(),
            slots: self.slots,
            artifact_base_url: worker.base_url(),
            artifact_token: "secret".into(),
        };
        self.say(worker, WorkerMessage::Welcome(welcome));
    }

    /// The worker speaks of itself.
    #[track_caller]
    pub fn report(&mut self, worker: W, status: WorkerStatus) {
        self.say(worker, WorkerMessage::Status(status));
    }

    /// The worker says that it is leaving.
    #[track_caller]
    pub fn drain(&mut self, worker: W) {
        self.report(worker, draining(self.slots));
    }

    /// The stream to a worker breaks.
    #[track_caller]
    pub fn lose(&mut self, worker: W) {
        let session = self.session(worker);
        self.forget_session(session);
        self.tell(Input::StreamClosed { session });
    }

    /// Time passes until the worker is dialled again; then it is back with a new session.
    #[track_caller]
    pub fn reconnect(&mut self, worker: W) {
        self.wait_for_dial(worker);
        self.connect(worker);
    }

    /// Time passes until the worker is dialled; gives how long that was.
    #[track_caller]
    pub fn wait_for_dial(&mut self, worker: W) -> Duration {
        let since = self.now;
        while !self.present.contains_key(&worker) {
            let due = self.core.poll_timeout().expect("a redial is due");
            assert!(due.since(since) < Duration::from_secs(60), "{worker:?} is not dialled");
            self.pass(due.since(self.now));
        }
        self.now.since(since)
    }

    /// The worker answers no heartbeat from now on.
    pub fn mute(&mut self, worker: W) {
        self.mute.insert(worker);
    }

    /// A message on the worker's present session.
    #[track_caller]
    pub fn say(&mut self, worker: W, message: WorkerMessage) {
        self.say_on(self.session(worker), message);
    }

    /// A message on any session, present or not.
    #[track_caller]
    pub fn say_on(&mut self, session: SessionId, message: WorkerMessage) {
        self.tell(Input::Message { session, message });
    }

    // Time.

    /// Time passes. What is due is done when it is due; workers that are not mute answer every
    /// heartbeat at once.
    #[track_caller]
    pub fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(due) = self.core.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            let before = self.fresh.len();
            self.tell(Input::Tick);
            self.answer_heartbeats(before);
        }
        self.now = end;
    }

    #[track_caller]
    fn answer_heartbeats(&mut self, from: usize) {
        let beats: Vec<_> = self.fresh[from..]
            .iter()
            .filter_map(|action| match action {
                Action::Send { session, message: ApiMessage::Heartbeat(beat) } => {
                    Some((*session, *beat))
                }
                _ => None,
            })
            .collect();
        for (session, beat) in beats {
            let present = self.present.values().any(|present| *present == session);
            if present && !self.mute.contains(&self.workers[&session]) {
                let echo = Heartbeat { seq: beat.seq, sent_unix_nanos: 0, echo_seq: beat.seq };
                self.say_on(session, WorkerMessage::Heartbeat(echo));
            }
        }
    }
}

impl Drop for Scenario {
    /// However a story ends, nothing of it is left behind.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for query in std::mem::take(&mut self.submitted) {
            self.cancel(query);
        }
        for (worker, _) in self.present.clone() {
            self.lose(worker);
        }
        assert!(self.core.is_idle(), "something is left behind: {:?}", self.core);
    }
}
