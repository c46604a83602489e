//! What is written down of one query: its work items and the attempts at them, as they are shown. When
//! it is written is the business of `record`.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use core_workcoord::id::{Attempt, QueryId, SessionId, TenantId};
use core_workcoord::moment::Moment;
use serde::{Serialize, Serializer};

use crate::coordination::Order;
use crate::error::QueryError;
use crate::plan::Item;

/// Items of one query that are remembered; of the rest, that there were so many.
pub const ITEMS: usize = 512;

/// Attempts at one item that are remembered: the first ones and the last.
pub const ATTEMPTS: usize = 8;

/// Leaves of one query whose selectors are remembered.
const LEAVES: usize = 64;

/// Bytes of a text that are remembered.
const TEXT_BYTES: usize = 1_024;

/// A query and its work.
#[derive(Clone, Debug, Serialize)]
pub struct QueryRecord {
    /// What is known of it in short.
    #[serde(flatten)]
    pub brief: Brief,
    /// The selectors of its leaves, by their numbers.
    pub leaves: Vec<String>,
    /// Its work items, in the order their results are wanted. Times are milliseconds since the work
    /// was ordered.
    pub items: Vec<ItemRecord>,
    #[serde(skip)]
    begun: Moment,
}

/// A query in short.
#[derive(Clone, Debug, Serialize)]
pub struct Brief {
    /// Its name.
    #[serde(serialize_with = "as_text")]
    pub query_id: QueryId,
    /// Whose it is.
    #[serde(serialize_with = "as_text")]
    pub tenant: TenantId,
    /// What was asked, as far as it is remembered.
    pub text: String,
    /// It asks which series there are, and for no values.
    pub inquiry: bool,
    /// When its work was ordered, by this node's clock.
    pub begun_unix_ms: u64,
    /// When it was over.
    pub ended_ms: Option<f64>,
    /// How it went so far.
    pub outcome: RecordOutcome,
    /// Why it has no answer.
    pub error: Option<String>,
    /// It found no worker, at some time.
    pub waited_for_workers: bool,
    /// Its work items, those that are not remembered too.
    pub total: usize,
    /// Those whose results were delivered.
    pub done: usize,
}

/// How a query's work went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordOutcome {
    /// It is under way.
    Running,
    /// All of it was delivered.
    Complete,
    /// Nobody wanted it any more.
    Cancelled,
    /// It came to nothing.
    Failed,
}

/// A work item.
#[derive(Clone, Debug, Serialize)]
pub struct ItemRecord {
    /// Its place in the query.
    pub item: u32,
    /// Its leaf.
    pub leaf: usize,
    /// The time it is about, in milliseconds since 1970; none where there is no bound.
    pub from_ms: Option<i64>,
    /// The end of that.
    pub to_ms: Option<i64>,
    /// Segments it reads.
    pub segments: usize,
    /// When its result was handed to the merge.
    pub delivered_ms: Option<f64>,
    /// How often it was assigned.
    pub tries: u32,
    /// Its attempts.
    pub attempts: Vec<AttemptRecord>,
}

/// An attempt at a work item.
#[derive(Clone, Debug, Serialize)]
pub struct AttemptRecord {
    /// Its number.
    pub attempt: u32,
    /// The worker.
    pub worker: String,
    #[serde(skip)]
    session: SessionId,
    /// When the worker was asked.
    pub assigned_ms: f64,
    /// When it said that it has it.
    pub accepted_ms: Option<f64>,
    /// When it said that it runs.
    pub started_ms: Option<f64>,
    /// When it said that the artifact is there.
    pub ready_ms: Option<f64>,
    /// When the artifact was begun to be fetched.
    pub fetching_ms: Option<f64>,
    /// When the attempt was over.
    pub ended_ms: Option<f64>,
    /// How it ended.
    pub end: Option<AttemptEnd>,
    /// Bytes of its artifact.
    pub size_bytes: Option<u64>,
    /// Rows of its artifact.
    pub rows: Option<u64>,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// Its artifact is here.
    Fetched,
    /// The worker did not take it.
    Rejected,
    /// The worker could not do it.
    Failed,
    /// The worker was lost.
    WorkerLost,
    /// The worker lost the artifact.
    ArtifactLost,
    /// The artifact could not be fetched.
    FetchFailed,
    /// The artifact was not what was announced.
    Mismatch,
    /// Another attempt was faster.
    Superseded,
    /// The worker was leaving, and had not begun.
    Drained,
    /// The query was over.
    Cancelled,
}

