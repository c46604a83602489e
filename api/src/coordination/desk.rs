//! The task itself: the coordinator, the streams it has opened, the fetches it wants, and the orders
//! that wait for their results.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use core_workcoord::config::CoordinatorConfig;
use core_workcoord::coordinator::{
    Action, Coordinator, FetchResult, Input, Outcome, QueryFailure, Submission,
};
use core_workcoord::id::{ApiId, Attempt, Endpoint, LeafId, QueryId, SessionId, WorkId};
use core_workcoord::message::{ApiMessage, WorkRef, WorkerMessage};
use core_workcoord::moment::Moment;
use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};
use tributary_process::clock::{Clock, unix_nanos};
use tributary_proto::lanes::{NotSent, Outbound};

use super::journal::Journal;
use super::record::Records;
use super::{Event, Inbox, News, Order, View, work_items};
use crate::error::QueryError;
use crate::fetch::{FetchEnd, Fetched, Fetching};
use crate::plan::Item;
use crate::stream::{self, Dial, Heard, StreamTerms};

/// How long the last words to workers have to go out.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Events taken at once before the clock is looked at again.
const BATCH: usize = 64;

/// What the task works with.
pub struct DeskTerms {
    /// The coordinator's knobs.
    pub config: CoordinatorConfig,
    /// This life of this node.
    pub api_id: ApiId,
    /// For the jitter of redials.
    pub seed: u64,
    /// Opens connections to workers.
    pub dial: Arc<dyn Dial>,
    /// How streams are opened.
    pub stream: StreamTerms,
    /// Fetches artifacts.
    pub fetching: Fetching,
    /// Where fetches run: elsewhere than the streams, where there is an elsewhere.
    pub runtime: tokio::runtime::Handle,
    /// Where every input and decision is written down, if anywhere.
    pub journal: Option<Journal>,
}

/// The owner of the coordinator.
pub struct Desk {
    coordinator: Coordinator,
    /// Results of one order that may wait to be consumed.
    window: u32,
    clock: Clock,
    dial: Arc<dyn Dial>,
    terms: StreamTerms,
    fetching: Fetching,
    runtime: tokio::runtime::Handle,
    journal: Option<Journal>,
    lines: BTreeMap<SessionId, Line>,
    streams: JoinSet<()>,
    fetches: JoinSet<()>,
    /// Fetches under way.
    fetching_now: BTreeMap<(WorkRef, SessionId), AbortHandle>,
    orders: BTreeMap<QueryId, Standing>,
    /// For whoever looks at a query.
    records: Records,
    tell: mpsc::Sender<Event>,
    hear: mpsc::Sender<(SessionId, Heard)>,
}

/// A session.
struct Line {
    endpoint: Endpoint,
    over: CancellationToken,
    /// Once it is open.
    outbound: Option<Outbound<ApiMessage>>,
    /// Opens the worker's artifacts to this session.
    token: String,
}

/// An order that has not ended.
struct Standing {
    items: Arc<Vec<Item>>,
    news: mpsc::Sender<News>,
    /// Results that came before their turn.
    early: BTreeMap<(u32, Attempt), Box<Fetched>>,
    /// Why it ends, where that is not the coordinator's to say.
    error: Option<QueryError>,
}

impl Desk {
    /// A task that knows no worker and no query.
    pub fn new(terms: DeskTerms, inbox: &Inbox) -> Result<Self, super::CoordinationError> {
        let DeskTerms { config, api_id, seed, dial, stream, fetching, runtime, journal } = terms;
        let window = config.query_window;
        let coordinator = Coordinator::new(config, api_id, seed)?;
        #[cfg(feature = "sabotage")]
        let coordinator = sabotaged(coordinator);
        Ok(Self {
            coordinator,
            window,
            clock: Clock::start(),
            dial,
            terms: stream,
            fetching,
            runtime,
            journal,
            lines: BTreeMap::new(),
            streams: JoinSet::new(),
            fetches: JoinSet::new(),
            fetching_now: BTreeMap::new(),
            orders: BTreeMap::new(),
            records: Records::default(),
            tell: inbox.tell.clone(),
            hear: inbox.hear.clone(),
        })
    }

    /// The coordinator, before anything happens: tests put deliberate bugs into it.
    pub fn coordinator(&mut self) -> &mut Coordinator {
        &mut self.coordinator
    }

