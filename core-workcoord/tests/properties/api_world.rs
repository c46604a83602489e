//! An API node's coordinator in a world that chance moves: makes inputs of `api_moves`, records
//! them in a journal, and watches with its own eyes what the coordinator wants.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use core_workcoord::artifact::{Artifact, Checksum};
use core_workcoord::config::CoordinatorConfig;
use core_workcoord::coordinator::{Action, Coordinator, FetchResult, Input, Outcome, Submission};
use core_workcoord::id::{Attempt, QueryId, SessionId, WorkId};
use core_workcoord::journal::{Header, Recorder};
use core_workcoord::message::{
    ApiMessage, Heartbeat, RejectReason, Welcome, WorkFailed, WorkReady, WorkRef, WorkRejected,
    WorkerMessage, WorkerStatus,
};
use core_workcoord::moment::Moment;

use super::api_moves::Move;
use crate::support::words::{
    W, accepting, api, artifact_of, draining, lasting_failure, passing_failure, plan, tenant,
};

/// The name the coordinator goes by, and its seed.
const API: &str = "api-1";
const SEED: u64 = 7;

struct Attempted {
    session: SessionId,
    work: WorkRef,
    steps: u8,
}

/// A coordinator, what it wanted so far, and a clock.
pub struct World {
    pub core: Coordinator,
    pub recorder: Recorder,
    now: Moment,
    /// Every session that was ever dialled, with its worker and whether that introduced itself.
    sessions: Vec<(SessionId, W, bool)>,
    open: BTreeSet<SessionId>,
    attempts: Vec<Attempted>,
    cancels: Vec<(SessionId, WorkRef)>,
    fetching: Vec<(SessionId, WorkRef)>,
    said: Vec<Input>,
    /// Queries that have not ended: items in all, items delivered.
    running: BTreeMap<QueryId, (u32, u32)>,
    /// The query submitted last, unless one of its name was running.
    newcomer: Option<QueryId>,
    latest_deadline: Moment,
    pub submitted: u64,
    pub ended: u64,
}

impl World {
    pub fn new(config: CoordinatorConfig) -> Self {
        let header = Header::Coordinator { config: config.clone(), api_id: api(API), seed: SEED };
        Self {
            core: Coordinator::new(config, api(API), SEED).expect("the knobs fit together"),
            recorder: Recorder::new(&header),
            now: Moment::from_millis(10_000),
            sessions: Vec::new(),
            open: BTreeSet::new(),
            attempts: Vec::new(),
            cancels: Vec::new(),
            fetching: Vec::new(),
            said: Vec::new(),
            running: BTreeMap::new(),
            newcomer: None,
            latest_deadline: Moment::ZERO,
            submitted: 0,
            ended: 0,
        }
    }

    /// Everything happens.
    pub fn play(&mut self, moves: &[Move]) {
        moves.iter().for_each(|one| self.make(one));
    }

    /// Time runs past every deadline.
    pub fn outlive_every_deadline(&mut self) {
        self.now = self.now.max(self.latest_deadline);
        self.tell(Input::Tick);
        assert_eq!(self.running, BTreeMap::new(), "a query outlived its deadline");
        assert_eq!(self.ended, self.submitted, "every query ends exactly once");
    }

    /// All queries end, all sessions are lost, all workers leave discovery: nothing is left.
    pub fn wind_down(&mut self) {
        for query in self.running.clone().into_keys() {
            self.tell(Input::CancelQuery { query });
        }
        for session in self.open.clone() {
            self.tell(Input::StreamClosed { session });
            self.open.remove(&session);
        }
        assert!(self.core.is_idle(), "something is left behind: {:?}", self.core);
        (0..4).for_each(|number| self.tell(Input::WorkerGone { endpoint: W(number).endpoint() }));
        self.now = self.now + Duration::from_secs(60);
        self.tell(Input::Tick);
        let view = self.core.snapshot(self.now);
        assert_eq!((view.workers, view.queries), (vec![], vec![]));
        assert_eq!(self.core.poll_timeout(), None, "a timer is left behind");
        assert_eq!(self.fetching, [], "a fetch is left behind");
        assert_eq!(self.ended, self.submitted, "every query ends exactly once");
    }

