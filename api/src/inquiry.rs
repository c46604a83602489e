//! Questions about series: which there are, and what their labels are. Like a query they become work
//! items over cells, so that workers read the indexes of segments and this node reads none; what they
//! tell is put together here.
//!
//! The names of metrics alone need no work: the catalog knows them of every segment. Asked for that
//! way, a metric counts if a segment that holds it has samples in the time.

mod gathered;

use std::ops::RangeInclusive;
use std::sync::Arc;

use core_workcoord::id::{QueryId, TenantId};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};
use tributary_catalog::TenantSegments;
use tributary_leafwork::{SeriesInquiry, Tell};
use tributary_promql::Matcher;
use tributary_promql::eval::EvalError;
use tributary_promql::matcher::{CompiledMatcher, METRIC_NAME};

use crate::cells::cells_of;
use crate::coordination::{News, Order, news_room};
use crate::error::QueryError;
use crate::inquiry::gathered::Gathered;
use crate::plan::{Item, segments_of};
use crate::query::Kit;
use crate::question::{Found, Inquiry, Wanted};

/// An inquiry at work.
pub(crate) struct Search {
    pub(crate) id: QueryId,
    pub(crate) kit: Kit,
    /// The node leaves.
    pub(crate) over: CancellationToken,
}

impl Search {
    /// Answers. Where nobody waits for the answer any more, its work is cancelled.
    pub(crate) async fn run(
        self,
        inquiry: Inquiry,
        mut answer: oneshot::Sender<Result<Found, QueryError>>,
    ) {
        let begun = Instant::now();
        let timeout = inquiry.timeout;
        let outcome = tokio::select! {
            biased;
            outcome = self.find(inquiry, begun) => outcome,
            () = answer.closed() => Err(QueryError::Cancelled),
            () = self.over.cancelled() => Err(QueryError::ShuttingDown),
            () = tokio::time::sleep(timeout) => Err(QueryError::Timeout { timeout }),
        };
        if outcome.is_err() {
            // Where it never was ordered or is done, this changes nothing.
            drop(self.kit.coordination.cancel(self.id).await);
        }
        let took = begun.elapsed();
        self.kit.figures.inquired(outcome.as_ref().map(|_| ()), took);
        match &outcome {
            Ok(_) => debug!(?took, "inquiry answered"),
            Err(error) => info!(?took, %error, "inquiry has no answer"),
        }
        // Whoever is gone needs no answer.
        drop(answer.send(outcome));
    }

    async fn find(&self, inquiry: Inquiry, begun: Instant) -> Result<Found, QueryError> {
        let Inquiry { tenant, selectors, time, wanted, limit, timeout, traceparent } = inquiry;
        let text = wanted.to_string();
        let charge = self.kit.memory.charge(0)?;
        let gathered = Gathered::new(wanted.clone(), limit, self.kit.limits, charge);
        let segments = self.kit.segments.of(&tenant);
        let (size, limits) = (self.kit.size, self.kit.limits);
        let planning = {
            let tenant = tenant.clone();
            move || {
                let asked = Asked { tenant: &tenant, segments: &segments, time, wanted: &wanted };
                if let Some(names) = asked.known_names(&selectors)? {
                    return Ok(Planned::Known(names));
                }
                let selectors = if selectors.is_empty() { vec![Vec::new()] } else { selectors };
                let mut items = Vec::new();
                for (number, matchers) in selectors.into_iter().enumerate() {
                    let found = segments_of(&matchers, asked.time.clone(), &segments)?;
                    for cell in cells_of(&found, size) {
                        let inquiry = asked.spec(limit);
                        let matchers = matchers.clone();
                        let tenant = asked.tenant;
                        let item =
                            Item::of_inquiry(number, matchers, inquiry, tenant, &cell, &limits)?;
                        items.push(item);
                    }
                }
                Ok::<_, QueryError>(Planned::Work(items))
            }
        };
        match self.kit.cores.run(planning).await?? {
            Planned::Known(names) => {
                let mut gathered = gathered;
                names.iter().try_for_each(|name| gathered.text(name))?;
                Ok(gathered.finish())
            }
            Planned::Work(items) if items.is_empty() => Ok(gathered.finish()),
            Planned::Work(items) => {
                let (news, heard) = mpsc::channel(news_room(self.kit.window));
                let order = Order {
                    query: self.id,
                    tenant,
                    text,
                    timeout: timeout.saturating_sub(begun.elapsed()),
                    traceparent,
                    items: Arc::new(items),
                    news,
                };
                let submitted = self.kit.coordination.submit(order).await;
                submitted.map_err(|_| QueryError::ShuttingDown)?;
                self.gather(gathered, heard).await
            }
        }
    }

