//! One query, from the question to the last value: planned, its work ordered, its parts merged and
//! evaluated as they come, in time order. Whoever reads its events slowly makes it wait, and with it
//! its fetches; whoever stops reading cancels it.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use core_workcoord::id::{QueryId, TenantId};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span, debug, field, info, info_span};
use tributary_catalog::{TenantSegments, UniverseReader};
use tributary_process::trace::TraceParent;
use tributary_promql::{EvalFlow, EvalLimits, FlowChunk, Plan, plan};

use crate::cells::CellSize;
use crate::coordination::{Coordination, News, Order, news_room};
use crate::cores::Cores;
use crate::error::QueryError;
use crate::figures::Figures;
use crate::inquiry::Search;
use crate::memory::{Charge, Memory};
use crate::plan::{PlannedQuery, plan_work};
use crate::question::{
    Ask, Finished, Found, Inquiry, QueryEvent, QueryStats, Question, RunningQuery,
};

/// Events that may wait for a client.
const EVENTS: usize = 4;

/// Which segments a tenant has.
pub trait Segments: Send + Sync + 'static {
    /// The newest that is known. Never waits.
    fn of(&self, tenant: &TenantId) -> Arc<TenantSegments>;
}

impl Segments for UniverseReader {
    fn of(&self, tenant: &TenantId) -> Arc<TenantSegments> {
        self.current().tenant(tenant)
    }
}

/// What runs queries works with.
#[derive(Clone)]
pub struct Kit {
    /// Has work done.
    pub coordination: Coordination,
    /// Knows segments.
    pub segments: Arc<dyn Segments>,
    /// Calculates.
    pub cores: Arc<Cores>,
    /// Holds results.
    pub memory: Arc<Memory>,
    /// Counts.
    pub figures: Arc<Figures>,
    /// How large work items are.
    pub size: CellSize,
    /// How much an inquiry may take. A query brings its own limits.
    pub limits: EvalLimits,
    /// Results of one query that may wait to be merged: the coordinator's `query_window`.
    pub window: u32,
}

/// Runs queries.
pub struct Queries {
    kit: Kit,
    running: Mutex<JoinSet<()>>,
    /// No new ones.
    closing: CancellationToken,
    /// No old ones either.
    over: CancellationToken,
}

impl Queries {
    /// Runs none yet.
    pub fn new(kit: Kit) -> Self {
        let (closing, over) = (CancellationToken::new(), CancellationToken::new());
        Self { kit, running: Mutex::default(), closing, over }
    }

    /// What it works with.
    pub fn kit(&self) -> &Kit {
        &self.kit
    }

