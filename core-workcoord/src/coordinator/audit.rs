//! The coordinator's numbered promises (1 to 21 of `docs/invariants.md`), checked on its tables.

use super::{Coordinator, Input, Timer};
use crate::assign::Room;
use crate::id::{QueryId, SessionId, WorkId};
use crate::invariant::{Broken, hold};
use crate::message::WorkRef;
use crate::roster::{Phase, Session};
use crate::work_ledger::Query;
use crate::work_state::WorkState;

/// What an input can have touched directly.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Touched {
    session: Option<SessionId>,
    query: Option<QueryId>,
}

impl Touched {
    pub(super) fn by(input: &Input) -> Self {
        use crate::message::WorkerMessage as M;
        match input {
            Input::StreamOpened { session }
            | Input::Malformed { session }
            | Input::StreamClosed { session } => Self { session: Some(*session), query: None },
            Input::Message { session, message } => {
                let work = match message {
                    M::Accepted(work) | M::Started(work) | M::Cancelled(work) => Some(*work),
                    M::ArtifactLost(work) => Some(*work),
                    M::Rejected(rejected) => Some(rejected.work),
                    M::Ready(ready) => Some(ready.work),
                    M::Failed(failed) => Some(failed.work),
                    M::Welcome(_) | M::Heartbeat(_) | M::Status(_) => None,
                };
                let query = work.map(|work| work.work_id.query);
                Self { session: Some(*session), query }
            }
            Input::Submit(submission) => Self { session: None, query: Some(submission.query) },
            Input::Consumed { query, .. } | Input::CancelQuery { query } => {
                Self { session: None, query: Some(*query) }
            }
            Input::FetchEnded { work, session, .. } => {
                Self { session: Some(*session), query: Some(work.work_id.query) }
            }
            Input::WorkerDiscovered { .. } | Input::WorkerGone { .. } | Input::Tick => {
                Self::default()
            }
        }
    }
}

impl Coordinator {
    /// Checks every promise on every table.
    pub fn audit(&self) -> Result<(), Broken> {
        self.check_totals()?;
        self.roster.sessions().try_for_each(|(id, session)| self.check_session(id, session))?;
        self.ledger.iter().try_for_each(|(id, query)| self.check_query(id, query))?;
        self.check_recount()
    }

    /// Checks the promises on what an input touched.
    pub fn audit_input(&self, input: &Input) -> Result<(), Broken> {
        self.audit_touched(&Touched::by(input))
    }

    pub(super) fn audit_touched(&self, touched: &Touched) -> Result<(), Broken> {
        self.check_totals()?;
        if let Some(id) = touched.session
            && let Some(session) = self.roster.session(id)
        {
            self.check_session(id, session)?;
        }
        match touched.query.and_then(|id| Some((id, self.ledger.get(id)?))) {
            Some((id, query)) => self.check_query(id, query),
            None => Ok(()),
        }
    }

    /// Promises that cost nothing to check.
    fn check_totals(&self) -> Result<(), Broken> {
        let rotation = self.roster.rotation();
        hold(1, !rotation.has_room() || self.queue.next().is_none(), || {
            "work waits although a worker has room".into()
        })?;
        hold(2, rotation.is_empty() == (self.scale_up_episode % 2 == 1), || {
            "the scale-up episode and the rotation disagree".into()
        })?;
        hold(3, self.queue.is_empty() == self.ledger.is_empty(), || {
            "queue and ledger disagree on whether there is a query".into()
        })
    }

    fn check_session(&self, id: SessionId, session: &Session) -> Result<(), Broken> {
        let armed = self.timers.is_armed(session.wake_at, Timer::Session(id));
        hold(4, armed, || format!("nothing will wake session {id}"))?;
        let post = self.roster.post(&session.endpoint);
        hold(5, post.is_some_and(|post| post.session == Some(id)), || {
            format!("session {id} is not the one of {}", session.endpoint)
        })?;
        let Phase::Live(live) = &session.phase else { return Ok(()) };
        hold(6, self.roster.session_of(&live.worker) == Some(id), || {
            format!("worker {} has another session than {id}", live.worker)
        })?;
        let should_sit = session.listed && live.accepts();
        let sits = live.seat.is_some_and(|seat| self.roster.rotation().session(seat) == Some(id));
        hold(7, should_sit == sits && sits == live.seat.is_some(), || {
            format!("session {id} should sit in rotation: {should_sit}, does: {sits}")
        })?;
        if let Some(seat) = live.seat {
            let room = live.room(self.config.worker_queue_ahead);
            hold(7, self.roster.rotation().room(seat) == room, || {
                format!("session {id} has room {room:?}, its seat says otherwise")
            })?;
            hold(8, !live.held || room == Room::None, || {
                format!("session {id} refused and has room all the same")
            })?;
        }
        hold(9, session.listed || !live.is_idle(), || {
            format!("session {id} is neither named by discovery nor of use")
        })?;
        let mut occupied = 0;
        for (work, attempt) in &live.lines {
            let state = self.line_state(id, WorkRef { work_id: *work, attempt: *attempt });
            let Some(state) = state else {
                return hold(10, false, || format!("work {work} is on {id} but not in the ledger"));
            };
            hold(11, !(live.drains() && state.is_unstarted()), || {
                format!("unstarted work {work} is left on the draining session {id}")
            })?;
            occupied += u32::from(state.occupies());
        }
        for (work, cancelling) in &live.cancelling {
            hold(12, live.lines.get(&work.work_id) != Some(&work.attempt), || {
                format!("work {} is both cancelled and wanted on {id}", work.work_id)
            })?;
            occupied += u32::from(cancelling.occupies);
        }
        hold(13, occupied == live.occupied, || {
            format!("session {id} counts {} occupied, it is {occupied}", live.occupied)
        })
    }