    fn tell(&mut self, input: Input) {
        if matches!(input, Input::Message { .. }) {
            self.said.push(input.clone());
        }
        self.core.handle(self.now, input.clone());
        self.core.audit_input(&input).expect("the promises hold for what was touched");
        self.core.audit().expect("every promise holds");
        let actions: Vec<Action> = std::iter::from_fn(|| self.core.poll_action()).collect();
        actions.iter().for_each(|action| self.watch(action));
        self.recorder.record::<Coordinator>(self.now, &input, &actions);
    }

    fn watch(&mut self, action: &Action) {
        match action {
            Action::Dial { session, endpoint } => {
                let number = endpoint.as_str()[1..2].parse().expect("a worker of this world");
                self.sessions.push((*session, W(number), false));
                self.open.insert(*session);
            }
            Action::Send { session, message } => {
                assert!(self.open.contains(session), "{message:?} on a session that is over");
                self.watch_message(*session, message);
            }
            Action::Close { session, .. } => {
                assert!(self.open.remove(session), "{session} is closed twice");
                self.cancels.retain(|(on, _)| on != session);
            }
            Action::Fetch { work, session, .. } => {
                assert!(self.open.contains(session), "a fetch from a worker that is gone");
                self.fetching.push((*session, *work));
                let most = self.core.config().max_fetches as usize;
                assert!(self.fetching.len() <= most, "too many fetches: {:?}", self.fetching);
            }
            Action::AbandonFetch { work, session } => {
                let before = self.fetching.len();
                self.fetching.retain(|fetch| *fetch != (*session, *work));
                assert_eq!(before, self.fetching.len() + 1, "no such fetch: {work:?}");
            }
            Action::Deliver { work, .. } => {
                let (total, delivered) =
                    self.running.get_mut(&work.query).expect("it has not ended");
                assert_eq!(work.item, *delivered, "each item once, in order");
                *delivered += 1;
                assert!(*delivered <= *total);
            }
            Action::End { query, outcome } => {
                self.ended += 1;
                if !matches!(outcome, Outcome::Refused(_)) {
                    let (total, delivered) = self.running.remove(query).expect("it ends once");
                    let complete = *outcome == Outcome::Complete;
                    assert_eq!(complete, total == delivered, "{outcome:?}");
                } else if self.newcomer == Some(*query) {
                    self.running.remove(query);
                }
            }
            Action::AwaitScaleUp { query } => assert!(self.running.contains_key(query)),
        }
    }

    fn watch_message(&mut self, session: SessionId, message: &ApiMessage) {
        match message {
            ApiMessage::AssignWork(assign) => {
                let work = WorkRef { work_id: assign.work_id, attempt: assign.attempt };
                let most = self.core.config().max_attempts;
                assert!((1..=most).contains(&work.attempt.0), "attempt {}", work.attempt);
                self.attempts.push(Attempted { session, work, steps: 0 });
            }
            ApiMessage::CancelWork(cancel) => {
                let work = WorkRef { work_id: cancel.work_id, attempt: cancel.attempt };
                assert!(!self.cancels.contains(&(session, work)), "{work:?} is cancelled twice");
                self.cancels.push((session, work));
            }
            ApiMessage::Hello(_) | ApiMessage::ArtifactAck(_) | ApiMessage::Heartbeat(_) => {}
        }
    }

