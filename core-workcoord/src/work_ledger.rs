//! All queries and their work: what waits, what is on its way, what is done, what was delivered.
//! Keeps the books; who works and when is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;

use crate::assign::Node;
use crate::coordinator::{Submission, WorkItem};
use crate::id::{AffinityKey, Attempt, LeafId, QueryId, SessionId, TenantId, WorkId};
use crate::moment::Moment;
use crate::work_state::WorkState;

/// One work item.
#[derive(Clone, Debug)]
pub struct Work {
    /// The leaf it is part of.
    pub leaf: LeafId,
    /// What it would like to stay close to.
    pub key: AffinityKey,
    /// What the worker is told. Let go of when the item is done.
    pub spec: Bytes,
    /// When it last began to wait.
    pub queued_at: Moment,
    /// Attempts so far. A rejected one is given back.
    pub attempts: u32,
    /// The item's state: its only line, or the older of two.
    pub lead: WorkState,
    /// A second line, while a straggler is hedged.
    pub hedge: Option<Box<WorkState>>,
    /// Where it went wrong; most items have none.
    pub trouble: Option<Box<Trouble>>,
}

/// Where a work item went wrong before.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    /// Workers it failed on: others come first.
    pub failed_on: Vec<Node>,
    /// Workers that were lost while it was running there.
    pub died_on: Vec<Node>,
}

/// Which of a work item's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The only one, or the older.
    Lead,
    /// The second one.
    Hedge,
}

impl Work {
    fn new(item: WorkItem, now: Moment) -> Self {
        Self {
            leaf: item.leaf,
            key: item.affinity_key,
            spec: item.spec,
            queued_at: now,
            attempts: 0,
            lead: WorkState::Queued,
            hedge: None,
            trouble: None,
        }
    }

    /// The number of the next attempt.
    pub fn next_attempt(&self) -> Attempt {
        Attempt(self.attempts + 1)
    }

    /// The state of one line; a hedge that is not there is as good as cancelled.
    pub fn line(&self, line: Line) -> &WorkState {
        match (line, &self.hedge) {
            (Line::Lead, _) => &self.lead,
            (Line::Hedge, Some(state)) => state,
            (Line::Hedge, None) => &WorkState::Cancelled,
        }
    }

    /// The line that is on this session with this attempt.
    pub fn line_at(&self, session: SessionId, attempt: Attempt) -> Option<Line> {
        let is_at = |state: &WorkState| {
            state.place().is_some_and(|place| (place.on, place.attempt) == (session, attempt))
        };
        if is_at(&self.lead) {
            Some(Line::Lead)
        } else if self.hedge.as_deref().is_some_and(is_at) {
            Some(Line::Hedge)
        } else {
            None
        }
    }

    /// Both lines' states.
    pub fn lines(&self) -> impl Iterator<Item = &WorkState> {
        std::iter::once(&self.lead).chain(self.hedge.as_deref())
    }

    /// Workers to avoid.
    pub fn avoid(&self) -> &[Node] {
        self.trouble.as_deref().map_or(&[], |trouble| &trouble.failed_on)
    }

    /// Notes a worker the item failed on.
    pub fn failed_on(&mut self, node: Node) {
        let list = &mut self.trouble.get_or_insert_default().failed_on;
        if !list.contains(&node) {
            list.push(node);
        }
    }

    /// Notes a worker that was lost while the item was running there; gives how many there were.
    pub fn died_on(&mut self, node: Node) -> usize {
        let list = &mut self.trouble.get_or_insert_default().died_on;
        if !list.contains(&node) {
            list.push(node);
        }
        list.len()
    }
}