    /// Serves until it is told to stop. Streams are on the runtime that this is called in.
    pub async fn serve(mut self, mut inbox: Inbox) {
        let mut events = Vec::with_capacity(BATCH);
        let mut heard = Vec::with_capacity(BATCH);
        loop {
            let (clock, due) = (self.clock, self.coordinator.poll_timeout());
            tokio::select! {
                biased;
                () = clock.sleep_until(due) => self.step(Input::Tick),
                _ = inbox.heard.recv_many(&mut heard, BATCH) => {}
                _ = inbox.events.recv_many(&mut events, BATCH) => {}
            }
            // A few of both, so that neither waits for the other to run dry.
            while heard.len() < BATCH
                && let Ok(next) = inbox.heard.try_recv()
            {
                heard.push(next);
            }
            while events.len() < BATCH
                && let Ok(next) = inbox.events.try_recv()
            {
                events.push(next);
            }
            for (session, heard) in heard.drain(..) {
                self.hear(session, heard);
            }
            for event in events.drain(..) {
                if matches!(event, Event::Stop) {
                    return self.stop().await;
                }
                self.take(event);
            }
            while self.streams.try_join_next().is_some() {}
            while self.fetches.try_join_next().is_some() {}
        }
    }

    /// Every order that still stands ends; streams end when their lines are dropped.
    async fn stop(mut self) {
        let orders: Vec<QueryId> = self.orders.keys().copied().collect();
        for query in orders {
            if let Some(order) = self.orders.get_mut(&query) {
                order.error = Some(QueryError::ShuttingDown);
            }
            self.step(Input::CancelQuery { query });
        }
        self.fetches.shutdown().await;
        let lines = std::mem::take(&mut self.lines).into_values();
        let gone: Vec<_> = lines
            .filter_map(|line| {
                line.over.cancel();
                line.outbound.map(|outbound| outbound.over())
            })
            .collect();
        // What was said last, cancellations above all, still goes out.
        drop(tokio::time::timeout(LAST_WORDS, join_all(gone)).await);
        self.streams.shutdown().await;
        if let Some(journal) = self.journal.take() {
            journal.finish().await;
        }
    }

    fn hear(&mut self, session: SessionId, heard: Heard) {
        let Some(line) = self.lines.get_mut(&session) else {
            // Closed from here: it is over for the coordinator already.
            return;
        };
        match heard {
            Heard::Opened(outbound) => {
                line.outbound = Some(outbound);
                self.step(Input::StreamOpened { session });
            }
            Heard::Told(message) => {
                if let WorkerMessage::Welcome(welcome) = &message {
                    line.token.clone_from(&welcome.artifact_token);
                    let (endpoint, worker_id) = (&line.endpoint, &welcome.worker_id);
                    info!(%session, %endpoint, %worker_id, slots = welcome.slots, "worker is here");
                }
                self.step(Input::Message { session, message });
            }
            Heard::Malformed => self.step(Input::Malformed { session }),
            Heard::Ended => {
                info!(%session, endpoint = %line.endpoint, "stream ended");
                self.lines.remove(&session);
                self.step(Input::StreamClosed { session });
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Discovered(endpoint) => self.step(Input::WorkerDiscovered { endpoint }),
            Event::Gone(endpoint) => self.step(Input::WorkerGone { endpoint }),
            Event::Submit(order) => self.submit(*order),
            Event::Consumed { query, through } => self.step(Input::Consumed { query, through }),
            Event::Cancel { query } => {
                // An order that has ended needs no cancellation.
                if self.orders.contains_key(&query) {
                    self.step(Input::CancelQuery { query });
                }
            }
            Event::FetchEnded { work, session, end } => self.fetch_ended(work, session, end),
            Event::Look(answer) => {
                let snapshot = self.coordinator.snapshot(self.now());
                let counts = self.coordinator.counts().clone();
                let times = self.coordinator.times().clone();
                // Whoever asked may have gone.
                drop(answer.send(Box::new(View { snapshot, counts, times })));
            }
            // Here too, whoever asked may have gone.
            Event::Recent(answer) => drop(answer.send(self.records.briefs())),
            Event::Recall { query, answer } => {
                drop(answer.send(self.records.get(query).cloned().map(Box::new)));
            }
            Event::Stop => unreachable!("it is taken before"),
        }
    }

    fn submit(&mut self, order: Order) {
        self.records.begin(self.now(), &order);
        let Order { query, tenant, text: _, timeout, traceparent, items, news } = order;
        let submission = Submission {
            query,
            tenant,
            deadline: self.now() + timeout,
            window: self.window,
            traceparent,
            items: work_items(&items),
        };
        let standing = Standing { items, news, early: BTreeMap::new(), error: None };
        self.orders.insert(query, standing);
        self.step(Input::Submit(submission));
    }

    fn fetch_ended(&mut self, work: WorkRef, session: SessionId, end: FetchEnd) {
        if self.fetching_now.remove(&(work, session)).is_none() {
            return;
        }
        let WorkId { query, item } = work.work_id;
        let result = match end {
            FetchEnd::Here(fetched) => {
                if let Some(order) = self.orders.get_mut(&query) {
                    order.early.insert((item, work.attempt), fetched);
                }
                FetchResult::Verified
            }
            FetchEnd::Not(result) => result,
            FetchEnd::Hopeless(error) => {
                if let Some(order) = self.orders.get_mut(&query) {
                    order.error = Some(error);
                }
                return self.step(Input::CancelQuery { query });
            }
        };
        self.step(Input::FetchEnded { work, session, result });
    }

    /// Tells the coordinator something and does what it decides.
    fn step(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now = self.now();
            self.records.told(now, &input);
            let recorded = self.journal.is_some().then(|| input.clone());
            self.coordinator.handle(now, input);
            let mut actions = Vec::new();
            while let Some(action) = self.coordinator.poll_action() {
                if recorded.is_some() {
                    actions.push(action.clone());
                }
                self.records.wanted(now, &action);
                inputs.extend(self.carry_out(action));
            }
            if let (Some(journal), Some(input)) = (&mut self.journal, recorded) {
                journal.record(now, &input, &actions);
            }
        }
    }

