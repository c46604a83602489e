//! What the checker knows of queries, items, attempts, sessions and workers. Plain records; the
//! rules are in the other parts.

use std::time::Duration;

use core_workcoord::artifact::Checksum;
use core_workcoord::config::CoordinatorConfig;
use core_workcoord::id::{RunId, SessionId};
use core_workcoord::message::{Heartbeat, WorkRef};
use core_workcoord::moment::Moment;

use crate::small_map::SmallMap;
use crate::story::{Ending, QueryStory, TENANTS};

/// What is known of one life of an API node.
#[derive(Debug)]
pub(super) struct ApiBook {
    /// The latest moment it was handed.
    pub(super) clock: Moment,
    pub(super) sessions: SmallMap<SessionId, SessionBook>,
    /// Addresses that discovery names to it.
    pub(super) listed: Vec<bool>,
    /// Since when each named address has no stream, and whether it had one before.
    pub(super) away: Vec<Option<(Moment, bool)>>,
    /// Queries that have not ended, by their place in the story.
    pub(super) live: Vec<u32>,
    /// The first deadline of those.
    pub(super) first_deadline: Moment,
    /// How often each tenant with waiting work was passed over since its last turn.
    pub(super) passed_over: [u32; TENANTS as usize],
    pub(super) fetches: u32,
    pub(super) fetch_bytes: u64,
    /// Steps in a row that left work aside although a worker had room for it.
    pub(super) aside: usize,
    /// Attempts whose artifact is announced and wanted.
    pub(super) ready: u32,
    /// What may be spent on second attempts, in thousandths of one.
    pub(super) hedge_budget: u64,
    pub(super) step: ApiStep,
}

/// What happened in the present step of an API node.
#[derive(Debug, Default)]
pub(super) struct ApiStep {
    /// More than a heartbeat: the books may have changed.
    pub(super) matters: bool,
    pub(super) is_tick: bool,
    /// A session said that it drains.
    pub(super) drains: Option<SessionId>,
    /// Queries that ended.
    pub(super) ended: Vec<u32>,
    /// A client asked.
    pub(super) asked: Option<u32>,
    /// A client left.
    pub(super) left: Option<u32>,
    /// A fetch was verified: item, session, attempt.
    pub(super) verified: Option<TryAt>,
    /// A query that must end now, unless this session turns out to be no good.
    pub(super) must_fail: Option<(u32, SessionId)>,
    /// Queries with an item that has killed as many workers as are allowed.
    pub(super) poisoned: Vec<u32>,
    /// Fetches from sessions that are over.
    pub(super) lost_fetches: Vec<TryAt>,
}

impl ApiBook {
    pub(super) fn new(endpoints: usize) -> Self {
        Self {
            clock: Moment::ZERO,
            sessions: SmallMap::default(),
            listed: vec![false; endpoints],
            away: vec![None; endpoints],
            live: Vec::new(),
            first_deadline: Moment(u64::MAX),
            passed_over: [0; TENANTS as usize],
            fetches: 0,
            fetch_bytes: 0,
            aside: 0,
            ready: 0,
            hedge_budget: 0,
            step: ApiStep::default(),
        }
    }
}

/// One session, as its API was told of it.
#[derive(Debug)]
pub(super) struct SessionBook {
    pub(super) endpoint: u32,
    pub(super) worker: u32,
    pub(super) open: bool,
    /// `Welcome` came.
    pub(super) live: bool,
    pub(super) slots: u32,
    pub(super) base_url: String,
    /// Its last status: accepts, and neither drains nor dies.
    pub(super) accepts: bool,
    pub(super) drains: bool,
    /// It refused work and has not spoken of itself since.
    pub(super) held: bool,
    pub(super) load: u32,
    pub(super) last_heard: Moment,
    pub(super) last_beat: Moment,
    pub(super) beats: Beats,
    /// Attempts on it that are not over.
    pub(super) tries: Vec<TryAt>,
}

/// The heartbeats of one side of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beats {
    said: u64,
    heard: u64,
}