    fn check_query(&self, id: QueryId, query: &Query) -> Result<(), Broken> {
        hold(4, self.timers.is_armed(query.deadline, Timer::Deadline(id)), || {
            format!("nothing will end query {id} at its deadline")
        })?;
        hold(14, query.delivered < query.len(), || format!("query {id} is over but still here"))?;
        let delivered = query.items.iter().take(query.delivered as usize);
        hold(15, query.delivered <= query.done && query.consumed <= query.delivered, || {
            format!("query {id} delivered more than it has")
        })?;
        // The last one delivered stands for all before it: the others were checked in their turn.
        hold(15, delivered.last().is_none_or(|w| matches!(w.lead, WorkState::Done(..))), || {
            format!("query {id} delivered what is not done")
        })?;
        let ready = self.queue.is_ready(&query.tenant, id);
        hold(3, ready == Some(query.next_item().is_some()), || {
            format!("query {id} has its turn: {ready:?}, has work: {:?}", query.next_item())
        })?;
        for item in &query.open {
            self.check_open_item(WorkId { query: id, item: *item }, query)?;
        }
        for item in &query.retry {
            hold(16, query.item(*item).lead == WorkState::Queued, || {
                format!("item {item} of {id} waits and is on its way")
            })?;
        }
        Ok(())
    }

    fn check_open_item(&self, id: WorkId, query: &Query) -> Result<(), Broken> {
        let work = query.item(id.item);
        let mut workers = [None, None];
        for (state, worker) in work.lines().zip(&mut workers) {
            let Some(place) = state.place() else {
                return hold(16, false, || format!("work {id} is open but nowhere: {state:?}"));
            };
            let live = self.roster.live(place.on);
            let there =
                live.is_some_and(|live| live.lines.get(&id.clone()) == Some(&place.attempt));
            hold(10, there, || format!("work {id} is in the ledger but not on {}", place.on))?;
            *worker = live.map(|live| live.node);
            hold(
                17,
                place.attempt.0 <= work.attempts && work.attempts <= self.config.max_attempts,
                || format!("work {id} is at attempt {} of {}", place.attempt, work.attempts),
            )?;
            let fetching = matches!(state, WorkState::Fetching(..));
            let active = self.fetches.is_active(WorkRef { work_id: id, attempt: place.attempt });
            hold(18, fetching == active, || {
                format!("work {id} is fetching: {fetching}, its fetch is active: {active}")
            })?;
        }
        hold(19, work.hedge.is_none() || workers[0] != workers[1], || {
            format!("work {id} is hedged on the straggler's own worker")
        })?;
        let fetched =
            |state: &WorkState| matches!(state, WorkState::Ready(..) | WorkState::Fetching(..));
        if work.lines().any(fetched) {
            let queued = work.lines().filter_map(WorkState::place).any(|place| {
                let work = WorkRef { work_id: id, attempt: place.attempt };
                self.fetches.is_active(work) || self.fetches.is_waiting(work)
            });
            hold(18, queued, || format!("work {id} is ready and nobody will fetch it"))?;
        }
        hold(20, id.item < query.consumed.saturating_add(query.window), || {
            format!("work {id} is beyond its query's window")
        })
    }

    /// Promises that need a count over everything.
    fn check_recount(&self) -> Result<(), Broken> {
        let queued: u32 = self.ledger.iter().map(|(_, query)| query.queued()).sum();
        hold(21, queued == self.ledger.queued, || {
            format!("{queued} items wait, the ledger says {}", self.ledger.queued)
        })?;
        let parked: u32 = self.ledger.iter().map(|(_, query)| query.parked).sum();
        hold(21, parked as usize == self.parked.len(), || {
            format!("{parked} items are parked, the list has {}", self.parked.len())
        })?;
        hold(3, self.queue.len() == self.ledger.len(), || "queue and ledger differ".into())?;
        let lines = self
            .ledger
            .iter()
            .flat_map(|(_, query)| query.open.iter().flat_map(|item| query.item(*item).lines()));
        let fetching = lines.filter(|state| matches!(state, WorkState::Fetching(..))).count();
        hold(18, fetching == self.fetches.active(), || {
            format!("{fetching} lines are fetching, {} fetches are active", self.fetches.active())
        })?;
        let seated = self.roster.sessions().filter_map(|(_, session)| session.live());
        let seated = seated.filter(|live| live.seat.is_some()).count();
        hold(7, seated == self.roster.rotation().len(), || "the rotation has strangers".into())
    }
}