    /// Does one thing. Gives what the coordinator has to be told of it.
    fn carry_out(&mut self, action: Action) -> Option<Input> {
        match action {
            Action::Dial { session, endpoint } => self.open(session, endpoint),
            Action::Send { session, message } => return self.send(session, message),
            Action::Close { session, reason } => {
                if let Some(line) = self.lines.remove(&session) {
                    warn!(%session, endpoint = %line.endpoint, ?reason, "stream is closed");
                    line.over.cancel();
                }
            }
            Action::Fetch { work, session, artifact } => {
                return self.fetch(work, session, artifact);
            }
            Action::AbandonFetch { work, session } => {
                if let Some(fetch) = self.fetching_now.remove(&(work, session)) {
                    fetch.abort();
                }
            }
            Action::Deliver { work, leaf, attempt } => return self.deliver(work, leaf, attempt),
            Action::End { query, outcome } => self.end(query, outcome),
            Action::AwaitScaleUp { query } => {
                info!(query_id = %query, "query waits for workers");
                // A word that says nothing but "wait" leaves room for all results and the end.
                if let Some(order) = self.orders.get(&query)
                    && order.news.capacity() > self.window as usize + 1
                {
                    drop(order.news.try_send(News::WaitingScaleUp));
                }
            }
        }
        None
    }

    fn open(&mut self, session: SessionId, endpoint: Endpoint) {
        debug!(%session, %endpoint, "worker is dialled");
        let over = CancellationToken::new();
        let dial = self.dial.dial(&endpoint);
        let (terms, hear) = (self.terms.clone(), self.hear.clone());
        let token = String::new();
        let line = Line { endpoint: endpoint.clone(), over: over.clone(), outbound: None, token };
        self.streams.spawn(stream::run(session, endpoint, dial, terms, over, hear));
        self.lines.insert(session, line);
    }