impl Beats {
    /// One arrived.
    pub(super) fn hear(&mut self, beat: Heartbeat) {
        self.heard = self.heard.max(beat.seq);
    }

    /// One is sent. Says whether it is counted and echoes the last one heard.
    pub(super) fn say(&mut self, beat: Heartbeat) -> bool {
        self.said += 1;
        beat.seq == self.said && beat.echo_seq == self.heard
    }
}

/// Where an attempt is kept: the query's place, the item, the place among its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TryAt {
    pub(super) query: u32,
    pub(super) item: u32,
    pub(super) number: u32,
}

/// How far a query is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryPhase {
    /// Nobody asked yet, or nobody was there to ask.
    Unasked,
    Live,
    Ended,
    /// Its API died with it.
    Lost,
}

/// One query.
#[derive(Debug)]
pub(super) struct QueryBook {
    pub(super) phase: QueryPhase,
    pub(super) api: u32,
    pub(super) tenant: u32,
    pub(super) deadline: Moment,
    pub(super) window: u32,
    pub(super) delivered: u32,
    pub(super) consumed: u32,
    /// Items before this one were given out.
    pub(super) given_out: u32,
    /// Items fetched and verified, and the time they took in all.
    pub(super) done: u32,
    pub(super) time_taken: Duration,
    /// How often others of its tenant went first since its last turn.
    pub(super) passed_over: u32,
    /// The most queries of its tenant with waiting work since then.
    pub(super) rivals: u32,
    /// Since when it waits for a straggler that could have a second attempt.
    pub(super) straggles_since: Option<Moment>,
    /// Its story has an item that can't be done.
    pub(super) doomed: bool,
    /// Its client leaves at some time.
    pub(super) leaves: bool,
    pub(super) items: Vec<ItemBook>,
}

impl QueryBook {
    pub(super) fn new(story: &QueryStory, config: &CoordinatorConfig) -> Self {
        Self {
            phase: QueryPhase::Unasked,
            api: story.api,
            tenant: story.tenant,
            deadline: Moment::ZERO,
            window: story.window.clamp(1, config.query_window),
            delivered: 0,
            consumed: 0,
            given_out: 0,
            done: 0,
            time_taken: Duration::ZERO,
            passed_over: 0,
            rivals: 0,
            straggles_since: None,
            doomed: story.items.iter().any(|item| item.ending != Ending::Works),
            leaves: story.leaves_after.is_some(),
            items: story.items.iter().map(|_| ItemBook::default()).collect(),
        }
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.items.len()).expect("stories are short")
    }

    /// The items that may be on their way: neither delivered nor beyond the window.
    pub(super) fn within_window(&self) -> &[ItemBook] {
        self.items.get(self.delivered as usize..self.horizon() as usize).unwrap_or_default()
    }

    /// Whether something could go out, were there room. Work that failed somewhere may have to wait
    /// for a certain worker and does not count.
    pub(super) fn has_waiting(&self) -> bool {
        self.within_window().iter().any(|item| item.waits() && item.failed_on == 0)
    }

    /// Items from here on are beyond the window.
    pub(super) fn horizon(&self) -> u32 {
        self.len().min(self.consumed.saturating_add(self.window))
    }
}

/// One work item.
#[derive(Debug, Default)]
pub(super) struct ItemBook {
    pub(super) tries: Vec<Try>,
    /// Attempts on their way that nobody cancelled.
    pub(super) lines: u32,
    /// The highest number given out and not given back.
    pub(super) highest: u32,
    /// Workers it failed on, one bit each.
    pub(super) failed_on: u64,
    /// Workers lost while it was running there, one bit each.
    pub(super) died_on: u64,
    /// The attempt that was fetched and verified.
    pub(super) done: Option<u32>,
    /// A worker said that no retry can help.
    pub(super) hopeless: bool,
    /// A larger artifact than is allowed was announced.
    pub(super) too_large: bool,
}

impl ItemBook {
    pub(super) fn waits(&self) -> bool {
        self.lines == 0 && self.done.is_none()
    }
}

/// How far an attempt is, as its API was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TryPhase {
    Assigned,
    Accepted,
    Started,
    Ready,
    Over,
}

