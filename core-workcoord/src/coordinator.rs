//! The API side: takes inputs with the moment they happened, decides, and gives actions.
//!
//! Methods fall into four kinds. *Handler*: [`Coordinator::handle`]. *Polls*:
//! [`Coordinator::poll_action`], to be called until it gives `None` after every input, and
//! [`Coordinator::poll_timeout`], the moment by which the next [`Input::Tick`] is due. *Getters*:
//! [`Coordinator::snapshot`], [`Coordinator::counts`], [`Coordinator::times`]. *Checks*:
//! [`Coordinator::audit`]. The same inputs at the same moments give the same actions, always.
//!
//! The parts: `streams` (sessions and what is said on them), `work` (what follows from a step of a
//! work item), `queries` (their beginning, delivery and end), `dispatch` (who gets what, hedges),
//! `audit` (the numbered promises), `snapshot` (figures for people and scalers).

mod audit;
mod counts;
mod dispatch;
mod io;
mod queries;
mod snapshot;
mod streams;
mod work;

use std::collections::{BTreeSet, VecDeque};

pub(crate) use counts::counts;
pub use counts::{Counts, Times};
pub use io::{
    Action, CloseReason, FetchResult, Input, Outcome, QueryFailure, Refusal, Submission, Violation,
    WorkItem,
};
pub use snapshot::{QueryView, Snapshot, WorkerView};

use crate::config::{BadConfig, CoordinatorConfig};
use crate::fair_queue::FairQueue;
use crate::fetch_queue::FetchQueue;
use crate::hedge::HedgeBudget;
use crate::id::{ApiId, Endpoint, QueryId, SessionId, WorkId};
use crate::message::ApiMessage;
use crate::moment::Moment;
use crate::roster::Roster;
use crate::sabotage::Sabotage;
use crate::timers::Timers;
use crate::work_ledger::WorkLedger;

/// What wakes the coordinator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A session: its heartbeat, its silence, or its opening.
    Session(SessionId),
    /// An address to dial again.
    Redial(Endpoint),
    /// A query's deadline.
    Deadline(QueryId),
    /// A query's stragglers.
    Hedge(QueryId),
}

/// Decides who does which work, for one API node.
#[derive(Clone, Debug)]
pub struct Coordinator {
    config: CoordinatorConfig,
    api_id: ApiId,
    seed: u64,
    now: Moment,
    next_session: u64,
    roster: Roster,
    ledger: WorkLedger,
    queue: FairQueue,
    /// Items given back that wait for a worker they have not failed on.
    parked: BTreeSet<WorkId>,
    /// How many of the parked items are yet to be looked at since room last grew.
    parked_left: usize,
    /// The last one that was looked at.
    parked_cursor: Option<WorkId>,
    fetches: FetchQueue,
    hedges: HedgeBudget,
    timers: Timers<Timer>,
    /// Counts the times that nobody was in rotation; even while somebody is.
    scale_up_episode: u64,
    /// Something began to wait, or somebody left: clients may have to be told.
    scale_up_check: bool,
    /// Sessions that discovery names no more and that may have become idle.
    maybe_retired: Vec<SessionId>,
    actions: VecDeque<Action>,
    counts: Counts,
    times: Times,
    sabotage: Sabotage,
}

impl Coordinator {
    /// A coordinator that knows nobody. The seed is for the jitter of redials.
    pub fn new(config: CoordinatorConfig, api_id: ApiId, seed: u64) -> Result<Self, BadConfig> {
        config.check()?;
        Ok(Self {
            api_id,
            seed,
            now: Moment::ZERO,
            next_session: 1,
            roster: Roster::new(config.worker_queue_ahead),
            ledger: WorkLedger::default(),
            queue: FairQueue::default(),
            parked: BTreeSet::new(),
            parked_left: 0,
            parked_cursor: None,
            fetches: FetchQueue::new(config.max_fetches, config.max_fetch_bytes),
            hedges: HedgeBudget::new(config.hedge_budget_per_mille),
            timers: Timers::default(),
            scale_up_episode: 1,
            scale_up_check: false,
            maybe_retired: Vec::new(),
            actions: VecDeque::new(),
            counts: Counts::default(),
            times: Times::default(),
            sabotage: Sabotage::default(),
            config,
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
        let touched = cfg!(debug_assertions).then(|| audit::Touched::by(&input));
        match input {
            Input::WorkerDiscovered { endpoint } => self.discovered(&endpoint),
            Input::WorkerGone { endpoint } => self.gone(&endpoint),
            Input::StreamOpened { session } => self.opened(session),
            Input::Message { session, message } => self.message(session, message),
            Input::Malformed { session } => self.violation(session, Violation::Malformed),
            Input::StreamClosed { session } => self.lose(session, None),
            Input::Submit(submission) => self.submit(submission),
            Input::Consumed { query, through } => self.consumed(query, through),
            Input::CancelQuery { query } => self.cancel_query(query),
            Input::FetchEnded { work, session, result } => self.fetch_ended(work, session, result),
            Input::Tick => self.tick(),
        }
        self.settle();
        if let Some(touched) = touched
            && self.sabotage.is_off()
            && let Err(broken) = self.audit_touched(&touched)
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

    /// Its configuration.
    pub fn config(&self) -> &CoordinatorConfig {
        &self.config
    }

    /// Whether no query, no work and no unconfirmed cancellation is in any table.
    pub fn is_idle(&self) -> bool {
        self.ledger.is_empty()
            && self.queue.is_empty()
            && self.parked.is_empty()
            && self.fetches.active() + self.fetches.waiting() == 0
            && self
                .roster
                .sessions()
                .filter_map(|(_, session)| session.live())
                .all(|live| live.is_idle() && live.occupied == 0)
    }

    fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    fn send(&mut self, session: SessionId, message: ApiMessage) {
        self.act(Action::Send { session, message });
    }

    fn tick(&mut self) {
        while let Some((at, timer)) = self.timers.pop_due(self.now) {
            match timer {
                Timer::Session(session) => self.wake(session),
                Timer::Redial(endpoint) => self.redial(&endpoint),
                Timer::Deadline(query) => self.deadline_passed(query),
                Timer::Hedge(query) => self.look_for_stragglers(query, at),
            }
        }
    }

    /// What every input may have made possible.
    fn settle(&mut self) {
        self.start_fetches();
        self.dispatch();
        self.tell_of_scale_up();
        self.retire_idle();
    }
}