    /// Sends a message. A worker that reads too slowly for its queue is hung up on: both sides can
    /// recover from that, and from a message that never came they could not.
    fn send(&mut self, session: SessionId, mut message: ApiMessage) -> Option<Input> {
        match &mut message {
            ApiMessage::Heartbeat(beat) => beat.sent_unix_nanos = unix_nanos(),
            ApiMessage::AssignWork(work) => {
                let (query_id, work_id, attempt) = (work.query_id, work.work_id, work.attempt);
                debug!(%query_id, %work_id, %attempt, %session, "work is assigned");
            }
            ApiMessage::CancelWork(cancel) => {
                let (query_id, work_id) = (cancel.work_id.query, cancel.work_id);
                debug!(%query_id, %work_id, %session, reason = ?cancel.reason, "work is cancelled");
            }
            ApiMessage::Hello(_) | ApiMessage::ArtifactAck(_) => {}
        }
        let outbound = self.lines.get(&session)?.outbound.as_ref()?;
        match outbound.try_send(message) {
            // Where the stream is over, its reader says so in its turn.
            Ok(()) | Err(NotSent::Closed) => None,
            Err(NotSent::Full(_)) => {
                if let Some(line) = self.lines.remove(&session) {
                    warn!(%session, endpoint = %line.endpoint, "a worker reads too slowly");
                    line.over.cancel();
                }
                Some(Input::StreamClosed { session })
            }
        }
    }

    fn fetch(
        &mut self,
        work: WorkRef,
        session: SessionId,
        artifact: Box<core_workcoord::artifact::Artifact>,
    ) -> Option<Input> {
        let (Some(line), Some(order)) =
            (self.lines.get(&session), self.orders.get(&work.work_id.query))
        else {
            return Some(Input::FetchEnded { work, session, result: FetchResult::Failed });
        };
        let (fetching, tell) = (self.fetching.clone(), self.tell.clone());
        let (items, endpoint) = (Arc::clone(&order.items), line.endpoint.clone());
        let token = line.token.clone();
        let fetch = async move {
            let end = fetching.fetch(work, &items, &endpoint, &token, &artifact).await;
            // Where the desk is gone, nobody waits for the artifact.
            drop(tell.send(Event::FetchEnded { work, session, end }).await);
        };
        let handle = self.fetches.spawn_on(fetch, &self.runtime);
        self.fetching_now.insert((work, session), handle);
        None
    }

    /// Hands a result to whoever waits for it. There is room: the coordinator delivers no more than
    /// the window ahead of what was consumed.
    fn deliver(&mut self, work: WorkId, leaf: LeafId, attempt: Attempt) -> Option<Input> {
        let WorkId { query, item } = work;
        let order = self.orders.get_mut(&query)?;
        let fetched = order.early.remove(&(item, attempt));
        // Of a second attempt that was slower, nothing is wanted.
        order.early.retain(|(other, _), _| *other != item);
        let Some(fetched) = fetched else {
            error!(query_id = %query, work_id = %work, "a delivered result is not here");
            order.error = Some(QueryError::BrokeOff(crate::cores::BrokeOff));
            return Some(Input::CancelQuery { query });
        };
        match order.news.try_send(News::Part { item, leaf, fetched }) {
            Ok(()) => None,
            // The client's end is gone: its cancellation is on its way.
            Err(TrySendError::Closed(_)) => None,
            Err(TrySendError::Full(_)) => {
                error!(query_id = %query, "more results came than were asked for");
                order.error = Some(QueryError::BrokeOff(crate::cores::BrokeOff));
                Some(Input::CancelQuery { query })
            }
        }
    }

    fn end(&mut self, query: QueryId, outcome: Outcome) {
        let Some(order) = self.orders.remove(&query) else { return };
        let ended = match (order.error, outcome) {
            (Some(error), _) => Err(error),
            (None, Outcome::Complete) => Ok(()),
            (None, Outcome::Cancelled) => Err(QueryError::Cancelled),
            (None, Outcome::Refused(refusal)) => Err(refusal.into()),
            (None, Outcome::Failed(failure)) => Err(failure.into()),
        };
        if let Err(QueryError::Failed(
            failure @ (QueryFailure::Poisonous { .. } | QueryFailure::AttemptsExhausted { .. }),
        )) = &ended
        {
            warn!(query_id = %query, %failure, "a query failed on several workers");
        }
        self.records.ended(self.now(), query, ended.as_ref().copied());
        // Room for the last word is always left; a client that is gone needs none.
        drop(order.news.try_send(News::Ended(ended)));
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }
}

/// A coordinator with the deliberate bug that the environment names, if it is one of its own.
#[cfg(feature = "sabotage")]
fn sabotaged(mut coordinator: Coordinator) -> Coordinator {
    let name = std::env::var("TRIBUTARY_SABOTAGE").unwrap_or_default();
    warn!(bug = name, "built with deliberate bugs");
    if let Some(bug) = core_workcoord::sabotage::Bug::named(&name) {
        coordinator.sabotage(bug);
    }
    coordinator
}