/// One attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Try {
    pub(super) attempt: u32,
    pub(super) session: SessionId,
    pub(super) worker: u32,
    pub(super) phase: TryPhase,
    /// When it was assigned.
    pub(super) since: Moment,
    pub(super) cancelled: bool,
    pub(super) cancelled_at: Moment,
    /// It takes up room on its worker.
    pub(super) occupies: bool,
    pub(super) rejected: bool,
    pub(super) fetching: bool,
    pub(super) verified: bool,
    pub(super) acked: bool,
    /// What was announced.
    pub(super) checksum: Option<Checksum>,
    pub(super) size_bytes: u64,
}

impl Try {
    /// Its artifact is announced and wanted.
    pub(super) fn is_ready(&self) -> bool {
        self.phase == TryPhase::Ready && self.is_line()
    }

    /// It is on its way and wanted.
    pub(super) fn is_line(&self) -> bool {
        self.phase != TryPhase::Over && !self.cancelled && !self.verified
    }
}

impl SessionBook {
    /// In rotation, if discovery names its address.
    pub(super) fn is_willing(&self, listed: &[bool]) -> bool {
        self.live && self.accepts && listed[self.endpoint as usize]
    }
}

/// What is known of one life of a worker.
#[derive(Debug, Default)]
pub(super) struct WorkerBook {
    pub(super) clock: Moment,
    pub(super) sessions: SmallMap<SessionId, WorkerSession>,
    pub(super) pieces: Vec<Piece>,
    /// Cancellations that were told and not confirmed.
    pub(super) cancels: Vec<(SessionId, WorkRef)>,
    /// When it was asked to leave.
    pub(super) drains_since: Option<Moment>,
    /// Its disk is full.
    pub(super) disk_full: bool,
    pub(super) step: WorkerStep,
}

/// What happened in the present step of a worker.
#[derive(Debug, Default)]
pub(super) struct WorkerStep {
    pub(super) matters: bool,
    pub(super) is_tick: bool,
    pub(super) stopped_any: bool,
    /// Sessions that ended.
    pub(super) ended: Vec<SessionId>,
    /// The run whose end was told.
    pub(super) run_over: Option<(RunId, bool)>,
    /// The run whose artifact was evicted before it was acknowledged.
    pub(super) evicted: Option<RunId>,
    /// The session on which an API introduced itself.
    pub(super) hello: Option<SessionId>,
    /// The session on which work was assigned.
    pub(super) assigned: Option<SessionId>,
    /// Runs told to stop for nothing but their deadline.
    pub(super) out_of_time: Vec<RunId>,
    /// The session on which a heartbeat was sent.
    pub(super) beat: Option<SessionId>,
    /// Whether work is welcome may have changed.
    pub(super) changes_admission: bool,
}

/// One session, as its worker was told of it.
#[derive(Debug)]
pub(super) struct WorkerSession {
    pub(super) introduced: bool,
    pub(super) last_heard: Moment,
    pub(super) last_beat: Moment,
    pub(super) beats: Beats,
    /// Starts of others since its last one, while it had work waiting.
    pub(super) passed_over: u32,
    /// It was refused, and the worker has not spoken of itself since.
    pub(super) refused: bool,
    /// What it was last told: items that wait, items that run.
    pub(super) told: Option<(u32, u32)>,
}

/// One attempt, as its worker was told of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) session: SessionId,
    pub(super) work: WorkRef,
    pub(super) phase: PiecePhase,
    pub(super) run: Option<RunId>,
    /// When the time given with it is up.
    pub(super) deadline: Moment,
    pub(super) checksum: Option<Checksum>,
    /// When its artifact was committed, or acknowledged.
    pub(super) since: Moment,
}

/// How far an attempt is on its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PiecePhase {
    /// Assigned in this step.
    Told,
    Accepted,
    /// Handed to the executor, not yet said.
    Starting,
    Started,
    /// Its artifact was committed, not yet said.
    Committed,
    Ready,
    Acked,
    /// Failed, stopped or let go of; the executor may not be done with it.
    Over,
}
