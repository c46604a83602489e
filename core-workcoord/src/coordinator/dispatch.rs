//! Who gets what: waiting work onto workers with room, second attempts for stragglers, and the word
//! to waiting clients when nobody is there.

use std::ops::Bound;

use super::{Action, Coordinator, Timer};
use crate::assign::Pick;
use crate::hedge;
use crate::id::{QueryId, SessionId, WorkId};
use crate::message::{ApiMessage, AssignWork};
use crate::moment::Moment;
use crate::sabotage::Bug;
use crate::work_ledger::Line;
use crate::work_state::{Place, Step, WorkEvent, WorkState};

/// Parked items looked at in one go when room has grown. The rest have their turn with the next
/// inputs, so that no single input costs more than a bounded look.
const UNPARK_AT_ONCE: usize = 32;

impl Coordinator {
    /// Gives out waiting work while anybody has room.
    pub(super) fn dispatch(&mut self) {
        if self.roster.take_grew() {
            self.parked_left = self.parked.len();
        }
        if self.parked_left > 0 && self.roster.rotation().has_room() {
            self.unpark();
        }
        while self.roster.rotation().has_room() || self.sabotage.has(Bug::OverfillWorker) {
            let Some(id) = self.next_query() else { break };
            let query = self.ledger.get(id).expect("a ready query is in the ledger");
            let item = query.next_item().expect("a ready query has an item to give out");
            let work = query.item(item);
            let pick = match self.roster.rotation().choose(work.key, work.avoid()) {
                Pick::NoRoom if self.sabotage.has(Bug::OverfillWorker) => self.overfill(),
                pick => pick,
            };
            match pick {
                Pick::Take { session, first_choice } => {
                    self.queue.turn_taken();
                    self.take_off_queue(id, item);
                    self.assign(WorkId { query: id, item }, session, Line::Lead, first_choice);
                }
                Pick::Wait => self.park(id, item),
                Pick::NoRoom => break,
            }
        }
    }

    fn next_query(&self) -> Option<QueryId> {
        if self.sabotage.has(Bug::StarveTenants) {
            let ready = |(id, query): &(QueryId, &crate::work_ledger::Query)| {
                self.queue.is_ready(&query.tenant, *id) == Some(true)
            };
            return self
                .ledger
                .iter()
                .filter(ready)
                .min_by_key(|(_, query)| query.tenant.clone())
                .map(|(id, _)| id);
        }
        self.queue.next()
    }

    /// A deliberate bug: somebody in rotation, room or not.
    fn overfill(&self) -> Pick {
        self.roster
            .rotation()
            .session(0)
            .map_or(Pick::NoRoom, |session| Pick::Take { session, first_choice: false })
    }

    /// An item leaves the books of what waits.
    fn take_off_queue(&mut self, id: QueryId, item: u32) {
        let query = self.ledger.get_mut(id).expect("a ready query is in the ledger");
        if !query.retry.remove(&item) {
            query.fresh = item + 1;
        }
        let still_ready = query.next_item().is_some();
        if !still_ready {
            let tenant = query.tenant.clone();
            self.queue.set_ready(&tenant, id, false);
        }
        self.ledger.queued -= 1;
    }

    /// An item that should go to another worker waits aside for one.
    fn park(&mut self, id: QueryId, item: u32) {
        self.take_off_queue(id, item);
        self.ledger.queued += 1;
        let query = self.ledger.get_mut(id).expect("a ready query is in the ledger");
        query.parked += 1;
        self.parked.insert(WorkId { query: id, item });
    }

    /// Room grew: the next of the parked items may try again.
    fn unpark(&mut self) {
        let portion = UNPARK_AT_ONCE.min(self.parked_left);
        self.parked_left -= portion;
        let after = self.parked_cursor.map_or(Bound::Unbounded, Bound::Excluded);
        let mut some: Vec<_> =
            self.parked.range((after, Bound::Unbounded)).take(portion).copied().collect();
        // Past the last one it goes on with the first.
        let rest = self.parked.iter().take(portion - some.len()).copied();
        let before = |work: &WorkId| self.parked_cursor.is_some_and(|cursor| *work <= cursor);
        some.extend(rest.take_while(before));
        for work in &some {
            self.parked.remove(work);
            let query = self.ledger.get_mut(work.query).expect("its item is parked");
            query.parked -= 1;
            query.retry.insert(work.item);
            let tenant = query.tenant.clone();
            self.queue.set_ready(&tenant, work.query, true);
        }
        self.parked_cursor = some.last().copied();
    }

