//! The worker side: takes inputs with the moment they happened, decides what is accepted, started,
//! stopped and deleted, and gives actions. Works like [`crate::coordinator::Coordinator`]: `handle`,
//! then `poll_action` until it gives `None`, and a `Tick` by `poll_timeout`.
//!
//! The parts: `sessions` (streams and what is said on them), `runs` (slots, queue, artifacts),
//! `audit` (the numbered promises), `snapshot` (figures). Execution, files and sockets are the
//! driver's.

mod audit;
mod io;
mod runs;
mod sessions;
mod snapshot;

use std::collections::{BTreeMap, VecDeque};

pub use io::{Action, CloseReason, DiskReport, Input};
use runs::{Run, RunState};
use serde::{Deserialize, Serialize};
use sessions::ApiSession;
pub use snapshot::{Counts, SessionView, Snapshot, Times};

use crate::config::{BadConfig, IntakeConfig};
use crate::coordinator::Violation;
use crate::id::{ApiId, RunId, SessionId, WorkerId};
use crate::message::{WorkRef, WorkerMessage};
use crate::moment::Moment;
use crate::sabotage::Sabotage;
use crate::timers::Timers;

/// Who this worker is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its stable name.
    pub worker_id: WorkerId,
    /// Its build.
    pub version: String,
    /// Where its artifacts are.
    pub artifact_base_url: String,
}

/// What wakes the intake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A session: its heartbeat, its silence, or its introduction.
    Session(SessionId),
    /// A run: its deadline, or its artifact's end.
    Run(RunId),
    /// The end of a drain.
    Drain,
}

/// Whether the worker is leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    No,
    Draining { until: Moment },
    Gone,
}

/// Decides what one worker does.
#[derive(Clone, Debug)]
pub struct Intake {
    config: IntakeConfig,
    identity: Identity,
    now: Moment,
    sessions: BTreeMap<SessionId, ApiSession>,
    apis: BTreeMap<ApiId, SessionId>,
    runs: BTreeMap<RunId, Run>,
    by_work: BTreeMap<(SessionId, WorkRef), RunId>,
    next_run: u64,
    /// Slots taken: runs that run, or were told to stop and have not.
    running: u32,
    /// Runs that wait for a slot.
    queued: u32,
    /// The session that was served last; the next one in order is next.
    served: Option<SessionId>,
    disk: DiskReport,
    leaving: Leaving,
    timers: Timers<Timer>,
    actions: VecDeque<Action>,
    counts: Counts,
    times: Times,
    sabotage: Sabotage,
}

impl Intake {
    /// A worker that nobody has spoken to.
    pub fn new(config: IntakeConfig, identity: Identity) -> Result<Self, BadConfig> {
        config.check()?;
        Ok(Self {
            config,
            identity,
            now: Moment::ZERO,
            sessions: BTreeMap::new(),
            apis: BTreeMap::new(),
            runs: BTreeMap::new(),
            by_work: BTreeMap::new(),
            next_run: 1,
            running: 0,
            queued: 0,
            served: None,
            disk: DiskReport { room: true, ..DiskReport::default() },
            leaving: Leaving::No,
            timers: Timers::default(),
            actions: VecDeque::new(),
            counts: Counts::default(),
            times: Times::default(),
            sabotage: Sabotage::default(),
        })
    }

    /// Puts a deliberate bug in, to show that a test finds it.
    #[cfg(feature = "sabotage")]
    pub fn sabotage(&mut self, bug: crate::sabotage::Bug) {
        self.sabotage = Sabotage::with(bug);
    }

    /// Takes in what happened. A moment before the last one counts as the last one.
    pub fn handle(&mut self, now: Moment, input: Input) {
        self.now = self.now.max(now);
        match input {
            Input::StreamOpened { session, token } => self.opened(session, token),
            Input::Message { session, message } => self.message(session, message),
            Input::Malformed { session } => self.violation(session, Violation::Malformed),
            Input::StreamClosed { session } => self.lose(session, None),
            Input::RunFinished { run, artifact } => self.run_finished(run, *artifact),
            Input::RunFailed { run, failure } => self.run_failed(run, failure),
            Input::RunStopped { run } => self.run_stopped(run),
            Input::ArtifactEvicted { run } => self.evicted(run),
            Input::Disk(report) => self.disk_report(report),
            Input::Drain => self.drain(),
            Input::Tick => self.tick(),
        }
        self.settle();
        if cfg!(debug_assertions)
            && self.sabotage.is_off()
            && let Err(broken) = self.audit()
        {
            panic!("{broken}");
        }
    }

    /// The next thing to do, in order.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When the next `Tick` is due.
    pub fn poll_timeout(&self) -> Option<Moment> {
        self.timers.next()
    }

    /// What happened so far, in numbers.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How long things took.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Whether no run and no artifact is in any table.
    pub fn is_idle(&self) -> bool {
        self.runs.is_empty() && self.by_work.is_empty() && self.running + self.queued == 0
    }

    /// The runs whose artifacts should be on disk, and no others should.
    pub fn artifacts(&self) -> impl Iterator<Item = RunId> + '_ {
        let kept = |run: &Run| matches!(run.state, RunState::Ready { .. } | RunState::Acked);
        self.runs.iter().filter(move |(_, run)| kept(run)).map(|(id, _)| *id)
    }

    /// The runs that take up a slot.
    pub fn runs(&self) -> impl Iterator<Item = RunId> + '_ {
        self.runs.iter().filter(|(_, run)| run.state.holds_slot()).map(|(id, _)| *id)
    }

    /// Whether new work is welcome.
    pub fn accepts(&self) -> bool {
        self.leaving == Leaving::No && self.disk.room
    }

    fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    fn send(&mut self, session: SessionId, message: WorkerMessage) {
        self.act(Action::Send { session, message });
    }

    fn tick(&mut self) {
        while let Some((at, timer)) = self.timers.pop_due(self.now) {
            match timer {
                Timer::Session(session) => self.wake(session),
                Timer::Run(run) => self.run_due(run, at),
                Timer::Drain => self.leave(false),
            }
        }
    }

    fn disk_report(&mut self, report: DiskReport) {
        let accepted = self.accepts();
        self.disk = report;
        if self.accepts() != accepted {
            self.tell_everybody();
        }
    }

    fn drain(&mut self) {
        if self.leaving == Leaving::No {
            let until = self.now + self.config.drain_timeout;
            self.leaving = Leaving::Draining { until };
            self.timers.arm(until, Timer::Drain);
            self.tell_everybody();
        }
    }

    /// What every input may have made possible.
    fn settle(&mut self) {
        self.fill_slots();
        self.tell_the_refused();
        if matches!(self.leaving, Leaving::Draining { .. }) && self.nothing_is_owed() {
            self.leave(true);
        }
    }

    /// Whether nothing runs and every artifact was acknowledged.
    fn nothing_is_owed(&self) -> bool {
        self.runs.values().all(|run| matches!(run.state, RunState::Acked))
    }

    /// The end: streams are closed, which cancels what they own.
    fn leave(&mut self, clean: bool) {
        if let Leaving::Draining { until } = self.leaving {
            self.timers.disarm(until, Timer::Drain);
        }
        self.leaving = Leaving::Gone;
        let sessions: Vec<_> = self.sessions.keys().copied().collect();
        for session in sessions {
            self.lose(session, Some(CloseReason::Drained));
        }
        self.act(Action::Exit { clean });
    }
}