/// One query.
#[derive(Clone, Debug)]
pub struct Query {
    /// Whose it is.
    pub tenant: TenantId,
    /// When it must have ended.
    pub deadline: Moment,
    /// When it came.
    pub submitted_at: Moment,
    /// Handed to the workers.
    pub traceparent: String,
    /// Items may be given out up to this many after the first one still needed.
    pub window: u32,
    /// Its work, in time order.
    pub items: Vec<Work>,
    /// Items from here on were never given out.
    pub fresh: u32,
    /// Items given back, to be given out first.
    pub retry: BTreeSet<u32>,
    /// Items given back that wait for a worker they have not failed on.
    pub parked: u32,
    /// Items with a line: assigned up to fetching.
    pub open: BTreeSet<u32>,
    /// Items done.
    pub done: u32,
    /// Items before this one were delivered.
    pub delivered: u32,
    /// Items before this one are no longer needed.
    pub consumed: u32,
    /// Time the finished items took, in all.
    pub finished_time: Duration,
    /// When to look for stragglers.
    pub hedge_at: Option<Moment>,
    /// The scale-up episode its client was told of; zero is none.
    pub told_episode: u64,
}

impl Query {
    /// Number of items.
    pub fn len(&self) -> u32 {
        u32::try_from(self.items.len()).expect("submit limits the items of a query")
    }

    /// Whether it has no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The item to give out next: the earliest one given back, else the next fresh one within the
    /// window.
    pub fn next_item(&self) -> Option<u32> {
        let within = self.fresh < self.len().min(self.consumed.saturating_add(self.window));
        self.retry.first().copied().or(within.then_some(self.fresh))
    }

    /// Items that wait.
    pub fn queued(&self) -> u32 {
        self.len() - self.fresh + self.parked + len_u32(&self.retry)
    }

    /// An item's record.
    pub fn item(&self, item: u32) -> &Work {
        &self.items[item as usize]
    }

    /// An item's record, to change.
    pub fn item_mut(&mut self, item: u32) -> &mut Work {
        &mut self.items[item as usize]
    }
}

/// The length of a set that is bounded by the items of a query.
fn len_u32<T>(set: &BTreeSet<T>) -> u32 {
    u32::try_from(set.len()).expect("submit limits the items of a query")
}

/// All queries.
#[derive(Clone, Debug, Default)]
pub struct WorkLedger {
    queries: BTreeMap<QueryId, Query>,
    /// Items that wait, of all queries.
    pub queued: u32,
}

impl WorkLedger {
    /// Takes a query in.
    pub fn enter(&mut self, submission: Submission, window: u32, now: Moment) {
        let items: Vec<Work> =
            submission.items.into_iter().map(|item| Work::new(item, now)).collect();
        let query = Query {
            tenant: submission.tenant,
            deadline: submission.deadline,
            submitted_at: now,
            traceparent: submission.traceparent,
            window,
            items,
            fresh: 0,
            retry: BTreeSet::new(),
            parked: 0,
            open: BTreeSet::new(),
            done: 0,
            delivered: 0,
            consumed: 0,
            finished_time: Duration::ZERO,
            hedge_at: None,
            told_episode: 0,
        };
        self.queued += query.len();
        self.queries.insert(submission.query, query);
    }

    /// Forgets a query.
    pub fn remove(&mut self, id: QueryId) -> Option<Query> {
        let query = self.queries.remove(&id)?;
        self.queued -= query.queued();
        Some(query)
    }

    /// A query's record.
    pub fn get(&self, id: QueryId) -> Option<&Query> {
        self.queries.get(&id)
    }

    /// A query's record, to change.
    pub fn get_mut(&mut self, id: QueryId) -> Option<&mut Query> {
        self.queries.get_mut(&id)
    }

    /// A work item's record.
    pub fn work(&self, id: WorkId) -> Option<&Work> {
        self.queries.get(&id.query)?.items.get(id.item as usize)
    }

    /// All queries, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (QueryId, &Query)> {
        self.queries.iter().map(|(id, query)| (*id, query))
    }

    /// All queries, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (QueryId, &mut Query)> {
        self.queries.iter_mut().map(|(id, query)| (*id, query))
    }

    /// How many queries there are.
    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// Whether there is no query.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }
}