    fn make(&mut self, one: &Move) {
        match *one {
            Move::Discover(number) => {
                self.tell(Input::WorkerDiscovered { endpoint: W(number.into()).endpoint() });
            }
            Move::Gone(number) => {
                self.tell(Input::WorkerGone { endpoint: W(number.into()).endpoint() });
            }
            Move::Connect(at) => self.connect(at),
            Move::Open(at) => self.on_session(at, |session, _| Input::StreamOpened { session }),
            Move::Close(at) => {
                self.on_session(at, |session, _| Input::StreamClosed { session });
                let closed = newest(&self.sessions, at).map(|(session, ..)| *session);
                closed.inspect(|session| self.forget(*session));
            }
            Move::Malformed(at) => self.on_session(at, |session, _| Input::Malformed { session }),
            Move::Welcome(at, name) => {
                self.on_session(at, |session, worker| {
                    say(session, welcome(worker, W(name.into())))
                });
            }
            Move::Status(at, kind, slots) => {
                if let Some(session) = newest(&self.introduced(), at).copied() {
                    self.tell(say(session, status(kind, slots.into())));
                }
            }
            Move::Heartbeat(at, seq) => self.on_session(at, |session, _| {
                let seq = u64::from(seq);
                let beat = Heartbeat { seq, sent_unix_nanos: 0, echo_seq: seq };
                say(session, WorkerMessage::Heartbeat(beat))
            }),
            Move::Alive => self.everybody_is_heard_of(),
            Move::Advance(at) => self.advance(at, None),
            Move::Spoil(at, lasting) => self.advance(at, Some(lasting)),
            Move::Answer(at, kind) => {
                let found = newest(&self.attempts, at).map(|found| (found.session, found.work));
                if let Some((session, work)) = found {
                    self.answer(session, work, kind);
                }
            }
            Move::Nonsense(at, query, item, attempt, kind) => {
                let session = newest(&self.sessions, at).map_or(SessionId(99), |(id, ..)| *id);
                let work_id = WorkId { query: QueryId(query), item };
                self.answer(session, WorkRef { work_id, attempt: Attempt(attempt) }, kind);
            }
            Move::Again(at) => {
                if let Some(input) = newest(&self.said, at).cloned() {
                    self.tell(input);
                }
            }
            Move::ConfirmCancel(at) => {
                if let Some((session, work)) = newest(&self.cancels, at).copied() {
                    self.cancels.retain(|cancel| *cancel != (session, work));
                    self.tell(say(session, WorkerMessage::Cancelled(work)));
                }
            }
            Move::EndFetch(at, kind) => {
                if let Some((session, work)) = newest(&self.fetching, at).copied() {
                    self.end_fetch(session, work, kind);
                }
            }
            Move::StrangeFetch(at, query, item, attempt, kind) => {
                let session = newest(&self.sessions, at).map_or(SessionId(99), |(id, ..)| *id);
                let work_id = WorkId { query: QueryId(query), item };
                self.end_fetch(session, WorkRef { work_id, attempt: Attempt(attempt) }, kind);
            }
            Move::Submit { query, tenant, items, window, deadline } => {
                self.submit(QueryId(query), tenant, items, window, deadline);
            }
            Move::Consume(query, through) => {
                self.tell(Input::Consumed { query: QueryId(query), through });
            }
            Move::CancelQuery(query) => self.tell(Input::CancelQuery { query: QueryId(query) }),
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

    fn forget(&mut self, session: SessionId) {
        self.open.remove(&session);
        self.cancels.retain(|(on, _)| *on != session);
    }

    fn on_session(&mut self, at: u8, input: impl Fn(SessionId, W) -> Input) {
        if let Some((session, worker, _)) = newest(&self.sessions, at).copied() {
            self.tell(input(session, worker));
        }
    }

    fn connect(&mut self, at: u8) {
        let open = |place: &usize| self.open.contains(&self.sessions[*place].0);
        let open: Vec<usize> = (0..self.sessions.len()).filter(open).collect();
        let Some(place) = newest(&open, at).copied() else { return };
        let (session, worker, introduced) = self.sessions[place];
        self.sessions[place].2 = true;
        if !introduced {
            // The last of the workers goes by the name of the one before it.
            let name = W(worker.0.min(2));
            self.tell(Input::StreamOpened { session });
            self.tell(say(session, welcome(worker, name)));
        }
        self.tell(say(session, WorkerMessage::Status(accepting(u32::from(at % 3) + 1))));
    }

    fn introduced(&self) -> Vec<SessionId> {
        let introduced = |known: &&(SessionId, W, bool)| known.2 && self.open.contains(&known.0);
        self.sessions.iter().filter(introduced).map(|known| known.0).collect()
    }

    fn everybody_is_heard_of(&mut self) {
        for session in self.introduced() {
            self.tell(say(session, WorkerMessage::Heartbeat(Heartbeat::default())));
        }
    }

    /// Takes an attempt that is under way one step further, or spoils it.
    fn advance(&mut self, at: u8, spoil: Option<bool>) {
        let going = |place: &usize| {
            let Attempted { session, work, steps } = self.attempts[*place];
            let here = self.open.contains(&session) && !self.cancels.contains(&(session, work));
            here && (steps < 3 || self.fetching.contains(&(session, work)))
        };
        let going: Vec<usize> = (0..self.attempts.len()).filter(going).collect();
        let Some(place) = newest(&going, at).copied() else { return };
        let Attempted { session, work, steps } = self.attempts[place];
        self.attempts[place].steps = if spoil.is_some() { 4 } else { steps + 1 };
        match (steps, spoil) {
            (0..3, None) => self.answer(session, work, steps),
            (_, None) => self.end_fetch(session, work, 0),
            (0, Some(_)) => self.answer(session, work, 10),
            (1, Some(lasting)) => self.answer(session, work, 3 + u8::from(lasting)),
            (2, Some(lasting)) => self.answer(session, work, if lasting { 5 } else { 3 }),
            (_, Some(true)) => self.answer(session, work, 8),
            (_, Some(false)) => self.end_fetch(session, work, 6),
        }
    }

    fn answer(&mut self, session: SessionId, work: WorkRef, kind: u8) {
        let known = self.sessions.iter().find(|(id, ..)| *id == session);
        let worker = known.map_or(W(0), |(_, worker, _)| *worker);
        let artifact = artifact_of(worker, work.work_id);
        let ready = |artifact| WorkerMessage::Ready(WorkReady { work, artifact });
        let message = match kind {
            0 => WorkerMessage::Accepted(work),
            1 => WorkerMessage::Started(work),
            2 => ready(artifact),
            3 => WorkerMessage::Failed(WorkFailed { work, failure: passing_failure() }),
            4 => WorkerMessage::Failed(WorkFailed { work, failure: lasting_failure() }),
            5 => ready(Artifact { size_bytes: 4_001, ..artifact }),
            6 => ready(Artifact { checksum: Checksum([9; 32]), ..artifact }),
            7 => ready(Artifact { url: "http://elsewhere/1".into(), ..artifact }),
            8 => WorkerMessage::ArtifactLost(work),
            9 => WorkerMessage::Cancelled(work),
            _ => WorkerMessage::Rejected(WorkRejected { work, reason: RejectReason::Full }),
        };
        if matches!(message, WorkerMessage::Cancelled(_)) {
            self.cancels.retain(|cancel| *cancel != (session, work));
        }
        self.tell(say(session, message));
    }

    fn end_fetch(&mut self, session: SessionId, work: WorkRef, kind: u8) {
        let result = match kind {
            0..5 => FetchResult::Verified,
            5 => FetchResult::Failed,
            6 => FetchResult::Mismatch,
            _ => FetchResult::Gone,
        };
        self.fetching.retain(|fetch| *fetch != (session, work));
        self.tell(Input::FetchEnded { work, session, result });
    }

    fn submit(&mut self, query: QueryId, name: u8, items: u32, window: u32, deadline: u64) {
        let deadline = self.now + Duration::from_millis(deadline);
        self.latest_deadline = self.latest_deadline.max(deadline);
        self.submitted += 1;
        self.newcomer = (!self.running.contains_key(&query)).then_some(query);
        self.running.entry(query).or_insert((items, 0));
        let tenant = tenant(&format!("tenant-{name}"));
        self.tell(Input::Submit(Submission { tenant, window, deadline, ..plan(query, items) }));
    }
}

/// Chooses from the newest, whatever the number.
fn newest<T>(all: &[T], at: u8) -> Option<&T> {
    all.iter().rev().nth(usize::from(at) % all.len().max(1))
}

fn say(session: SessionId, message: WorkerMessage) -> Input {
    Input::Message { session, message }
}

fn welcome(worker: W, name: W) -> WorkerMessage {
    WorkerMessage::Welcome(Welcome {
        worker_id: name.id(),
        version: "1".into(),
        slots: 1,
        artifact_base_url: worker.base_url(),
        artifact_token: "a secret token".into(),
    })
}

fn status(kind: u8, slots: u32) -> WorkerMessage {
    WorkerMessage::Status(match kind {
        0 => draining(slots),
        1 => WorkerStatus { accepting_work: false, ..accepting(slots) },
        2 => WorkerStatus { alive: false, ..accepting(slots) },
        _ => accepting(slots),
    })
}