    fn assign(&mut self, id: WorkId, session: SessionId, line: Line, first_choice: bool) {
        let now = self.now;
        let query = self.ledger.get_mut(id.query).expect("the caller found it");
        let left = query.deadline.since(now);
        let (tenant, traceparent) = (query.tenant.clone(), query.traceparent.clone());
        query.open.insert(id.item);
        let work = query.item_mut(id.item);
        let attempt = work.next_attempt();
        work.attempts += 1;
        let place = Place { on: session, attempt, since: now };
        let Step::To(assigned) = WorkState::Queued.step(WorkEvent::Assign(place)) else {
            unreachable!("what waits can be assigned")
        };
        match line {
            Line::Lead => work.lead = assigned,
            Line::Hedge => work.hedge = Some(Box::new(assigned)),
        }
        let message = AssignWork {
            query_id: id.query,
            leaf_id: work.leaf,
            work_id: id,
            attempt,
            affinity_key: work.key,
            tenant,
            deadline: left,
            traceparent,
            spec: work.spec.clone(),
        };
        let waited = now.since(work.queued_at);
        let live = self.roster.live_mut(session).expect("a worker in rotation is live");
        live.lines.insert(id, attempt);
        live.occupied += 1;
        self.refresh(session);
        if line == Line::Lead {
            self.times.assignment_wait.observe(waited);
        }
        self.counts.assigned += 1;
        self.counts.first_choice += u64::from(first_choice);
        self.send(session, ApiMessage::AssignWork(message));
        self.plan_hedge(id.query);
    }

    /// Sets the clock for a query's next look at its stragglers.
    pub(super) fn plan_hedge(&mut self, id: QueryId) {
        let Some(query) = self.ledger.get_mut(id) else { return };
        let at = hedge::patience(query, &self.config).and_then(|patience| {
            let starts = query
                .open
                .iter()
                .map(|item| query.item(*item))
                .filter(|work| hedge::is_hedgeable(work, &self.config))
                .filter_map(|work| work.lead.place().map(|place| place.since));
            starts.min().map(|start| (start + patience).max(self.now))
        });
        self.set_hedge_timer(id, at);
    }

    fn set_hedge_timer(&mut self, id: QueryId, at: Option<Moment>) {
        let Some(query) = self.ledger.get_mut(id) else { return };
        let before = std::mem::replace(&mut query.hedge_at, at);
        if before == at {
            return;
        }
        if let Some(before) = before {
            self.timers.disarm(before, Timer::Hedge(id));
        }
        if let Some(at) = at {
            self.timers.arm(at, Timer::Hedge(id));
        }
    }

    /// Gives every straggler of a query a second attempt on its next candidate.
    pub(super) fn look_for_stragglers(&mut self, id: QueryId, due: Moment) {
        let Some(query) = self.ledger.get_mut(id) else { return };
        if query.hedge_at != Some(due) {
            return;
        }
        query.hedge_at = None;
        let Some(patience) = hedge::patience(query, &self.config) else { return };
        let is_straggler = |item: &u32| {
            let work = query.item(*item);
            let waited = work.lead.place().map(|place| self.now.since(place.since));
            hedge::is_hedgeable(work, &self.config) && waited >= Some(patience)
        };
        let stragglers: Vec<u32> = query.open.iter().copied().filter(is_straggler).collect();
        let mut left_out = false;
        for item in stragglers {
            left_out |= !self.hedge(WorkId { query: id, item });
        }
        self.plan_hedge(id);
        if left_out {
            // No budget, no room or no other worker: look again after a while.
            let again = self.now + patience.max(self.config.heartbeat_interval / 4);
            self.set_hedge_timer(id, Some(again));
        }
    }

    fn hedge(&mut self, id: WorkId) -> bool {
        let work = self.ledger.work(id).expect("the caller found it");
        let place = work.lead.place().expect("a straggler is somewhere");
        let straggler = self.roster.live(place.on).expect("a lost session gives its work back");
        if !self.hedges.affords() {
            return false;
        }
        let mut taken = work.avoid().to_vec();
        taken.push(straggler.node);
        if self.sabotage.has(Bug::HedgeOnSameWorker) {
            taken.clear();
        }
        match self.roster.rotation().choose_other(work.key, &taken) {
            Pick::Take { session, first_choice } => {
                self.hedges.spend();
                self.counts.hedged += 1;
                self.assign(id, session, Line::Hedge, first_choice);
                true
            }
            Pick::Wait | Pick::NoRoom => false,
        }
    }

    /// Tells every waiting query's client, once for every time that nobody is in rotation.
    pub(super) fn tell_of_scale_up(&mut self) {
        if !std::mem::take(&mut self.scale_up_check) || !self.roster.rotation().is_empty() {
            return;
        }
        let episode = self.scale_up_episode;
        for (id, query) in self.ledger.iter_mut() {
            if query.queued() > 0 && query.told_episode != episode {
                query.told_episode = episode;
                self.actions.push_back(Action::AwaitScaleUp { query: id });
            }
        }
    }
}