    /// Puts together what workers tell.
    async fn gather(
        &self,
        mut gathered: Gathered,
        mut heard: mpsc::Receiver<News>,
    ) -> Result<Found, QueryError> {
        loop {
            match heard.recv().await {
                Some(News::Part { item, fetched, .. }) => {
                    let take = move || {
                        let taken = gathered.take(fetched.part);
                        drop(fetched.charge);
                        (gathered, taken)
                    };
                    let (back, taken) = self.kit.cores.run(take).await?;
                    taken?;
                    gathered = back;
                    let consumed = self.kit.coordination.consumed(self.id, item + 1).await;
                    consumed.map_err(|_| QueryError::ShuttingDown)?;
                }
                Some(News::WaitingScaleUp) => {}
                Some(News::Ended(Ok(()))) => break,
                Some(News::Ended(Err(error))) => return Err(error),
                None => return Err(QueryError::ShuttingDown),
            }
        }
        Ok(self.kit.cores.run(move || gathered.finish()).await?)
    }
}

/// How an inquiry is answered.
enum Planned {
    /// By what the catalog knows: names of metrics.
    Known(Vec<Arc<str>>),
    /// By workers.
    Work(Vec<Item>),
}

/// What is asked, of whom.
struct Asked<'a> {
    tenant: &'a TenantId,
    segments: &'a TenantSegments,
    time: RangeInclusive<i64>,
    wanted: &'a Wanted,
}

impl Asked<'_> {
    /// The names of metrics, where that is all that is asked and nothing but names chooses them.
    fn known_names(&self, selectors: &[Vec<Matcher>]) -> Result<Option<Vec<Arc<str>>>, QueryError> {
        let of_name = |matcher: &Matcher| matcher.name == METRIC_NAME;
        if !matches!(self.wanted, Wanted::LabelValues(label) if label == METRIC_NAME)
            || !selectors.iter().flatten().all(of_name)
        {
            return Ok(None);
        }
        let compile = |matchers: &Vec<Matcher>| -> Result<Vec<CompiledMatcher>, QueryError> {
            let compiled = matchers.iter().map(Matcher::compile).collect::<Result<_, _>>();
            compiled.map_err(|error| EvalError::invalid(error.to_string()).into())
        };
        let selectors = selectors.iter().map(compile).collect::<Result<Vec<_>, _>>()?;
        let is_wanted = |name: &Arc<str>| {
            let chosen = |matchers: &Vec<CompiledMatcher>| matchers.iter().all(|m| m.matches(name));
            !name.is_empty() && (selectors.is_empty() || selectors.iter().any(chosen))
        };
        Ok(Some(self.segments.metrics(&self.time).into_iter().filter(is_wanted).collect()))
    }

    /// What a worker is asked. One thing more than is wanted says whether there are more.
    fn spec(&self, limit: Option<usize>) -> SeriesInquiry {
        let tell = match self.wanted {
            Wanted::Series => Tell::Series,
            Wanted::LabelNames => Tell::LabelNames,
            Wanted::LabelValues(label) => Tell::LabelValues(label.clone()),
            Wanted::Metrics => Tell::Metrics,
        };
        let limit = limit.map_or(0, |limit| (limit as u64).saturating_add(1));
        SeriesInquiry { from: *self.time.start(), to: *self.time.end(), tell, limit }
    }
}

#[cfg(test)]
mod tests;
