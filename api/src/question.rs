//! What is asked, and what comes back while it is answered: the seam between whatever speaks with
//! clients (`http`) and whatever runs queries (`query`).

use std::fmt;
use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::time::Duration;

use core_workcoord::id::{QueryId, TenantId};
use tokio::sync::mpsc;
use tributary_promql::annotation::Annotations;
use tributary_promql::{
    Answer, Data, EvalOptions, Expr, FlowChunk, Gathered, Labels, Matcher, QuerySpec,
};

use crate::error::QueryError;

/// A query that was understood and not run yet.
#[derive(Clone, Debug)]
pub struct Question {
    /// Whose data is asked.
    pub tenant: TenantId,
    /// The expression.
    pub expr: Expr,
    /// The instants it is evaluated at.
    pub spec: QuerySpec,
    /// How it is evaluated, and how much it may take.
    pub options: EvalOptions,
    /// How long it may run.
    pub timeout: Duration,
    /// The W3C trace context it came with, or empty.
    pub traceparent: String,
}

/// Something that happened to a query. The last event is `Done` or `Failed`, and comes once.
#[derive(Debug)]
pub enum QueryEvent {
    /// No worker is there; the query waits for one.
    WaitingScaleUp,
    /// So many of its work items are done.
    Progress {
        /// Items whose results are here.
        done: u32,
        /// Items in all.
        total: u32,
    },
    /// Values of a range query, in time order.
    Chunk(FlowChunk),
    /// It is answered.
    Done(Box<Finished>),
    /// It can't be answered.
    Failed(QueryError),
}

/// The end of an answered query.
#[derive(Debug)]
pub struct Finished {
    /// The answer of an instant query. A range query's values came in chunks before.
    pub data: Option<Data>,
    /// Warnings and infos.
    pub annotations: Annotations,
    /// What it took.
    pub stats: QueryStats,
}

/// What a query took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueryStats {
    /// Leaves of the plan.
    pub leaves: u32,
    /// Work items.
    pub items: u32,
    /// Segments that were read.
    pub segments: u64,
    /// Bytes of artifacts that were fetched.
    pub artifact_bytes: u64,
    /// Rows of artifacts that were fetched.
    pub artifact_rows: u64,
    /// From the question to the plan.
    pub planning: Duration,
    /// From the plan to the first result.
    pub first_result: Duration,
    /// From the question to the end.
    pub total: Duration,
    /// Time spent decoding and evaluating on this node.
    pub evaluation: Duration,
}

/// A query at work. Dropped, it is cancelled, and so is its work on every worker.
#[derive(Debug)]
pub struct RunningQuery {
    /// Its name, in every log line about it.
    pub id: QueryId,
    /// What happens. Reading slowly makes the query wait.
    pub events: mpsc::Receiver<QueryEvent>,
}

impl RunningQuery {
    /// Waits for the whole answer.
    pub async fn answer(mut self) -> Result<(Answer, QueryStats), QueryError> {
        let mut gathered = Gathered::default();
        while let Some(event) = self.events.recv().await {
            match event {
                QueryEvent::WaitingScaleUp | QueryEvent::Progress { .. } => {}
                QueryEvent::Chunk(chunk) => gathered.take(chunk),
                QueryEvent::Done(finished) => {
                    let data = finished.data.unwrap_or_else(|| gathered.finish());
                    let annotations = finished.annotations;
                    return Ok((Answer { data, annotations }, finished.stats));
                }
                QueryEvent::Failed(error) => return Err(error),
            }
        }
        Err(QueryError::ShuttingDown)
    }
}

/// A question about series rather than values: which there are, and what their labels are.
#[derive(Clone, Debug)]
pub struct Inquiry {
    /// Whose data is asked.
    pub tenant: TenantId,
    /// Series that any of these select count; all series where there are none.
    pub selectors: Vec<Vec<Matcher>>,
    /// With samples between these instants, both included, in milliseconds.
    pub time: RangeInclusive<i64>,
    /// What of them is wanted.
    pub wanted: Wanted,
    /// No more than so many.
    pub limit: Option<usize>,
    /// How long it may take.
    pub timeout: Duration,
    /// The W3C trace context it came with, or empty.
    pub traceparent: String,
}

/// What of series is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The series themselves.
    Series,
    /// The names of their labels.
    LabelNames,
    /// The values of one label.
    LabelValues(String),
    /// Metrics with their kind.
    Metrics,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Series => f.write_str("series"),
            Self::LabelNames => f.write_str("names of labels"),
            Self::LabelValues(name) => write!(f, "values of the label {name}"),
            Self::Metrics => f.write_str("metrics"),
        }
    }
}

/// What an inquiry found, sorted and without repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The things found.
    pub items: FoundItems,
    /// There are more than were asked for.
    pub truncated: bool,
}

/// The things found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundItems {
    /// Series.
    Series(Vec<Labels>),
    /// Names or values of labels.
    Texts(Vec<String>),
    /// Metrics: name, kind (`counter`, `gauge`, … or `unknown`), help and unit, where known.
    Metrics(Vec<MetricInfo>),
}

/// What is known of a metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetricInfo {
    /// Its name.
    pub name: String,
    /// `counter`, `gauge`, `histogram`, … or `unknown`.
    pub kind: String,
    /// What it says of itself, or nothing.
    pub help: String,
    /// Its unit, or nothing.
    pub unit: String,
}

/// Whatever answers questions. `http` knows nothing else of what is behind it.
pub trait Ask: Send + Sync + 'static {
    /// Starts a query. Whatever is wrong with it comes as its last event.
    fn ask(&self, question: Question) -> RunningQuery;

    /// Answers an inquiry. Dropped, it is cancelled.
    fn inquire(
        &self,
        inquiry: Inquiry,
    ) -> Pin<Box<dyn Future<Output = Result<Found, QueryError>> + Send>>;
}