    /// Takes no more queries, lets those that run come to their end for a while, and ends the rest.
    pub async fn close(&self, patience: Duration) {
        self.closing.cancel();
        let mut running = std::mem::take(&mut *self.lock());
        let all = async { while running.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, all).await.is_err() {
            info!(queries = running.len(), "queries are ended for want of time");
            self.over.cancel();
            let all = async { while running.join_next().await.is_some() {} };
            // They have nothing left to do but say so.
            drop(tokio::time::timeout(Duration::from_secs(1), all).await);
            running.shutdown().await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, JoinSet<()>> {
        // Nothing in the lock can panic half-way.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task that lives no longer than this node.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut running = self.lock();
        while running.try_join_next().is_some() {}
        running.spawn(task);
    }
}

impl Ask for Queries {
    fn ask(&self, mut question: Question) -> RunningQuery {
        let id = new_query_id();
        let (tell, events) = mpsc::channel(EVENTS);
        let run = Run {
            id,
            begun: Instant::now(),
            kit: self.kit.clone(),
            tell,
            stats: QueryStats::default(),
            over: self.over.clone(),
        };
        let closing = self.closing.is_cancelled();
        let span = query_span(id, &question.tenant, &mut question.traceparent);
        self.spawn(run.run(question, closing).instrument(span));
        RunningQuery { id, events }
    }

    fn inquire(
        &self,
        inquiry: Inquiry,
    ) -> Pin<Box<dyn Future<Output = Result<Found, QueryError>> + Send>> {
        if self.closing.is_cancelled() {
            return Box::pin(std::future::ready(Err(QueryError::ShuttingDown)));
        }
        let (answer, answered) = oneshot::channel();
        let id = new_query_id();
        let search = Search { id, kit: self.kit.clone(), over: self.over.clone() };
        let span = info_span!("inquiry", query_id = %id, tenant = %inquiry.tenant);
        self.spawn(search.run(inquiry, answer).instrument(span));
        Box::pin(async { answered.await.unwrap_or(Err(QueryError::ShuttingDown)) })
    }
}

/// The span of a query: part of the trace that its question came with, where there is one. The
/// workers' spans become parts of it in turn.
fn query_span(id: QueryId, tenant: &TenantId, traceparent: &mut String) -> Span {
    let span = info_span!("query", query_id = %id, %tenant, error = field::Empty);
    if let Some(trace) = TraceParent::parse(traceparent) {
        trace.continue_in(&span);
    }
    if let Some(own) = TraceParent::of(&span) {
        *traceparent = own.to_string();
    }
    span
}

/// A name that nobody can guess and that is never used twice.
fn new_query_id() -> QueryId {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    QueryId(u128::from_le_bytes(bytes))
}

/// A query at work.
struct Run {
    id: QueryId,
    begun: Instant,
    kit: Kit,
    tell: mpsc::Sender<QueryEvent>,
    stats: QueryStats,
    over: CancellationToken,
}

/// What goes back and forth between a query's task and where it is calculated.
struct Flow {
    flow: EvalFlow<Arc<Plan>>,
    /// The memory of the parts in it.
    charges: Vec<Charge>,
}

impl Run {
    async fn run(mut self, question: Question, closing: bool) {
        self.kit.figures.begun();
        let timeout = question.timeout;
        let over = self.over.clone();
        let outcome = if closing {
            Err(QueryError::ShuttingDown)
        } else {
            let gone = self.tell.clone();
            let deadline = self.begun + timeout;
            tokio::select! {
                biased;
                outcome = self.answer(question) => outcome,
                () = gone.closed() => Err(QueryError::Cancelled),
                () = over.cancelled() => Err(QueryError::ShuttingDown),
                () = tokio::time::sleep_until(deadline) => Err(QueryError::Timeout { timeout }),
            }
        };
        if outcome.is_err() {
            // Its work goes first; where it never was ordered or is done, this changes nothing.
            drop(self.kit.coordination.cancel(self.id).await);
        }
        let took = self.begun.elapsed();
        self.stats.total = took;
        let fetched = (self.stats.artifact_bytes, self.stats.artifact_rows);
        let counted = outcome.as_ref().map(|_| ());
        self.kit.figures.ended(counted, took, fetched);
        let last = match outcome {
            Ok(mut finished) => {
                debug!(?took, "query answered");
                finished.stats = self.stats;
                QueryEvent::Done(finished)
            }
            Err(error) => {
                Span::current().record("error", error.to_string());
                info!(?took, %error, "query has no answer");
                QueryEvent::Failed(error)
            }
        };
        // A client that is gone needs no last word; one that does not read has to, or leave. When
        // the node leaves it has been told to everybody who listens.
        tokio::select! {
            _ = self.tell.send(last) => {}
            () = async { self.over.cancelled().await; tokio::time::sleep(LAST_WORD).await } => {}
        }
    }

    async fn answer(&mut self, question: Question) -> Result<Box<Finished>, QueryError> {
        let Question { tenant, expr, spec, options, timeout, traceparent } = question;
        let is_range = spec.step.is_some();
        let segments = self.kit.segments.of(&tenant);
        let planning = {
            let (size, tenant) = (self.kit.size, tenant.clone());
            move || {
                let limits = options.limits;
                let plan = Arc::new(plan(&expr, spec, &options)?);
                let planned = plan_work(plan, &tenant, &segments, size, &limits)?;
                Ok::<_, QueryError>((planned, expr.to_string()))
            }
        };
        let (PlannedQuery { plan, items, expected, segments }, text) =
            self.kit.cores.run(planning).await??;
        self.stats.planning = self.begun.elapsed();
        self.kit.figures.planned(self.stats.planning);
        self.stats.leaves = small(plan.leaves.len());
        self.stats.items = small(items.len());
        self.stats.segments = segments;
        debug!(leaves = self.stats.leaves, items = self.stats.items, segments, "query planned");

        let total = self.stats.items;
        let (news, mut heard) = mpsc::channel(news_room(self.kit.window));
        let order = Order {
            query: self.id,
            tenant,
            text,
            timeout: timeout.saturating_sub(self.begun.elapsed()),
            traceparent,
            items: Arc::new(items),
            news,
        };
        self.kit.coordination.submit(order).await.map_err(|_| QueryError::ShuttingDown)?;
        let flow = EvalFlow::new(Arc::clone(&plan), expected);
        let mut flow = Flow { flow, charges: Vec::new() };
        let mut done = 0;
        loop {
            match heard.recv().await {
                Some(News::Part { item, leaf, fetched }) => {
                    self.stats.artifact_bytes += fetched.size_bytes;
                    self.stats.artifact_rows += fetched.rows;
                    let add = move |flow: &mut Flow| {
                        flow.charges.push(fetched.charge);
                        flow.flow.add(leaf.0 as usize, fetched.part);
                    };
                    flow = self.evaluate(flow, add, is_range).await?;
                    done += 1;
                    self.tell(QueryEvent::Progress { done, total }).await?;
                    // Only now: a client that reads slowly keeps further results where they are.
                    let consumed = self.kit.coordination.consumed(self.id, item + 1).await;
                    consumed.map_err(|_| QueryError::ShuttingDown)?;
                }
                Some(News::WaitingScaleUp) => self.tell(QueryEvent::WaitingScaleUp).await?,
                Some(News::Ended(Ok(()))) => break,
                Some(News::Ended(Err(error))) => return Err(error),
                None => return Err(QueryError::ShuttingDown),
            }
        }
        self.finish(flow, is_range).await
    }

    /// Takes a part in and tells the values of every step that has become ready.
    async fn evaluate(
        &mut self,
        flow: Flow,
        add: impl FnOnce(&mut Flow) + Send + 'static,
        is_range: bool,
    ) -> Result<Flow, QueryError> {
        let mut add = Some(add);
        let mut flow = Some(flow);
        loop {
            let (mut held, add) = (flow.take().expect("it comes back every time"), add.take());
            let calculating = Instant::now();
            let step = move || {
                if let Some(add) = add {
                    add(&mut held);
                }
                let chunk = if is_range { held.flow.next_chunk() } else { Ok(None) };
                (held, chunk)
            };
            let (held, chunk) = self.kit.cores.run(step).await?;
            self.stats.evaluation += calculating.elapsed();
            let Some(chunk) = chunk? else { return Ok(held) };
            flow = Some(held);
            self.chunk(chunk).await?;
        }
    }

    async fn finish(&mut self, flow: Flow, is_range: bool) -> Result<Box<Finished>, QueryError> {
        let flow = self.evaluate(flow, |_| {}, is_range).await?;
        let calculating = Instant::now();
        let (data, annotations) = if is_range {
            (None, flow.flow.annotations().clone())
        } else {
            let Flow { flow, charges } = flow;
            let answer = self.kit.cores.run(move || {
                let answer = flow.answer();
                drop(charges);
                answer
            });
            let answer = answer.await??;
            self.note_first_result();
            (Some(answer.data), answer.annotations)
        };
        self.stats.evaluation += calculating.elapsed();
        Ok(Box::new(Finished { data, annotations, stats: self.stats }))
    }

    async fn chunk(&mut self, chunk: FlowChunk) -> Result<(), QueryError> {
        if !chunk.rows.is_empty() {
            self.note_first_result();
        }
        self.tell(QueryEvent::Chunk(chunk)).await
    }

    fn note_first_result(&mut self) {
        if self.stats.first_result.is_zero() {
            self.stats.first_result = self.begun.elapsed();
            self.kit.figures.first_result(self.stats.first_result);
        }
    }

    async fn tell(&self, event: QueryEvent) -> Result<(), QueryError> {
        self.tell.send(event).await.map_err(|_| QueryError::Cancelled)
    }
}

/// How long a client that reads has for the last word when the node leaves.
const LAST_WORD: Duration = Duration::from_millis(500);

fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