impl QueryRecord {
    pub(super) fn of(now: Moment, order: &Order) -> Self {
        let mut leaves = Vec::new();
        let numbers: BTreeSet<usize> = order.items.iter().map(|item| item.leaf).collect();
        if let Some(last) = numbers.last() {
            leaves.resize(LEAVES.min(last + 1), String::new());
        }
        for item in order.items.iter() {
            if let Some(leaf) = leaves.get_mut(item.leaf)
                && leaf.is_empty()
            {
                *leaf = shortened(item.selector());
            }
        }
        let items =
            order.items.iter().take(ITEMS).zip(0..).map(|(item, number)| item_of(item, number));
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let brief = Brief {
            query_id: order.query,
            tenant: order.tenant.clone(),
            text: shortened(order.text.clone()),
            inquiry: order.items.iter().any(Item::is_inquiry),
            begun_unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            ended_ms: None,
            outcome: RecordOutcome::Running,
            error: None,
            waited_for_workers: false,
            total: order.items.len(),
            done: 0,
        };
        Self { brief, leaves, items: items.collect(), begun: now }
    }

    /// It is over, and whatever was left of it is dropped.
    pub(super) fn ended(&mut self, now: Moment, how: Result<(), &QueryError>) {
        let at = self.ms(now);
        self.brief.ended_ms = Some(at);
        (self.brief.outcome, self.brief.error) = match how {
            Ok(()) => (RecordOutcome::Complete, None),
            Err(QueryError::Cancelled) => (RecordOutcome::Cancelled, None),
            Err(error) => (RecordOutcome::Failed, Some(shortened(error.to_string()))),
        };
        for attempt in self.items.iter_mut().flat_map(|item| &mut item.attempts) {
            attempt.end(at, AttemptEnd::Cancelled);
        }
    }

    /// Milliseconds since its beginning, to the microsecond.
    pub(super) fn ms(&self, now: Moment) -> f64 {
        (now.since(self.begun).as_secs_f64() * 1e6).round() / 1e3
    }
}

fn item_of(item: &Item, number: u32) -> ItemRecord {
    let span = item.span();
    ItemRecord {
        item: number,
        leaf: item.leaf,
        from_ms: (span.from != i64::MIN).then_some(span.from),
        to_ms: (span.to != i64::MAX).then_some(span.to),
        segments: item.segments(),
        delivered_ms: None,
        tries: 0,
        attempts: Vec::new(),
    }
}

impl ItemRecord {
    pub(super) fn begin(&mut self, attempt: AttemptRecord) {
        self.tries += 1;
        if self.attempts.len() == ATTEMPTS {
            self.attempts.pop();
        }
        self.attempts.push(attempt);
    }
}

impl AttemptRecord {
    pub(super) fn new(
        attempt: Attempt,
        worker: String,
        session: SessionId,
        assigned_ms: f64,
    ) -> Self {
        Self {
            attempt: attempt.0,
            worker,
            session,
            assigned_ms,
            accepted_ms: None,
            started_ms: None,
            ready_ms: None,
            fetching_ms: None,
            ended_ms: None,
            end: None,
            size_bytes: None,
            rows: None,
        }
    }

    pub(super) fn is_on(&self, session: SessionId) -> bool {
        self.session == session
    }

    /// The first end counts.
    pub(super) fn end(&mut self, at: f64, how: AttemptEnd) {
        if self.end.is_none() {
            (self.ended_ms, self.end) = (Some(at), Some(how));
        }
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > TEXT_BYTES {
        text.truncate(text.floor_char_boundary(TEXT_BYTES));
        text.push('…');
    }
    text
}

fn as_text<S: Serializer>(name: &impl ToString, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&name.to_string())
}
